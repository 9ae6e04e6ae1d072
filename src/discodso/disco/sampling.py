"""Discrete-continuous sampling (algorithm 2 of the appendix), a whole batch at once."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.base.errors import DeadEndError, DeadEndWarning, TrainingError
from discodso.disco.emission import Asked, Emission, Places
from discodso.disco.scripts import Reader, Scripts
from discodso.space import _kernels
from discodso.space.design import DesignBatch
from discodso.space.prefix import Prefix
from discodso.space.ruled import Options
from discodso.space.space import Space
from discodso.space.state import State

_NOTHING = np.empty((0, 1))
_ATTEMPTS, _AS_MANY = 40, 10  # to draw designs again; the first of them as many as are missing
_AT_ONCE = 5000  # designs drawn in a later attempt, at most


class Stepper(Protocol):
    """Anything that can say how likely tokens and values are for the next slot of a prefix."""

    def initial_memory(self, size: int) -> Any:
        """Memory before the first token."""

    def step(self, prefix: Prefix, memory: Any) -> Emission:
        """psi and phi for the next slot."""

    def draw(self, emission: Emission, asked: Asked) -> Floats:
        """Coordinates float[N] of the numbers that are asked for."""

    def draw_together(
        self, emission: Emission, chosen: Ints, options: Options, uniform: Floats
    ) -> Floats | None:
        """Values float[B, V] of the chosen tokens by uniform[V, B], where V > 1; None to have them drawn slot
        by slot with `draw` and `option_logits`."""

    def option_logits(self, emission: Emission, rows: Ints, at: Places, z: Floats) -> Floats:
        """float64[N, most], logits of the options at these places, given the values before them."""

    def keep(self, memory: Any, rows: Ints) -> Any:
        """Memory of some rows."""


@dataclass(frozen=True)
class Sample:
    """B designs drawn from a policy.

    Attributes:
        designs: all of them finished, and keeping all rules.
        redrawn: how many were thrown away: prefixes that no token might continue, and designs that did not meet a
            condition (`Where`).
        dead_end: which prefix was the first of these, and why; None if there was none.
    """

    designs: DesignBatch
    redrawn: int = 0
    dead_end: str | None = None


class Redrawn:
    """Counts designs that were drawn again, and says so the first time that a rule ran into a dead end."""

    def __init__(self, warned: bool = False) -> None:
        self._count, self.warned = 0, warned

    def note(self, found: Sample) -> DesignBatch:
        """The designs of a sample, whose repetitions are counted."""
        if found.dead_end is not None and not self.warned:
            self.warned = True
            warnings.warn(f"{found.dead_end}. Such designs are drawn again.", DeadEndWarning, stacklevel=2)
        self._count += found.redrawn
        return found.designs

    def add(self, count: int) -> None:
        """Count designs that a method made in another way, and that broke a rule or met no condition."""
        self._count += count

    def take(self) -> int:
        """How many since the last time."""
        count, self._count = self._count, 0
        return count

    def state(self) -> State:
        """The count, and whether it was said."""
        return State(data={"count": self._count, "warned": self.warned})

    def restore(self, state: State) -> None:
        """Go on from a state."""
        self._count, self.warned = int(state.data["count"]), bool(state.data["warned"])


def sample(
    space: Space, stepper: Stepper, size: int, rng: np.random.Generator, *, scripts: Scripts | None = None
) -> Sample:
    """Draw `size` designs, after scripts if there are any.

    A design that met a dead end of some rule, or does not meet a condition on finished designs, is drawn again
    from the start, without its script. If few designs keep the rules some may be there twice; DeadEndError if none
    is found.
    """
    missing, redrawn, dead_end = np.arange(size), 0, None
    parts, places = list[DesignBatch](), list[Ints]()
    for attempt in range(1 + _ATTEMPTS):
        more = 2 ** max(0, attempt - _AS_MANY)  # where few designs pass many are drawn
        count = max(len(missing), min(_AT_ONCE, more * len(missing)))
        designs, good, why = _drawn(space, stepper, count, rng, None if attempt else scripts)
        if space.conditions:
            good[good] = space.accepted(designs.select(good))
        if not attempt and good.all():
            return Sample(designs)
        redrawn, dead_end = redrawn + count - int(good.sum()), dead_end or why
        found = np.flatnonzero(good)[: len(missing)]
        own = found if count == len(missing) else np.arange(len(found))  # places of those that were missing
        parts.append(designs.select(found))
        places.append(missing[own])
        missing = np.delete(missing, own)
        if not len(missing):
            break
    whole, at = DesignBatch.concatenate(parts), np.concatenate(places)
    if not len(whole):
        names = ", ".join(rule.name for rule in space.conditions)
        fruitless = f"{redrawn} designs did not meet {names}; loosen it, or use a rule that looks ahead"
        raise DeadEndError(fruitless if names else dead_end)
    if len(missing):  # those that were found stand for those that were not
        again = whole.select(np.arange(len(missing)) % len(whole))
        whole, at = DesignBatch.concatenate((whole, again)), np.concatenate((at, missing))
    return Sample(whole.select(np.argsort(at)), redrawn, dead_end)


def _drawn(
    space: Space, stepper: Stepper, size: int, rng: np.random.Generator, scripts: Scripts | None
) -> tuple[DesignBatch, Bools, str | None]:
    """Designs, which of them are finished, and why the first other one met a dead end. Finished designs leave the
    batch, so that the cost follows the tokens drawn."""
    finished, dead_end = np.ones(size, np.bool_), None
    reader = None if scripts is None else Reader(space, scripts)
    prefix, memory = space.start(size), stepper.initial_memory(size)
    while len(prefix):
        options = space.options(prefix)
        emission = stepper.step(prefix, memory)
        uniform = rng.random((1 + space.library.slots, len(prefix)))
        chosen = _draw_tokens(options, emission, uniform[0])
        if chosen is None:  # some prefix has come to a dead end
            closed: Bools = np.asarray(options.forbidden.all(axis=1))
            dead_end = dead_end or space.dead_end(prefix, int(closed.argmax()))
            finished[prefix.rows[closed]] = False
            prefix, memory = prefix.keep(~closed), stepper.keep(memory, np.flatnonzero(~closed))
            continue
        if reader is not None:
            chosen, wanted = reader.tokens(prefix, options, chosen)
        values = _draw_values(space, options, stepper, emission, chosen, uniform[1:])
        if reader is not None:
            values = reader.place(chosen, values, wanted, options)
        before = prefix
        prefix = prefix.advance(chosen, space.library.narrow(values))
        memory = emission.memory
        if 0 < len(prefix) < len(before):
            memory = stepper.keep(memory, np.searchsorted(before.rows, prefix.rows))
    return replace(prefix.batch(), origin=space), finished, dead_end


def _draw_tokens(options: Options, emission: Emission, uniform: Floats) -> Ints | None:
    """Tokens; None if some prefix allows none."""
    logits = emission.psi if options.prior is None else emission.psi + options.prior
    chosen = np.empty(len(logits), np.int64)
    stuck = _kernels.draw_tokens(logits, options.forbidden, uniform, chosen)
    if stuck < 0:
        return chosen
    if not options.forbidden[stuck].all():
        raise TrainingError("the network emits NaN for the tokens; try a smaller learning rate")
    return None


def _draw_values(
    space: Space, options: Options, stepper: Stepper, emission: Emission, chosen: Ints, uniform: Floats
) -> Floats:
    """Values float[B, V] of the chosen tokens, one after the other; NaN where there is none."""
    library = space.library
    if library.slots > 1 and (drawn := stepper.draw_together(emission, chosen, options, uniform)) is not None:
        return drawn
    values = np.full((len(chosen), library.slots), np.nan)
    seen = _NOTHING  # coordinates of what is drawn already, for the values after it
    if library.slots > 1:
        seen = np.where(library.options[chosen] > 0, -1.0, 0.0)
    for slot in range(library.slots):
        rows = library.numeric[chosen, slot].nonzero()[0]
        if len(rows):
            at = Places(chosen[rows], slot)
            before, bounds = seen[rows] if slot else _NOTHING, _bounds(space, options, rows, at)
            z = stepper.draw(emission, Asked(rows, at, before, *bounds, uniform[slot, rows]))
            index = at[: library.low.ndim]
            low, high = (library.wide(ends)[rows, at.tokens, slot] for ends in (options.low, options.high))
            drawn = library.rounded(index, library.coordinates.to_value(index, z))
            values[rows, slot] = np.minimum(np.maximum(drawn, low), high)
            if library.slots > 1:
                if library.has_integers:
                    whole = library.integer[at.tokens, slot]
                    z[whole] = library.coordinates.to_z((at.tokens[whole], slot), values[rows[whole], slot])
                seen[rows, slot] = z
        rows = (library.options[chosen, slot] > 0).nonzero()[0] if library.has_options else rows[:0]
        if len(rows):
            at = Places(chosen[rows], slot)
            logits = stepper.option_logits(emission, rows, at, seen[rows] if slot else _NOTHING)
            barred = _barred_options(space, options, rows, at, logits.shape[1])
            option = np.empty(len(rows), np.int64)
            _kernels.draw_tokens(logits, barred, uniform[slot, rows], option)
            values[rows, slot] = option
            if library.slots > 1:
                seen[rows, slot] = option
    return values


def _barred_options(space: Space, options: Options, rows: Ints, at: Places, most: int) -> Bools:
    """bool[N, most], which options may not be taken, or are none."""
    library = space.library
    barred: Bools = np.arange(most) >= library.options[at.tokens, at.slot][:, None]
    columns = library.column_of[at.tokens, at.slot]
    for column, mask in options.barred.items():
        own = np.flatnonzero(columns == column)
        if len(own):  # else there may be fewer options at these places than the mask has
            barred[own, : mask.shape[1]] |= mask[rows[own]]
    return barred


def _bounds(space: Space, options: Options, rows: Ints, at: Places) -> tuple[Floats, Floats]:
    """Interval ends in coordinates, float[N] each."""
    if space.has_fixed_ranges:
        low, high = space.range_coordinates
        return low[at.tokens, at.slot], high[at.tokens, at.slot]
    library = space.library
    ends = (library.wide(own)[rows, at.tokens, at.slot] for own in (options.low, options.high))
    return space.bounds_to_coordinates(at[: library.low.ndim], *ends)
