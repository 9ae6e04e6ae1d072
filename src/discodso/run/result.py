"""What a search found, and why it stopped."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.base.errors import DeclarationError
from discodso.run import curves
from discodso.run.goals import feasibility_words
from discodso.run.history import HistoryRow
from discodso.space.design import Design, DesignBatch

Plot = Any  # `discodso.report.figures.Plot`
__all__ = ["Failure", "HistoryRow", "Ranking", "Result", "Scored", "StopReason"]
CANDIDATES = 32  # designs that a race at the end of a noisy search takes at most
_REPEATS = 10  # evaluations of designs that had one already, to know how much they vary


class StopReason(Enum):
    """Why a search ended; `value` is a sentence for people."""

    BUDGET = "the budget of objective calls is spent; give a larger one to search on"
    TARGET = "a design reached the target reward"
    PATIENCE = "no better design was found for as many calls as the patience allows"
    TIME = "the time limit was reached; give a longer one to search on"
    INTERRUPTED = "interrupted by the user; the result holds all that was found until then"
    TRAINING = "training became non-finite and was stopped; the result holds all that was found until then"
    EXECUTOR = "the executor that evaluates designs was lost; the result holds all that was found until then"
    SOLVED = "what was found fits to the last digits, so that nothing is left to search for"
    OPTIMUM = "the best possible reward was reached, so that nothing is left to search for"
    FAILED = (
        'the whole first batch failed; see to the reason, or go on all the same with on_failure="continue"'
    )
    EXHAUSTED = "no new designs are proposed any more"
    DEAD_END = "a prefix was met that no token may continue; the result holds all that was found until then"


@dataclass(frozen=True, slots=True)
class Scored:
    """A design and its reward.

    Attributes:
        reward: the mean of all its evaluations, if there were several; may be NaN if a requirement is broken.
        call: number of the objective call that first gave it, counted from 1; 0 if it was known before the run.
        weight: the evidence behind the reward: evaluations, or what the task counts, such as episodes.
        evaluations: how many.
        spread: their squared distances from the mean, by weight, in all.
        violation: how far the design is from meeting all requirements, mean of its evaluations; 0 if feasible.
        goals: values of several objectives, NaN where they are not known; the reward is then the first of them,
            turned so that more is better.
    """

    design: Design
    reward: float
    call: int
    weight: float = 1.0
    evaluations: int = 1
    spread: float = 0.0
    violation: float = 0.0
    goals: tuple[float, ...] = ()

    @property
    def call_text(self) -> str:
        """The number of the call for people."""
        return str(self.call) if self.call else "known"

    @property
    def feasible(self) -> bool:
        """Whether the design meets all requirements."""
        return not self.violation

    @property
    def error(self) -> float | None:
        """Standard error of the reward, None after a single evaluation."""
        if self.evaluations < 2 or not math.isfinite(self.spread):
            return None
        return math.sqrt(self.spread / (self.evaluations - 1) / self.weight)

    def reward_text(self, form: str = ".6g") -> str:
        """The reward, with its error where there is one, and how far the design is from being feasible."""
        error = "" if self.error is None else f" ± {self.error:.2g}"
        broken = "" if self.feasible else f" (violation {self.violation:.3g})"
        rewards = ", ".join(f"{own:{form}}" for own in self.goals or (self.reward,))
        return f"{rewards}{error}{broken}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        known = math.isfinite(self.reward)
        reward = self.reward if known else None
        own: dict[str, Any] = {"reward": reward, "call": self.call, "weight": self.weight}
        if self.violation:
            own["violation"] = self.violation
        if self.goals:
            own["goals"] = [goal if math.isfinite(goal) else None for goal in self.goals]
        if self.evaluations > 1:
            own["evaluations"] = self.evaluations
            if known:
                own |= {"spread": self.spread, "error": self.error}
        return {**own, "design": self.design.to_dict()}

    def joined(self, other: Scored) -> Scored:
        """With the evidence of more evaluations of the same design."""
        weight = self.weight + other.weight
        violation = (self.violation * self.weight + other.violation * other.weight) / weight
        reward = (self.reward * self.weight + other.reward * other.weight) / weight
        between = self.weight * other.weight / weight * (self.reward - other.reward) ** 2
        return replace(
            self,
            reward=reward,
            weight=weight,
            evaluations=self.evaluations + other.evaluations,
            spread=self.spread + other.spread + between,
            violation=violation,
        )

    @classmethod
    def from_dict(cls, data: Any) -> Scored:
        """Inverse of `to_dict`; KeyError, TypeError or ValueError for anything else."""
        weight, violation = float(data["weight"]), float(data.get("violation", 0.0))
        unknown = data["reward"] is None and violation > 0
        spread = float(data.get("spread", math.nan if unknown else 0.0))
        reward = math.nan if unknown else float(data["reward"])
        evaluations = int(data.get("evaluations", 1))
        if not (0 < weight < math.inf and evaluations >= 1 and (unknown or 0 <= spread < math.inf)):
            raise ValueError("evidence of a scored design that cannot be")
        if not 0 <= violation < math.inf:
            raise ValueError("a violation that cannot be")
        design = Design.from_dict(data["design"])
        goals = tuple(math.nan if goal is None else float(goal) for goal in data.get("goals", ()))
        return cls(design, reward, int(data["call"]), weight, evaluations, spread, violation, goals)


@dataclass(frozen=True, slots=True)
class Failure:
    """An evaluation that gave no reward: which call (counted from 1), which design, what happened."""

    call: int
    design: Design
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"call": self.call, "reason": self.reason, "design": self.design.to_dict()}

    @classmethod
    def from_dict(cls, data: Any) -> Failure:
        """Inverse of `to_dict`; KeyError, TypeError or ValueError for anything else."""
        return cls(int(data["call"]), Design.from_dict(data["design"]), str(data["reason"]))


@dataclass(frozen=True, repr=False)
class Result:
    """Everything a search found.

    Attributes:
        best: the best design, None if no evaluation succeeded, no design met all requirements, or there are
            several objectives, for which `front` has the best.
        top: the best distinct designs, best first; where a race on fresh seeds chose the winner, by how far they
            came, then those that were not in it. Infeasible designs come last, by their violation.
        history: one row for each batch.
        calls: objective calls, failed ones included.
        failure_count: how many failed; `failures` has the first of them.
        stop: why the search ended; `stop.value` says it in a sentence, `detail` adds to it.
        cost: what the calls cost, in the unit of the task, if it has one.
        feasible_count: how many designs met all requirements, None if the objective names none.
        broken: how many designs broke each requirement, by name.
        objectives, directions: of several objectives, their names, and "max" or "min" for each; else empty.
        hypervolume: of several objectives, that of the front down to `reference`; None before that is settled.
        reference: the point of the hypervolume.
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
    feasible_count: int | None = None
    broken: Mapping[str, int] = field(default_factory=dict)
    objectives: tuple[str, ...] = ()
    directions: tuple[str, ...] = ()
    hypervolume: float | None = None
    reference: tuple[float, ...] | None = None

    @property
    def front(self) -> tuple[Scored, ...]:
        """The feasible designs that no other one is better than in all objectives, best in the first of them
        first; empty where there is one objective."""
        return tuple(scored for scored in self.top if scored.feasible) if self.objectives else ()

    def __repr__(self) -> str:
        best = "no design" if self.best is None else f"best {self.best.reward:.6g}"
        if self.front:
            volume = "" if self.hypervolume is None else f" hypervolume {self.hypervolume:.6g},"
            best = f"front of {len(self.front)},{volume}"
        return f"<Result: {best} after {self.counts_text}; {self.sentence}>"

    @property
    def counts_text(self) -> str:
        """Calls, how many of them failed and how many designs were feasible, in words."""
        failed = f", {self.failure_count} failed" if self.failure_count else ""
        if self.feasible_count is not None:
            failed += f", {feasibility_words(self.feasible_count, self.broken)}"
        return f"{self.calls} calls{failed}"

    @property
    def sentence(self) -> str:
        """Why the search ended, in words."""
        return self.stop.value + (f": {self.detail}" if self.detail else "")

    # ------------------------------------------------------------------------------------------ to look at

    def plot_learning(self, path: str | Path | None = None) -> Plot:
        """Best reward against objective calls; written as SVG, PDF or PNG where a path is given."""
        track = curves.Track.of(self.history)
        what = "hypervolume of the front" if self.objectives else "best reward"
        return _saved(_figures().learning([curves.Curve.of("best so far", [track])], what=what), path)

    def plot_front(self, path: str | Path | None = None) -> Plot:
        """The first two of several objectives, a point for each design of the front."""
        if not self.objectives:
            raise DeclarationError("plot_front is for several objectives; use plot_learning")
        points = [scored.goals[:2] for scored in self.front]
        return _saved(_figures().goals(points, self.objectives[:2]), path)

    def plot_rewards(self, path: str | Path | None = None) -> Plot:
        """Best reward so far, with quantile and mean of every batch."""
        return _saved(_figures().lines(curves.batch_rewards(self.history), "reward"), path)

    def plot_lengths(self, path: str | Path | None = None) -> Plot:
        """Mean and longest length of the designs of every batch."""
        return _saved(_figures().lines(curves.lengths(self.history), "tokens in a design"), path)

    def plot_tokens(self, path: str | Path | None = None) -> Plot:
        """Share of each token over time."""
        return _saved(_figures().lines(curves.token_shares(self.history), "share of all tokens"), path)

    def plot_values(self, path: str | Path | None = None) -> Plot:
        """How the values of each token moved: median, half of them, nine tenths of them."""
        return _saved(_figures().values(curves.token_values(self.history)), path)

    def _repr_html_(self) -> str:
        """The learning curve and the best designs, for notebooks."""
        rows = "".join(
            f"<tr><td>{scored.reward_text()}</td><td>{scored.call_text}</td>"
            f"<td>{_html(scored.design, place)}</td></tr>"
            for place, scored in enumerate(self.top[:5])
        )
        names = "".join(f"{escape(name)}, " for name in self.objectives)[:-2] or "reward"
        table = f"<table><tr><th>{names}</th><th>call</th><th>design</th></tr>{rows}</table>" if rows else ""
        words = escape(f"{self.counts_text}, {self.seconds:.1f} s: {self.sentence}")
        return f"<p>{words}</p>{self.plot_learning()._repr_svg_() if rows else ''}{table}"

    def to_dict(self, history: bool = True) -> dict[str, Any]:
        """For JSON: the best designs, the stop reason, and the history unless it is not wanted."""
        return {
            "best": None if self.best is None else self.best.to_dict(),
            "top": [scored.to_dict() for scored in self.top],
            **({"history": [row.to_dict() for row in self.history]} if history else {}),
            "calls": self.calls,
            "cost": self.cost,
            "failure_count": self.failure_count,
            "failures": [failure.to_dict() for failure in self.failures],
            **(
                {}
                if self.feasible_count is None
                else {"feasible_count": self.feasible_count, "broken": dict(self.broken)}
            ),
            **(
                {
                    "objectives": list(self.objectives),
                    "directions": list(self.directions),
                    "hypervolume": self.hypervolume,
                    "reference": None if self.reference is None else list(self.reference),
                }
                if self.objectives
                else {}
            ),
            "stop": self.stop.name.lower(),
            "stop_sentence": self.stop.value,
            "detail": self.detail,
            "seconds": self.seconds,
            "seed": self.seed,
        }


def _html(design: Design, place: int) -> str:
    """A design of a table; only the first tree is drawn."""
    return escape(str(design)) if design.arities and place else design._repr_html_()


def _figures() -> Any:
    """The module that draws, loaded when something is drawn: results do not depend on it."""
    return import_module("discodso.report.figures")


def _saved(plot: Plot, path: str | Path | None) -> Plot:
    return plot if path is None else plot.save(path)


class Ranking:
    """The best distinct designs of a run so far: first those that a race on fresh seeds has put in order, once
    there is one, then those of the search.

    Feasible designs come before all that break a requirement, and these in the order of their violations. At equal
    rewards the one with more evidence stands first, then the shorter, then the earlier.

    Args:
        size: how many to keep.
        noisy: whether evaluations of one design differ; its reward is then the mean of them, by weight. Else it is
            the one with the most evidence: with less of it a design may have been cut short.
        cautious: a race is to follow. Candidates for it are kept, and ranked by the mean less its standard error,
            as far as designs that were evaluated again tell how much evaluations vary. Else those with a single
            lucky evaluation stand first.

    Attributes:
        candidates: those of the search alone, best first.
        raced: those of the race.
    """

    def __init__(self, size: int, noisy: bool = False, cautious: bool = False) -> None:
        self.candidates: list[Scored] = []
        self.raced: tuple[Scored, ...] = ()
        self._top = size
        self._kept = max(size, CANDIDATES) if cautious else size
        self._noisy = noisy
        self._cautious = cautious
        self._spread, self._repeats = 0.0, 0  # of all designs that were evaluated again

    def add(
        self,
        designs: DesignBatch,
        rewards: Floats,
        calls: Ints,
        weights: Floats | None = None,
        violation: Floats | None = None,
    ) -> None:
        """Take designs with their rewards and the numbers of the calls, and with their violations if something is
        required; non-finite rewards are passed over, but for infeasible designs."""
        evidence = np.ones(len(rewards)) if weights is None else np.asarray(weights, np.float64)
        broken = np.zeros(len(rewards)) if violation is None else violation
        worth = rewards - np.sqrt(self._variance / evidence)
        worth = np.where(np.isnan(worth), -np.inf, worth)
        last = self.candidates[-1] if len(self.candidates) == self._kept else None
        floor, longest = (-math.inf, 0) if last is None else (self._worth(last), len(last.design))
        most = math.inf if last is None else last.violation
        lengths = designs.design_lengths()
        finite = np.isfinite(rewards) | (broken > 0)
        better = (worth > floor) | ((worth == floor) & (lengths < longest))
        promising = finite & ((broken < most) | ((broken == most) & better))
        rows = np.flatnonzero(finite if self._noisy else promising)
        known = {scored.design: scored for scored in self.candidates}
        taken = 0
        for row in rows[np.lexsort((lengths[rows], -worth[rows], broken[rows]))].tolist():
            evident = float(evidence[row])
            scored = Scored(
                designs[row], float(rewards[row]), int(calls[row]), evident, violation=float(broken[row])
            )
            before = known.get(scored.design)
            if before is not None:
                known[scored.design] = self._joined(before, scored)
            elif promising[row] and taken < self._kept:
                known[scored.design] = scored
                taken += 1
        self.candidates = sorted(known.values(), key=self._place)[: self._kept]

    def _joined(self, before: Scored, more: Scored) -> Scored:
        if not self._noisy:
            return more if more.weight > before.weight else before
        both = before.joined(more)
        if not math.isfinite(both.spread):
            return both
        self._spread += both.spread - before.spread - more.spread
        self._repeats += 1
        return both

    @property
    def _variance(self) -> float:
        """Of evaluations of one design, for a weight of 1; 0 where it plays no part or is not known."""
        return self._spread / self._repeats if self._cautious and self._repeats else 0.0

    def _worth(self, scored: Scored, errors: int = 1) -> float:
        worth = scored.reward - errors * math.sqrt(self._variance / scored.weight)
        return -math.inf if math.isnan(worth) else worth

    def _place(self, scored: Scored) -> tuple[float, ...]:
        return scored.violation, -self._worth(scored), -scored.weight, len(scored.design), scored.call

    def reaches(self, target: float) -> bool:
        """Whether the search has a design as good as that; a cautious ranking goes by means of several evaluations
        only, two standard errors below, and has to know how much evaluations vary."""
        candidates = [scored for scored in self.candidates if scored.feasible]
        if not self._cautious:
            return bool(candidates) and candidates[0].reward >= target
        known = [scored for scored in candidates if scored.evaluations > 1]
        return self._repeats >= _REPEATS and any(self._worth(scored, 2) >= target for scored in known)

    def state(self) -> dict[str, Any]:
        """What the search has, for JSON."""
        top = [scored.to_dict() for scored in self.candidates]
        return {"top": top, "spread": self._spread, "repeats": self._repeats}

    def restore(self, data: Any) -> None:
        """Inverse of `state`; KeyError, TypeError or ValueError for anything else."""
        self.candidates = [Scored.from_dict(scored) for scored in data["top"]]
        self._spread, self._repeats = float(data["spread"]), int(data["repeats"])

    def __iter__(self) -> Iterator[Scored]:
        return iter(self.top)

    @property
    def best(self) -> Scored | None:
        """The best of all, None before the first that is feasible."""
        return next(
            (scored for scored in (self.top if self.raced else self.candidates) if scored.feasible), None
        )

    @property
    def top(self) -> tuple[Scored, ...]:
        """Best first."""
        known = {scored.design for scored in self.raced}
        others = (scored for scored in self.candidates if scored.design not in known)
        return (*self.raced, *others)[: self._top]
