"""What everything stands on: array types, errors, checks of arguments, files, statistics.

Knows nothing of designs or searches.
"""
