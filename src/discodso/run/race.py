"""The race at the end of a run: its calls, which are counted apart, and what a checkpoint holds of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discodso.disco.method import Resumable
from discodso.run.confirmation import Confirmation
from discodso.run.evaluation import Evaluation, Evaluator
from discodso.run.history import HistoryRow
from discodso.run.objective_calls import NOTHING_KNOWN, Answer
from discodso.run.result import Failure, Ranking, Scored
from discodso.space.design import DesignBatch
from discodso.space.space import Space
from discodso.space.state import State

FAILURES_KEPT = 100


@dataclass(frozen=True)
class Race:
    """A confirmation within a run.

    Attributes:
        state: of it.
        after: calls of the search before it.
        counts: of its evaluator before the next round, with those of earlier races of a run that was made longer.
        seconds: since the start of the run.
        rows: history of the rounds so far.
        failures: of the rounds so far.
        known: answers of the next round, as far as there are any.
        objective: what an objective that remembers something does then; None for others.
    """

    state: Confirmation
    after: int
    counts: Mapping[str, float]
    seconds: float = 0.0
    rows: tuple[HistoryRow, ...] = ()
    failures: tuple[Failure, ...] = ()
    known: Answer = NOTHING_KNOWN
    objective: State | None = None

    @property
    def spent(self) -> dict[str, float]:
        """Counts with those of the unfinished round."""
        return {
            "calls": self.counts["calls"] + len(self.known.rewards),
            "cost": self.counts["cost"] + self.known.cost,
            "failure_count": self.counts["failure_count"] + len(self.known.reasons),
        }

    def to_state(self) -> State:
        """For a checkpoint."""
        data = {
            "state": self.state.to_dict(),
            "after": self.after,
            "counts": dict(self.counts),
            "seconds": self.seconds,
            "rows": [row.to_dict() for row in self.rows],
            "failures": [failure.to_record() for failure in self.failures],
        }
        own = State({}, data).with_part("known", self.known.to_state())
        return own if self.objective is None else own.with_part("objective", self.objective)

    @classmethod
    def from_state(cls, state: State) -> Race:
        """Inverse of `to_state`; KeyError, TypeError, ValueError or AttributeError for anything else."""
        data = state.data
        return cls(
            Confirmation.from_dict(data["state"]),
            int(data["after"]),
            {key: data["counts"][key] + 0 for key in ("calls", "cost", "failure_count")},
            float(data["seconds"]),
            tuple(HistoryRow.from_dict(row) for row in data["rows"]),
            tuple(Failure.from_record(failure) for failure in data["failures"]),
            Answer.from_state(state.part("known")),
            state.part("objective") if "objective" in data else None,
        )


class Confirmer:
    """Holds the race of a run, and counts the calls of all that it had.

    Args:
        evaluator: with seeds of its own.
        kept_calls: of the budget, for the race; 0 for none.

    Attributes:
        race: the last one, of this run or of its checkpoint; None before it, and where the search has gone on.
        racing: whether it has begun.
    """

    def __init__(self, evaluator: Evaluator, kept_calls: int) -> None:
        self.evaluator = evaluator
        self.kept_calls = kept_calls
        self.race: Race | None = None
        self.racing = False

    @property
    def calls(self) -> int:
        """Of all races so far."""
        return self.evaluator.calls

    @property
    def spent(self) -> int:
        """The same for a run that goes on, with calls whose answers are only kept."""
        return self.calls if self.race is None else int(self.race.spent["calls"])

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Of the race, once it has begun."""
        return self.race.failures if self.race is not None and self.racing else ()

    def search_budget(self, budget: int) -> int:
        """What is not kept for the race, nor was spent on one before; where one has begun at least up to there."""
        left = budget - self.kept_calls - self.spent
        return left if self.race is None else max(left, self.race.after)

    def leaders(self, ranking: Ranking, top: int) -> Ranking:
        """The best designs: those of the race first, once it has told something."""
        raced = self.race.state.ranked if self.race is not None and self.racing else ()
        known = {scored.design for scored in raced}
        others = (scored for scored in ranking.top if scored.design not in known)
        return Ranking.of((*raced, *others)[:top])

    def numbered(self, evaluation: Evaluation) -> Evaluation:
        """A batch of the search with calls counted from the start of the run, races included.

        Leaves a race that lies behind; its failures come before those of the batch.
        """
        before, race = self.calls, self.race
        border = np.inf if race is None else race.after
        behind = self.leave() if evaluation.calls.max(initial=0) > border else ()
        raced = before, self.calls
        if not any(raced):
            return evaluation
        own = (replace(f, call=f.call + raced[f.call > border]) for f in evaluation.failures)
        calls = evaluation.calls + np.where(evaluation.calls > border, raced[1], raced[0])
        return replace(evaluation, calls=calls, failures=(*behind, *own))

    def leave(self) -> tuple[Failure, ...]:
        """The search goes on behind the race, whose calls stay counted; gives its failures."""
        race, self.race = self.race, None
        if race is None:
            return ()
        self.evaluator.take_counts(race.spent)
        return race.failures

    def start(self, ranked: Sequence[Scored], after: int, budget: int) -> Race:
        """Begin, or go on with the race that this search has begun before; any other was left."""
        if self.race is None:
            calls = min(self.kept_calls, budget - after - self.calls)
            self.race = Race(Confirmation.of(ranked, calls), after, self.evaluator.counts())
        self.evaluator.take_counts(self.race.counts)
        self.racing = True
        return self.race

    def next_round(self, space: Space) -> DesignBatch | None:
        """What to evaluate next, None after the last round."""
        return None if self.race is None else self.race.state.batch(space)

    def round(
        self, designs: DesignBatch, started: float, out_of_time: Callable[[], bool], objective: Any
    ) -> tuple[Evaluation, Race | None]:
        """Evaluate a round, and the race to save in its place if it was cut short, to be finished later."""
        assert self.race is not None
        race = self.race
        begun = self.evaluator.begin(designs, 0 if out_of_time() else len(designs), race.known)
        evaluation = self.evaluator.finish(begun, lambda _: out_of_time())
        race = replace(
            race,
            seconds=time.monotonic() - started,
            objective=objective.state() if isinstance(objective, Resumable) else None,
        )
        failures = [replace(failure, call=race.after + failure.call) for failure in evaluation.failures]
        self.race = replace(
            race,
            state=race.state.told(evaluation.rewards, evaluation.answer.weights),
            counts=self.evaluator.counts(),
            failures=(*race.failures, *failures)[:FAILURES_KEPT],
            known=NOTHING_KNOWN,
        )
        short = len(evaluation.rewards) < len(designs)
        return evaluation, replace(race, known=evaluation.answer) if short else None

    def add(self, row: HistoryRow) -> None:
        """The history of a round."""
        assert self.race is not None
        self.race = replace(self.race, rows=(*self.race.rows, row))
