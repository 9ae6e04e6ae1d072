"""The accuracy-complexity front: the best expressions of every complexity seen."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.base.dominance import front_rows
from discodso.disco.archive import Archive, Pool
from discodso.disco.settings import ArchiveSettings
from discodso.run.task import Refined
from discodso.space.design import Design, DesignBatch
from discodso.space.space import Space
from discodso.space.state import State
from discodso.tasks.regression.export import text
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.expression_space import Fit

_EACH = ArchiveSettings(size=8, niche=1)  # of every complexity, no two with the same skeleton


@dataclass(frozen=True)
class FrontPoint:
    """An expression of the front.

    Attributes:
        complexity: sum of the complexities of its tokens.
        loss: mean error on the training data, as the loss has it.
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

    @property
    def expected_error(self) -> float:
        """The same, or the loss if nothing else is known."""
        return self.loss if self.unseen_error is None else self.unseen_error


class FrontKeeper:
    """A batch objective that remembers the best designs of every complexity; one belongs to one search."""

    def __init__(self, space: Space, fit: Fit) -> None:
        self.fit = fit
        self._space = space
        self._levels: dict[float, Archive] = {}  # by complexity
        self._complexity = np.array([token.complexity for token in fit.program.library.tokens])

    @property
    def designs(self) -> list[Design]:
        """All that are kept, the best of every complexity first."""
        levels = (archive.members.designs for _, archive in sorted(self._levels.items()))
        return [design for rank in zip_longest(*levels) for design in rank if design is not None]

    @property
    def standing(self) -> list[tuple[Design, float]]:
        """The best of every complexity, with its loss."""
        levels = [archive.members for _, archive in sorted(self._levels.items())]
        return [(pool.designs[0], self.fit.loss_of(float(pool.rewards[0]))) for pool in levels]

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
        # A reward of 0 is a failure for the paper's loss, and no better than nothing for others.
        good = np.flatnonzero(np.isfinite(rewards) & (rewards > self._floor))
        order = good[np.argsort(-rewards[good], kind="stable")]
        for level in np.unique(complexity[order]).tolist():
            kept = self._levels.get(level) or Archive.begin(self._space, _EACH)
            least = kept.members.rewards[-1] if len(kept) == _EACH.size else self._floor
            rows = order[complexity[order] == level][: _EACH.size]
            rows = rows[rewards[rows] > least]
            if len(rows):
                found = Pool(designs.select(rows), rewards[rows], np.ones(len(rows)))
                self._levels[level] = kept.add(found, 0)

    def state(self) -> State:
        """What is kept, and a mark of the data, so that it is not gone on with on other data."""
        levels = {repr(level): archive.state() for level, archive in self._levels.items()}
        data = State(data={"mark": self._data_mark()})
        return State.of_parts({"levels": State.of_parts(levels), "data": data})

    def restore(self, state: State) -> None:
        """Go on from a state on the same data."""
        if state.part("data").data["mark"] != self._data_mark():
            raise ValueError("the data are not those of the run")
        levels, empty = state.part("levels"), Archive.begin(self._space, _EACH)
        self._levels = {float(key): empty.restored(self._space, levels.part(key)) for key in levels.data}

    def _data_mark(self) -> str:
        digest = hashlib.sha256()
        for array in (self.fit.columns, self.fit.target, self.fit.weights):
            digest.update(repr(array.shape).encode() + array.tobytes())
        return digest.hexdigest()[:16]

    @property
    def _floor(self) -> float:
        return -math.inf if callable(self.fit.loss) else (-1.0 if self.fit.loss == "r2" else 0.0)


def undominated(points: Sequence[FrontPoint]) -> list[FrontPoint]:
    """Those that no simpler one fits as well, by rising complexity."""
    worth = np.array([(-point.complexity, -point.loss) for point in points]).reshape(-1, 2)
    return [points[row] for row in front_rows(worth).tolist()]


def as_rows(front: Sequence[FrontPoint], chosen: Expression) -> list[dict[str, Any]]:
    """The front as plain data, for tables."""
    numbers = ("complexity", "loss", "validation_loss", "leave_one_out_error", "finite")
    return [
        {
            **{name: getattr(point, name) for name in numbers},
            "chosen": point.expression.design == chosen.design,
            "expression": text(point.expression),
        }
        for point in front
    ]


def front_columns(rows: Sequence[dict[str, Any]]) -> tuple[list[Any], list[Any], list[Any]]:
    """Complexities, losses, and which one was chosen, for plots."""
    complexity, loss, chosen = ([row[key] for row in rows] for key in ("complexity", "loss", "chosen"))
    return complexity, loss, chosen
