"""Trees that imitate: grown split by split from observations and what a teacher did, the best gain first.

A gain is by how much the squared error of the leaves falls, which for choices, written as one number for each, is
the Gini index. A leaf fits a constant, or a sum of features. Splits on sums are the directions of least squares,
of two features or of all, on the scale on which a run has them (`vocabulary.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.splits import Nodes, Oblique, Split
from discodso.tasks.policies.vocabulary import IDLE, Vocabulary

_PLACES = 48  # where a range is cut, if leaves are sums
_PLAINER = 1.1  # times the gain of the best split on one feature, that one on a sum must have
_SMALL = 0.1  # a weight below this share of the largest is left out, as in `vocabulary.py`
_NEARER = (0.3, 0.1, 0.03)  # of the rows, to which the next direction is fitted
_RIDGE = 1e-6
_WIDEST = 8  # features in pairs, and of splits between leaves that are sums of many
_CENSORED = 30  # steps of least squares where actions end at their bounds


@dataclass(frozen=True)
class Grower:
    """How trees of a run are grown.

    Attributes:
        vocabulary: of the run.
        pairs, mixed: whether there are splits on two features, on all.
        linear: whether leaves are sums.
        choices: numbers of the actions; empty where actions are numbers.
        whole: whether these are integers.
    """

    vocabulary: Vocabulary
    pairs: bool
    mixed: bool
    linear: bool
    choices: tuple[int, ...]
    whole: bool = False

    def targets(self, actions: Floats) -> Floats:
        """float[n, m] of actions float[n, a]: a column for each choice, or numbers as shares of their bounds."""
        if self.choices:
            return np.asarray(actions == np.array(self.choices, np.float64), np.float64)
        m = self.vocabulary.meanings
        return np.asarray((actions - m.middle) / np.where(m.span > 0, m.span, 1.0))

    def grow(self, x: Floats, actions: Floats, leaves: int) -> Iterator[Nodes]:
        """Trees with 1, 2, ... leaves, for observations x float[n, F]; ends where no split gains anything."""
        parts = _Growing(self, x, self.targets(actions))
        yield parts.nodes()
        while len(parts.rows) < leaves and parts.split():
            yield parts.nodes()


@dataclass(frozen=True)
class _Cut:
    gain: float
    node: Split | Oblique
    left: Ints
    right: Ints


class _Growing:
    """A growing tree: its leaves by their paths, with their rows and the best way to split each."""

    def __init__(self, grower: Grower, x: Floats, targets: Floats) -> None:
        self.grower, self.x, self.y = grower, x, targets
        m = grower.vocabulary.meanings
        self.features = [feature for _, feature in grower.vocabulary.thresholds()]
        self.members = np.unique(m.members[m.members >= 0])
        self.z = (x[:, self.members] - m.centre[self.members]) / m.width[self.members]
        ones, shown = (
            np.ones((len(x), 1)),
            (x[:, self.members] - m.origin[self.members]) / m.unit[self.members],
        )
        self.basis = np.hstack([ones, shown]) if grower.linear else ones
        self.least = 2 * self.basis.shape[1] if grower.linear else 1
        self.splits: dict[str, Split | Oblique] = {}
        self.leaves: dict[str, Leaf] = {}
        self.rows: dict[str, Ints] = {"": np.arange(len(x))}
        self.best: dict[str, _Cut | None] = {"": self._best(self.rows[""])}

    def split(self) -> bool:
        """Split where most is gained; False if nothing is."""
        able = {path: cut for path, cut in self.best.items() if cut is not None}
        if not able:
            return False
        path = max(able, key=lambda own: (able[own].gain, -len(own), own))
        cut = able[path]
        self.splits[path] = cut.node
        del self.rows[path], self.best[path]
        for side, rows in (("l", cut.left), ("r", cut.right)):
            self.rows[path + side], self.best[path + side] = rows, self._best(rows)
        return True

    def nodes(self, path: str = "") -> Nodes:
        """The tree as it stands."""
        if path in self.rows:
            if path not in self.leaves:
                self.leaves[path] = self._leaf(self.rows[path])
            return ((self.leaves[path], 0),)
        left, right = self.nodes(path + "l"), self.nodes(path + "r")
        return ((self.splits[path], 1 + len(left)), *left, *right)

    # --------------------------------------------------------------------------------------------- splits

    def _best(self, rows: Ints) -> _Cut | None:
        y, basis = self.y[rows], self.basis[rows]
        alike = not self.grower.linear and not np.ptp(y, axis=0).any()
        if len(rows) < 2 * self.least or alike:
            return None
        found: list[tuple[float, Split | Oblique, Floats]] = []
        features = np.array(self.features, np.int64)
        if basis.shape[1] > 2 * _WIDEST:
            features = features[_telling(self.x[np.ix_(rows, features)], y)]
        for feature in features.tolist():
            column = self.x[rows, feature]
            gain, threshold = best_threshold(column, basis, y, self.least)
            found.append((gain, Split(feature, threshold), column))
        for gain, threshold, weights in self._sums(rows, y, basis):
            column = self.z[rows] @ weights
            found.append((gain / _PLAINER, self._oblique(weights, threshold), column))
        gain, node, column = max(found, key=lambda own: own[0])
        if not gain > 1e-9 * len(rows):
            return None
        if isinstance(node, Oblique):  # added up as the tree does, which may differ by a rounding
            column = np.zeros(len(rows))
            for feature, weight in node.terms:
                column += weight * self.x[rows, feature]
        left = column < node.threshold
        return _Cut(gain, node, rows[left], rows[~left]) if 0 < left.sum() < len(rows) else None

    def _sums(self, rows: Ints, y: Floats, basis: Floats) -> Iterator[tuple[float, float, Floats]]:
        """Gains and thresholds of sums, and the weights of `members`.

        A direction of least squares minds rows that are far from where it parts them; so it is fitted again to
        those that are near, if all features may be in it.
        """
        if not (self.grower.pairs or self.grower.mixed) or len(self.members) < 2:
            return
        z, every = self.z[rows], tuple(range(len(self.members)))
        pairs = combinations(sorted(_telling(z, y).tolist()), 2)
        groups = list(pairs) if self.grower.pairs else [every]
        for target in y.T:
            near = np.arange(len(rows))
            for share in _NEARER if self.grower.mixed else (1.0,):
                best = 0.0, 0.0, np.zeros(len(every))
                for weights in _directions(z[near], target[near], groups):
                    gain, threshold = best_threshold(z @ weights, basis, y, self.least)
                    best = max(best, (gain, threshold, weights), key=lambda own: own[0])
                if not best[0] > 0:
                    break
                yield best
                far = np.abs(z @ best[2] - best[1])
                near = np.flatnonzero(far <= np.quantile(far, share))

    def _oblique(self, weights: Floats, threshold: float) -> Oblique:
        m, used = self.grower.vocabulary.meanings, np.flatnonzero(weights)
        features = self.members[used]
        scaled = weights[used] / m.width[features]
        unit = float(np.abs(scaled[np.argmax(np.abs(weights[used]))]))
        moved = threshold + float(scaled @ m.centre[features])
        terms = tuple((int(n), float(weight / unit)) for n, weight in zip(features, scaled, strict=True))
        return Oblique(terms, moved / unit)

    # --------------------------------------------------------------------------------------------- leaves

    def _leaf(self, rows: Ints) -> Leaf:
        y = self.y[rows]
        if self.grower.choices:
            return Leaf(self.grower.choices[int(np.argmax(y.sum(axis=0)))])
        m = self.grower.vocabulary.meanings
        if not self.grower.linear:
            numbers = m.middle + m.span * y.mean(axis=0)
            return Leaf(0, tuple((np.round(numbers) if self.grower.whole else numbers).tolist()))
        found = censored_fit(self.basis[rows], y, IDLE)  # [1 + members, actions]
        scaled = found[1:] / m.unit[self.members][:, None] * m.span
        numbers = m.middle + m.span * found[0] - m.origin[self.members] @ scaled
        sums = tuple(
            tuple((int(n), float(w)) for n, w in zip(self.members, own, strict=True) if w) for own in scaled.T
        )
        return Leaf(0, tuple(numbers.tolist()), sums)


def _directions(z: Floats, target: Floats, groups: Sequence[tuple[int, ...]]) -> Iterator[Floats]:
    """float[k], weights of least squares for each group of the k columns of z, without small ones."""
    centred = z - z.mean(axis=0)
    within, towards = centred.T @ centred, centred.T @ (target - target.mean())
    for group in groups:
        own = np.ix_(group, group)
        ridge = _RIDGE * max(float(np.trace(within[own])), 1e-12) * np.eye(len(group))
        weights = np.zeros(z.shape[1])
        weights[list(group)] = np.linalg.solve(within[own] + ridge, towards[list(group)])
        weights[np.abs(weights) < _SMALL * np.abs(weights).max()] = 0.0
        if np.count_nonzero(weights) >= 2:
            yield weights


def _telling(columns: Floats, y: Floats) -> Ints:
    """The few columns that by themselves tell most of the targets in a line."""
    centred = columns - columns.mean(axis=0)
    told = ((centred.T @ (y - y.mean(axis=0))) ** 2).sum(axis=1) / np.maximum(
        (centred**2).sum(axis=0), 1e-300
    )
    return np.argsort(-told, kind="stable")[:_WIDEST]


def best_threshold(column: Floats, basis: Floats, y: Floats, least: int) -> tuple[float, float]:
    """The gain of the best threshold on a column, with `least` rows on either side, and that threshold.

    Args:
        column: float[n], finite.
        basis: float[n, p], of a leaf; one column of ones for constants.
        y: float[n, m], targets.
        least: rows.
    """
    order = np.argsort(column, kind="stable")
    ordered, n = column[order], len(column)
    places = np.arange(least, n - least + 1)
    places = places[ordered[places - 1] < ordered[np.minimum(places, n - 1)]]
    if not len(places):
        return 0.0, 0.0
    if basis.shape[1] == 1:
        total = np.cumsum(y[order], axis=0)
        left, whole = total[places - 1], total[-1]
        counts = places[:, None]
        gains = (left**2 / counts + (whole - left) ** 2 / (n - counts)).sum(axis=1) - (whole**2 / n).sum()
    else:  # at some places, then closer around the best of them
        every, b, target = places, basis[order], y[order]
        for _ in range(2):
            places = every[np.unique(np.linspace(0, len(every) - 1, _PLACES).astype(int))]
            gains = _gains(b, target, places)
            around = places[np.clip(np.argmax(gains) + np.array([-1, 1]), 0, len(places) - 1)]
            every = every[(every >= around[0]) & (every <= around[1])]
    at = int(np.argmax(gains))
    place = int(places[at])
    low, high = float(ordered[place - 1]), float(ordered[place])
    middle = low + (high - low) / 2
    return float(gains[at]), middle if low < middle else high


def _gains(basis: Floats, y: Floats, places: Ints) -> Floats:
    """float[k], by how much least squares explain more on either side of a place than on both together."""
    pieces = [slice(start, end) for start, end in pairwise([0, *places.tolist(), len(y)])]
    within = np.cumsum([basis[piece].T @ basis[piece] for piece in pieces], axis=0)
    towards = np.cumsum([basis[piece].T @ y[piece] for piece in pieces], axis=0)
    both, last = (within[-1:], towards[-1:]), (within[-1] - within[:-1], towards[-1] - towards[:-1])
    return _explained(within[:-1], towards[:-1]) + _explained(*last) - _explained(*both)


def _explained(within: Floats, towards: Floats) -> Floats:
    """float[k], how much of the squares of targets least squares explain, from [k, p, p] and [k, p, m]."""
    size = within.shape[1]
    ridge = _RIDGE * np.trace(within, axis1=1, axis2=2)[:, None, None] / size * np.eye(size)
    found: Floats = (np.linalg.solve(within + ridge, towards) * towards).sum(axis=(1, 2))
    return found


def censored_fit(basis: Floats, y: Floats, idle: float = 0.0) -> Floats:
    """float[p, m], least squares of y in [-1, 1] by sums that are held within these ends.

    Rows where both are at an end say nothing; the best of some steps of fitting the others is taken. Weights
    below `idle` become 0, but for that of the first column, and the others are fitted again.
    """
    found = np.stack([_censored(basis, own) for own in y.T], axis=1)
    for column, own in zip(found.T, y.T, strict=True):
        kept = np.abs(column) >= idle
        kept[0] = True
        if not kept.all():
            column[:] = 0.0
            column[kept] = _censored(basis[:, kept], own)
    return found


def _censored(basis: Floats, y: Floats) -> Floats:
    size = basis.shape[1]
    best, least, known = np.zeros(size), np.inf, np.ones(len(y), np.bool_)
    for _ in range(_CENSORED):
        own = basis[known]
        within = own.T @ own
        ridge = _RIDGE * max(float(np.trace(within)) / size, 1e-12) * np.eye(size)
        found = np.linalg.solve(within + ridge, own.T @ y[known])
        sums = basis @ found
        error = float(((np.clip(sums, -1, 1) - y) ** 2).sum())
        if error < least:
            best, least = found, error
        beyond = ((y >= 1) & (sums >= 1)) | ((y <= -1) & (sums <= -1))
        if (known == ~beyond).all():
            break
        known = ~beyond
    return best
