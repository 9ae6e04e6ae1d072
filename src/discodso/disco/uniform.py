"""Drawing designs without a network: tokens and values evenly, under the rules of the space."""

from __future__ import annotations

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.disco.emission import Emission, Places
from discodso.space.prefix import Prefix
from discodso.space.space import Options, Space


class UniformStepper:
    """A policy that knows nothing: values are uniform on finite intervals, and have a standard normal distribution
    in coordinates, truncated, on infinite ones.

    Args:
        space: that of the designs.
        even_lengths: whether all lengths of an open sequence are equally likely, as far as rules let them; else
            all tokens are, the end among them, so that most designs are short.
    """

    def __init__(self, space: Space, *, even_lengths: bool = False) -> None:
        self.tokens = len(space.library)
        self._options = space.library.options
        self._end = space.library.end if even_lengths else None

    def initial_memory(self, size: int) -> None:
        """There is no memory."""
        return

    def step(self, prefix: Prefix, memory: None) -> Emission:
        """Flat logits; for even lengths, the end is as likely as each of the lengths that are left."""
        logits = np.zeros((len(prefix), self.tokens), np.float32)
        left = prefix.grammar.max_positions - 1 - prefix.position
        if self._end is not None and left > 0:
            logits[:, self._end] = np.log((self.tokens - 1) / left)
        return Emission(logits, logits[:, :0], None)

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
        finite: Bools = np.isfinite(low) & np.isfinite(high)
        drawn = low if finite.all() else _truncated_normal(low, high, uniform)
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
        import torch

        from discodso.disco.distributions import TruncatedNormal

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


def _truncated_normal(low: Floats, high: Floats, uniform: Floats) -> Floats:
    """Standard normal numbers within bounds."""
    from discodso.disco.distributions import TruncatedNormal  # brings torch, which finite ranges do without

    return TruncatedNormal().sample(np.zeros(len(low)), np.ones(len(low)), low, high, uniform)
