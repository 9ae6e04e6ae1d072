"""Uniform random search: every allowed token equally likely, every value uniform in its bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike

from discodso.base.arrays import Floats, Ints
from discodso.base.checks import require_integer, seed_sequence, settle_integers
from discodso.disco.distributions import TruncatedNormal
from discodso.disco.method import Metrics
from discodso.disco.network import Emission
from discodso.disco.sampling import sample
from discodso.disco.value_head import Places
from discodso.space.design import Design, DesignBatch
from discodso.space.prefix import Prefix
from discodso.space.space import Options, Space
from discodso.space.state import State, generator_state, restore_generator


class UniformStepper:
    """A policy that knows nothing: values are uniform on finite intervals, and have a standard normal distribution
    in coordinates, truncated, on infinite ones."""

    def __init__(self, space: Space) -> None:
        self.tokens = len(space.library)
        self._options = space.library.options

    def initial_memory(self, size: int) -> None:
        """There is no memory."""
        return

    def step(self, prefix: Prefix, memory: None) -> Emission:
        """Flat logits."""
        flat = np.zeros((len(prefix), self.tokens), np.float32)
        return Emission(flat, flat[:, :0], None)

    def draw(
        self,
        emission: Emission,
        rows: Ints,
        at: Places,
        z: Floats,
        low: Floats,
        high: Floats,
        uniform: Floats,
    ) -> Floats:
        """See `Stepper.draw`."""
        drawn = TruncatedNormal().sample(np.zeros(len(rows)), np.ones(len(rows)), low, high, uniform)
        finite = np.isfinite(low) & np.isfinite(high)
        with np.errstate(invalid="ignore"):
            even = np.clip(low + uniform * (high - low), low, high)
        return np.where(finite, even, drawn)

    def draw_together(self, emission: Emission, chosen: Ints, options: Options, uniform: Floats) -> None:
        """Values are drawn one after the other."""
        return

    def log_prob(
        self,
        emission: Emission,
        rows: Ints,
        at: Places,
        z: Floats,
        low: Floats,
        high: Floats,
        upper: Floats | None = None,
    ) -> Floats:
        """See `Stepper.log_prob`."""
        if upper is not None:  # integers, whose ranges are finite
            inside: Floats = np.log((upper - z[:, at.slot]) / (high - low))
            return inside
        finite = np.isfinite(low) & np.isfinite(high)
        of = [
            torch.from_numpy(a) for a in (z[:, at.slot].copy(), np.zeros(len(z)), np.ones(len(z)), low, high)
        ]
        return np.where(finite, -np.log(high - low), TruncatedNormal().log_prob(*of).numpy())

    def option_logits(self, emission: Emission, rows: Ints, at: Places, z: Floats) -> Floats:
        """See `Stepper.option_logits`."""
        return np.zeros((len(rows), int(self._options[at.tokens, at.slot].max())))

    def keep(self, memory: None, rows: Ints) -> None:
        """There is no memory."""
        return


@dataclass(frozen=True, slots=True)
class RandomSettings:
    """Settings of random search: the number of designs evaluated together."""

    batch_size: int = 1000

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

    def ask(self, size: int | None = None) -> DesignBatch:
        """Designs drawn at random."""
        count = self.batch_size if size is None else size
        require_integer("size", count, 1)
        return sample(self.space, self._stepper, count, self._rng).designs

    def tell(
        self, designs: Sequence[Design], rewards: ArrayLike, weights: ArrayLike | None = None
    ) -> Metrics | None:
        """Nothing to learn."""
        return None

    def state(self) -> State:
        """The random stream."""
        return State({}, {"random": generator_state(self._rng)})

    def restore(self, state: State) -> None:
        """Go on from a state."""
        restore_generator(self._rng, state.data["random"])
