"""Uniform random search: every allowed token equally likely, every value uniform in its bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discodso.base.checks import require_integer, seed_sequence, settle_integers
from discodso.disco.method import Metrics
from discodso.disco.sampling import Redrawn, sample
from discodso.disco.uniform import UniformStepper
from discodso.space.design import Design, DesignBatch
from discodso.space.space import Space
from discodso.space.state import State, generator_state, restore_generator


@dataclass(frozen=True, slots=True)
class RandomSettings:
    """Settings of random search: the number of designs evaluated together."""

    batch_size: int = 1000

    several_objectives: ClassVar[bool] = True

    def __post_init__(self) -> None:
        settle_integers(self, {"batch_size": 1})

    def build(self, space: Space, seed: int | np.random.SeedSequence = 0) -> RandomSearch:
        """Start the method on a space."""
        return RandomSearch(space, self, seed=seed)


class RandomSearch:
    """Draws designs uniformly under the constraints and learns nothing."""

    redraws = True

    def __init__(
        self, space: Space, settings: RandomSettings, *, seed: int | np.random.SeedSequence = 0
    ) -> None:
        self.space = space
        self.batch_size = settings.batch_size
        self._stepper = UniformStepper(space)
        self._rng = np.random.default_rng(seed_sequence(seed))
        self._redrawn = Redrawn()

    def ask(self, size: int | None = None) -> DesignBatch:
        """Designs drawn at random."""
        count = self.batch_size if size is None else size
        require_integer("size", count, 1)
        return self._redrawn.note(sample(self.space, self._stepper, count, self._rng))

    def tell(
        self, designs: Sequence[Design], rewards: ArrayLike, weights: ArrayLike | None = None
    ) -> Metrics | None:
        """Nothing to learn."""
        return Metrics(redrawn=self._redrawn.take())

    def state(self) -> State:
        """The random stream, and what was drawn again."""
        own = State(data={"random": generator_state(self._rng)})
        return State.of_parts({"own": own, "redrawn": self._redrawn.state()})

    def restore(self, state: State) -> None:
        """Go on from a state."""
        restore_generator(self._rng, state.part("own").data["random"])
        self._redrawn.restore(state.part("redrawn"))
