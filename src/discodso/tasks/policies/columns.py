"""Nodes of trees as columns, and how an observation walks them: in Python, and inside compiled loops."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.splits import Nodes, Oblique, Split
from discodso.tasks.policies.terms import Terms

LEAF, OBLIQUE = -1, -2  # in place of the feature of a univariate split
NUMBER = -1  # in place of the feature of a term: a number of a leaf, whose terms follow


# The cache of compiled code does not notice a change here: touch `_simulators.py`, `lunar/_episodes.py` and
# `vocabulary.py` as well.
class Columns(NamedTuple):
    """Nodes as columns, for walking: arrays in compiled code, lists in Python.

    Attributes:
        feature: of a univariate split; LEAF, or OBLIQUE for a split of several features.
        threshold: of a split; 0.0 for a leaf.
        jump: how far ahead the right child is; the action of a leaf.
        first, count: where the terms of an oblique split or a leaf begin in the next two, and how many there are.
        term, weight: a feature and its weight. In a leaf each number comes before its terms, with NUMBER.
    """

    feature: Any
    threshold: Any
    jump: Any
    first: Any
    count: Any
    term: Any
    weight: Any

    @classmethod
    def of(cls, nodes: Nodes) -> Columns:
        """Nodes as lists."""
        rows, terms = [], list[tuple[int, float]]()
        for node, jump in nodes:
            begin = len(terms)
            if isinstance(node, Leaf):
                for number, own in node.sums:
                    terms += [(NUMBER, number), *own]
                rows.append((LEAF, 0.0, node.action, begin, len(terms) - begin))
            elif isinstance(node, Oblique):
                terms += node.terms
                rows.append((OBLIQUE, node.threshold, jump, begin, len(terms) - begin))
            else:
                rows.append((node.feature, node.threshold, jump, begin, 0))
        columns: list[Any] = [list(column) for column in zip(*rows, strict=True)]
        return cls(*columns, [n for n, _ in terms], [w for _, w in terms])  # type: ignore[call-arg]

    def nodes(self) -> Nodes:
        """Inverse of `of`, for lists and arrays."""
        *rows, term, weight = (np.asarray(column).tolist() for column in self)
        found: list[tuple[Split | Oblique | Leaf, int]] = []
        for feature, threshold, jump, first, count in zip(*rows, strict=True):
            terms = list(zip(term[first : first + count], weight[first : first + count], strict=True))
            if feature == LEAF:
                found.append((_leaf(jump, terms), 0))
            elif feature == OBLIQUE:
                found.append((Oblique(tuple(terms), threshold), jump))
            else:
                found.append((Split(feature, threshold), jump))
        return tuple(found)

    def tree(self, begin: int, end: int) -> Columns:
        """The tree of nodes `begin` to before `end`, as lists; its terms stay where they are."""
        rows = (column[begin:end].tolist() for column in self[:5])
        return Columns(
            *rows, *(column if isinstance(column, list) else column.tolist() for column in self[5:])
        )

    @staticmethod
    def joined(trees: Sequence[Columns]) -> Columns:
        """Several trees one after the other, as arrays."""
        begin = np.cumsum([0, *(len(tree.term) for tree in trees)]).tolist()
        types = (np.int64, np.float64, np.int64, np.int64, np.int64, np.int64, np.float64)
        whole = [np.concatenate([np.asarray(part, kind) for part in column])
                 for column, kind in zip(zip(*trees, strict=True), types, strict=True)]  # fmt: skip
        shift = np.repeat(begin[:-1], [len(tree.feature) for tree in trees])
        whole[3] += shift
        return Columns(*whole)


def _leaf(action: int, terms: Sequence[tuple[int, float]]) -> Leaf:
    places = [at for at, (term, _) in enumerate(terms) if term == NUMBER]
    weights: tuple[Terms, ...] = tuple(tuple(terms[a + 1 : b]) for a, b in pairwise([*places, len(terms)]))
    return Leaf(action, tuple(terms[at][1] for at in places), weights if any(weights) else ())


@register_jitable
def walk(columns: Columns, node: int, x: Any) -> int:
    """The leaf where observation x ends, from a node on; x has float64s, or Python's."""
    feature, threshold, jump = columns.feature, columns.threshold, columns.jump
    while True:
        while feature[node] >= 0:
            node = node + 1 if x[feature[node]] < threshold[node] else node + jump[node]
        if feature[node] == LEAF:
            return node
        total = 0.0
        for at in range(columns.first[node], columns.first[node] + columns.count[node]):
            total += columns.weight[at] * x[columns.term[at]]
        node = node + 1 if total < threshold[node] else node + jump[node]


@register_jitable
def fill_action(columns: Columns, leaf: int, x: Any, low: Any, high: Any, action: Any) -> None:
    """The numbers of a leaf for observation x, within their bounds, into `action`."""
    place = -1
    for at in range(columns.first[leaf], columns.first[leaf] + columns.count[leaf]):
        if columns.term[at] < 0:
            place += 1
            action[place] = columns.weight[at]
        else:
            action[place] += columns.weight[at] * x[columns.term[at]]
    for place in range(len(action)):
        if not action[place] >= low[place]:  # NaN too
            action[place] = low[place]
        elif action[place] > high[place]:
            action[place] = high[place]


@register_jitable
def mark_used(columns: Columns, first: int, last: int, used: Any) -> None:
    """Set used[n] to 1 for each feature n that the nodes from `first` to before `last` look at."""
    for node in range(first, last):
        if columns.feature[node] >= 0:
            used[columns.feature[node]] = 1
        for at in range(columns.first[node], columns.first[node] + columns.count[node]):
            if columns.term[at] >= 0:
                used[columns.term[at]] = 1
