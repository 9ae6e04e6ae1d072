"""Runs to look at: curves, figures, pages, comparisons, a server that follows a run.

Reads run folders and results; never changes them.
"""
