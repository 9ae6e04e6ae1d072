"""Requirements: what methods are told of designs of which some break requirements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from discodso.base.arrays import Floats

_BELOW = 3.0  # spreads between the lower quartile and the floor


def feasibility_words(feasible: int, broken: Mapping[str, int]) -> str:
    """How many designs were feasible, and which requirement was broken most."""
    words = f"{feasible} feasible"
    if not broken:
        return words
    name, count = max(broken.items(), key=lambda item: item[1])
    return f"{words}; broken most: {name}, by {count}"


@dataclass(frozen=True)
class Grading:
    """From rewards and violations to what a method is told: a finite number for each design, by which feasible
    designs come before all others, and these in the order of their violations. With several objectives a number
    for each of them, so that a feasible design dominates all that are not.

    Feasible designs keep their reward down to a floor, so that most learning is from true rewards. What is worse
    is pressed together below it, and infeasible designs are below that:

        r                                  r at least the floor
        floor - s t / (1 + t)              t = (floor - r) / s
        floor - s (1.1 + u / (1 + u))      u = violation / usual

    The numbers are settled once, by the first batch that requirements are named for, so that what was told stays
    comparable for the rest of the run. They lie within a few times the spread of rewards, so that no mean or
    deviation of them is drowned.

    Attributes:
        floor, spread: of rewards.
        usual: violation.
    """

    floor: Floats
    spread: Floats
    usual: float

    @classmethod
    def of(cls, rewards: Floats, violation: Floats) -> Grading:
        """From a first batch; rewards may be NaN."""
        broken = violation[violation > 0]
        usual = float(np.median(broken)) if len(broken) else 1.0
        columns = rewards[:, None] if rewards.ndim == 1 else rewards
        ends = [_ends(own) for own in columns.T]
        floor, spread = np.array(ends).T.reshape(2, *rewards.shape[1:])
        return cls(floor, spread, usual)

    @property
    def least(self) -> float:
        """Below all that is told."""
        return float((self.floor - 2.2 * self.spread).min())

    def told(self, rewards: Floats, violation: Floats) -> Floats:
        """float[n] or float[n, m], from rewards of this shape, NaN at most where something is broken, and from
        violations float[n]."""
        violation = violation.reshape(-1, *(1,) * (rewards.ndim - 1))
        below = np.maximum(0.0, (self.floor - np.nan_to_num(rewards)) / self.spread)
        pressed = self.floor - self.spread * below / (1 + below)
        excess = violation / self.usual
        infeasible = self.floor - self.spread * (1.1 + excess / (1 + excess))
        return np.where(violation > 0, infeasible, np.where(below > 0, pressed, rewards))

    def to_dict(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"floor": self.floor.tolist(), "spread": self.spread.tolist(), "usual": self.usual}

    @classmethod
    def from_dict(cls, data: Any) -> Grading:
        """Inverse of `to_dict`; KeyError, TypeError or ValueError for anything else."""
        floor, spread = (np.array(data[key], np.float64) for key in ("floor", "spread"))
        return cls(floor, spread, float(data["usual"]))


def _ends(rewards: Floats) -> tuple[float, float]:
    """The floor of some rewards, and their spread."""
    known = rewards[np.isfinite(rewards)]
    if not len(known):
        return 0.0, 1.0
    low, high = np.quantile(known, (0.25, 0.75)).tolist()
    spread = max(high - low, 1e-3 * max(abs(low), abs(high))) or 1.0
    return low - _BELOW * spread, spread
