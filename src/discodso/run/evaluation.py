"""Evaluating designs: every objective call is counted and seeded, and a failed one never ends a run."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discodso.base.arrays import Bools, Floats, Ints
from discodso.base.checks import require, require_number
from discodso.base.errors import EvaluationError
from discodso.disco.method import Resumable
from discodso.run.executors.dispatch import Dispatcher, Executor, Flight
from discodso.run.objective_calls import (
    NOTHING_KNOWN,
    Answer,
    Measured,
    Outcome,
    answer_at_once,
    answer_rows,
    call_objective,
)
from discodso.run.objective_calls import Rows as _Rows
from discodso.run.result import Failure
from discodso.run.task import Task
from discodso.space.design import DesignBatch
from discodso.space.replay import replay

__all__ = ["Evaluation", "Evaluator", "Measured", "child_seeds"]


@dataclass(frozen=True)
class Evaluation:
    """Rewards of the first n designs of a batch, in order.

    Attributes:
        designs: the n designs; refined ones have better values than they came with.
        rewards: float[n]; failed ones hold the task's worst reward.
        calls: int[n], the number of the call that each reward comes from, counted from 1.
        failed: bool[n].
        failures: what went wrong, one entry for each failed design.
        interrupted: whether the user stopped it before the end of the batch.
        answer: the rewards as they came, for going on with a batch that was cut short.
        cut: whether there was less refining than the method wanted.
    """

    designs: DesignBatch
    rewards: Floats
    calls: Ints
    failed: Bools
    failures: tuple[Failure, ...]
    interrupted: bool
    answer: Answer
    cut: bool = False


@dataclass(frozen=True)
class Begun:
    """A batch whose evaluation has begun: rows before `first` are known, those from `end` on are left out.

    Attributes:
        flight: what the executor is doing, None without one.
    """

    designs: DesignBatch
    known: Answer
    first: int
    end: int
    seeds: NDArray[np.uint64] | None
    flight: Flight | None


def child_seeds(seed: np.random.SeedSequence, first: int, count: int) -> NDArray[np.uint64]:
    """Seeds of the calls first, first + 1, ...: a function of the run's seed and the number of the call only.

    The finaliser of SplitMix64 over a counter; 63 bits, so that any generator takes them.
    """
    base = seed.generate_state(1, np.uint64)[0]
    with np.errstate(over="ignore"):
        x = base + (np.arange(first, first + count, dtype=np.uint64) + np.uint64(1)) * np.uint64(
            0x9E3779B97F4A7C15
        )
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: NDArray[np.uint64] = (x ^ (x >> np.uint64(31))) >> np.uint64(1)
    return mixed


class Evaluator:
    """Calls the objective of a task and keeps count.

    Args:
        task: what to evaluate.
        seed: of the run; every call gets a child seed.
        raise_on_failure: end the run at the first failure instead of recording it.
        executor: where to evaluate; None for this process. Batch objectives whose rows depend on each other, and
            objectives that remember something, are evaluated in this process all the same.
        design_seconds: a design that takes longer is given up and has failed; None for no limit.
    """

    def __init__(
        self,
        task: Task,
        seed: np.random.SeedSequence,
        *,
        raise_on_failure: bool = False,
        executor: Executor | None = None,
        design_seconds: float | None = None,
    ) -> None:
        require(
            "executor",
            executor,
            executor is None or callable(getattr(executor, "submit", None)),
            "an object with a method submit, as those of concurrent.futures",
        )
        if design_seconds is not None:
            require_number("design_seconds", design_seconds, above=0)
        self.task = task
        self.calls = 0
        self.cost = 0.0
        self.failure_count = 0
        self._seed = seed
        self._raise = raise_on_failure
        self._limit = design_seconds
        batch = task.batch_objective
        stays = isinstance(batch or task.objective, Resumable) or (
            batch is not None and not task.rows_independent
        )
        self._dispatcher = None if executor is None or stays else Dispatcher(task, executor, design_seconds)

    def with_seed(self, seed: np.random.SeedSequence) -> Evaluator:
        """Another that counts for itself, with other seeds and the same workers."""
        other = copy.copy(self)
        other._seed, other.calls, other.cost, other.failure_count = seed, 0, 0.0, 0
        return other

    def counts(self) -> dict[str, float]:
        """What was counted so far, for JSON."""
        return {"calls": self.calls, "cost": self.cost, "failure_count": self.failure_count}

    def take_counts(self, counts: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.calls, self.failure_count = int(counts["calls"]), int(counts["failure_count"])
        self.cost = float(counts["cost"])

    @property
    def measured_cost(self) -> float | None:
        """Cost so far, None if the task counts calls only."""
        return self.cost if self.task.cost_unit else None

    def evaluate(
        self, designs: DesignBatch, stop: Callable[[float], bool] = lambda reward: False
    ) -> Evaluation:
        """Rewards of the designs, in order; `begin` and `finish` at once."""
        return self.finish(self.begin(designs, len(designs)), stop)

    def begin(self, designs: DesignBatch, room: int, known: Answer = NOTHING_KNOWN) -> Begun:
        """Begin to evaluate a batch, as many as `room` of those designs whose answers are not known yet."""
        first = len(known.rewards)
        end = min(len(designs), first + max(room, 0))
        seeds = child_seeds(self._seed, self.calls, len(designs)) if self.task.stochastic else None
        flight = None
        if self._dispatcher is not None and end > first:
            flight = self._dispatcher.begin(designs, seeds, first, end)
        return Begun(designs, known, first, end, seeds, flight)

    def finish(self, begun: Begun, stop: Callable[[float], bool] = lambda reward: False) -> Evaluation:
        """The rewards, those known before included; all of them are counted here.

        `stop(reward)` is asked after every call of a plain objective in this process, and ends the batch there if
        it says so; with an executor it is asked with a reward of -inf, before more designs are sent.
        """
        if begun.end == begun.first:
            answer, interrupted, unanswered = Answer(np.empty(0), {}), False, 0
        elif begun.flight is not None and self._dispatcher is not None:
            answer, interrupted = self._dispatcher.finish(begun.flight, lambda: stop(-math.inf))
            unanswered = 0
        elif self.task.batch_objective is not None:
            answer, interrupted, unanswered = self._at_once(begun)
        else:
            answer, interrupted, unanswered = self._one_by_one(begun, stop)
        if self._raise and answer.reasons:
            row, reason = next(iter(answer.reasons.items()))
            what = reason if self.task.batch_objective is not None else f"the objective {reason}"
            raise EvaluationError(f"{what}, for {begun.designs[begun.first + row]}")
        return self._collect(begun, Answer.joined((begun.known, answer)), interrupted, unanswered)

    def refine(self, evaluation: Evaluation, rows: Ints, each: int, room: int) -> Evaluation:
        """Let the task refine some designs, `each` calls for every one, in this order, as far as `room` goes."""
        refine = self.task.refine
        assert refine is not None
        before = each * np.arange(len(rows), dtype=np.int64)
        allowed = np.clip(room - before, 0, each)
        rows, allowed, cut = rows[allowed > 0], allowed[allowed > 0], bool((allowed < each).any())
        if not len(rows):
            return replace(evaluation, cut=cut)
        given = evaluation.designs.select(rows)
        try:
            found = refine(given, allowed)
        except KeyboardInterrupt:
            self.calls += int(allowed.sum())
            return replace(evaluation, interrupted=True, cut=True)
        rewards, used = np.asarray(found.rewards, dtype=np.float64), np.asarray(found.calls)
        values = found.designs.values
        if rewards.shape != rows.shape or used.shape != rows.shape or values.shape != given.values.shape:
            raise EvaluationError(f"refine must give as many designs, rewards and calls, got {len(rewards)}")
        if (used > allowed).any() or (used < 0).any():
            raise EvaluationError(
                f"refine was allowed {allowed.max()} calls for a design and made {used.max()}"
            )
        better = rewards > evaluation.rewards[rows]
        self._require_bounds(found.designs.select(better))
        changed = rows[better]
        whole = evaluation.designs
        own, new = np.array(whole.values), evaluation.rewards.copy()
        own[changed], new[changed] = values[better], rewards[better]
        calls = evaluation.calls.copy()
        calls[changed] = (self.calls + np.cumsum(used))[better]
        self.calls += int(used.sum())
        return replace(evaluation, designs=replace(whole, values=own), rewards=new, calls=calls, cut=cut)

    def _require_bounds(self, designs: DesignBatch) -> None:
        space, tokens, values = self.task.space, designs.tokens, designs.values
        if not space.has_fixed_ranges:
            replay(space, replace(designs, origin=None))  # refuses what breaks a rule
        elif ((values < space.library.low[tokens]) | (values > space.library.high[tokens])).any():
            raise EvaluationError("refine has moved a value out of the range of its token; clip it there")

    def abandon(self, begun: Begun) -> None:
        """Let go of a batch that has begun."""
        if begun.flight is not None and self._dispatcher is not None:
            self._dispatcher.abandon(begun.flight)

    def _one_by_one(self, begun: Begun, stop: Callable[[float], bool]) -> tuple[Answer, bool, int]:
        outcomes: list[Outcome] = []
        try:
            for row in range(begun.first, begun.end):
                outcome = self._call(begun, row)
                outcomes.append(outcome)
                if stop(outcome if isinstance(outcome, float) else -math.inf) or (
                    self._raise and isinstance(outcome, str)
                ):
                    break
        except KeyboardInterrupt:
            return Answer.of_outcomes(outcomes), True, 1
        return Answer.of_outcomes(outcomes), False, 0

    def _call(self, begun: Begun, row: int) -> Outcome:
        if self._limit is None:
            seed = None if begun.seeds is None else int(begun.seeds[row])
            return call_objective(self.task, begun.designs[row], seed)
        answer = answer_rows(self.task, _Rows.of(begun.designs, begun.seeds, row, row + 1), self._limit)
        return answer.reasons.get(0, float(answer.rewards[0]))

    def _at_once(self, begun: Begun) -> tuple[Answer, bool, int]:
        part = slice(begun.first, begun.end)
        try:
            if self._limit is not None:
                rows = _Rows.of(begun.designs, begun.seeds, begun.first, begun.end)
                return answer_rows(self.task, rows, self._limit), False, 0
            seeds = None if begun.seeds is None else begun.seeds[part]
            designs = begun.designs
            whole = (begun.first, begun.end) == (0, len(designs))
            return answer_at_once(self.task, designs if whole else designs.select(part), seeds), False, 0
        except KeyboardInterrupt:
            return Answer(np.empty(0), {}), True, begun.end - begun.first

    def _collect(self, begun: Begun, answer: Answer, interrupted: bool, unanswered: int) -> Evaluation:
        """Count; `unanswered` calls were made, but Ctrl-C came before their answers."""
        failed = np.zeros(len(answer.rewards), np.bool_)
        failed[list(answer.reasons)] = True
        failures = tuple(
            Failure(self.calls + row + 1, begun.designs[row], reason)
            for row, reason in answer.reasons.items()
        )
        count = len(answer.rewards)
        numbers = self.calls + 1 + np.arange(count, dtype=np.int64)
        self.calls += count + unanswered
        self.cost += answer.cost
        self.failure_count += len(failures)
        rewards = np.where(failed, self.task.worst_reward, answer.rewards)
        designs = begun.designs if count == len(begun.designs) else begun.designs.select(slice(0, count))
        return Evaluation(designs, rewards, numbers, failed, failures, interrupted, answer)
