"""A tree as Python source code."""

from __future__ import annotations

from discodso.tasks.policies.export.words import nested, node_words
from discodso.tasks.policies.tree import DecisionTree


def to_python(policy: DecisionTree) -> str:
    """A Python function `act` of one observation, a sequence of numbers, that needs no import."""
    names = [name for name, _ in node_words(policy)]

    def decide(node: int, negated: bool) -> str:
        split = policy.nodes[node][0]
        assert split is not None
        return f"if {'not ' if negated else ''}{split.python()}:  # {names[node]}"

    def leaf(node: int) -> str:
        return f"return {policy.nodes[node][1]}  # {names[node]}"

    head = ["def act(x):", '    """The action for one observation; NaN counts as not less."""']
    return "\n".join([*head, *nested(policy, decide, "else:", "", leaf, returns=True)]) + "\n"
