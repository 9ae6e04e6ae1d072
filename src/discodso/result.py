"""What a search found, and why it stopped."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

import numpy as np

from discodso.arrays import Floats
from discodso.design import Design, DesignBatch

TokenUse = dict[str, tuple[float, ...]]
VALUE_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_DENSE = 128  # batches until the distance of sampled ones doubles


class StopReason(Enum):
    """Why a search ended; `value` is a sentence for people."""

    BUDGET = "the budget of objective calls is spent; give a larger one to search on"
    TARGET = "a design reached the target reward"
    PATIENCE = "no better design was found for as many calls as the patience allows"
    TIME = "the time limit was reached; give a longer one to search on"
    INTERRUPTED = "interrupted by the user; the result holds all that was found until then"
    TRAINING = "training became non-finite and was stopped; the result holds all that was found until then"
    EXECUTOR = "the executor that evaluates designs was lost; the result holds all that was found until then"
    DEAD_END = "a prefix was met that no token may continue; the result holds all that was found until then"


@dataclass(frozen=True, slots=True)
class Scored:
    """A design with its reward, and the number of the objective call that gave it, counted from 1."""

    design: Design
    reward: float
    call: int

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"reward": self.reward, "call": self.call, "design": self.design.to_dict()}

    @classmethod
    def from_dict(cls, data: Any) -> Scored:
        """Inverse of `to_dict`; KeyError, TypeError or ValueError for anything else."""
        return cls(Design.from_dict(data["design"]), float(data["reward"]), int(data["call"]))


@dataclass(frozen=True, slots=True)
class Failure:
    """An evaluation that gave no reward: which call (counted from 1), which design, what happened."""

    call: int
    design: Design
    reason: str


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """The search after one batch. None where there was nothing to measure.

    Attributes:
        calls: objective calls so far.
        best: best reward so far.
        batch_best, mean, quantile: of the rewards of this batch that did not fail.
        entropy: of the policy, mean over the designs that taught.
        mean_length, max_length: of the designs of this batch.
        failures: failed evaluations so far.
        cost: so far, in the unit of the task, if it has one.
        seconds: since the start.
        tokens: of some batches what their designs are made of, see `token_use`; None for the others.
    """

    calls: int
    best: float | None
    batch_best: float | None
    mean: float | None
    quantile: float | None
    entropy: float | None
    mean_length: float | None
    max_length: int | None
    failures: int
    seconds: float
    cost: float | None = None
    tokens: TokenUse | None = None

    def to_dict(self) -> dict[str, Any]:
        """For JSON; `tokens` is left out where there is nothing."""
        own: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "tokens"}
        if self.tokens is not None:
            own["tokens"] = {name: list(use) for name, use in self.tokens.items()}
        return own


def is_sampled(number: int) -> bool:
    """Whether batch `number`, counted from 1, keeps its token use: all of the first, then fewer and fewer.

    A function of the number alone, so that a resumed run, or one whose budget was raised, keeps the same ones. The
    distance doubles each time the number has doubled: 10,000 batches keep about 500.
    """
    return number % (1 << max(0, (number // _DENSE).bit_length() - 1)) == 0


def token_use(designs: DesignBatch) -> TokenUse:
    """What designs are made of: for each token its share among all tokens, and for one that carries a value and
    occurs also the quantiles `VALUE_QUANTILES` of its values."""
    library = designs.library
    used = designs.tokens >= 0
    ids = designs.tokens[used]
    values = designs.values[used]
    counts = np.bincount(ids, minlength=len(library)).astype(np.float64)
    if library.end is not None:
        counts[library.end] = 0
    shares = counts / max(counts.sum(), 1.0)
    found: TokenUse = {}
    for k, name in enumerate(library.names):
        if k != library.end:
            found[name] = (_rounded(shares[k]),)
            if library.parametrised[k] and counts[k]:
                own = np.sort(values[ids == k])
                places = np.round(np.array(VALUE_QUANTILES) * (len(own) - 1)).astype(np.int64)
                found[name] += tuple(_rounded(value) for value in own[places])
    return found


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")


@dataclass(frozen=True, repr=False)
class Result:
    """Everything a search found.

    Attributes:
        best: the best design, None if no evaluation succeeded.
        top: the best distinct designs, best first.
        history: one row for each batch.
        calls: objective calls, failed ones included.
        failure_count: how many failed; `failures` has the first of them.
        stop: why the search ended; `stop.value` says it in a sentence, `detail` adds to it.
        cost: what the calls cost, in the unit of the task, if it has one.
    """

    best: Scored | None
    top: tuple[Scored, ...]
    history: tuple[HistoryRow, ...]
    calls: int
    failure_count: int
    failures: tuple[Failure, ...]
    stop: StopReason
    detail: str
    seconds: float
    seed: int
    cost: float | None = None

    def __repr__(self) -> str:
        best = "no design" if self.best is None else f"best {self.best.reward:.6g}"
        failed = f", {self.failure_count} failed" if self.failure_count else ""
        return f"<Result: {best} after {self.calls} calls{failed}; {self.sentence}>"

    @property
    def sentence(self) -> str:
        """Why the search ended, in words."""
        return self.stop.value + (f": {self.detail}" if self.detail else "")

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the best designs, the history and the stop reason."""
        return {
            "best": None if self.best is None else self.best.to_dict(),
            "top": [scored.to_dict() for scored in self.top],
            "history": [row.to_dict() for row in self.history],
            "calls": self.calls,
            "cost": self.cost,
            "failure_count": self.failure_count,
            "failures": [
                {"call": f.call, "reason": f.reason, "design": f.design.to_dict()} for f in self.failures
            ],
            "stop": self.stop.name.lower(),
            "stop_sentence": self.stop.value,
            "detail": self.detail,
            "seconds": self.seconds,
            "seed": self.seed,
        }


class Ranking:
    """The best distinct designs seen so far; at equal rewards the earlier one stands first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._scored: list[Scored] = []

    def add(self, designs: DesignBatch, rewards: Floats, calls_before: int) -> None:
        """Take designs with their rewards; non-finite rewards are passed over."""
        floor = self._scored[-1].reward if len(self._scored) == self.size else -math.inf
        candidates = np.flatnonzero(np.isfinite(rewards) & (rewards > floor))
        order = candidates[np.argsort(-rewards[candidates], kind="stable")]
        known = {scored.design: scored for scored in self._scored}
        taken = 0
        for row in order.tolist():
            if taken == self.size:
                break
            scored = Scored(designs[row], float(rewards[row]), calls_before + row + 1)
            if scored.design in known:
                if known[scored.design].reward < scored.reward:
                    known[scored.design] = scored
                continue
            known[scored.design] = scored
            taken += 1
        self._scored = sorted(known.values(), key=lambda s: (-s.reward, s.call))[: self.size]

    def restore(self, scored: Iterable[Scored]) -> None:
        """Hold these designs, which a ranking has held before."""
        self._scored = list(scored)

    def __iter__(self) -> Iterable[Scored]:
        return iter(self._scored)

    @property
    def best(self) -> Scored | None:
        """The best of all, None before the first success."""
        return self._scored[0] if self._scored else None

    @property
    def top(self) -> tuple[Scored, ...]:
        """Best first."""
        return tuple(self._scored)
