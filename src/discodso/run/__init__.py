"""A search from start to end: task, evaluation, loop, result, the folder of a run, settings files.

Knows methods by their protocol, and tasks by their objective.
"""
