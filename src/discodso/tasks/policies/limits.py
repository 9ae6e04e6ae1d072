"""Limits of trees, on their depth and on the features that they look at, and prices of these features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discodso.base.arrays import Bools, Floats
from discodso.base.checks import is_number
from discodso.base.errors import DeclarationError
from discodso.space.constraints import Constraint
from discodso.space.prefix import Prefix
from discodso.tasks.policies.columns import OBLIQUE, Columns
from discodso.tasks.policies.tree import Forest


@dataclass(frozen=True)
class MaxDepth(Constraint, sees_values=False):
    """No more than so many decisions on the way to a leaf.

    Args:
        most: how many.
    """

    most: int

    def forbidden(self, prefix: Prefix) -> Bools:
        """See `Constraint.forbidden`."""
        mask = prefix.forbid_nothing()
        mask[:, prefix.library.arity > 0] |= (prefix.depth >= self.most)[:, None]
        return mask


@dataclass(frozen=True)
class MaxFeatures(Constraint, sees_values=False):
    """No more than so many different features in a tree.

    Args:
        most: how many.
        looks: for each token the features that it may look at.
    """

    most: int
    looks: tuple[tuple[int, ...], ...]

    def forbidden(self, prefix: Prefix) -> Bools:
        """See `Constraint.forbidden`."""
        table = np.zeros((len(self.looks), 1 + max((max(own, default=0) for own in self.looks), default=0)))
        for k, own in enumerate(self.looks):
            table[k, list(own)] = 1.0
        used = table[prefix.tokens].max(axis=1, initial=0.0)
        more = (1.0 - used) @ table.T
        mask: Bools = (more > 0) & (used.sum(axis=1)[:, None] + more > self.most)
        return mask


def features_of(forest: Forest, count: int) -> Bools:
    """bool[M, count], which features each tree of a forest looks at, in decisions and in leaves."""
    columns: Columns = forest.columns
    offset = np.asarray(forest.offset)
    found = np.zeros((len(offset) - 1, count), np.bool_)
    of_node = np.repeat(np.arange(len(offset) - 1), np.diff(offset))
    feature = np.asarray(columns.feature)
    single = feature >= 0
    found[of_node[single], feature[single]] = True
    sums = np.asarray(columns.count)
    places = np.flatnonzero((feature == OBLIQUE) | (sums > 0))
    if len(places):
        first, term = np.asarray(columns.first), np.asarray(columns.term)
        rows = np.repeat(of_node[places], sums[places])
        begins = np.repeat(first[places] - np.cumsum(sums[places]) + sums[places], sums[places])
        terms = term[begins + np.arange(len(begins))]
        found[rows[terms >= 0], terms[terms >= 0]] = True
    return found


def prices_of(given: Mapping[str, float], names: Sequence[str]) -> Floats:
    """float[F], what a tree pays for each feature, by name or number; 0 for those without a price."""
    prices = np.zeros(len(names))
    for key, price in given.items():
        text = str(key)
        place = names.index(text) if text in names else int(text) if text.isdecimal() else len(names)
        if place >= len(names):
            known = f"{', '.join(names)} (or 0 to {len(names) - 1})"
            raise DeclarationError(f"feature_prices: there is no feature {text!r}; the features are {known}")
        if not is_number(price) or not 0 <= price < np.inf:
            raise DeclarationError(f"feature_prices: {text} must cost 0 or more, got {price!r}")
        prices[place] = float(price)
    return prices
