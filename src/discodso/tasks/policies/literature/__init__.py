"""The three methods that the paper compares its trees with: they learn inside the episodes of an environment.

Their settings stand in `baselines/literature.py`, as those of all methods do.
"""
