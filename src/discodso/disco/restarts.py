"""A method that begins anew when it is stuck: with a fresh network, from nothing or from the best designs so far.

Starts from nothing find other regions; starts from the best designs of all before go on with what was found there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from discodso.base.arrays import Floats, Ints
from discodso.base.checks import require_integer, require_number, seed_sequence
from discodso.base.errors import DeclarationError
from discodso.disco.archive import Elites, Niche, Pool
from discodso.disco.method import Method, MethodSettings, Metrics, Refining, Resumable
from discodso.space.design import Design, DesignBatch
from discodso.space.space import Space
from discodso.space.state import State, batch_arrays, batch_of

_ALIKE = 5  # designs with the same first tokens count as one structure


@dataclass(frozen=True, slots=True)
class RestartSettings:
    """When to begin anew.

    Args:
        method: settings of the method that is started again and again.
        restart_after: calls without a better design since the last start.
        patience: a start that has made many calls may also wait so many times as long as it took to get there.
        least_gain: what counts as better: so much of what the start has gained since its first batch.
        elites: the best designs so far, one for each structure, that a new start evaluates again and learns from.
        every: how often a restart begins with them: 1 for always, 2 for every second one.
        recheck: whether the method evaluates good designs again because rewards are noisy; only such rewards then
            make a better design, or an elite.
    """

    method: MethodSettings
    restart_after: int
    elites: int = 20
    every: int = 2
    recheck: bool = False
    patience: float = 0.0
    least_gain: float = 0.0

    def __post_init__(self) -> None:
        require_integer("restart_after", self.restart_after, 1)
        require_integer("elites", self.elites, 1)
        require_integer("every", self.every, 1)
        require_number("patience", self.patience, least=0)
        require_number("least_gain", self.least_gain, least=0)

    def build(self, space: Space, seed: int | np.random.SeedSequence = 0) -> Restarting:
        """Start the method on a space."""
        return Restarting(space, self, seed=seed)


class Restarting:
    """Asks and tells another method, and puts a fresh one in its place when no better design has come for long."""

    def __init__(
        self, space: Space, settings: RestartSettings, *, seed: int | np.random.SeedSequence = 0
    ) -> None:
        self.space = space
        self._settings = settings
        self._seed = seed_sequence(seed)
        nothing = Pool.empty(space)
        self._elites = Elites(nothing, nothing, settings.elites, Niche(1, _ALIKE), settings.recheck)
        self._begin(0)
        self.batch_size = self._method.batch_size

    def _begin(self, restarts: int) -> None:
        self.restarts = restarts
        # The first start is the same search as one without restarts.
        key = (*self._seed.spawn_key, restarts) if restarts else self._seed.spawn_key
        own = np.random.SeedSequence(self._seed.entropy, spawn_key=key)
        self._method: Method = self._settings.method.build(self.space, own)
        nothing = Pool.empty(self.space)
        self._own = replace(self._elites, members=nothing, waiting=nothing)  # of this start
        self._first = self._best = -np.inf  # of the first batch, and the last that counted as better
        self._calls = self._calls_since_better = 0
        first = self._elites.members if restarts % self._settings.every == 0 else nothing
        self._waiting = first.designs

    def ask(self, size: int | None = None) -> DesignBatch:
        """What the method asks for; after a restart the elites come first, in place of as many."""
        count = self.batch_size if size is None else size
        first, self._waiting = self._waiting.select(slice(count)), self._waiting.select(slice(count, None))
        if not len(first):
            return self._method.ask(size)
        if len(first) == count:
            return first
        return DesignBatch.concatenate((first, self._method.ask(count - len(first))))

    def tell(
        self, designs: Sequence[Design], rewards: ArrayLike, weights: ArrayLike | None = None
    ) -> Metrics | None:
        """Let the method learn, and begin anew if it is time to."""
        metrics = self._method.tell(designs, rewards, weights)
        told = np.array(rewards, dtype=np.float64)
        evidence = np.ones(len(told)) if weights is None else np.array(weights, dtype=np.float64)
        # The method has taken these designs, so they belong to the space.
        batch = replace(self.space.encode(designs), origin=self.space)
        self._own = self._own.add(Pool(batch, told, evidence), self._settings.elites)
        best = float(self._own.members.rewards[0]) if len(self._own.members) else -np.inf
        self._note(best, len(told))
        if self._stuck():
            both = self._elites.members.join(self._own.members)
            elites = both.best_distinct(self._settings.elites, self._elites.niche)
            self._elites = replace(self._elites, members=elites)
            self._begin(self.restarts + 1)
            return replace(metrics or Metrics(), restarted=True)
        return metrics

    def _note(self, best: float, calls: int) -> None:
        """Take in the best reward of this start after so many more calls."""
        self._calls += calls
        self._calls_since_better += calls
        if not np.isfinite(self._first):
            self._first = best
        gained = self._best - self._first if np.isfinite(self._best) else 0.0
        if best > self._best + self._settings.least_gain * gained:
            self._best, self._calls_since_better = best, 0

    def _stuck(self) -> bool:
        """Whether it is time to begin anew."""
        until_best = self._calls - self._calls_since_better
        return self._calls_since_better >= max(
            self._settings.restart_after, self._settings.patience * until_best
        )

    @property
    def refine_calls(self) -> int:
        """Of the method."""
        return self._method.refine_calls if isinstance(self._method, Refining) else 0

    def to_refine(self, designs: DesignBatch, rewards: Floats) -> Ints:
        """What the method picks."""
        method = self._method
        return method.to_refine(designs, rewards) if isinstance(method, Refining) else np.empty(0, np.int64)

    def state(self) -> State:
        """That of the method, and the elites."""
        if not isinstance(self._method, Resumable):
            raise DeclarationError(
                f"a run with {type(self._method).__name__} cannot be written to a folder: it has no state()"
            )
        data = {
            "restarts": self.restarts,
            "first": self._first if np.isfinite(self._first) else None,
            "best": self._best if np.isfinite(self._best) else None,
            "calls": self._calls,
            "calls_since_better": self._calls_since_better,
        }
        return State.of_parts(
            {
                "restarts": State(data=data),
                "elites": State(self._elites.members.to_arrays()),
                "own": State(self._own.members.to_arrays()),
                "own waiting": State(self._own.waiting.to_arrays()),
                "waiting": State(batch_arrays(self._waiting)),
                "method": self._method.state(),
            }
        )

    def restore(self, state: State) -> None:
        """Go on from a state."""
        data = state.part("restarts").data
        self._begin(int(data["restarts"]))
        if not isinstance(self._method, Resumable):
            raise TypeError(f"{type(self._method).__name__} has no restore()")
        self._method.restore(state.part("method"))
        elites, own, waiting = (
            Pool.of_arrays(self.space, state.part(part).arrays) for part in ("elites", "own", "own waiting")
        )
        self._elites = replace(self._elites, members=elites)
        self._own = replace(self._own, members=own, waiting=waiting)
        self._waiting = batch_of(self.space, state.part("waiting").arrays)
        self._first, self._best = (
            -np.inf if data[key] is None else float(data[key]) for key in ("first", "best")
        )
        self._calls, self._calls_since_better = int(data["calls"]), int(data["calls_since_better"])
