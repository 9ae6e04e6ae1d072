"""A tree as Python source code."""

from __future__ import annotations

from discodso.tasks.policies.export.words import nested, node_words
from discodso.tasks.policies.tree import DecisionTree


def to_python(policy: DecisionTree) -> str:
    """A Python function `act` of one observation, a sequence of numbers, that needs no import."""
    names = [name for name, _ in node_words(policy)]

    def line(node: int, negated: bool) -> str:
        split, action = policy.nodes[node]
        code = f"return {action}" if split is None else f"if {'not ' * negated}{split.python()}:"
        return f"{code}  # {names[node]}"

    head = ["def act(x):", '    """The action for one observation; NaN counts as not less."""']
    return "\n".join([*head, *nested(policy, line, "else:", returns=True)]) + "\n"
