"""The compiled search for equations: every step works on arrays of tokens, none on one design at a time in Python.

`search.py` puts the steps together; the other modules are the steps. It knows expressions and their fit only.
"""
