"""Racing: which designs of a batch deserve more episodes.

The update of the policy needs the top share of a batch only. All designs of a batch get a few episodes first;
those that cannot reach the top share, judged by their standard errors, are cut, and the others get more, until the
rest has N.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discodso.base.arrays import Bools, Floats

_FIRST = 4  # episodes for everyone
_GROWTH = 2  # episodes of the next round, as a multiple of those so far
_COMMON = 4


@dataclass(frozen=True, slots=True)
class Racing:
    """How designs of a batch race for episodes."""

    share: float = 0.2  # of the batch that must come through; the risk factor of the method, or more
    margin: float = 1.0  # standard errors that two designs must lie apart before one is cut

    def who_goes_on(self, mean: Floats, error: Floats, batch: int) -> Bools:
        """bool[n], who may still be in the best share of the batch, for all that means and their errors tell."""
        keep = min(len(mean), math.ceil(self.share * batch))
        low, high = mean - self.margin * error, mean + self.margin * error
        on: Bools = high >= np.partition(low, len(low) - keep)[len(low) - keep]
        return on


def rounds(episodes: int) -> list[int]:
    """Episodes that a design has had after each round of a race."""
    counts = [min(_FIRST, episodes)]
    while counts[-1] < episodes:
        counts.append(min(episodes, counts[-1] * _GROWTH))
    return counts


def means_and_errors(returns: Floats) -> tuple[Floats, Floats]:
    """float[n] each, of returns, float[n, k], over a few episodes, and the standard errors of these means.

    The variance of few episodes is itself mostly chance, so each is drawn towards that of the whole field, which
    counts as much as `_COMMON` episodes of one's own.
    """
    episodes = returns.shape[1]
    mean, variance = returns.mean(axis=1), returns.var(axis=1, ddof=1)
    shared = (variance * (episodes - 1) + float(variance.mean()) * _COMMON) / (episodes - 1 + _COMMON)
    errors: Floats = np.sqrt(shared / episodes)
    return mean, errors
