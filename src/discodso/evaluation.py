"""Evaluating designs: every objective call is counted and seeded, and a failed one never ends a run."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discodso.arrays import Bools, Floats
from discodso.design import Design, DesignBatch
from discodso.errors import EvaluationError
from discodso.result import Failure
from discodso.task import Task

Outcome = float | str  # a reward, or the reason why there is none


@dataclass(frozen=True)
class Measured:
    """What a batch objective may return instead of rewards alone.

    Attributes:
        rewards: one for each design.
        cost: what the batch cost, in the unit that `Task.cost_unit` names, such as episodes.
        reasons: for designs that failed, by position: what happened.
    """

    rewards: Any
    cost: float = 0.0
    reasons: Mapping[int, str] = field(default_factory=dict)


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
    failed: Bools
    failures: tuple[Failure, ...]
    interrupted: bool


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
    """Calls the objective of a task, in this process, and keeps count.

    Args:
        task: what to evaluate.
        seed: of the run; every call gets a child seed.
        raise_on_failure: end the run at the first failure instead of recording it.
    """

    def __init__(self, task: Task, seed: np.random.SeedSequence, *, raise_on_failure: bool = False) -> None:
        self.task = task
        self.calls = 0
        self.cost = 0.0
        self.failure_count = 0
        self._seed = seed
        self._raise = raise_on_failure

    @property
    def measured_cost(self) -> float | None:
        """Cost so far, None if the task counts calls only."""
        return self.cost if self.task.cost_unit else None

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
        before, seeds = self.calls, self._seeds(len(designs))
        outcomes: list[Outcome] = []
        interrupted = False
        try:
            for row in range(len(designs)):
                design = designs[row]
                self.calls += 1
                outcome = self._call(design, None if seeds is None else int(seeds[row]))
                outcomes.append(outcome)
                if stop(outcome if isinstance(outcome, float) else -math.inf):
                    break
        except KeyboardInterrupt:
            interrupted = True
        return self._collect(designs, *_split(outcomes), before, interrupted)

    def _call(self, design: Design, seed: int | None) -> Outcome:
        assert self.task.objective is not None
        try:
            outcome = as_reward(self.task.objective(design, *(() if seed is None else (seed,))))
        except (Exception, SystemExit) as error:
            outcome = f"raised {_describe(error)}"
        if self._raise and isinstance(outcome, str):
            raise EvaluationError(f"the objective {outcome}, for {design}")
        return outcome

    def _evaluate_at_once(self, designs: DesignBatch) -> Evaluation:
        assert self.task.batch_objective is not None
        before, seeds, count = self.calls, self._seeds(len(designs)), len(designs)
        self.calls += count
        try:
            given = self.task.batch_objective(designs, *(() if seeds is None else (seeds,)))
            measured = given if isinstance(given, Measured) else Measured(given)
            self.cost += measured.cost
            rewards, reasons = as_rewards(measured.rewards, count)
            reasons = {**reasons, **measured.reasons}
        except KeyboardInterrupt:
            return self._collect(designs, np.empty(0), {}, before, interrupted=True)
        except (Exception, SystemExit) as error:
            reason = f"the batch objective raised {_describe(error)}"
            rewards, reasons = _split([reason] * count)
        if self._raise and reasons:
            row, reason = next(iter(reasons.items()))
            raise EvaluationError(f"{reason}, for {designs[row]}")
        return self._collect(designs, rewards, reasons, before, interrupted=False)

    def _seeds(self, count: int) -> NDArray[np.uint64] | None:
        return child_seeds(self._seed, self.calls, count) if self.task.stochastic else None

    def _collect(
        self, designs: DesignBatch, rewards: Floats, reasons: dict[int, str], before: int, interrupted: bool
    ) -> Evaluation:
        failed = np.zeros(len(rewards), np.bool_)
        failed[list(reasons)] = True
        self.failure_count += len(reasons)
        failures = tuple(Failure(before + row + 1, designs[row], reason) for row, reason in reasons.items())
        return Evaluation(np.where(failed, self.task.worst_reward, rewards), failed, failures, interrupted)


def _describe(error: BaseException) -> str:
    """Kind, message and line of an exception, for people who look for it."""
    try:
        message = str(error)
    except Exception:
        message = "(its message cannot be shown)"
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {message}{where}"


def _split(outcomes: list[Outcome]) -> tuple[Floats, dict[int, str]]:
    """Rewards float[n], NaN where there is none, and the reasons of those by row."""
    reasons = {row: outcome for row, outcome in enumerate(outcomes) if isinstance(outcome, str)}
    return np.array([math.nan if isinstance(o, str) else o for o in outcomes], dtype=np.float64), reasons


def as_reward(value: Any) -> Outcome:
    """A finite float, or what is wrong with what the objective returned."""
    if isinstance(value, (str, bytes)) or value is None:
        return f"returned {value!r} instead of a number"
    try:
        if np.ndim(value) != 0:
            return f"returned an array of shape {np.shape(value)} instead of a number"
        if isinstance(value, (complex, np.ndarray)) and np.asarray(value).dtype.kind not in "fiub":
            raise TypeError
        number = float(value)
    except OverflowError:
        return "returned a number too large for a float"
    except (TypeError, ValueError):
        return f"returned a {type(value).__name__} instead of a number"
    return number if math.isfinite(number) else f"returned {number}"


def as_rewards(given: Any, count: int) -> tuple[Floats, dict[int, str]]:
    """Rewards float[count] from what a batch objective returned, and what is wrong with some of them."""
    if isinstance(given, np.ndarray) and given.dtype.kind in "fiub" and given.shape == (count,):
        rewards = given.astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(rewards)).tolist()
        return rewards, {row: f"returned {rewards[row]}" for row in bad}
    try:
        values = [] if isinstance(given, (str, bytes, Mapping, Set)) else list(given)
    except TypeError:
        values = []
    if len(values) != count:
        what = f"{len(values)} rewards" if values else repr(given)[:80]
        return _split([f"the batch objective returned {what} for {count} designs"] * count)
    return _split([as_reward(value) for value in values])
