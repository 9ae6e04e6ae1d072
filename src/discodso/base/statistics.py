"""Statistics of a few runs: means, standard error, bootstrap intervals, probability of improvement.

Scores are one number for each run (seed); more is better.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discodso.base.arrays import Floats
from discodso.base.checks import require

RESAMPLES = 10_000
CONFIDENCE = 0.95
Statistic = Callable[[Floats], Floats]


def mean(scores: Floats) -> Floats:
    """The mean over the last axis."""
    result: Floats = np.mean(scores, axis=-1)
    return result


def interquartile_mean(scores: Floats) -> Floats:
    """The mean over the last axis of what is left without the best and the worst quarter, each rounded down."""
    cut = scores.shape[-1] // 4
    return mean(np.sort(scores, axis=-1)[..., cut : scores.shape[-1] - cut])


def standard_error(scores: ArrayLike) -> float | None:
    """Of the mean; None for a single score."""
    values = _checked(scores)
    return None if len(values) < 2 else float(np.std(values, ddof=1) / math.sqrt(len(values)))


def bootstrap_interval(
    scores: ArrayLike, statistic: Statistic = mean, *, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[float, float] | None:
    """Percentile bootstrap interval of 95 %; None for a single score, which says nothing of the spread.

    Args:
        scores: n numbers.
        statistic: a function over the last axis of an array.
        resamples: how many samples are drawn.
        seed: the same seed gives the same interval.
    """
    values = _checked(scores)
    if len(values) < 2:
        return None
    rng = np.random.default_rng(seed)
    return _percentiles(statistic(_resampled(values, resamples, rng)))


def probability_of_improvement(first: ArrayLike, second: ArrayLike) -> float:
    """The chance that a run of the first is better than one of the second; ties count half."""
    return float(_superiority(_checked(first), _checked(second)))


def improvement_interval(
    first: ArrayLike, second: ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[float, float] | None:
    """Percentile bootstrap interval of that, each side resampled on its own; None if a side has one run only."""
    one, other = _checked(first), _checked(second)
    if len(one) < 2 or len(other) < 2:
        return None
    rng = np.random.default_rng(seed)
    drawn = _resampled(one, resamples, rng), _resampled(other, resamples, rng)
    return _percentiles(_superiority(*drawn))


@dataclass(frozen=True)
class Summary:
    """Scores of one method.

    Attributes:
        runs: how many.
        mean_interval, interquartile_interval: bootstrap intervals of 95 %; None for a single run.
    """

    runs: int
    mean: float
    standard_error: float | None
    mean_interval: tuple[float, float] | None
    interquartile_mean: float
    interquartile_interval: tuple[float, float] | None
    best: float
    worst: float

    @classmethod
    def of(cls, scores: ArrayLike) -> Summary:
        """Summarise one number for each run."""
        values = _checked(scores)
        return cls(
            runs=len(values),
            mean=float(mean(values)),
            standard_error=standard_error(values),
            mean_interval=bootstrap_interval(values),
            interquartile_mean=float(interquartile_mean(values)),
            interquartile_interval=bootstrap_interval(values, interquartile_mean),
            best=float(values.max()),
            worst=float(values.min()),
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def _superiority(first: Floats, second: Floats) -> Floats:
    """Mann and Whitney's U over the number of pairs, over the last axes."""
    above = first[..., :, None] > second[..., None, :]
    equal = first[..., :, None] == second[..., None, :]
    result: Floats = np.mean(above + 0.5 * equal, axis=(-2, -1))
    return result


def _resampled(values: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    drawn: Floats = values[rng.integers(0, len(values), (resamples, len(values)))]
    return drawn


def _percentiles(statistics: Floats) -> tuple[float, float]:
    outside = (1 - CONFIDENCE) / 2
    low, high = np.quantile(statistics, (outside, 1 - outside))
    return float(low), float(high)


def _checked(scores: ArrayLike) -> Floats:
    values = np.asarray(scores, dtype=np.float64)
    good = values.ndim == 1 and values.size > 0 and bool(np.isfinite(values).all())
    require("scores", scores, good, "a list of at least one finite number")
    return values
