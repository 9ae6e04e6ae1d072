"""Evaluating designs: every objective call is counted and seeded, and a failed one never ends a run."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.base.checks import require
from discodso.base.errors import EvaluationError
from discodso.disco.method import Resumable
from discodso.run.executors.dispatch import Dispatcher, Executor, gaps, in_order
from discodso.run.journal import Ledger
from discodso.run.objective_calls import (
    NO_CALLS,
    NOTHING_KNOWN,
    Answer,
    Counts,
    Measured,
    Outcome,
    Rated,
    Rows,
    Seeds,
    answer_at_once,
    call_objective,
)
from discodso.run.result import Failure
from discodso.run.task import Task
from discodso.space.design import DesignBatch
from discodso.space.replay import replay

__all__ = ["Evaluation", "Evaluator", "Measured", "child_seeds"]

_GROUP = 0.005  # seconds of evaluations that are written down together


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


def joined(evaluations: Sequence[Evaluation], nothing: DesignBatch) -> Evaluation:
    """Several, one after the other.

    Args:
        nothing: no designs.
    """
    parts = list(evaluations)
    return Evaluation(
        DesignBatch.concatenate((nothing, *(own.designs for own in parts))),
        np.concatenate([np.empty(0), *(own.rewards for own in parts)]),
        np.concatenate([np.empty(0, np.int64), *(own.calls for own in parts)]),
        np.concatenate([np.empty(0, np.bool_), *(own.failed for own in parts)]),
        tuple(failure for own in parts for failure in own.failures),
        False,
        Answer.joined([own.answer for own in parts]),
        complete=True,
    )


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

    Attributes:
        counts: of the calls so far.
        dispatcher: shares designs among the workers of an executor; None where they are evaluated in this process.
        ledger: where answers are written as they come, and where those of a run that goes on stand; None for none.
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
        self.dispatcher: Dispatcher | None = None
        if executor is not None and not whole and not isinstance(task.called, Resumable):
            self.dispatcher = Dispatcher(task, executor, design_seconds, retries)
        self.ledger: Ledger | None = None

    def take(self, designs: DesignBatch, rewards: Floats, calls: int, cost: float = 0.0) -> Evaluation:
        """Count what a method has evaluated itself: so many calls, of which these designs came."""
        self.counts = self.counts + Counts(calls, cost)
        none = np.zeros(len(designs), np.bool_)
        last = np.full(len(designs), self.calls, np.int64)
        return Evaluation(designs, rewards, last, none, (), False, Answer(rewards, {}), True)

    def with_seed(self, seed: np.random.SeedSequence) -> Evaluator:
        """Another that counts for itself, with other seeds and the same workers."""
        other = copy.copy(self)
        other._seed, other.counts, other.ledger = seed, NO_CALLS, None
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
        answer, interrupted, unanswered = NOTHING_KNOWN, False, 0
        if len(left):
            answer, interrupted, unanswered = self._answer(left, seeds, stop, self.calls + first)
        if self._raise and answer.reasons:
            row, reason = next(iter(answer.reasons.items()))
            what = reason if self.task.batch_objective is not None else f"the objective {reason}"
            raise EvaluationError(f"{what}, for {left[row]}")
        answer = Answer.joined((known, answer))
        before, count = self.calls, len(answer.rewards)
        self.counts += answer.counts + Counts(unanswered)
        whole = count == len(designs)
        evaluation = self.evaluation(
            designs if whole else designs.select(slice(0, count)), answer, before + 1
        )
        return replace(evaluation, interrupted=interrupted, complete=whole and not interrupted)

    def evaluation(self, designs: DesignBatch, answer: Answer, first: int) -> Evaluation:
        """What answers say of designs, the first of which has this number; nothing is counted."""
        failed = np.zeros(len(designs), np.bool_)
        failed[list(answer.reasons)] = True
        return Evaluation(
            designs,
            np.where(failed, self.task.worst_reward, answer.rewards),
            first + np.arange(len(designs), dtype=np.int64),
            failed,
            tuple(Failure(first + row, designs[row], why) for row, why in answer.reasons.items()),
            False,
            answer,
            complete=True,
        )

    def told(self, designs: DesignBatch, answer: Answer, first: int) -> Evaluation:
        """The same, counted: evaluated by whoever it was handed to."""
        if self._raise and answer.reasons:
            raise EvaluationError(f"the objective {next(iter(answer.reasons.values()))}, for {designs[0]}")
        self.counts += answer.counts
        return self.evaluation(designs, answer, first)

    @property
    def workers(self) -> int:
        """Who evaluate at the same time; 0 where this process does it."""
        return 0 if self.dispatcher is None else self.dispatcher.workers

    def seed_of(self, number: int) -> int | None:
        """Of the call with this number, None if the objective takes none."""
        return int(child_seeds(self._seed, number - 1, 1)[0]) if self.task.stochastic else None

    def _answer(
        self, designs: DesignBatch, seeds: Seeds | None, stop: Callable[[float], bool], before: int
    ) -> tuple[Answer, bool, int]:
        """What the journal knows of some designs, and what the objective says of the others; whether Ctrl-C came,
        and how many calls were made then whose answers are lost.

        Args:
            before: number of the call before the first of them.
        """
        rows, ledger = Rows.of(designs, seeds, 0, len(designs)), self.ledger
        found = {} if ledger is None else ledger.answers(rows, before)

        def write(first: int, answer: Answer) -> None:
            if ledger is not None and len(answer.rewards):
                end = first + len(answer.rewards)
                own = designs.select(slice(first, end)) if ledger.tells(answer) else ()
                ledger.add(Rows.of(rows, rows.seeds, first, end), answer, before + first, own)

        if self.dispatcher is not None:
            return *self.dispatcher.evaluate(designs, seeds, lambda: stop(-math.inf), found, write), 0
        if self.task.batch_objective is not None:
            return self._at_once(designs, seeds, found, write)
        return self._one_by_one(designs, seeds, stop, found, write)

    def _at_once(
        self,
        designs: DesignBatch,
        seeds: Seeds | None,
        found: dict[int, Answer],
        write: Callable[[int, Answer], None],
    ) -> tuple[Answer, bool, int]:
        count, independent = len(designs), self.task.rows_independent
        if not independent:  # all of a batch or nothing
            found = {first: known for first, known in found.items() if len(known.rewards) == count}
        for first, end in gaps(found, count):
            own = designs if (first, end) == (0, count) else designs.select(slice(first, end))
            began = time.perf_counter()
            try:
                answer = answer_at_once(
                    self.task, own, None if seeds is None else seeds[first:end], self._limit
                )
            except KeyboardInterrupt:
                return in_order(found, count), True, end - first
            found[first] = answer = replace(answer, seconds=time.perf_counter() - began)
            if independent or len(answer.rewards) == count:
                write(first, answer)
            if len(answer.rewards) < end - first:  # it was cut short
                break
        return in_order(found, count), False, 0

    def _one_by_one(
        self,
        designs: DesignBatch,
        seeds: Seeds | None,
        stop: Callable[[float], bool],
        found: dict[int, Answer],
        write: Callable[[int, Answer], None],
    ) -> tuple[Answer, bool, int]:
        new: list[Outcome] = []
        since, began = 0, time.perf_counter()

        def close_group(row: int) -> None:
            nonlocal new, since, began
            own, new = new, []
            if own:
                found[since] = replace(Answer.of_outcomes(own), seconds=time.perf_counter() - began)
                write(since, found[since])
            since, began = row, time.perf_counter()

        row, interrupted = 0, False
        try:
            while row < len(designs):
                if row in found:
                    close_group(row)
                    known = found[row]
                    row = since = row + len(known.rewards)
                    reward, failed = float(np.fmax.reduce(known.feasible, initial=-math.inf)), False
                else:
                    seed = None if seeds is None else int(seeds[row])
                    outcome = call_objective(self.task, designs[row], seed, self._limit)
                    new.append(outcome)
                    row += 1
                    failed = isinstance(outcome, str)
                    reward = outcome if isinstance(outcome, float) else -math.inf
                    if isinstance(outcome, Rated) and outcome.feasible:
                        reward = outcome.reward
                    if self.ledger is not None and time.perf_counter() - began >= _GROUP:
                        close_group(row)
                if stop(reward) or (self._raise and failed):
                    break
        except KeyboardInterrupt:
            interrupted = True
        close_group(row)
        return in_order(found, len(designs)), interrupted, int(interrupted)

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
