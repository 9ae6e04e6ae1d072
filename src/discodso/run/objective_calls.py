"""Calling an objective on some designs: what a worker does, wherever it is. Nothing that it raises gets out."""

from __future__ import annotations

import math
import queue
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discodso.base.arrays import Floats, Ints
from discodso.run.task import Task
from discodso.space.design import Design, DesignBatch
from discodso.space.state import State

Outcome = float | str  # a reward, or the reason why there is none
Seeds = NDArray[np.uint64]
_Found = TypeVar("_Found")
GUARDED = "discodso-guarded"  # name of threads that may hang


@dataclass(frozen=True)
class Measured:
    """What a batch objective may return instead of rewards alone.

    Attributes:
        rewards: one for each design.
        cost: what the batch cost, in the unit that `Task.cost_unit` names, such as episodes.
        reasons: for designs that failed, by position: what happened.
        weights: the evidence behind each reward, such as the episodes of its mean; None if all are equal.
        cut: whether these are the first designs only, because there was no time for the others.
    """

    rewards: Any
    cost: float = 0.0
    reasons: Mapping[int, str] = field(default_factory=dict)
    weights: Any = None
    cut: bool = False


@dataclass(frozen=True)
class Rows:
    """Designs as they travel to a worker: without their space, which the task has.

    Attributes:
        tokens, values: [n, T].
        lengths: int[n].
        seeds: uint64[n], None if the objective takes none.
    """

    tokens: Ints
    values: Floats
    lengths: Ints
    seeds: Seeds | None

    @classmethod
    def of(cls, designs: DesignBatch | Rows, seeds: Seeds | None, first: int, end: int) -> Rows:
        """Some rows of a batch."""
        part = slice(first, end)
        own = None if seeds is None else seeds[part]
        return cls(designs.tokens[part], designs.values[part], designs.lengths[part], own)

    def __len__(self) -> int:
        return len(self.lengths)

    def singles(self) -> list[Rows]:
        """Each design by itself."""
        return [Rows.of(self, self.seeds, row, row + 1) for row in range(len(self))]

    def designs(self, task: Task) -> DesignBatch:
        """The designs again."""
        return DesignBatch(task.space.library, self.tokens, self.values, self.lengths, task.space)


@dataclass(frozen=True)
class Counts:
    """What objective calls came to: how many, their cost in the unit of the task, and how many failed."""

    calls: int = 0
    cost: float = 0.0
    failure_count: int = 0

    def __add__(self, other: Counts) -> Counts:
        failed = self.failure_count + other.failure_count
        return Counts(self.calls + other.calls, self.cost + other.cost, failed)

    @classmethod
    def from_dict(cls, data: Any) -> Counts:
        """Inverse of `asdict`; KeyError, TypeError or ValueError for anything else."""
        return cls(int(data["calls"]), float(data["cost"]), int(data["failure_count"]))


NO_CALLS = Counts()


@dataclass(frozen=True)
class Answer:
    """What came of some designs, in order.

    Attributes:
        rewards: float[n], NaN where there is none.
        reasons: what happened to those without, by position.
        cost: in the unit of the task.
        broken: whether a batch objective as a whole failed, rather than single designs.
        weights: float[n], evidence behind each reward, None if all are equal.
    """

    rewards: Floats
    reasons: dict[int, str]
    cost: float = 0.0
    broken: bool = False
    weights: Floats | None = None

    @classmethod
    def joined(cls, answers: Sequence[Answer]) -> Answer:
        """Answers of designs that follow each other, as one."""
        reasons, offset = dict[int, str](), 0
        for answer in answers:
            reasons |= {offset + row: reason for row, reason in answer.reasons.items()}
            offset += len(answer.rewards)
        rewards = np.concatenate([np.empty(0), *(answer.rewards for answer in answers)])
        known: list[Any] = [answer.weights for answer in answers if len(answer.rewards)]
        weights = None if any(own is None for own in known) else np.concatenate([np.empty(0), *known])
        return cls(rewards, reasons, sum(answer.cost for answer in answers), weights=weights)

    @classmethod
    def of_outcomes(cls, outcomes: list[Outcome]) -> Answer:
        """From one outcome for each design."""
        reasons = {row: outcome for row, outcome in enumerate(outcomes) if isinstance(outcome, str)}
        return cls(np.array([math.nan if isinstance(o, str) else o for o in outcomes], np.float64), reasons)

    @classmethod
    def failed(cls, count: int, reason: str, broken: bool = False) -> Answer:
        """All designs failed for one reason."""
        return cls(np.full(count, math.nan), dict.fromkeys(range(count), reason), 0.0, broken)

    @property
    def counts(self) -> Counts:
        """What these calls came to."""
        return Counts(len(self.rewards), self.cost, len(self.reasons))

    def to_state(self) -> State:
        """For a checkpoint."""
        arrays = {"rewards": self.rewards, "weights": self.weights}
        own = {name: array.copy() for name, array in arrays.items() if array is not None}
        return State(own, {"reasons": [list(pair) for pair in self.reasons.items()], "cost": self.cost})

    @classmethod
    def from_state(cls, state: State) -> Answer:
        """Inverse of `to_state`; KeyError, TypeError or ValueError for anything else."""
        reasons = {int(row): str(reason) for row, reason in state.data["reasons"]}
        rewards, weights = state.arrays["rewards"], state.arrays.get("weights")
        return cls(rewards, reasons, float(state.data["cost"]), weights=weights)


NOTHING_KNOWN = Answer(np.empty(0), {})


def answer_rows(task: Task, rows: Rows, limit: float | None) -> Answer:
    """Rewards of some designs: what an executor is given to do.

    Args:
        limit: seconds for each design; what takes longer is given up and has failed.
    """
    designs = rows.designs(task)
    if task.batch_objective is not None:
        return answer_at_once(task, designs, rows.seeds, limit)
    seeds = [None] * len(rows) if rows.seeds is None else rows.seeds.tolist()
    pairs = zip(designs, seeds, strict=True)
    return Answer.of_outcomes([call_objective(task, design, seed, limit) for design, seed in pairs])


def call_objective(task: Task, design: Design, seed: int | None, limit: float | None) -> Outcome:
    """One call of a plain objective, which is given up after so many seconds."""
    if limit is not None:
        outcome = _within(limit, lambda: call_objective(task, design, seed, None))
        return f"took longer than {limit:g} s" if outcome is None else outcome
    assert task.objective is not None
    try:
        return _as_reward(task.objective(design, *(() if seed is None else (seed,))))
    except (Exception, SystemExit) as error:
        return f"raised {describe(error)}"


def answer_at_once(task: Task, designs: DesignBatch, seeds: Seeds | None, limit: float | None) -> Answer:
    """One call of a batch objective, which is given up after so many seconds for each design."""
    count = len(designs)
    if limit is not None:
        answer = _within(limit * count, lambda: answer_at_once(task, designs, seeds, None))
        return answer or Answer.failed(count, f"took longer than {limit:g} s for each design")
    assert task.batch_objective is not None
    try:
        given = task.batch_objective(designs, *(() if seeds is None else (seeds,)))
        measured = given if isinstance(given, Measured) else Measured(given)
        if measured.cut:
            count = min(count, len(measured.rewards))
        answer = _as_answer(measured.rewards, count)
        weights = None if measured.weights is None else _as_weights(measured.weights, count)
        reasons = {**answer.reasons, **measured.reasons}
        return Answer(answer.rewards, reasons, float(measured.cost), weights=weights)
    except (Exception, SystemExit) as error:
        return Answer.failed(count, f"the batch objective raised {describe(error)}", broken=True)


def _within(seconds: float, call: Callable[[], _Found]) -> _Found | None:
    """What a call gives, None if it takes longer: the thread that it runs in is then left behind."""
    # Not a SimpleQueue, whose short timeouts may never end on a busy machine (a fault of CPython).
    answers: queue.Queue[_Found] = queue.Queue()
    threading.Thread(target=lambda: answers.put(call()), daemon=True, name=GUARDED).start()
    try:
        return answers.get(timeout=seconds)
    except queue.Empty:
        return None


def _as_weights(given: Any, count: int) -> Floats:
    weights = np.array(given, dtype=np.float64)
    if weights.shape != (count,) or not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError("weights must be positive numbers, one for each design")
    return weights


def describe(error: BaseException) -> str:
    """Kind, message and line of an exception in one line, for people who look for it."""
    try:
        message = " ".join(str(error).split())
    except Exception:
        message = "(its message cannot be shown)"
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {message}{where}"


def _as_reward(value: Any) -> Outcome:
    """A finite float, or what is wrong with what the objective returned."""
    if type(value) is float:  # nearly always
        return value if math.isfinite(value) else f"returned {value}"
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


def _as_answer(given: Any, count: int) -> Answer:
    """What a batch objective returned for so many designs, with what is wrong with some of it."""
    if isinstance(given, np.ndarray) and given.dtype.kind in "fiub" and given.shape == (count,):
        rewards = given.astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(rewards)).tolist()
        return Answer(rewards, {row: f"returned {rewards[row]}" for row in bad})
    try:
        values = [] if isinstance(given, (str, bytes, Mapping, Set)) else list(given)
    except TypeError:
        values = []
    if len(values) != count:
        what = f"{len(values)} rewards" if values else repr(given)[:80]
        return Answer.failed(count, f"the batch objective returned {what} for {count} designs")
    return Answer.of_outcomes([_as_reward(value) for value in values])
