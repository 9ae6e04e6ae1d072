"""The front of a run with several objectives: the designs that no other one is better than in all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.dominance import gain, hypervolume, undominated
from discodso.run.evaluation import Evaluation
from discodso.run.result import Scored

_NEAREST = 10  # infeasible designs that are kept until one is feasible
_SETTLING = 10  # feasible designs that settle the point of the hypervolume


class Front:
    """The undominated feasible designs of a run, and their hypervolume; in place of a `Ranking`.

    Of designs with the same values the first is kept. Where evaluations are noisy each counts as it came.

    Args:
        signs: float[m], 1 for an objective to maximise and -1 for one to minimise.
        reference: point[m] of the hypervolume; by default the worst value of each objective among the first ten
            feasible designs, and those that come in one batch with them.

    Attributes:
        candidates: the front, best in the first objective first; until a design is feasible the nearest ones.
        hypervolume: of the front, None before there is one, and before the reference is settled.
        reference: as it was given, or as it was settled; None before.
        newest: the call of the design that joined last.
    """

    raced: tuple[Scored, ...] = ()
    best: None = None  # no design is the best of all

    def __init__(self, signs: Floats, reference: Sequence[float] | None = None) -> None:
        self._signs = signs
        self._points = np.empty((0, len(signs)))  # of the front, turned so that more is better
        self.candidates: list[Scored] = []
        self.reference = None if reference is None else tuple(reference)
        self.hypervolume: float | None = None
        self.newest = 0
        self._met, self._worst = (
            0,
            np.full(len(signs), np.inf),
        )  # feasible designs until the reference is settled

    def take(self, evaluation: Evaluation) -> bool:
        """Take a batch; gives whether the front has become better."""
        goals = evaluation.answer.goals_of(len(self._signs))
        rows = np.flatnonzero(evaluation.feasible)
        if not len(rows):
            return self._take_nearest(evaluation, goals)
        points = self._signs * goals
        if not len(self._points):
            self.candidates = []
        better = False
        for row in rows[undominated(points[rows])].tolist():
            better |= self._take(self._scored(evaluation, goals, row), points[row])
        if self.hypervolume is None:
            self._settle(points[rows])
        order = np.lexsort(-self._points.T[::-1])
        self.candidates, self._points = [self.candidates[row] for row in order], self._points[order]
        return better

    def _settle(self, points: Floats) -> None:
        """Settle the point of the hypervolume, once it is given or enough feasible designs are known."""
        self._met, self._worst = self._met + len(points), np.minimum(self._worst, points.min(axis=0))
        if self.reference is None and self._met >= _SETTLING:
            self.reference = tuple((self._signs * self._worst).tolist())
        if self.reference is not None:
            self.hypervolume = hypervolume(self._points, self._signs * np.array(self.reference))

    def _take(self, scored: Scored, point: Floats) -> bool:
        if (self._points >= point).all(axis=1).any():
            return False
        if self.hypervolume is not None:
            self.hypervolume += gain(point, self._points, self._signs * np.array(self.reference))
        kept = ~(self._points <= point).all(axis=1)
        self._points = np.concatenate((self._points[kept], point[None]))
        self.candidates = [*(self.candidates[row] for row in np.flatnonzero(kept)), scored]
        self.newest = scored.call
        return True

    def _take_nearest(self, evaluation: Evaluation, goals: Floats) -> bool:
        """Keep the infeasible designs that are nearest to what is required, until there are others."""
        if len(self._points):
            return False
        rows = np.flatnonzero(~evaluation.failed).tolist()
        known = {scored.design: scored for scored in self.candidates}
        for row in rows:
            scored = self._scored(evaluation, goals, row)
            known.setdefault(scored.design, scored)
        before = self.candidates[:1]
        self.candidates = sorted(known.values(), key=lambda own: (own.violation, own.call))[:_NEAREST]
        if self.candidates[:1] == before:
            return False
        self.newest = self.candidates[0].call
        return True

    def _scored(self, evaluation: Evaluation, goals: Floats, row: int) -> Scored:
        answer = evaluation.answer
        far, weights = answer.violation, answer.weights
        return Scored(
            evaluation.designs[row],
            float(evaluation.rewards[row]),
            int(evaluation.calls[row]),
            1.0 if weights is None else float(weights[row]),
            violation=0.0 if far is None else float(far[row]),
            goals=tuple(goals[row].tolist()),
        )

    @property
    def top(self) -> tuple[Scored, ...]:
        """The front, best in the first objective first."""
        return tuple(self.candidates)

    def __iter__(self) -> Iterator[Scored]:
        return iter(self.candidates)

    def __len__(self) -> int:
        return len(self._points)

    def reaches(self, target: float) -> bool:
        """No target is for several objectives."""
        return False

    def state(self) -> dict[str, Any]:
        """For JSON."""
        reference = None if self.reference is None else list(self.reference)
        return {
            "top": [scored.to_dict() for scored in self.candidates],
            "hypervolume": self.hypervolume,
            "reference": reference,
            "newest": self.newest,
            "met": self._met,
            "worst": self._worst.tolist() if self._met else None,
        }

    def restore(self, data: Any) -> None:
        """Inverse of `state`; KeyError, TypeError or ValueError for anything else."""
        self.candidates = [Scored.from_dict(scored) for scored in data["top"]]
        volume, reference = data["hypervolume"], data["reference"]
        self.hypervolume = None if volume is None else float(volume)
        self.reference = None if reference is None else tuple(map(float, reference))
        self.newest = int(data["newest"])
        self._met = int(data["met"])
        if self._met:
            self._worst = np.array(data["worst"], np.float64)
        goals = [scored.goals for scored in self.candidates if scored.feasible]
        self._points = self._signs * np.array(goals, np.float64).reshape(-1, len(self._signs))
