"""Evaluating designs: every objective call is counted and seeded, and a failed one never ends a run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discodso.arrays import Floats
from discodso.design import DesignBatch
from discodso.errors import EvaluationError
from discodso.result import Failure
from discodso.task import Task


@dataclass(frozen=True)
class Evaluation:
    """Rewards of the first n designs of a batch, in order.

    Attributes:
        rewards: float[n]; failed ones hold the task's worst reward.
        failed: bool[n].
        failures: what went wrong, one entry for each failed design.
        interrupted: whether the user stopped it before the end of the batch.
    """

    rewards: Floats
    failed: np.ndarray[Any, np.dtype[np.bool_]]
    failures: tuple[Failure, ...]
    interrupted: bool


def child_seeds(seed: np.random.SeedSequence, first: int, count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
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
        mixed: np.ndarray[Any, np.dtype[np.uint64]] = (x ^ (x >> np.uint64(31))) >> np.uint64(1)
    return mixed


class Evaluator:
    """Calls the objective of a task, in this process, and keeps count.

    Args:
        task: what to evaluate.
        seed: of the run; every call gets a child seed.
        raise_on_failure: end the run at the first failure instead of recording it.
    """

    def __init__(self, task: Task, seed: np.random.SeedSequence, *, raise_on_failure: bool = False) -> None:
        self.task = task
        self.calls = 0
        self.failure_count = 0
        self._seed = seed
        self._raise = raise_on_failure

    def evaluate(
        self, designs: DesignBatch, stop: Callable[[float], bool] = lambda reward: False
    ) -> Evaluation:
        """Rewards of the designs, in order. `stop(reward)` is asked after every call of a plain objective and
        ends the batch there if it says so.
        """
        if self.task.batch_objective is not None:
            return self._evaluate_at_once(designs)
        return self._evaluate_one_by_one(designs, stop)

    def _evaluate_one_by_one(self, designs: DesignBatch, stop: Callable[[float], bool]) -> Evaluation:
        assert self.task.objective is not None
        seeds = self._seeds(len(designs))
        outcomes: list[float | str] = []
        interrupted = False
        try:
            for row in range(len(designs)):
                design = designs[row]
                self.calls += 1
                try:
                    value = self.task.objective(design, *(() if seeds is None else (int(seeds[row]),)))
                    outcome = as_reward(value)
                except (Exception, SystemExit) as error:
                    outcome = f"raised {type(error).__name__}: {error}"
                outcomes.append(outcome)
                if isinstance(outcome, str):
                    self._maybe_raise(outcome, designs, row)
                if stop(outcome if isinstance(outcome, float) else self.task.worst_reward):
                    break
        except KeyboardInterrupt:
            interrupted = True
        return self._collect(
            designs,
            outcomes,
            self.calls - len(outcomes) - (interrupted and row == len(outcomes)),
            interrupted,
        )

    def _evaluate_at_once(self, designs: DesignBatch) -> Evaluation:
        assert self.task.batch_objective is not None
        seeds = self._seeds(len(designs))
        first, count = self.calls, len(designs)
        self.calls += count
        try:
            given = self.task.batch_objective(designs, *(() if seeds is None else (seeds,)))
            outcomes = as_rewards(given, count)
        except KeyboardInterrupt:
            return self._collect(designs, [], first, interrupted=True)
        except (Exception, SystemExit) as error:
            outcomes = [f"the batch objective raised {type(error).__name__}: {error}"] * count
        for row, outcome in enumerate(outcomes):
            if isinstance(outcome, str):
                self._maybe_raise(outcome, designs, row)
        return self._collect(designs, outcomes, first, interrupted=False)

    def _seeds(self, count: int) -> np.ndarray[Any, np.dtype[np.uint64]] | None:
        return child_seeds(self._seed, self.calls, count) if self.task.stochastic else None

    def _maybe_raise(self, reason: str, designs: DesignBatch, row: int) -> None:
        if self._raise:
            raise EvaluationError(f"the objective {reason}, for {designs[row]}")

    def _collect(
        self, designs: DesignBatch, outcomes: list[float | str], first: int, interrupted: bool
    ) -> Evaluation:
        failed = np.array([isinstance(outcome, str) for outcome in outcomes], dtype=np.bool_)
        worst = self.task.worst_reward
        rewards = np.array([worst if isinstance(outcome, str) else outcome for outcome in outcomes])
        failures = tuple(
            Failure(first + row, designs[row], str(outcomes[row])) for row in np.flatnonzero(failed).tolist()
        )
        self.failure_count += len(failures)
        return Evaluation(rewards.astype(np.float64), failed, failures, interrupted)


def as_reward(value: Any) -> float | str:
    """A finite float, or what is wrong with what the objective returned."""
    if isinstance(value, (str, bytes)) or value is None:
        return f"returned {value!r} instead of a number"
    try:
        if np.ndim(value) != 0:
            return f"returned an array of shape {np.shape(value)} instead of a number"
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return f"returned a {type(value).__name__} instead of a number"
    return number if math.isfinite(number) else f"returned {number}"


def as_rewards(given: Any, count: int) -> list[float | str]:
    """One outcome for each design from what a batch objective returned."""
    array = given if isinstance(given, np.ndarray) else None
    if array is not None and array.dtype.kind in "fiub" and array.shape == (count,):
        numbers = array.astype(np.float64).tolist()
        return [x if math.isfinite(x) else f"returned {x}" for x in numbers]
    try:
        values = [] if isinstance(given, (str, bytes)) else list(given)
    except TypeError:
        values = []
    if len(values) != count:
        what = f"{len(values)} rewards" if values else repr(given)[:80]
        return [f"the batch objective returned {what} for {count} designs"] * count
    return [as_reward(value) for value in values]
