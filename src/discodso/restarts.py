"""A method that begins anew when it is stuck: a fresh network, which starts with the best designs so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from discodso.checks import require_integer, seed_sequence
from discodso.design import Design, DesignBatch
from discodso.elites import Niche, Pool
from discodso.errors import DeclarationError
from discodso.method import Method, MethodSettings, Metrics, Resumable
from discodso.space import Space
from discodso.state import State, batch_arrays, batch_of


@dataclass(frozen=True, slots=True)
class RestartSettings:
    """When to begin anew.

    Args:
        method: settings of the method that is started again and again.
        restart_after: calls without a better design since the last start.
        elites: the best designs so far, one for each structure, that a new start evaluates again and learns from.
    """

    method: MethodSettings
    restart_after: int
    elites: int = 20

    def __post_init__(self) -> None:
        require_integer("restart_after", self.restart_after, 1)
        require_integer("elites", self.elites, 0)

    def build(self, space: Space, seed: int | np.random.SeedSequence = 0) -> Restarting:
        """Start the method on a space."""
        return Restarting(space, self, seed=seed)


class Restarting:
    """Asks and tells another method, and puts a fresh one in its place when no better design has come for long."""

    def __init__(
        self, space: Space, settings: RestartSettings, *, seed: int | np.random.SeedSequence = 0
    ) -> None:
        self._space = space
        self._settings = settings
        self._seed = seed_sequence(seed)
        self._elites = Pool.empty(space)
        self._begin(0)
        self.batch_size = self._method.batch_size

    def _begin(self, restarts: int) -> None:
        self.restarts = restarts
        own = np.random.SeedSequence(self._seed.entropy, spawn_key=(*self._seed.spawn_key, restarts))
        self._method: Method = self._settings.method.build(self._space, own)
        self._best = -np.inf  # since the last start: noisy rewards of before may never be met again
        self._calls_since_better = 0
        self._waiting = self._elites.designs

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
        # The method has taken these designs, so they belong to the space.
        batch = replace(self._space.encode(designs), origin=self._space)
        best = self._settings.elites
        self._elites = self._elites.join(Pool(batch, told, np.ones(len(told)))).best_distinct(best, Niche(1))
        for reward in told.tolist():
            better = reward > self._best
            self._calls_since_better = 0 if better else self._calls_since_better + 1
            self._best = reward if better else self._best
        if self._calls_since_better >= self._settings.restart_after:
            self._begin(self.restarts + 1)
        return metrics

    def state(self) -> State:
        """That of the method, and the elites."""
        if not isinstance(self._method, Resumable):
            raise DeclarationError(
                f"a run with {type(self._method).__name__} cannot be written to a folder: it has no state()"
            )
        data = {
            "restarts": self.restarts,
            "best": self._best if np.isfinite(self._best) else None,
            "calls_since_better": self._calls_since_better,
        }
        return State.of_parts(
            {
                "restarts": State(data=data),
                "elites": State(self._elites.to_arrays()),
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
        self._elites = Pool.of_arrays(self._space, state.part("elites").arrays)
        self._waiting = batch_of(self._space, state.part("waiting").arrays)
        self._best = -np.inf if data["best"] is None else float(data["best"])
        self._calls_since_better = int(data["calls_since_better"])
