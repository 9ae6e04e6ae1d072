"""The tasks of the paper."""
