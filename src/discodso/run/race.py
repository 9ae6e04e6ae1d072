"""The end of a noisy search: its best designs are evaluated again, on fresh seeds, which choose the winner.

The best of many noisy rewards is mostly a lucky one. So the best designs of a search race once more: each round
evaluates all that are left equally often, and the better half goes on. Only these evaluations count, since the
earlier ones have chosen the candidates; the mean of the winner is nearly free of luck.

Calls of a race are counted and seeded apart from those of the search, which may go on behind it with a larger
budget, and then goes as if there had been no race.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from discodso.base.arrays import Floats
from discodso.disco.method import Resumable
from discodso.run.clock import Clock
from discodso.run.evaluation import Evaluation, Evaluator
from discodso.run.history import HistoryRow
from discodso.run.objective_calls import NO_CALLS, NOTHING_KNOWN, Answer, Counts
from discodso.run.result import CANDIDATES, Failure, Scored
from discodso.space.design import DesignBatch
from discodso.space.space import Space
from discodso.space.state import State

FAILURES_KEPT = 100
_FIRST = 2  # evaluations for each in the first round, at least


@dataclass(frozen=True)
class Race:
    """A race between two rounds, and all that a checkpoint holds of it.

    Attributes:
        candidates: as the search left them; those still in the race first.
        fresh: for each what the race says of it, None before its first success.
        racing: how many are left.
        rounds: still to come.
        calls: objective calls for these rounds.
        after: calls of the search before it.
        counts: before the next round, with those of earlier races of a run that was made longer.
        seconds: since the start of the run.
        rows: history of the rounds so far.
        failures: of the rounds so far.
        known: answers of the next round, as far as there are any.
        objective: what an objective that remembers something does then; None for others.
    """

    candidates: tuple[Scored, ...]
    fresh: tuple[Scored | None, ...]
    racing: int
    rounds: int
    calls: int
    after: int = 0
    counts: Counts = NO_CALLS
    seconds: float = 0.0
    rows: tuple[HistoryRow, ...] = ()
    failures: tuple[Failure, ...] = ()
    known: Answer = NOTHING_KNOWN
    objective: State | None = None

    def __post_init__(self) -> None:
        count = len(self.candidates)
        if len(self.fresh) != count or not 0 <= self.racing <= count or (self.rounds and not self.racing):
            raise ValueError("a race whose numbers do not fit")
        if self.rounds < 0 or self.calls < self.rounds * self.racing:
            raise ValueError("a race with fewer calls than it needs")

    @classmethod
    def of(cls, ranked: Sequence[Scored], calls: int, after: int = 0, counts: Counts = NO_CALLS) -> Race:
        """A race of the best of these designs, as many as so many objective calls in all are enough for."""
        halvings = 0
        while (count := 2 ** (halvings + 1)) <= min(CANDIDATES, len(ranked)) and (
            _FIRST * count * (halvings + 1) <= calls
        ):
            halvings += 1
        if not ranked or calls < _FIRST or (len(ranked) > 1 and not halvings):
            return cls((), (), 0, 0, 0, after, counts)
        count = 2**halvings
        return cls(tuple(ranked[:count]), (None,) * count, count, max(1, halvings), calls, after, counts)

    def batch(self, space: Space) -> DesignBatch | None:
        """What to evaluate in the next round, None after the last."""
        if not self.rounds:
            return None
        designs = [scored.design for scored in self.candidates[: self.racing]]
        return replace(space.encode(designs * (self.calls // self.rounds // self.racing)), origin=space)

    def told(self, rewards: Floats, weights: Floats | None, violation: Floats | None = None) -> Race:
        """After a round, or as much of it as there was: the answers to its batch.

        Those not finite tell nothing, but that a requirement is broken. All designs are to have equally many, so
        answers beyond that are left out, and all of a first round that is hardly begun.
        """
        equal = len(rewards) // self.racing
        if equal < _FIRST and not self.ranked:
            return self
        rewards = rewards[: equal * self.racing]
        evidence = np.ones(len(rewards)) if weights is None else weights
        fresh = list(self.fresh)
        broken = np.zeros(len(rewards)) if violation is None else violation[: len(rewards)]
        for row in np.flatnonzero(np.isfinite(rewards) | (broken > 0)).tolist():
            own = row % self.racing
            found = self.candidates[own]
            reward, far = float(rewards[row]), float(broken[row])
            more = Scored(found.design, reward, found.call, float(evidence[row]), violation=far)
            before = fresh[own]
            fresh[own] = more if before is None else before.joined(more)
        order = sorted(range(self.racing), key=lambda row: _place(fresh[row]))
        order += range(self.racing, len(fresh))
        return replace(
            self,
            candidates=tuple(self.candidates[row] for row in order),
            fresh=tuple(fresh[row] for row in order),
            racing=max(1, self.racing // 2),
            rounds=self.rounds - 1,
            calls=self.calls - len(rewards),
        )

    @property
    def ranked(self) -> tuple[Scored, ...]:
        """The designs that the race has evaluated, by how far they came, with what it says of them."""
        return tuple(scored for scored in self.fresh if scored is not None)

    @property
    def spent(self) -> Counts:
        """Counts with those of the unfinished round."""
        return self.counts + self.known.counts

    def to_state(self) -> State:
        """For a checkpoint."""
        data = {
            "candidates": [scored.to_dict() for scored in self.candidates],
            "fresh": [None if scored is None else scored.to_dict() for scored in self.fresh],
            **{key: getattr(self, key) for key in ("racing", "rounds", "calls", "after", "seconds")},
            "counts": asdict(self.counts),
            "rows": [row.to_dict() for row in self.rows],
            "failures": [failure.to_dict() for failure in self.failures],
        }
        own = State({}, data).with_part("known", self.known.to_state())
        return own if self.objective is None else own.with_part("objective", self.objective)

    @classmethod
    def from_state(cls, state: State) -> Race:
        """Inverse of `to_state`; KeyError, TypeError, ValueError or AttributeError for anything else."""
        data = state.data
        return cls(
            candidates=tuple(Scored.from_dict(scored) for scored in data["candidates"]),
            fresh=tuple(None if scored is None else Scored.from_dict(scored) for scored in data["fresh"]),
            **{key: int(data[key]) for key in ("racing", "rounds", "calls", "after")},
            counts=Counts.from_dict(data["counts"]),
            seconds=float(data["seconds"]),
            rows=tuple(HistoryRow.from_dict(row) for row in data["rows"]),
            failures=tuple(Failure.from_dict(failure) for failure in data["failures"]),
            known=Answer.from_state(state.part("known")),
            objective=state.part("objective") if "objective" in data else None,
        )


def _place(scored: Scored | None) -> tuple[float, ...]:
    if scored is None:
        return (np.inf, 0, 0, 0)
    known = np.isfinite(scored.reward)
    return (scored.violation, -scored.reward if known else np.inf, len(scored.design), scored.call)


class Confirmer:
    """Holds the race of a run, and counts the calls of all that it had.

    Args:
        evaluator: with seeds of its own.
        kept_calls: of the budget, for the race; 0 for none.
        budget: of the run.

    Attributes:
        race: the last one, of this run or of its checkpoint; None before it, and where the search has gone on.
        racing: whether it has begun.
    """

    def __init__(self, evaluator: Evaluator, kept_calls: int, budget: int) -> None:
        self.evaluator, self.kept_calls, self._budget = evaluator, kept_calls, budget
        self.race: Race | None = None
        self.racing = False

    @property
    def spent(self) -> Counts:
        """Of all races so far, with calls whose answers are only kept."""
        return self.evaluator.counts if self.race is None else self.race.spent

    @property
    def search_budget(self) -> int:
        """What is not kept for the race, nor was spent on one before; where one has begun at least up to there."""
        left = self._budget - self.kept_calls - self.spent.calls
        return left if self.race is None else max(left, self.race.after)

    def numbered(self, evaluation: Evaluation) -> Evaluation:
        """A batch of the search with calls counted from the start of the run, races included.

        Leaves a race that lies behind; its failures come before those of the batch.
        """
        before = self.evaluator.calls
        border = np.inf if self.race is None else self.race.after
        behind = self.leave() if evaluation.calls.max(initial=0) > border else ()
        raced = before, self.evaluator.calls
        if not any(raced):
            return evaluation
        own = (replace(f, call=f.call + raced[f.call > border]) for f in evaluation.failures)
        calls = evaluation.calls + np.where(evaluation.calls > border, raced[1], raced[0])
        return replace(evaluation, calls=calls, failures=(*behind, *own))

    def leave(self) -> tuple[Failure, ...]:
        """The search goes on behind the race, whose calls stay counted; gives its failures."""
        failures = () if self.race is None else self.race.failures
        self.evaluator.counts, self.race = self.spent, None
        return failures

    def start(self, ranked: Sequence[Scored], after: int) -> Race:
        """Begin, or go on with the race that this search has begun before; any other was left."""
        if self.race is None:
            calls = min(self.kept_calls, self._budget - after - self.evaluator.calls)
            self.race = Race.of(ranked, calls, after, self.evaluator.counts)
        self.evaluator.counts = self.race.counts
        self.racing = True
        return self.race

    def round(
        self, designs: DesignBatch, clock: Clock, out_of_time: Callable[[], bool], objective: Any
    ) -> tuple[Evaluation, Race | None]:
        """Evaluate a round, and the race to save in its place if it was cut short, to be finished later."""
        assert self.race is not None
        room = 0 if out_of_time() else None
        evaluation = self.evaluator.evaluate(designs, lambda _: out_of_time(), self.race.known, room)
        race = replace(
            self.race,
            seconds=clock.seconds,
            objective=objective.state() if isinstance(objective, Resumable) else None,
        )
        failures = (replace(failure, call=race.after + failure.call) for failure in evaluation.failures)
        self.race = replace(
            race.told(evaluation.rewards, evaluation.answer.weights, evaluation.answer.violation),
            counts=self.evaluator.counts,
            failures=(*race.failures, *failures)[:FAILURES_KEPT],
            known=NOTHING_KNOWN,
        )
        return evaluation, None if evaluation.complete else replace(race, known=evaluation.answer)

    def add(self, row: HistoryRow) -> None:
        """The history of a round."""
        assert self.race is not None
        self.race = replace(self.race, rows=(*self.race.rows, row))
