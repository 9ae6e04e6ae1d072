"""The kinds of tasks: the paper's bitstring, equations, tree policies.

Each builds a task for the run layer, and says how its designs are shown.
"""
