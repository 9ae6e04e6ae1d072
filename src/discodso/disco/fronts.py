"""DisCo for several objectives: a search in each of some directions, all of which learn from every design.

Each direction has weights, by which the objectives become one number (augmented Chebyshev: how far a design is
from the best values, in the objective where that counts most). DisCo searches for the best design by it, one batch
for each direction in turn. All directions are told all designs: what one of them finds serves its neighbours.

The scale of each objective is that of the front. It is not known at the start, so the searches begin anew a few
times, with the scale as it is then, and with the best designs so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats.qmc import Halton

from discodso.base.arrays import Floats
from discodso.base.checks import require, seed_sequence, settle_integers
from discodso.base.dominance import by_dominance, undominated
from discodso.disco.archive import Pool
from discodso.disco.disco import DisCo, DisCoSettings, default_settings
from discodso.disco.method import Metrics, told_arrays
from discodso.space.design import Design, DesignBatch
from discodso.space.replay import replay
from discodso.space.space import Space
from discodso.space.state import State

_FIRST, _FACTOR = 5, 4  # batches until the searches begin, and how many times as many until they begin anew
_ELITE = 200  # designs that they begin with
_SUM = 0.05  # weight of the sum of all objectives beside the worst of them
_BEYOND = 0.1  # how far beyond the best values the point lies that distances count from, in scales


@dataclass(frozen=True, slots=True)
class FrontSettings:
    """Settings of DisCo for several objectives.

    Args:
        directions: in which it searches at once.
        search: the method of each of them.
    """

    directions: int = 8
    search: DisCoSettings = field(default_factory=lambda: front_settings().search)

    several_objectives: ClassVar[str] = "only"

    def __post_init__(self) -> None:
        settle_integers(self, {"directions": 1})
        require("search", self.search, isinstance(self.search, DisCoSettings), "of type DisCoSettings")

    def build(self, space: Space, seed: int | np.random.SeedSequence = 0) -> FrontSearch:
        """Start the method on a space."""
        return FrontSearch(space, self, seed=seed)


def front_settings(*, noisy: bool = False, budget: int | None = None) -> FrontSettings:
    """The default method for several objectives, for a budget of objective calls."""
    own = default_settings(noisy=noisy, budget=budget)
    return FrontSettings(search=replace(own, restarts=None))


@dataclass(frozen=True)
class _Scale:
    """From several objectives to one number for each direction.

    Attributes:
        best, width: float[m], of each objective on the front when it was settled.
    """

    best: Floats
    width: Floats

    @classmethod
    def of(cls, goals: Floats) -> _Scale:
        """By goals[n, m] of designs that did not fail."""
        front = goals[undominated(goals)]
        best, width = front.max(axis=0), front.max(axis=0) - front.min(axis=0)
        least = np.maximum(1e-12 * np.abs(best), 1e-300)
        spread = np.maximum(best - goals.min(axis=0), least)
        return cls(best, np.where(width > least, width, spread))

    def rewards(self, goals: Floats, weights: Floats) -> Floats:
        """float[n], larger for better; -inf for designs that failed."""
        far = weights * ((self.best - goals) / self.width + _BEYOND)
        rewards: Floats = -(far.max(axis=1) + _SUM * far.sum(axis=1))
        return rewards


def directions(count: int, objectives: int) -> Floats:
    """float[count, m], weights of directions that are even among those of positive numbers with the sum 1."""
    if objectives == 2:
        first = (np.arange(count) + 0.5) / count
        return np.stack((first, 1 - first), axis=1)
    drawn = -np.log(Halton(objectives, scramble=False).random(count + 1)[1:])
    weights: Floats = drawn / drawn.sum(axis=1, keepdims=True)
    return weights


class FrontSearch:
    """The method in the middle of a run; see the module."""

    def __init__(
        self, space: Space, settings: FrontSettings, *, seed: int | np.random.SeedSequence = 0
    ) -> None:
        require("space", space, isinstance(space, Space), "a Space")
        self.space, self.settings = space, settings
        self.batch_size = settings.search.batch_size
        self._seed = seed_sequence(seed)
        self._told = self._begun = self._turn = 0
        self._elite, self._goals = Pool.empty(space), np.empty((0, 0))
        self._scale: _Scale | None = None
        self._searches = self._built(
            1
        )  # until the scale is known there is one, which proposes and is told nothing

    @property
    def redraws(self) -> bool:
        """Whether designs that are known are to be asked for again."""
        return self._searches[0].redraws

    def _built(self, count: int) -> list[DisCo]:
        keys = [(*self._seed.spawn_key, self._begun, place) for place in range(count)]
        seeds = [np.random.SeedSequence(self._seed.entropy, spawn_key=key) for key in keys]
        return [DisCo(self.space, self.settings.search, seed=seed) for seed in seeds]

    def ask(self, size: int | None = None) -> DesignBatch:
        """Designs to evaluate, of the direction whose turn it is."""
        return self._searches[self._turn % len(self._searches)].ask(size)

    def tell(
        self, designs: Sequence[Design], rewards: ArrayLike, weights: ArrayLike | None = None
    ) -> Metrics | None:
        """Take values float[B, m] of several objectives, turned so that more is better; not finite where designs
        failed."""
        batch, goals = told_arrays(self.space, designs, rewards, several=True)
        if not len(batch):
            return None
        if batch.origin is not self.space:
            replay(self.space, batch)  # refuses designs that do not belong to the space
            batch = replace(batch, origin=self.space)
        fine = np.asarray(np.isfinite(goals).all(axis=1))
        goals = np.where(fine[:, None], goals, -np.inf)
        evidence = np.ones(len(batch)) if weights is None else np.array(weights, np.float64)
        own, metrics = self._turn % len(self._searches), Metrics()
        if self._scale is not None:
            found = self._tell(batch, goals, evidence)[own]
            metrics = metrics if found is None else Metrics(shares=found.shares, redrawn=found.redrawn)
        self._keep(Pool(batch, goals[:, 0], evidence), goals)
        before, size = self._told, self.batch_size
        self._told += len(batch)
        # A batch is told in any number of parts, and the next direction has the next batch.
        self._turn += self._told // size - before // size
        if self._told >= _FIRST * size * _FACTOR**self._begun and len(self._elite):
            self._begin()
        return metrics

    def _tell(self, batch: DesignBatch, goals: Floats, weights: Floats) -> list[Metrics | None]:
        assert self._scale is not None
        each = zip(self._searches, directions(len(self._searches), goals.shape[1]), strict=True)
        return [search.tell(batch, self._scale.rewards(goals, own), weights) for search, own in each]

    def _keep(self, told: Pool, goals: Floats) -> None:
        """Keep the best distinct designs."""
        fine = np.asarray(np.isfinite(goals).all(axis=1))
        pool = self._elite.join(told.select(fine))
        goals = np.concatenate((self._goals.reshape(-1, goals.shape[1]), goals[fine]))
        first: dict[bytes, int] = {}
        for row, key in enumerate(pool.designs.keys()):
            first.setdefault(key, row)
        rows = np.array(list(first.values()), np.int64)
        rows = rows[by_dominance(goals[rows])][:_ELITE]
        self._elite, self._goals = pool.select(rows), goals[rows]

    def _begin(self) -> None:
        """Begin a search in each direction, with the scale and the best designs as they are now."""
        self._begun += 1
        self._scale = _Scale.of(self._goals)
        self._searches = self._built(self.settings.directions)
        self._tell(self._elite.designs, self._goals, self._elite.weights)

    def state(self) -> State:
        """All searches, the best designs, and the scale."""
        scale = () if self._scale is None else (self._scale.best, self._scale.width)
        arrays = {**self._elite.to_arrays(), "goals": self._goals.copy()}
        arrays |= {name: own.copy() for name, own in zip(("best", "width"), scale, strict=False)}
        own = State(arrays, {"told": self._told, "begun": self._begun, "turn": self._turn})
        searches = {f"search {place}": search.state() for place, search in enumerate(self._searches)}
        return State.of_parts({"own": own, **searches})

    def restore(self, state: State) -> None:
        """Go on from a state of a method with the same space and settings."""
        own = state.part("own")
        self._told, self._begun, self._turn = (int(own.data[key]) for key in ("told", "begun", "turn"))
        self._elite, self._goals = Pool.of_arrays(self.space, own.arrays), own.arrays["goals"]
        if len(self._goals) != len(self._elite):
            raise ValueError("goals that are not as many as designs")
        self._scale = _Scale(own.arrays["best"], own.arrays["width"]) if "best" in own.arrays else None
        self._searches = self._built(1 if self._scale is None else self.settings.directions)
        for place, search in enumerate(self._searches):
            search.restore(state.part(f"search {place}"))
