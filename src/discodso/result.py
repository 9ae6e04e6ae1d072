"""What a search found, and why it stopped."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from discodso import curves, figures
from discodso.arrays import Floats
from discodso.design import Design, DesignBatch
from discodso.history import HistoryRow

__all__ = ["Failure", "HistoryRow", "Ranking", "Result", "Scored", "StopReason"]


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
    """A design and its reward.

    Attributes:
        reward: the mean of all its evaluations, if there were several.
        call: number of the objective call that first gave it, counted from 1.
        weight: the evidence behind the reward: evaluations, or what the task counts, such as episodes.
    """

    design: Design
    reward: float
    call: int
    weight: float = 1.0

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        own = {"reward": self.reward, "call": self.call, "weight": self.weight}
        return {**own, "design": self.design.to_dict()}

    def joined(self, other: Scored) -> Scored:
        """With the evidence of another evaluation of the same design."""
        weight = self.weight + other.weight
        reward = (self.reward * self.weight + other.reward * other.weight) / weight
        return replace(self, reward=reward, weight=weight)

    @classmethod
    def from_dict(cls, data: Any) -> Scored:
        """Inverse of `to_dict`; KeyError, TypeError or ValueError for anything else."""
        if not isinstance(data, dict):
            raise TypeError("a scored design is an object")
        weight = data.get("weight", 1.0)  # older folders know none
        numbers = float(data["reward"]), int(data["call"]), float(weight)
        return cls(Design.from_dict(data["design"]), *numbers)


@dataclass(frozen=True, slots=True)
class Failure:
    """An evaluation that gave no reward: which call (counted from 1), which design, what happened."""

    call: int
    design: Design
    reason: str


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

    # ------------------------------------------------------------------------------------------ to look at

    def plot_learning(self, path: str | Path | None = None) -> figures.Plot:
        """Best reward against objective calls; written as SVG, PDF or PNG where a path is given."""
        track = curves.Track.of(self.history)
        return _saved(figures.learning([curves.Curve.of("best so far", [track])]), path)

    def plot_rewards(self, path: str | Path | None = None) -> figures.Plot:
        """Best reward so far, with quantile and mean of every batch."""
        return _saved(figures.lines(curves.batch_rewards(self.history), "reward"), path)

    def plot_lengths(self, path: str | Path | None = None) -> figures.Plot:
        """Mean and longest length of the designs of every batch."""
        return _saved(figures.lines(curves.lengths(self.history), "tokens in a design"), path)

    def plot_tokens(self, path: str | Path | None = None) -> figures.Plot:
        """Share of each token over time."""
        return _saved(figures.lines(curves.token_shares(self.history), "share of all tokens"), path)

    def plot_values(self, path: str | Path | None = None) -> figures.Plot:
        """How the values of each token moved: median, half of them, nine tenths of them."""
        return _saved(figures.values(curves.token_values(self.history)), path)

    def _repr_html_(self) -> str:
        """The learning curve and the best designs, for notebooks."""
        rows = "".join(
            f"<tr><td>{scored.reward:.6g}</td><td>{scored.call}</td><td>{scored.design._repr_html_()}</td></tr>"
            for scored in self.top[:5]
        )
        table = f"<table><tr><th>reward</th><th>call</th><th>design</th></tr>{rows}</table>" if rows else ""
        failed = f", {self.failure_count} failed" if self.failure_count else ""
        words = escape(f"{self.calls} objective calls{failed}, {self.seconds:.1f} s: {self.sentence}")
        return f"<p>{words}</p>{self.plot_learning()._repr_svg_() if rows else ''}{table}"

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


def _saved(plot: figures.Plot, path: str | Path | None) -> figures.Plot:
    return plot if path is None else plot.save(path)


def _place(scored: Scored) -> tuple[float, ...]:
    return -scored.reward, -scored.weight, len(scored.design), scored.call


class Ranking:
    """The best distinct designs seen so far.

    At equal rewards the one with more evidence stands first, then the shorter, then the earlier.

    Args:
        size: how many to keep.
        noisy: whether evaluations of one design differ; its reward is then the mean of them, by weight.
    """

    def __init__(self, size: int, noisy: bool = False) -> None:
        self.size = size
        self.noisy = noisy
        self._scored: list[Scored] = []

    def add(
        self, designs: DesignBatch, rewards: Floats, calls_before: int, weights: Floats | None = None
    ) -> None:
        """Take designs with their rewards; non-finite rewards are passed over."""
        full = len(self._scored) == self.size
        floor, longest = (self._scored[-1].reward, len(self._scored[-1].design)) if full else (-math.inf, 0)
        lengths = designs.design_lengths()
        finite = np.isfinite(rewards)
        promising = finite & ((rewards > floor) | ((rewards == floor) & (lengths < longest)))
        rows = np.flatnonzero(finite if self.noisy else promising)
        known = {scored.design: scored for scored in self._scored}
        taken = 0
        for row in rows[np.lexsort((lengths[rows], -rewards[rows]))].tolist():
            weight = 1.0 if weights is None else float(weights[row])
            scored = Scored(designs[row], float(rewards[row]), calls_before + row + 1, weight)
            before = known.get(scored.design)
            if before is not None:
                known[scored.design] = before.joined(scored) if self.noisy else before
            elif promising[row] and taken < self.size:
                known[scored.design] = scored
                taken += 1
        self._scored = sorted(known.values(), key=_place)[: self.size]

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
