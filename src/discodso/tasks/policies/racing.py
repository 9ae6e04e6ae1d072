"""Racing: which designs of a batch deserve more episodes, and the line that the best of a run draw.

The update of the policy needs the top share of a batch only. All designs of a batch get a few episodes first;
those that cannot reach the top share, judged by their standard errors, are cut, and the others get more, until the
rest has N. Where all trees of a run meet the same episodes, those that cannot be among its best are cut too. There
returns are compared episode by episode with those of the best: good trees find the same episodes hard, so that
differences vary far less than returns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.space.state import State

_COMMON = 4


@dataclass(frozen=True, slots=True)
class Racing:
    """How designs of a batch race for episodes.

    With places, whoever cannot be among so many best of the run is cut too; that needs episodes that are the same
    for all.
    """

    first: int = 4  # episodes for everyone
    growth: float = 2.0  # episodes of the next round, as a multiple of those so far
    share: float = 0.2  # of the batch that must come through; the risk factor of the method, or more
    margin: float = 1.0  # standard errors that two designs must lie apart before one is cut
    places: int = 0
    settled: int = 16  # episodes before the line of the best of the run counts
    slack: float = 1.0  # standard errors that a design must lie below that line

    def rounds(self, episodes: int) -> list[int]:
        """Episodes that a design has had after each round."""
        counts = [min(self.first, episodes)]
        while counts[-1] < episodes:
            counts.append(min(episodes, math.ceil(counts[-1] * self.growth)))
        return counts

    def who_goes_on(self, mean: Floats, error: Floats, batch: int, episodes: int, line: float) -> Bools:
        """bool[n], who may still be in the best share of the batch, and among the best of the run, whose last has
        `line`, for all that means of so many episodes and their errors tell."""
        keep = min(len(mean), math.ceil(self.share * batch))
        low, high = mean - self.margin * error, mean + self.margin * error
        on: Bools = high >= np.partition(low, len(low) - keep)[len(low) - keep]
        return on & (mean + self.slack * error >= line) if episodes >= self.settled else on


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


class Best(NamedTuple):
    """The best trees of a run, best first: returns float[n, N] by episode, and nodes int[n]."""

    returns: Floats
    nodes: Ints


class Standings:
    """The best trees of a run, `places` of them, over the N `episodes` that all of them meet.

    The last of them draws the line for the next batch. Equal means have one place, which the shortest tree holds:
    they come from trees that differ in what does not matter. A batch may be rated twice, if the run was stopped
    within it: what it changed is then taken back first. `batch` is any number that only this batch has.
    """

    def __init__(self, places: int, episodes: int) -> None:
        self.places = places
        self._episodes = episodes
        self.clear()

    def clear(self) -> None:
        """Forget all of them."""
        self._batch = -1  # the one that was rated last
        self._now = self._before = Best(np.empty((0, self._episodes)), np.empty(0, np.int64))

    def best(self, batch: int) -> Best:
        """As they stand before a batch."""
        return self._before if batch == self._batch else self._now

    def line(self, batch: int) -> float:
        """What a design must reach to be among the best, -inf while there are too few."""
        best = self.best(batch).returns
        return float(best[-1].mean()) if len(best) == self.places else -math.inf

    def field(self, batch: int) -> Floats:
        """float[N], what the best have in each episode, on average; zero while there are none."""
        best = self.best(batch).returns
        return best.mean(axis=0) if len(best) else np.zeros(self._episodes)

    def enter(self, batch: int, news: Best) -> None:
        """Take those of a batch that came through all episodes, in any order."""
        before = self.best(batch)
        returns = np.concatenate((before.returns, news.returns))
        nodes = np.concatenate((before.nodes, news.nodes))
        losses = -returns.mean(axis=1)
        order = np.lexsort((nodes, losses))
        rows = order[np.unique(losses[order], return_index=True)[1][: self.places]]
        self._batch, self._before, self._now = batch, before, Best(returns[rows], nodes[rows])

    def state(self) -> State:
        """For a checkpoint."""
        both = {"now": self._now, "before": self._before}
        arrays = {f"{when}_{key}": rows for when, b in both.items() for key, rows in b._asdict().items()}
        return State(arrays, {"batch": self._batch})

    def restore(self, state: State) -> None:
        """Inverse of `state`."""
        a = state.arrays
        self._now, self._before = (Best(a[f"{w}_returns"], a[f"{w}_nodes"]) for w in ("now", "before"))
        self._batch = int(state.data["batch"])
