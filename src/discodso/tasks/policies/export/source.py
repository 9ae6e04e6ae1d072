"""What the forms with nested decisions share."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator

from discodso.base.errors import DeclarationError
from discodso.tasks.policies.tree import DecisionTree

DEEPEST_NESTING = 90  # Python reads 100 levels of indentation, and C99 promises 127 of blocks


def checked_name(name: str, reserved: frozenset[str]) -> str:
    """A name for a function, refused if the language would not take it."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name, flags=re.ASCII) or name in reserved:
        raise DeclarationError(f"function_name must be an identifier that is not reserved, got {name!r:.60}")
    return name


def checked_nodes(policy: DecisionTree) -> list[tuple[int, float, int]]:
    """Nodes as plain numbers, because those of NumPy do not print as source code."""
    nodes = [(int(feature), float(threshold), int(jump)) for feature, threshold, jump in policy.nodes]
    for node, (_, threshold, _) in enumerate(nodes):
        if not math.isfinite(threshold):
            raise DeclarationError(f"threshold of node {node} must be a finite number, got {threshold}")
    return nodes


def nested(
    policy: DecisionTree,
    decide: Callable[[int], str],
    otherwise: str,
    end: str,
    leaf: Callable[[int], str],
    indent: int,
) -> Iterator[str]:
    """Lines of the tree as nested ifs; `end` closes a decision unless it is empty."""
    waiting: list[tuple[str | int, int]] = [(0, indent)]  # a line that is made, or a node
    while waiting:
        part, level = waiting.pop()
        space = "    " * level
        if isinstance(part, str):
            yield space + part
        elif policy.feature[part] < 0:
            yield space + leaf(part)
        else:
            yield space + decide(part)
            if end:
                waiting.append((end, level))
            waiting += [(policy.jump[part], level + 1), (otherwise, level), (part + 1, level + 1)]
