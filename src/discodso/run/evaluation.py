"""Evaluating designs: every objective call is counted and seeded, and a failed one never ends a run."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.base.checks import require
from discodso.base.errors import EvaluationError
from discodso.disco.method import Resumable
from discodso.run.executors.dispatch import Dispatcher, Executor
from discodso.run.objective_calls import (
    NO_CALLS,
    NOTHING_KNOWN,
    Answer,
    Counts,
    Measured,
    Outcome,
    Rated,
    Seeds,
    answer_at_once,
    call_objective,
)
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
        rewards: float[n]; failed ones hold the task's worst reward, infeasible ones may be NaN.
        calls: int[n], the number of the call that each reward comes from, counted from 1.
        failed: bool[n].
        failures: what went wrong, one entry for each failed design.
        interrupted: whether the user stopped it before the end of the batch.
        answer: the rewards as they came, for going on with a batch that was cut short.
        complete: whether nothing is left to do: no more designs of the batch, no more refining of them.
    """

    designs: DesignBatch
    rewards: Floats
    calls: Ints
    failed: Bools
    failures: tuple[Failure, ...]
    interrupted: bool
    answer: Answer
    complete: bool

    @property
    def usable(self) -> Floats:
        """float[n], rewards; -inf for those that failed."""
        return np.where(self.failed, -np.inf, self.rewards)

    @property
    def feasible(self) -> Bools:
        """bool[n], which designs have not failed and meet all requirements."""
        violation = self.answer.violation
        return ~self.failed if violation is None else ~self.failed & (violation <= 0)


def child_seeds(seed: np.random.SeedSequence, first: int, count: int) -> Seeds:
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
        mixed: Seeds = (x ^ (x >> np.uint64(31))) >> np.uint64(1)
    return mixed


class Evaluator:
    """Calls the objective of a task and keeps count.

    Args:
        task: what to evaluate.
        seed: of the run; every call gets a child seed.
        raising: end the run at the first failure instead of recording it.
        executor: where to evaluate; None for this process. Batch objectives whose rows depend on each other, and
            objectives that remember something, are evaluated in this process all the same.
        design_seconds: a design that takes longer is given up and has failed; None for no limit.
        retries: times that a design is evaluated again which lost its worker.
    """

    def __init__(
        self,
        task: Task,
        seed: np.random.SeedSequence,
        raising: bool = False,
        executor: Executor | None = None,
        design_seconds: float | None = None,
        retries: int = 1,
    ) -> None:
        usable = executor is None or callable(getattr(executor, "submit", None))
        require(
            "executor", executor, usable, "an object with a method submit, as those of concurrent.futures"
        )
        self.task = task
        self.counts = NO_CALLS
        self._seed = seed
        self._raise = raising
        self._limit = design_seconds
        whole = task.batch_objective is not None and not task.rows_independent
        self._dispatcher = None
        if executor is not None and not whole and not isinstance(task.called, Resumable):
            self._dispatcher = Dispatcher(task, executor, design_seconds, retries)

    def take(self, designs: DesignBatch, rewards: Floats, calls: int, cost: float = 0.0) -> Evaluation:
        """Count what a method has evaluated itself: so many calls, of which these designs came."""
        self.counts = self.counts + Counts(calls, cost)
        none = np.zeros(len(designs), np.bool_)
        last = np.full(len(designs), self.calls, np.int64)
        return Evaluation(designs, rewards, last, none, (), False, Answer(rewards, {}), True)

    def with_seed(self, seed: np.random.SeedSequence) -> Evaluator:
        """Another that counts for itself, with other seeds and the same workers."""
        other = copy.copy(self)
        other._seed, other.counts = seed, NO_CALLS
        return other

    @property
    def calls(self) -> int:
        """All objective calls so far."""
        return self.counts.calls

    def evaluate(
        self,
        designs: DesignBatch,
        stop: Callable[[float], bool] = lambda reward: False,
        known: Answer = NOTHING_KNOWN,
        room: int | None = None,
    ) -> Evaluation:
        """Rewards of the designs, in order; all of them are counted here.

        Args:
            designs: a batch.
            stop: is asked after every call of a plain objective in this process, with its reward, and ends the
                batch there if it says so; with an executor it is asked with -inf, before more designs are sent.
            known: answers of the first designs, of a run that had stopped within this batch.
            room: calls that may be made at most; None for all.
        """
        first = len(known.rewards)
        end = len(designs) if room is None else min(len(designs), first + max(room, 0))
        left = designs if (first, end) == (0, len(designs)) else designs.select(slice(first, end))
        seeds = child_seeds(self._seed, self.calls + first, len(left)) if self.task.stochastic else None
        unanswered = 0  # calls that were made, but Ctrl-C came before their answers
        if not len(left):
            answer, interrupted = NOTHING_KNOWN, False
        elif self._dispatcher is not None:
            answer, interrupted = self._dispatcher.evaluate(left, seeds, lambda: stop(-math.inf))
        elif self.task.batch_objective is not None:
            try:
                answer, interrupted = answer_at_once(self.task, left, seeds, self._limit), False
            except KeyboardInterrupt:
                answer, interrupted, unanswered = NOTHING_KNOWN, True, len(left)
        else:
            answer, interrupted = self._one_by_one(left, seeds, stop)
            unanswered = int(interrupted)
        if self._raise and answer.reasons:
            row, reason = next(iter(answer.reasons.items()))
            what = reason if self.task.batch_objective is not None else f"the objective {reason}"
            raise EvaluationError(f"{what}, for {left[row]}")
        answer = Answer.joined((known, answer))
        before, count = self.calls, len(answer.rewards)
        self.counts += answer.counts + Counts(unanswered)
        failed = np.zeros(count, np.bool_)
        failed[list(answer.reasons)] = True
        return Evaluation(
            designs if count == len(designs) else designs.select(slice(0, count)),
            np.where(failed, self.task.worst_reward, answer.rewards),
            before + 1 + np.arange(count, dtype=np.int64),
            failed,
            tuple(Failure(before + row + 1, designs[row], why) for row, why in answer.reasons.items()),
            interrupted,
            answer,
            complete=count == len(designs) and not interrupted,
        )

    def _one_by_one(
        self, designs: DesignBatch, seeds: Seeds | None, stop: Callable[[float], bool]
    ) -> tuple[Answer, bool]:
        outcomes: list[Outcome] = []
        try:
            for row in range(len(designs)):
                seed = None if seeds is None else int(seeds[row])
                outcome = call_objective(self.task, designs[row], seed, self._limit)
                outcomes.append(outcome)
                reward = outcome if isinstance(outcome, float) else -math.inf
                if isinstance(outcome, Rated) and outcome.feasible:
                    reward = outcome.reward
                if stop(reward) or (self._raise and isinstance(outcome, str)):
                    break
        except KeyboardInterrupt:
            return Answer.of_outcomes(outcomes), True
        return Answer.of_outcomes(outcomes), False

    def refine(self, evaluation: Evaluation, rows: Ints, each: int, room: int) -> Evaluation:
        """Let the task refine some designs, `each` calls for every one, in this order, as far as `room` goes."""
        refine = self.task.refine
        assert refine is not None
        before = each * np.arange(len(rows), dtype=np.int64)
        allowed = np.clip(room - before, 0, each)
        evaluation = replace(evaluation, complete=bool((allowed == each).all()))
        rows, allowed = rows[allowed > 0], allowed[allowed > 0]
        if not len(rows):
            return evaluation
        if evaluation.answer.violations is not None:
            raise EvaluationError("refine knows nothing of violations; leave either out of the task")
        given = evaluation.designs.select(rows)
        try:
            found = refine(given, allowed)
        except KeyboardInterrupt:
            self.counts += Counts(int(allowed.sum()))
            return replace(evaluation, interrupted=True, complete=False)
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
        changed, whole = rows[better], evaluation.designs
        own, new, calls = np.array(whole.values), evaluation.rewards.copy(), evaluation.calls.copy()
        own[changed], new[changed] = values[better], rewards[better]
        calls[changed] = (self.calls + np.cumsum(used))[better]
        self.counts += Counts(int(used.sum()))
        return replace(evaluation, designs=replace(whole, values=own), rewards=new, calls=calls)

    def _require_bounds(self, designs: DesignBatch) -> None:
        space, tokens, values = self.task.space, designs.tokens, designs.values
        if not space.has_fixed_ranges:
            replay(space, replace(designs, origin=None))  # refuses what breaks a rule
        elif ((values < space.library.low[tokens]) | (values > space.library.high[tokens])).any():
            raise EvaluationError("refine has moved a value out of the range of its token; clip it there")
