"""Drawing designs without a network: tokens and values evenly, under the rules of the space."""

from __future__ import annotations

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.disco.emission import Asked, Emission, Places
from discodso.disco.focus import Focus
from discodso.disco.truncated import draw_truncated
from discodso.space.prefix import Prefix
from discodso.space.ruled import Options
from discodso.space.space import Space


class UniformStepper:
    """A policy that knows nothing: values are uniform on finite intervals, and have a standard normal distribution
    in coordinates, truncated, on infinite ones.

    Args:
        space: that of the designs.
        even_lengths: whether all lengths of an open sequence are equally likely, as far as rules let them; else
            all tokens are, the end among them, so that most designs are short.
        spread: if not 0, values of finite ranges are normal instead, with the middle of the range as mean and this
            share of its width as standard deviation, truncated to the interval.
        focus: says which part of a range counts as such; None for all of it.
    """

    def __init__(
        self, space: Space, *, even_lengths: bool = False, spread: float = 0.0, focus: Focus | None = None
    ) -> None:
        self._focus = focus
        self.tokens = len(space.library)
        self._options = space.library.options
        self._end = space.library.end if even_lengths else None
        self._spread = spread
        library = space.library
        self._library = library
        self._finite = library.wide(np.isfinite(library.low) & np.isfinite(library.high))
        plain = space.has_fixed_ranges and not spread and focus is None
        self._ends = space.range_coordinates if plain and self._finite[library.numeric].all() else None

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

    def draw(self, emission: Emission, asked: Asked) -> Floats:
        """See `Stepper.draw`."""
        _, at, _, low, high, uniform = asked
        if self._spread:
            finite = self._finite[at.tokens, at.slot]
            mean, scale = np.where(finite, 0.5, 0.0), np.where(finite, self._spread, 1.0)
            if self._focus is not None:
                begin, end = (own[at.tokens, at.slot] for own in self._focus.reach())
                mean, scale = (begin + end) / 2, self._spread * (end - begin)
            return draw_truncated(mean, scale, low, high, uniform)
        if self._focus is not None:
            begin, end = (own[at.tokens, at.slot] for own in self._focus.reach())
            inside = np.maximum(low, begin) < np.minimum(high, end)
            low, high = (
                np.where(inside, np.maximum(low, begin), low),
                np.where(inside, np.minimum(high, end), high),
            )
        finite = np.isfinite(low) & np.isfinite(high)
        if finite.all():
            return (low + uniform * (high - low)).clip(low, high)
        drawn = draw_truncated(np.zeros(len(low)), np.ones(len(low)), low, high, uniform)
        with np.errstate(invalid="ignore"):
            even = np.clip(low + uniform * (high - low), low, high)
        return np.where(finite, even, drawn)

    def draw_together(
        self, emission: Emission, chosen: Ints, options: Options, uniform: Floats
    ) -> Floats | None:
        """All values at once, where none depends on those before it; see `Stepper.draw_together`."""
        if self._ends is None or options.barred:
            return None
        library = self._library
        low, high = (ends[chosen] for ends in self._ends)
        shares, count = uniform.T, self._options[chosen]
        with np.errstate(invalid="ignore"):
            drawn = library.coordinates.to_value(chosen, (low + shares * (high - low)).clip(low, high))
            drawn = library.rounded(chosen, drawn)
            drawn = np.minimum(np.maximum(drawn, library.low[chosen]), library.high[chosen])  # fixed ranges
        if library.has_options:
            drawn = np.where(count > 0, np.minimum(np.floor(shares * count), count - 1), drawn)
        return drawn

    def option_logits(self, emission: Emission, rows: Ints, at: Places, z: Floats) -> Floats:
        """See `Stepper.option_logits`."""
        return np.zeros((len(rows), int(self._options[at.tokens, at.slot].max())))

    def keep(self, memory: None, rows: Ints) -> None:
        """There is no memory."""
        return
