"""Calling an objective on some designs: what a worker does, wherever it is. Nothing that it raises gets out."""

from __future__ import annotations

import math
import queue
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discodso.base.arrays import Floats, Ints
from discodso.run.task import Task
from discodso.space.design import Design, DesignBatch
from discodso.space.state import State

Outcome = float | str  # a reward, or the reason why there is none
Seeds = NDArray[np.uint64]
GUARDED = "discodso-guarded"  # name of threads that may hang


@dataclass(frozen=True)
class Measured:
    """What a batch objective may return instead of rewards alone.

    Attributes:
        rewards: one for each design.
        cost: what the batch cost, in the unit that `Task.cost_unit` names, such as episodes.
        reasons: for designs that failed, by position: what happened.
        weights: the evidence behind each reward, such as the episodes of its mean; None if all are equal.
    """

    rewards: Any
    cost: float = 0.0
    reasons: Mapping[int, str] = field(default_factory=dict)
    weights: Any = None


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
    def of(cls, designs: DesignBatch, seeds: Seeds | None, first: int, end: int) -> Rows:
        """Some rows of a batch."""
        part = slice(first, end)
        own = None if seeds is None else seeds[part]
        return cls(designs.tokens[part], designs.values[part], designs.lengths[part], own)

    def __len__(self) -> int:
        return len(self.lengths)

    def singles(self) -> list[Rows]:
        """Each design by itself."""
        seeds = self.seeds
        return [
            Rows(self.tokens[p], self.values[p], self.lengths[p], None if seeds is None else seeds[p])
            for p in (slice(row, row + 1) for row in range(len(self)))
        ]

    def designs(self, task: Task) -> DesignBatch:
        """The designs again."""
        return DesignBatch(task.space.library, self.tokens, self.values, self.lengths, task.space)


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
        weights: list[Any] = [answer.weights for answer in answers if len(answer.rewards)]
        for answer in answers:
            reasons |= {offset + row: reason for row, reason in answer.reasons.items()}
            offset += len(answer.rewards)
        return cls(
            np.concatenate([np.empty(0), *(answer.rewards for answer in answers)]),
            reasons,
            sum(answer.cost for answer in answers),
            weights=None if any(w is None for w in weights) else np.concatenate([np.empty(0), *weights]),
        )

    @classmethod
    def of_outcomes(cls, outcomes: list[Outcome]) -> Answer:
        """From one outcome for each design."""
        return cls(*split(outcomes))

    @classmethod
    def failed(cls, count: int, reason: str, broken: bool = False) -> Answer:
        """All designs failed for one reason."""
        return cls(np.full(count, math.nan), dict.fromkeys(range(count), reason), 0.0, broken)

    def to_state(self) -> State:
        """For a checkpoint."""
        arrays = {"rewards": self.rewards.copy()}
        if self.weights is not None:
            arrays["weights"] = self.weights.copy()
        return State(arrays, {"reasons": [list(pair) for pair in self.reasons.items()], "cost": self.cost})

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
        if limit is None:
            return answer_at_once(task, designs, rows.seeds)
        (outcome,) = _guarded([lambda: answer_at_once(task, designs, rows.seeds)], limit * len(rows))
        late = f"took longer than {limit:g} s for each design"
        return outcome if isinstance(outcome, Answer) else Answer.failed(len(rows), late)
    seeds = [None] * len(rows) if rows.seeds is None else rows.seeds.tolist()
    if limit is None:
        return Answer.of_outcomes(
            [call_objective(task, designs[row], seed) for row, seed in enumerate(seeds)]
        )
    calls = [_call_later(task, designs[row], seed) for row, seed in enumerate(seeds)]
    late = f"took longer than {limit:g} s"
    return Answer.of_outcomes([late if o is None else o for o in _guarded(calls, limit)])


def _call_later(task: Task, design: Design, seed: int | None) -> Callable[[], Outcome]:
    return lambda: call_objective(task, design, seed)


def _guarded(calls: list[Callable[[], Any]], limit: float) -> list[Any]:
    """Results of calls that are given up after a limit each, None for those.

    They run in a thread; one that hangs is left behind, and the next call gets a new one.
    """
    results: list[Any] = []
    while len(results) < len(calls):
        # Not a SimpleQueue, whose short timeouts may never end on a busy machine (a fault of CPython).
        answers: queue.Queue[Any] = queue.Queue()
        given_up = threading.Event()

        def work(first: int, answers: Any = answers, given_up: threading.Event = given_up) -> None:
            for call in calls[first:]:
                if given_up.is_set():
                    return
                answers.put(call())

        threading.Thread(target=work, args=(len(results),), daemon=True, name=GUARDED).start()
        try:
            while len(results) < len(calls):
                results.append(answers.get(timeout=limit))
        except queue.Empty:
            results.append(None)
        finally:  # also at Ctrl-C
            given_up.set()
    return results


def call_objective(task: Task, design: Design, seed: int | None) -> Outcome:
    """One call of a plain objective."""
    assert task.objective is not None
    try:
        return as_reward(task.objective(design, *(() if seed is None else (seed,))))
    except (Exception, SystemExit) as error:
        return f"raised {describe(error)}"


def answer_at_once(task: Task, designs: DesignBatch, seeds: Seeds | None) -> Answer:
    """One call of a batch objective."""
    assert task.batch_objective is not None
    try:
        given = task.batch_objective(designs, *(() if seeds is None else (seeds,)))
        measured = given if isinstance(given, Measured) else Measured(given)
        rewards, reasons = as_rewards(measured.rewards, len(designs))
        weights = None if measured.weights is None else _as_weights(measured.weights, len(designs))
        return Answer(rewards, {**reasons, **measured.reasons}, float(measured.cost), weights=weights)
    except (Exception, SystemExit) as error:
        reason = f"the batch objective raised {describe(error)}"
        return Answer.failed(len(designs), reason, broken=True)


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


def split(outcomes: list[Outcome]) -> tuple[Floats, dict[int, str]]:
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
        return split([f"the batch objective returned {what} for {count} designs"] * count)
    return split([as_reward(value) for value in values])
