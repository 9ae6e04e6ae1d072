"""A tree as indented text, and what all forms of it share: the words of its nodes, and nested decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from discodso.tasks.policies.splits import comparisons
from discodso.tasks.policies.tree import DecisionTree

_DEEPEST_NESTING = 90  # Python reads 100 levels of indentation, and C99 promises 127 of blocks


def node_words(policy: DecisionTree, digits: int = 6) -> list[tuple[str, str]]:
    """Of each node what a decision looks at and what it compares that with, or the name of an action and ""."""
    names = [
        policy.action_name(jump) if split is None else split.subject(policy.feature_name)
        for split, jump in policy.nodes
    ]
    return list(zip(names, comparisons(policy.nodes, digits), strict=True))


def to_text(policy: DecisionTree) -> str:
    """Indented text for people, with names and rounded thresholds."""
    words = node_words(policy)

    def decide(node: int, negated: bool) -> str:
        return f"if {' '.join(words[node])}:"

    return "\n".join(nested(policy, decide, "else:", "", lambda node: words[node][0])) + "\n"


def nested(
    policy: DecisionTree,
    decide: Callable[[int, bool], str],
    otherwise: str,
    end: str,
    leaf: Callable[[int], str],
    returns: bool = False,
) -> Iterator[str]:
    """Lines of the tree as nested ifs.

    Args:
        policy: the tree.
        decide: the line of a decision, by its node; the second argument says whether to negate it.
        otherwise, end: lines between the sides of a decision and after them, the latter unless it is empty.
        leaf: the line of a leaf.
        returns: whether these are the body of a function, whose leaves return. Where its decisions would nest too
            deep none has an else: the smaller of its sides is nested, the other follows.
    """
    flat = returns and policy.depth > _DEEPEST_NESTING
    sizes = [1] * len(policy)
    for node, _, right in reversed(list(policy.decisions())):
        sizes[node] = right - node + sizes[right]
    waiting: list[tuple[str | int, int]] = [(0, int(returns))]  # a line that is made, or a node
    while waiting:
        part, level = waiting.pop()
        space = "    " * level
        if isinstance(part, str):
            yield space + part
            continue
        split, jump = policy.nodes[part]
        if split is None:
            yield space + leaf(part)
            continue
        left, right = part + 1, part + jump
        closing: list[tuple[str | int, int]] = [(end, level)] if end else []
        if flat:
            small, large = sorted((left, right), key=sizes.__getitem__)
            yield space + decide(part, small == right)
            waiting += [(large, level), *closing, (small, level + 1)]
        else:
            yield space + decide(part, False)
            waiting += [*closing, (right, level + 1), (otherwise, level), (left, level + 1)]
