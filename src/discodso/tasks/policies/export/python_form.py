"""A tree as Python source code."""

from __future__ import annotations

import keyword

from discodso.tasks.policies.export.source import DEEPEST_NESTING, checked_name, checked_nodes, nested
from discodso.tasks.policies.export.words import action_words, feature_words
from discodso.tasks.policies.tree import DecisionTree


def to_python(policy: DecisionTree, function_name: str = "act") -> str:
    """A Python function of one observation, a sequence of numbers, that needs no import."""
    name = checked_name(function_name, frozenset({*keyword.kwlist, "float"}))
    nodes = checked_nodes(policy)
    # float() matters: NumPy would round the threshold to the float32 of the observation.
    head = [
        f"def {name}(x):",
        '    """The action for one observation; NaN counts as not less."""',
    ]
    if policy.depth > DEEPEST_NESTING:
        features, thresholds, jumps = zip(*nodes, strict=True)
        body = [
            f"    feature = {features!r}",
            f"    threshold = {thresholds!r}",
            f"    jump = {jumps!r}",
            "    node = 0",
            "    while feature[node] >= 0:  # the left child comes next",
            "        node = node + 1 if float(x[feature[node]]) < threshold[node] else jump[node]",
            "    return jump[node]",
        ]
    else:
        body = list(
            nested(
                policy,
                lambda node: (
                    f"if float(x[{nodes[node][0]}]) < {nodes[node][1]!r}:"
                    f"  # {feature_words(policy, nodes[node][0])}"
                ),
                "else:",
                "",
                lambda node: f"return {nodes[node][2]}  # {action_words(policy, nodes[node][2])}",
                indent=1,
            )
        )
    return "\n".join(head + body) + "\n"
