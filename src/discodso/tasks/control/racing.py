"""Racing: which designs of a batch deserve more episodes, and the line that the best of a run draw.

The update of the policy needs the top share of a batch only. All designs of a batch get a few episodes first;
those that cannot reach the top share, judged by their standard errors, are cut, and the others get more, until the
rest has N. Where all trees of a run meet the same episodes, those that cannot be among its best are cut too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discodso.arrays import Bools, Floats
from discodso.checks import require_integer, require_number
from discodso.elites import significant
from discodso.state import State

_COMMON = 4


@dataclass(frozen=True, slots=True)
class Racing:
    """How designs of a batch race for episodes.

    Args:
        first: episodes for everyone.
        growth: episodes of the next round, as a multiple of those so far.
        share: of the batch that must come through; the risk factor of the method, or more.
        margin: standard errors that two designs must lie apart before one is cut.
        places: cut whoever cannot be among so many best of the run, too; 0 for no such line. It needs episodes
            that are the same for all.
        settled: episodes before that.
        slack: standard errors that a design must lie below that line.
    """

    first: int = 4
    growth: float = 2.0
    share: float = 0.2
    margin: float = 1.0
    places: int = 0
    settled: int = 16
    slack: float = 1.0

    def __post_init__(self) -> None:
        require_integer("racing: first", self.first, 2)
        require_number("racing: growth", self.growth, above=1)
        require_number("racing: share", self.share, above=0, most=1)
        require_number("racing: margin", self.margin, least=0)
        require_integer("racing: places", self.places, 0)
        require_integer("racing: settled", self.settled, 2)
        require_number("racing: slack", self.slack, least=0)

    def rounds(self, episodes: int) -> list[int]:
        """Episodes that a design has had after each round."""
        counts = [min(self.first, episodes)]
        while counts[-1] < episodes:
            counts.append(min(episodes, math.ceil(counts[-1] * self.growth)))
        return counts

    def survivors(self, mean: Floats, error: Floats, batch: int) -> Bools:
        """bool[n], who races on: whoever may still be in the best share of the batch, for all the errors tell."""
        keep = min(len(mean), math.ceil(self.share * batch))
        low, high = mean - self.margin * error, mean + self.margin * error
        line = np.partition(low, len(low) - keep)[len(low) - keep]
        alive: Bools = high >= line
        return alive

    def contenders(self, mean: Floats, error: Floats, episodes: int, line: float) -> Bools:
        """bool[n], who may still be among the best of the run, whose last has `line`."""
        may: Bools = mean + self.slack * error >= line
        return may if episodes >= self.settled else np.ones(len(mean), np.bool_)


def standard_errors(variance: Floats, episodes: int) -> Floats:
    """float[n], of means over a few episodes each.

    The variance of few episodes is itself mostly chance, so each is drawn towards that of the whole field, which
    counts as much as `_COMMON` episodes of one's own.
    """
    shared = (variance * (episodes - 1) + float(variance.mean()) * _COMMON) / (episodes - 1 + _COMMON)
    errors: Floats = np.sqrt(shared / episodes)
    return errors


class Standings:
    """The best rewards of a run that came through their races; the last of them draws the line for the next batch.

    Equal rewards have one place: over the same episodes they come from trees that differ in what does not matter.
    A batch may be rated twice, if the run was stopped within it: what it changed is then taken back first.

    Args:
        places: how many.
    """

    def __init__(self, places: int) -> None:
        self.places = places
        self._batch = -1  # the one that was rated last
        self._now: list[float] = []  # best first
        self._before: list[float] = []

    def line(self, batch: int) -> float:
        """What a design must reach to be among the best, -inf while there are too few; `batch` is any number that
        only this batch has."""
        best = self._before if batch == self._batch else self._now
        return best[-1] if len(best) == self.places else -math.inf

    def enter(self, batch: int, rewards: Floats) -> None:
        """Take the rewards of a batch that came through."""
        if batch != self._batch:
            self._batch, self._before = batch, self._now
        news = {significant(reward) for reward in rewards.tolist()}
        self._now = sorted({*self._before, *news}, reverse=True)[: self.places]

    def state(self) -> State:
        """For a checkpoint."""
        arrays = {"now": np.array(self._now, np.float64), "before": np.array(self._before, np.float64)}
        return State(arrays, {"batch": self._batch})

    def restore(self, state: State) -> None:
        """Inverse of `state`."""
        self._now, self._before = state.arrays["now"].tolist(), state.arrays["before"].tolist()
        self._batch = int(state.data["batch"])
