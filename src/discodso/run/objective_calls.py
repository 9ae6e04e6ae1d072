"""Calling an objective on some designs: what a worker does, wherever it is. Nothing that it raises gets out."""

from __future__ import annotations

import math
import queue
import re
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discodso.base.arrays import Floats, Ints
from discodso.run.task import Task
from discodso.space.design import Design, DesignBatch
from discodso.space.state import State

Seeds = NDArray[np.uint64]
_Found = TypeVar("_Found")
_NUMBER = re.compile(r"[-+]?[0-9][0-9.]*(e[-+]?[0-9]+)?", re.IGNORECASE)
GUARDED = "discodso-guarded"  # name of threads that may hang
_ONLY_ONE = "violation"  # name of a requirement that has none
_ARRAYS = ("rewards", "weights", "violations", "goals")  # of an answer


@dataclass(frozen=True)
class Measured:
    """What an objective may return instead of a reward alone, and a batch objective instead of rewards.

        Measured(stiffness, violation=weight - 20)
        Measured(gain, violation={"ripple": ripple - 1, "size": size - 30})

    A design whose requirements are all met is feasible, and comes before all that are not; these are ordered by
    the sum of what they are above 0, so requirements should be on one scale.

    Attributes:
        rewards: the reward of the design; from a batch objective one for each design. That of a design that breaks
            a requirement may be NaN.
        cost: what the call cost, in the unit that `Task.cost_unit` names, such as episodes.
        reasons: for designs of a batch that failed, by position: what happened.
        weights: the evidence behind each reward, such as the episodes of its mean; None if all are equal.
        cut: whether these are the first designs of a batch only, because there was no time for the others.
        violation: how far the design is from what is required: above 0 a requirement is broken, at 0 and below it
            is met. A number, or a mapping by name if there are several; from a batch objective an array with one
            for each design, or a mapping to such arrays.
    """

    rewards: Any
    cost: float = 0.0
    reasons: Mapping[int, str] = field(default_factory=dict)
    weights: Any = None
    cut: bool = False
    violation: Any = None


@dataclass(frozen=True, slots=True)
class Rated:
    """What an objective said of one design, where that was more than a reward.

    Attributes:
        reward: NaN at most if a requirement is broken.
        broken: by how much each requirement is, at least 0, by name; None if it named none.
        cost: of the call.
        weight: the evidence behind the reward, None if it did not say.
        goals: values of several objectives; the reward is then the first of them, turned so that more is better.
    """

    reward: float
    broken: Mapping[str, float] | None = None
    cost: float = 0.0
    weight: float | None = None
    goals: tuple[float, ...] = ()

    @property
    def feasible(self) -> bool:
        """Whether all requirements are met."""
        return not any((self.broken or {}).values())


Outcome = float | str | Rated  # a reward, the reason why there is none, or more than a reward


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
    """What objective calls came to.

    Attributes:
        calls: how many.
        cost: in the unit of the task.
        failure_count: how many failed.
        feasible_count: how many met all requirements, of objectives that say how far these are broken.
        broken: how many designs broke each requirement, by name.
    """

    calls: int = 0
    cost: float = 0.0
    failure_count: int = 0
    feasible_count: int = 0
    broken: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.calls + other.calls,
            self.cost + other.cost,
            self.failure_count + other.failure_count,
            self.feasible_count + other.feasible_count,
            {
                name: self.broken.get(name, 0) + other.broken.get(name, 0)
                for name in (*self.broken, *(name for name in other.broken if name not in self.broken))
            },
        )

    @property
    def has_requirements(self) -> bool:
        """Whether the objective has said how far requirements are broken."""
        return bool(self.feasible_count or self.broken)

    @classmethod
    def from_dict(cls, data: Any) -> Counts:
        """Inverse of `asdict`; KeyError, TypeError or ValueError for anything else."""
        broken = {str(name): int(count) for name, count in dict(data.get("broken", {})).items()}
        feasible = int(data.get("feasible_count", 0))
        return cls(int(data["calls"]), float(data["cost"]), int(data["failure_count"]), feasible, broken)


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
        violations: float[n, k], by how much each requirement is broken, 0 where it is met or the design has
            failed; None if the objective names none.
        requirements: their k names.
        goals: float[n, m], values of several objectives as they came, NaN where there are none; None for one. The
            reward is then the first of them, turned so that more is better.
        seconds: that the calls took, where they were made, in all.
    """

    rewards: Floats
    reasons: dict[int, str]
    cost: float = 0.0
    broken: bool = False
    weights: Floats | None = None
    violations: Floats | None = None
    requirements: tuple[str, ...] = ()
    goals: Floats | None = None
    seconds: float = 0.0

    @classmethod
    def joined(cls, answers: Sequence[Answer]) -> Answer:
        """Answers of designs that follow each other, as one."""
        reasons, offset = dict[int, str](), 0
        for answer in answers:
            reasons |= {offset + row: reason for row, reason in answer.reasons.items()}
            offset += len(answer.rewards)
        rewards = np.concatenate([np.empty(0), *(answer.rewards for answer in answers)])
        weights: Floats | None = None
        if any(answer.weights is not None for answer in answers):
            own = [np.ones(len(a.rewards)) if a.weights is None else a.weights for a in answers]
            weights = np.concatenate(own)
        names = tuple(dict.fromkeys(name for answer in answers for name in answer.requirements))
        parts = [answer.violations_of(names) for answer in answers]
        violations = None if not names else np.concatenate(parts)
        several = next((own.goals.shape[1] for own in answers if own.goals is not None), 0)
        goals = np.concatenate([answer.goals_of(several) for answer in answers]) if several else None
        return cls(
            rewards,
            reasons,
            sum(answer.cost for answer in answers),
            weights=weights,
            seconds=sum(answer.seconds for answer in answers),
            violations=violations,
            requirements=names,
            goals=goals,
        )

    @classmethod
    def of_outcomes(cls, outcomes: list[Outcome]) -> Answer:
        """From one outcome for each design."""
        reasons = {row: outcome for row, outcome in enumerate(outcomes) if isinstance(outcome, str)}
        rated = {row: outcome for row, outcome in enumerate(outcomes) if isinstance(outcome, Rated)}
        plain = [
            math.nan if isinstance(o, str) else o.reward if isinstance(o, Rated) else o for o in outcomes
        ]
        answer = cls(np.array(plain, np.float64), reasons)
        if not rated:
            return answer
        names = tuple(dict.fromkeys(name for own in rated.values() for name in own.broken or ()))
        violations, weights = np.zeros((len(outcomes), len(names))), np.ones(len(outcomes))
        for row, own in rated.items():
            violations[row] = [(own.broken or {}).get(name, 0.0) for name in names]
            weights[row] = 1.0 if own.weight is None else own.weight
        several = max(len(own.goals) for own in rated.values())
        goals = np.full((len(outcomes), several), math.nan)
        for row, own in rated.items():
            goals[row] = own.goals if own.goals else math.nan
        return replace(
            answer,
            cost=sum(own.cost for own in rated.values()),
            weights=weights if any(own.weight is not None for own in rated.values()) else None,
            violations=violations if names else None,
            requirements=names,
            goals=goals if several else None,
        )

    def goals_of(self, several: int) -> Floats:
        """float[n, m], values of so many objectives, NaN where there are none."""
        return np.full((len(self.rewards), several), math.nan) if self.goals is None else self.goals

    def violations_of(self, names: Sequence[str]) -> Floats:
        """float[n, k], by how much requirements with these names are broken; those that nobody named are met."""
        found = np.zeros((len(self.rewards), len(names)))
        if self.violations is not None:
            found[:, [names.index(name) for name in self.requirements]] = self.violations
        return found

    def outcome(self, row: int) -> Outcome:
        """What came of one design."""
        if row in self.reasons:
            return self.reasons[row]
        reward = float(self.rewards[row])
        if self.weights is None and self.violations is None and self.goals is None:
            return reward
        broken = None
        if self.violations is not None:
            broken = dict(zip(self.requirements, self.violations[row].tolist(), strict=True))
        weight = None if self.weights is None else float(self.weights[row])
        goals = () if self.goals is None else tuple(self.goals[row].tolist())
        return Rated(reward, broken, weight=weight, goals=goals)

    @classmethod
    def failed(cls, count: int, reason: str, broken: bool = False) -> Answer:
        """All designs failed for one reason."""
        return cls(np.full(count, math.nan), dict.fromkeys(range(count), reason), 0.0, broken)

    @property
    def feasible(self) -> Floats:
        """float[n], the rewards; -inf of designs that break a requirement."""
        broken = self.violation
        return self.rewards if broken is None else np.where(broken > 0, -np.inf, self.rewards)

    def part(self, first: int, end: int) -> Answer:
        """Of some of the designs; the cost stays with the whole."""
        reasons = {row - first: reason for row, reason in self.reasons.items() if first <= row < end}
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        own: dict[str, Any] = {
            name: None if array is None else array[first:end] for name, array in arrays.items()
        }
        return replace(self, reasons=reasons, cost=0.0, broken=False, seconds=0.0, **own)

    @property
    def counts(self) -> Counts:
        """What these calls came to."""
        whole = Counts(len(self.rewards), self.cost, len(self.reasons))
        if self.violations is None:
            return whole
        failed = np.isin(np.arange(len(self.rewards)), list(self.reasons))
        broken = (self.violations > 0).sum(axis=0).tolist()
        found = {name: count for name, count in zip(self.requirements, broken, strict=True) if count}
        feasible = ~failed & (self.violations <= 0).all(axis=1)
        return replace(whole, feasible_count=int(feasible.sum()), broken=found)

    @property
    def violation(self) -> Floats | None:
        """float[n], how far each design is from being feasible; None if nothing is required."""
        return None if self.violations is None else np.asarray(self.violations.sum(axis=1))

    def to_state(self) -> State:
        """For a checkpoint."""
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        own = {name: array.copy() for name, array in arrays.items() if array is not None}
        data = {"reasons": [list(pair) for pair in self.reasons.items()], "cost": self.cost}
        return State(own, data | ({"requirements": list(self.requirements)} if self.requirements else {}))

    @classmethod
    def from_state(cls, state: State) -> Answer:
        """Inverse of `to_state`; KeyError, TypeError or ValueError for anything else."""
        reasons = {int(row): str(reason) for row, reason in state.data["reasons"]}
        rewards, weights, violations, goals = (state.arrays.get(name) for name in _ARRAYS)
        names = tuple(map(str, state.data.get("requirements", ())))
        if rewards is None:
            raise KeyError("rewards")
        if rewards.ndim != 1 or not all(own is None or own.dtype == np.float64 for own in (rewards, weights)):
            raise ValueError("rewards that are no row of numbers")
        if weights is not None and weights.shape != rewards.shape:
            raise ValueError("weights that are not as many as rewards")
        if violations is not None and violations.shape != (len(rewards), len(names)):
            raise ValueError("violations that are not as many as designs and requirements")
        if goals is not None and (goals.ndim != 2 or len(goals) != len(rewards)):
            raise ValueError("goals that are not as many as designs")
        cost = float(state.data["cost"])
        return cls(
            rewards,
            reasons,
            cost,
            weights=weights,
            violations=violations,
            requirements=names,
            goals=goals,
        )


NOTHING_KNOWN = Answer(np.empty(0), {})


def answer_rows(task: Task, rows: Rows, limit: float | None) -> Answer:
    """Rewards of some designs: what an executor is given to do.

    Args:
        limit: seconds for each design; what takes longer is given up and has failed.
    """
    designs, began = rows.designs(task), time.perf_counter()
    if task.batch_objective is not None:
        answer = answer_at_once(task, designs, rows.seeds, limit)
    else:
        seeds = [None] * len(rows) if rows.seeds is None else rows.seeds.tolist()
        pairs = zip(designs, seeds, strict=True)
        answer = Answer.of_outcomes([call_objective(task, design, seed, limit) for design, seed in pairs])
    return replace(answer, seconds=time.perf_counter() - began)


def call_objective(task: Task, design: Design, seed: int | None, limit: float | None) -> Outcome:
    """One call of a plain objective, which is given up after so many seconds."""
    if limit is not None:
        outcome = _within(limit, lambda: call_objective(task, design, seed, None))
        return f"took longer than {limit:g} s" if outcome is None else outcome
    assert task.objective is not None
    try:
        return outcome_of(task, task.objective(design, *(() if seed is None else (seed,))))
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
            first = measured.rewards
            if isinstance(first, Mapping):
                first = next(iter(first.values()))
            count = min(count, len(first))
        answer = (
            _as_answer(measured.rewards, count)
            if not len(task.objectives)
            else _as_goals(task, measured, count)
        )
        weights = None if measured.weights is None else _as_weights(measured.weights, count)
        names, violations = _as_violations(measured.violation, count)
        broken = violations.sum(axis=1)
        lasting = {row: why for row, why in answer.reasons.items() if not broken[row] > 0}
        reasons = {**lasting, **measured.reasons}
        undecided = np.flatnonzero(~np.isfinite(broken)).tolist()
        reasons |= {row: f"returned a violation of {broken[row]}" for row in undecided if row not in reasons}
        violations[list(reasons)] = 0.0
        return Answer(
            answer.rewards,
            reasons,
            float(measured.cost),
            weights=weights,
            violations=violations if names else None,
            requirements=names,
            goals=answer.goals,
        )
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


def _as_violations(given: Any, count: int) -> tuple[tuple[str, ...], Floats]:
    """What a batch objective said of requirements: their names, and float[count, k], NaN if it does not know."""
    if given is None:
        return (), np.zeros((count, 0))
    named = given if isinstance(given, Mapping) else {_ONLY_ONE: given}
    columns = [np.array(own, np.float64) for own in named.values()]
    if any(own.shape != (count,) for own in columns):
        raise ValueError("violation must be numbers, one for each design, or a mapping from names to these")
    return tuple(map(str, named)), np.maximum(0.0, np.stack(columns, axis=1)) if columns else np.zeros(
        (count, 0)
    )


def _goals_of(task: Task, value: Any) -> tuple[float, ...] | str:
    """The values of several objectives of a design, or what is wrong with them."""
    names = task.objectives
    if isinstance(value, Mapping) and set(value) == set(names):
        value = [value[name] for name in names]
    plain = isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1)
    if not plain or len(value) != len(names):
        return f"returned {value!r:.80} instead of {len(names)} numbers ({', '.join(names)})"
    found = [_as_reward(own) for own in value]
    for name, own in zip(names, found, strict=True):
        if isinstance(own, str):
            return f"{own}, for {name}"
    return tuple(own for own in found if isinstance(own, float))


def _as_goals(task: Task, measured: Measured, count: int) -> Answer:
    """What a batch objective returned for so many designs, of several objectives."""
    names, given = task.objectives, measured.rewards
    if isinstance(given, Mapping) and set(given) == set(names):
        given = np.stack([np.asarray(given[name], np.float64) for name in names], axis=-1)
    goals = np.array(given, np.float64)
    if goals.shape != (count, len(names)):
        what = f"an array of shape {goals.shape}"
        wanted = f"{len(names)} numbers ({', '.join(names)}) for each of {count} designs"
        return Answer.failed(count, f"the batch objective returned {what} instead of {wanted}")
    reasons = dict[int, str]()
    for row, place in zip(*np.nonzero(~np.isfinite(goals)), strict=True):
        reasons.setdefault(int(row), f"returned {goals[row, place]}, for {names[place]}")
    goals[list(reasons)] = math.nan
    return Answer(task.signs[0] * goals[:, 0], reasons, goals=goals)


def outcome_of(task: Task, value: Any) -> Outcome:
    """What the objective returned for a design, or what is wrong with it."""
    several = len(task.objectives) > 0
    if not isinstance(value, Measured):
        if not several:
            return _as_reward(value)
        goals = _goals_of(task, value)
        return goals if isinstance(goals, str) else Rated(float(task.signs[0]) * goals[0], goals=goals)
    if value.reasons or value.cut:
        return "returned Measured with reasons or cut, which are for batch objectives; raise an exception instead"
    given = value.violation
    named = given if isinstance(given, Mapping) else {} if given is None else {_ONLY_ONE: given}
    broken = dict[str, float]()
    for name, amount in named.items():
        own = _as_reward(amount)
        if isinstance(own, str) and own != "returned -inf":
            return f"{own}, as the violation" + (f" of {name!s:.60}" if name != _ONLY_ONE else "")
        broken[str(name)] = max(0.0, own) if isinstance(own, float) else 0.0
    rated = Rated(
        math.nan,
        None if given is None else broken,
        float(value.cost),
        None if value.weights is None else float(_as_weights([value.weights], 1)[0]),
    )
    if several:
        goals = _goals_of(task, value.rewards)
        if not isinstance(goals, str):
            return replace(rated, reward=float(task.signs[0]) * goals[0], goals=goals)
        return goals if rated.feasible else replace(rated, goals=(math.nan,) * len(task.objectives))
    reward = _as_reward(value.rewards)
    if isinstance(reward, str) and rated.feasible:
        return reward
    return replace(rated, reward=reward if isinstance(reward, float) else math.nan)


def commonest(reasons: Sequence[str]) -> tuple[str, float]:
    """The first of the failures that are the most, but for the numbers in their words, and their share."""
    kinds = [_NUMBER.sub("#", reason) for reason in reasons]
    first = max(kinds, key=kinds.count)
    return reasons[kinds.index(first)], kinds.count(first) / len(kinds)


def _as_reward(value: Any) -> float | str:
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
