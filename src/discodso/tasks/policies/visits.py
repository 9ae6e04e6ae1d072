"""Where thresholds are worth looking for: the numbers that the best trees so far meet in their episodes.

Declared bounds, and what random actions show, are only a hint: a good policy may go further, or hold a feature
near one place. So the interval of each feature follows what the best trees see, wider and narrower.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np

from discodso.base.arrays import Floats
from discodso.disco.archive import Archive
from discodso.space.space import Space
from discodso.space.state import State
from discodso.tasks.policies.environments import Interface
from discodso.tasks.policies.making import make
from discodso.tasks.policies.observations import flat
from discodso.tasks.policies.terms import Limits
from discodso.tasks.policies.timed import Left, always
from discodso.tasks.policies.tree import DecisionTree, action_of
from discodso.tasks.policies.vocabulary import TreeSpace

_WATCHED = 5  # of the best trees, an episode each
_GROWTH = 1.5  # of the number of batches after which they are watched again
_OUTSIDE = 0.01  # share of the observations that may lie outside, at either end
_MARGIN = 0.1  # of the width, that an interval reaches further
_KEPT = 0.5  # of the interval before, so that a few odd episodes do not decide


class Visits:
    """The focus of a search for trees; see `Focus`.

    Args:
        space: of the trees.
        interface: of the environment.
        hints: for each feature where to begin, None for those that thresholds are not looked for by visits.
        seed: of the search.
        left: seconds for the search, behind which nothing is watched.

    Attributes:
        episodes, seconds: that were watched, and how long that took.
    """

    def __init__(
        self,
        space: Space,
        interface: Interface,
        hints: Sequence[Limits | None],
        seed: int,
        left: Left = always,
    ) -> None:
        assert isinstance(space, TreeSpace)
        self.episodes, self.seconds, self._left = 0, 0.0, left
        self._space, self._interface, self._seed = space, interface, seed
        self._fixed = np.array([limits is None for limits in hints])
        self._ends = np.array([limits or (0.0, 1.0) for limits in hints], np.float64)
        self._batches, self._due = 0, 1
        self._reach = self._reached()

    def reach(self) -> tuple[Floats, Floats]:
        """See `Focus.reach`."""
        return self._reach

    def _reached(self) -> tuple[Floats, Floats]:
        low, high = (end.copy() for end in self._space.range_coordinates)
        library = self._space.library
        for k, feature in self._space.vocabulary.thresholds():
            ends = library.coordinates.to_z(k if library.slots == 1 else (k, 0), self._ends[feature])
            begin, end = np.clip(ends, low[k, 0], high[k, 0])
            if begin < end and not self._fixed[feature]:
                low[k, 0], high[k, 0] = begin, end
        return low, high

    def learn(self, archive: Archive) -> float:
        """See `Focus.learn`: the episodes that it took."""
        self._batches += 1
        designs = archive.members.designs.select(slice(_WATCHED))
        if self._batches < self._due or not len(designs):
            return 0.0
        self._due = math.ceil(_GROWTH * self._batches) + 1
        numbers = self._interface.numbers
        trees = [DecisionTree(self._space.vocabulary.nodes(design), numbers=numbers) for design in designs]
        began = time.monotonic()
        seen, episodes = self._watched(trees)
        self.episodes += episodes
        self.seconds += time.monotonic() - began
        if len(seen):
            seen = np.where(np.isfinite(seen), seen, np.nan)
            with np.errstate(all="ignore"):
                ends = np.nanquantile(seen, (_OUTSIDE, 1 - _OUTSIDE), axis=0).T
            width = ends[:, 1] - ends[:, 0]
            ends += np.outer(width, (-_MARGIN, _MARGIN))
            known = np.isfinite(ends).all(axis=1) & (width > 0)
            self._ends[known] = _KEPT * self._ends[known] + (1 - _KEPT) * ends[known]
            self._reach = self._reached()
        return float(episodes)

    def _watched(self, trees: Sequence[DecisionTree]) -> tuple[Floats, int]:
        """float[n, F], what trees see in an episode each, and how many episodes there were."""
        rows, episodes = list[list[float]](), 0
        rng = np.random.default_rng(np.random.SeedSequence((self._seed, 2, self._batches)))
        with make(self._interface.environment) as env:
            for tree in trees:
                if self._left() <= 0:
                    break
                episodes += 1
                try:
                    observation, _ = env.reset(seed=int(rng.integers(2**30, 2**31)))
                    for _ in range(self._interface.max_steps):
                        rows.append(flat(observation))
                        action = action_of(tree.columns, tree.numbers, rows[-1])
                        observation, _, terminated, truncated, _ = env.step(action)
                        if terminated or truncated or self._left() <= 0:
                            break
                except Exception:  # the objective tells what fails
                    continue
        return np.array(rows), episodes

    def state(self) -> State:
        """See `Focus.state`."""
        spent = {"episodes": self.episodes, "seconds": self.seconds}
        return State({"ends": self._ends.copy()}, {"batches": self._batches, "due": self._due, **spent})

    def restore(self, state: State) -> None:
        """See `Focus.restore`."""
        ends = state.arrays["ends"]
        if ends.shape != self._ends.shape:
            raise ValueError("ranges of other features")
        self._ends = ends.astype(np.float64)
        self._batches, self._due = int(state.data["batches"]), int(state.data["due"])
        self.episodes = int(state.data.get("episodes", 0))
        self.seconds = float(state.data.get("seconds", 0.0))
        self._reach = self._reached()
