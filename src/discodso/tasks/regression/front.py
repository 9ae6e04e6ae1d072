"""The accuracy-complexity front: the best expression of every complexity seen, and choosing one of them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.run.task import Refined
from discodso.space.design import Design, DesignBatch
from discodso.space.space import Space
from discodso.space.state import State
from discodso.tasks.regression.export import text
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.expression_space import Fit


@dataclass(frozen=True)
class FrontPoint:
    """An expression of the front.

    Attributes:
        complexity: sum of the complexities of its tokens.
        loss: mean error on the training data, as the metric has it (1 - reward for a metric of one's own).
        validation_loss: the same on held-out data; None if there is none.
        leave_one_out_error: mean squared error at each row by the fit without it; None if that is not known.
        finite: whether it stays finite on a box twice as wide as the data.
    """

    expression: Expression
    complexity: float
    loss: float
    validation_loss: float | None = None
    finite: bool = True
    leave_one_out_error: float | None = None

    @property
    def unseen_error(self) -> float | None:
        """The best guess of its error on new data: on held-out rows, or else by leaving out one at a time."""
        return self.leave_one_out_error if self.validation_loss is None else self.validation_loss


class FrontKeeper:
    """A batch objective that remembers the best designs of every complexity; one belongs to one search.

    Args:
        each: how many of them, no two with the same skeleton.
    """

    def __init__(self, space: Space, fit: Fit, each: int = 8) -> None:
        self.space = space
        self.fit = fit
        self.best: dict[float, dict[bytes, tuple[float, Design]]] = {}
        self._each = each
        self._complexity = np.array([token.complexity for token in space.library.tokens])

    @property
    def designs(self) -> list[Design]:
        """All that are kept, the best of every complexity first."""
        ranked = [
            (rank, level, design)
            for level, kept in self.best.items()
            for rank, (_, design) in enumerate(kept.values())
        ]
        return [design for _, _, design in sorted(ranked, key=lambda entry: entry[:2])]

    def __call__(self, designs: DesignBatch) -> Floats:
        """Rewards of the designs."""
        rewards = self.fit(designs)
        self._remember(designs, rewards)
        return rewards

    def refine(self, designs: DesignBatch, allowed: Ints) -> Refined:
        """As the fit does it; what comes of it is remembered too."""
        refined = self.fit.refine(designs, allowed)
        self._remember(refined.designs, np.where(refined.calls > 0, refined.rewards, -np.inf))
        return refined

    def _remember(self, designs: DesignBatch, rewards: Floats) -> None:
        used = designs.tokens >= 0
        complexity = np.where(used, self._complexity[np.maximum(designs.tokens, 0)], 0.0).sum(axis=1).round(9)
        # A reward of 0 is a failure for the paper's metric, and no better than nothing for others.
        good = np.flatnonzero(np.isfinite(rewards) & (rewards > self._floor))
        if not len(good):
            return
        order = good[np.lexsort((-rewards[good], complexity[good]))]
        levels, first = np.unique(complexity[order], return_index=True)
        for level, rows in zip(levels.tolist(), np.split(order, first[1:]), strict=True):
            kept = self.best.get(level, {})
            least = min(reward for reward, _ in kept.values()) if len(kept) >= self._each else self._floor
            rows = rows[: self._each][rewards[rows[: self._each]] > least]
            if not len(rows):
                continue
            kept = dict(kept)
            for row, key in zip(rows.tolist(), designs.select(rows).skeletons(), strict=True):
                if key not in kept or rewards[row] > kept[key][0]:
                    kept[key] = (float(rewards[row]), designs[row])
            best = sorted(kept.items(), key=lambda item: -item[1][0])
            self.best[level] = dict(best[: self._each])

    def state(self) -> State:
        """What is kept, and a mark of the data, so that it is not gone on with on other data."""
        rows = [
            [level, reward, design.to_dict()]
            for level, kept in self.best.items()
            for reward, design in kept.values()
        ]
        return State({}, {"best": rows, "data": self._data_mark()})

    def restore(self, state: State) -> None:
        """Go on from a state on the same data."""
        if state.data["data"] != self._data_mark():
            raise ValueError("the data are not those of the run")
        self.best = {}
        for level, reward, data in state.data["best"]:
            design = Design.from_dict(data)
            (key,) = self.space.encode([design]).skeletons()
            self.best.setdefault(float(level), {})[key] = (float(reward), design)

    def _data_mark(self) -> str:
        digest = hashlib.sha256()
        for array in (self.fit.columns, self.fit.target, self.fit.weights):
            digest.update(repr(array.shape).encode() + array.tobytes())
        return digest.hexdigest()[:16]

    @property
    def _floor(self) -> float:
        return -math.inf if callable(self.fit.metric) else (-1.0 if self.fit.metric == "r2" else 0.0)


def undominated(candidates: Sequence[FrontPoint]) -> list[FrontPoint]:
    """Those that no simpler one fits as well, by rising complexity."""
    kept: list[FrontPoint] = []
    for candidate in sorted(candidates, key=lambda c: (c.complexity, c.loss)):
        if not kept or candidate.loss < kept[-1].loss:
            kept.append(candidate)
    return kept


def choose_by_rule(front: Sequence[FrontPoint], selection: str, tolerance: float = 0.02) -> FrontPoint:
    """Pick one: "accuracy" the smallest loss; "validation" the simplest whose error on unseen rows is within the
    tolerance (a share) of the smallest; "complexity" the largest drop of the logarithm of the loss for one unit of
    complexity, among those within half again of the best loss.
    """
    pool = [candidate for candidate in front if candidate.finite] or list(front)
    errors = [c.unseen_error for c in pool if c.unseen_error is not None]
    if selection == "validation" and len(errors) == len(pool):
        limit = (1 + tolerance) * min(errors) + 1e-15
        good = [c for c, error in zip(pool, errors, strict=True) if error <= limit]
        return min(good, key=lambda c: c.complexity)
    if selection == "complexity":
        return _by_complexity(pool)
    return min(pool, key=lambda c: (c.loss, c.complexity))


def _by_complexity(pool: Sequence[FrontPoint]) -> FrontPoint:
    ordered = undominated(pool)
    least = min(c.loss for c in ordered)
    chosen, best_gain = ordered[0], -math.inf
    for before, after in zip([None, *ordered], ordered, strict=False):
        if before is None:
            gain = 0.0
        else:
            drop = math.log(max(before.loss, 1e-300)) - math.log(max(after.loss, 1e-300))
            gain = drop / (after.complexity - before.complexity)
        if after.loss <= 1.5 * least + 1e-15 and gain > best_gain:
            chosen, best_gain = after, gain
    return chosen


def as_rows(front: Sequence[FrontPoint], chosen: Expression) -> list[dict[str, Any]]:
    """The front as plain data, for tables."""
    return [
        {
            "complexity": c.complexity,
            "loss": c.loss,
            "validation_loss": c.validation_loss,
            "leave_one_out_error": c.leave_one_out_error,
            "finite": c.finite,
            "chosen": c.expression.design == chosen.design,
            "expression": text(c.expression),
        }
        for c in front
    ]


def front_columns(
    front: Sequence[FrontPoint], chosen: Expression
) -> tuple[list[float], list[float], list[bool]]:
    """Complexities, losses, and which one was chosen, for plots."""
    picked = [c.expression.design == chosen.design for c in front]
    return [c.complexity for c in front], [c.loss for c in front], picked


def fixed_point(low: Floats, high: Floats) -> Floats:
    """float[d], from which data between low[d] and high[d] are stretched to be twice as wide: their middle, or 0
    where they reach it. Inputs that do not change their sign in the data keep it: the end that would cross 0 then
    goes to a quarter of itself, and the other one further."""
    middle, reach = (low + high) / 2, 0.1 * (high - low)
    middle = np.where(low > 0, np.minimum(middle, 1.75 * low), middle)
    middle = np.where(high < 0, np.maximum(middle, 1.75 * high), middle)
    return np.where((low <= reach) & (high >= -reach), 0.0, middle)


def marked_finite(candidate: FrontPoint, X: Floats, seed: int = 0) -> FrontPoint:
    """Whether the expression stays finite on a box twice as wide as the data, tried at random points."""
    ends = np.array([X.min(axis=0), X.max(axis=0)])
    middle = fixed_point(ends[0], ends[1])
    corners = middle + 2 * (ends - middle)
    points = corners[0] + np.random.default_rng(seed).random((2000, X.shape[1])) * (corners[1] - corners[0])
    values = candidate.expression(np.concatenate((points, corners, X)))
    return replace(candidate, finite=bool(np.isfinite(values).all()))
