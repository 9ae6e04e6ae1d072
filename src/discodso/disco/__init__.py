"""The method: a network that proposes designs, what it learns from, and the other proposers beside it.

Knows spaces; is told rewards, and knows nothing of where they come from.
"""
