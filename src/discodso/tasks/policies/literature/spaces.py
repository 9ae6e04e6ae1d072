"""The space in which trees of the literature methods are written down, with all their numbers as they are."""

from __future__ import annotations

import math

from discodso.space.tokens import Tree
from discodso.tasks.policies.environments import Interface
from discodso.tasks.policies.policy_options import Splits
from discodso.tasks.policies.splits import Node, Nodes, Oblique, Split
from discodso.tasks.policies.vocabulary import TreeSpace, Vocabulary

_REACH = 1e9  # of thresholds: no observation is beyond
_MOST_NODES = 1023


def wide_space(interface: Interface, splits: Splits) -> TreeSpace:
    """Trees with thresholds anywhere and weights of any size; sums of all features if `splits` is "oblique"."""
    ranges = [(-_REACH, _REACH)] * len(interface.feature_names)
    vocabulary = Vocabulary.of(
        interface.feature_names,
        ranges,
        interface.action_names,
        whole=(),
        splits=splits,
        least_weight=0.0,
    )
    return TreeSpace(vocabulary.tokens, Tree(min_length=1, max_length=_MOST_NODES), vocabulary=vocabulary)


def plain(nodes: Nodes) -> Nodes:
    """The tree with sums of one feature as plain splits; it acts the same.

    "-x < -c" becomes "x < c'" with its sides exchanged, where c' is the float after c.
    """
    node, jump = nodes[0]
    if jump == 0:
        return nodes
    left, right = plain(nodes[1:jump]), plain(nodes[jump:])
    made: Node = node
    if isinstance(node, Oblique):
        terms = tuple((feature, weight) for feature, weight in node.terms if weight != 0.0)
        if not terms:  # 0 < threshold
            return left if node.threshold > 0 else right
        made = Oblique(terms, node.threshold)
        if len(terms) == 1:
            (feature, weight) = terms[0]
            if weight < 0:
                left, right = right, left
                made = Split(feature, math.nextafter(node.threshold / weight, math.inf))
            else:
                made = Split(feature, node.threshold / weight)
    return ((made, 1 + len(left)), *left, *right)
