"""Discrete-continuous sampling (algorithm 2 of the appendix), a whole batch at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.base.errors import DeadEndError, TrainingError
from discodso.disco.emission import Emission, Places
from discodso.disco.scripts import Reader, Scripts
from discodso.space import _kernels
from discodso.space.design import DesignBatch
from discodso.space.prefix import Prefix
from discodso.space.space import Options, Space

_NOTHING = np.empty((0, 1))
_ATTEMPTS, _AS_MANY = 40, 10  # to draw designs again; the first of them as many as are missing
_AT_ONCE = 5000  # designs drawn in a later attempt, at most


class Stepper(Protocol):
    """Anything that can say how likely tokens and values are for the next slot of a prefix."""

    def initial_memory(self, size: int) -> Any:
        """Memory before the first token."""
        ...

    def step(self, prefix: Prefix, memory: Any) -> Emission:
        """psi and phi for the next slot."""
        ...

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
        """Coordinates float[N] of numbers at these places of rows[N], by uniform[N], given the values before them,
        whose coordinates are z[N, V]."""
        ...

    def draw_together(
        self, emission: Emission, chosen: Ints, options: Options, uniform: Floats
    ) -> Floats | None:
        """Values float[B, V] of the chosen tokens by uniform[V, B], where V > 1; None to have them drawn slot
        by slot with `draw` and `option_logits`."""
        ...

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
        """Log densities of the numbers with coordinates z[N, V] at these places; with `upper` log probabilities of
        the intervals from there to `upper`."""
        ...

    def option_logits(self, emission: Emission, rows: Ints, at: Places, z: Floats) -> Floats:
        """float64[N, most], logits of the options at these places, given the values before them."""
        ...

    def keep(self, memory: Any, rows: Ints) -> Any:
        """Memory of some rows."""
        ...


@dataclass(frozen=True)
class Sample:
    """B designs drawn from a policy.

    Attributes:
        designs: all of them finished, and keeping all rules.
        log_prob: float[B], log p(tau | theta), NaN if it was not asked for. Where designs were drawn again it does
            not count those that were thrown away.
        redrawn: how many were thrown away: prefixes that no token might continue, and designs that did not meet a
            condition (`Where`).
        dead_end: which prefix was the first of these, and why; None if there was none.
    """

    designs: DesignBatch
    log_prob: Floats
    redrawn: int = 0
    dead_end: str | None = None


def sample(
    space: Space,
    stepper: Stepper,
    size: int,
    rng: np.random.Generator,
    *,
    with_log_prob: bool = False,
    scripts: Scripts | None = None,
) -> Sample:
    """Draw `size` designs, after scripts if there are any.

    A design that met a dead end of some rule, or does not meet a condition on finished designs, is drawn again
    from the start, without its script. If few designs keep the rules some may be there twice; DeadEndError if none
    is found.
    """
    drawn = _drawn(space, stepper, size, rng, with_log_prob, scripts)
    good = _good(space, drawn)
    if good.all():
        return drawn.sample
    missing, dead_end = np.flatnonzero(~good), drawn.sample.dead_end
    parts, places, redrawn = [drawn.sample.designs.select(good)], [np.flatnonzero(good)], len(missing)
    log_prob = drawn.sample.log_prob.copy()
    for attempt in range(_ATTEMPTS):
        more = 2 ** max(0, attempt - _AS_MANY)  # where few designs pass many are drawn
        count = max(len(missing), min(_AT_ONCE, more * len(missing)))
        drawn = _drawn(space, stepper, count, rng, with_log_prob, None)
        dead_end, good = dead_end or drawn.sample.dead_end, _good(space, drawn)
        redrawn += count - int(good.sum())
        found = np.flatnonzero(good)[: len(missing)]
        taken, missing = missing[: len(found)], missing[len(found) :]
        log_prob[taken] = drawn.sample.log_prob[found]
        parts.append(drawn.sample.designs.select(found))
        places.append(taken)
        if not len(missing):
            break
    whole, at = DesignBatch.concatenate(parts), np.concatenate(places)
    if not len(whole):
        names = ", ".join(rule.name for rule in space.conditions)
        fruitless = (
            f"{redrawn} designs in a row did not meet {names}; loosen it, or use a rule that looks ahead"
        )
        raise DeadEndError(fruitless if names else dead_end)
    if len(missing):  # those that were found stand for those that were not
        again = np.arange(len(missing)) % len(whole)
        log_prob[missing] = log_prob[at[again]]
        whole, at = DesignBatch.concatenate((whole, whole.select(again))), np.concatenate((at, missing))
    return Sample(replace(whole.select(np.argsort(at)), origin=space), log_prob, redrawn, dead_end)


@dataclass(frozen=True)
class _Drawn:
    """Designs, and which of them, bool[B], met a dead end and are not finished."""

    sample: Sample
    stuck: Bools


def _good(space: Space, drawn: _Drawn) -> Bools:
    """bool[B], which designs are finished and meet all conditions."""
    good = ~drawn.stuck
    if space.conditions:
        good[good] = space.accepted(drawn.sample.designs.select(good))
    return good


def _drawn(
    space: Space,
    stepper: Stepper,
    size: int,
    rng: np.random.Generator,
    with_log_prob: bool,
    scripts: Scripts | None,
) -> _Drawn:
    """Finished designs leave the batch, so that the cost follows the tokens drawn."""
    stuck, dead_end = np.zeros(size, np.bool_), None
    reader = None if scripts is None else Reader(space, scripts)
    prefix, memory = space.start(size), stepper.initial_memory(size)
    log_prob = np.full(size, 0.0 if with_log_prob else np.nan)
    while len(prefix):
        options = space.options(prefix)
        emission = stepper.step(prefix, memory)
        uniform = rng.random((1 + space.library.slots, len(prefix)))
        chosen, token_log_prob = _draw_tokens(options, emission, uniform[0])
        if chosen is None:  # some prefix has come to a dead end
            closed: Bools = np.asarray(options.forbidden.all(axis=1))
            dead_end = dead_end or space.dead_end(prefix, int(closed.argmax()))
            stuck[prefix.rows[closed]] = True
            prefix, memory = prefix.keep(~closed), stepper.keep(memory, np.flatnonzero(~closed))
            continue
        if reader is not None:
            chosen, wanted = reader.tokens(prefix, options, chosen)
        values = _draw_values(space, options, stepper, emission, chosen, uniform[1:])
        if reader is not None:
            values = reader.place(chosen, values, wanted, options)
        if with_log_prob:
            log_prob[prefix.rows] += token_log_prob
            log_prob[prefix.rows] += _value_log_prob(space, options, stepper, emission, chosen, values)
        before = prefix
        prefix = prefix.advance(chosen, space.library.narrow(values))
        memory = emission.memory
        if 0 < len(prefix) < len(before):
            memory = stepper.keep(memory, np.searchsorted(before.rows, prefix.rows))
    return _Drawn(Sample(replace(prefix.batch(), origin=space), log_prob, dead_end=dead_end), stuck)


def _draw_tokens(options: Options, emission: Emission, uniform: Floats) -> tuple[Ints | None, Floats]:
    """Tokens and their log probabilities; None if some prefix allows none."""
    logits = emission.psi if options.prior is None else emission.psi + options.prior
    chosen, log_prob = np.empty(len(logits), np.int64), np.empty(len(logits))
    stuck = _kernels.draw_tokens(logits, options.forbidden, uniform, chosen, log_prob)
    if stuck < 0:
        return chosen, log_prob
    if not options.forbidden[stuck].all():
        raise TrainingError("the network emits NaN for the tokens; try a smaller learning rate")
    return None, log_prob


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
            z = stepper.draw(emission, rows, at, before, *bounds, uniform[slot, rows])
            values[rows, slot] = _within(space, options, rows, at, _value_at(space, at, z))
            if library.slots > 1:
                whole = library.integer[at.tokens, slot]
                z[whole] = library.coordinates.to_z((at.tokens[whole], slot), values[rows[whole], slot])
                seen[rows, slot] = z
        rows = (library.options[chosen, slot] > 0).nonzero()[0] if library.has_options else rows[:0]
        if len(rows):
            at = Places(chosen[rows], slot)
            logits = stepper.option_logits(emission, rows, at, seen[rows] if slot else _NOTHING)
            barred = barred_options(space, options, rows, at, logits.shape[1])
            option, log_prob = np.empty(len(rows), np.int64), np.empty(len(rows))
            _kernels.draw_tokens(logits, barred, uniform[slot, rows], option, log_prob)
            values[rows, slot] = option
            if library.slots > 1:
                seen[rows, slot] = option
    return values


def _value_log_prob(
    space: Space, options: Options, stepper: Stepper, emission: Emission, chosen: Ints, values: Floats
) -> Floats:
    """Log probabilities float[B] of the values[B, V] of tokens, 0 for those without."""
    library = space.library
    log_prob = np.zeros(len(chosen))
    for slot in range(library.slots):
        for integers in (False, True):
            rows = (library.numeric & (library.integer == integers))[chosen, slot].nonzero()[0]
            if len(rows):
                at = Places(chosen[rows], slot)
                z, upper = _coordinates(space, at, values[rows]), None
                if integers:
                    index = (at.tokens, slot) if library.slots > 1 else at.tokens
                    ends = (
                        library.coordinates.to_z(index, values[rows, slot] + half) for half in (-0.5, 0.5)
                    )
                    z[:, slot], upper = ends
                bounds = _bounds(space, options, rows, at)
                log_prob[rows] += stepper.log_prob(emission, rows, at, z, *bounds, upper)
        rows = (library.options[chosen, slot] > 0).nonzero()[0]
        if len(rows):
            at = Places(chosen[rows], slot)
            logits = stepper.option_logits(emission, rows, at, _coordinates(space, at, values[rows]))
            logits = np.where(barred_options(space, options, rows, at, logits.shape[1]), -np.inf, logits)
            top = logits.max(axis=1)
            total = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
            log_prob[rows] += logits[np.arange(len(rows)), values[rows, slot].astype(np.int64)] - total
    return log_prob


def barred_options(space: Space, options: Options, rows: Ints, at: Places, most: int) -> Bools:
    """bool[N, most], which options may not be taken, or are none."""
    library = space.library
    barred: Bools = np.arange(most) >= library.options[at.tokens, at.slot][:, None]
    columns = library.column_of[at.tokens, at.slot]
    for column, mask in options.barred.items():
        own = np.flatnonzero(columns == column)
        barred[own, : mask.shape[1]] |= mask[rows[own]]
    return barred


def _coordinates(space: Space, at: Places, values: Floats) -> Floats:
    """float[N, V], coordinates of the values of tokens; 0 for numbers that are not drawn yet, -1 for options."""
    library = space.library
    z: Floats = library.wide(library.coordinates.to_z(at.tokens, library.narrow(values)))
    return np.where(np.isnan(z), np.where(library.options[at.tokens] > 0, -1.0, 0.0), z)


def _value_at(space: Space, at: Places, z: Floats) -> Floats:
    """Numbers at coordinates z[N], whole ones where they must be."""
    library = space.library
    index = (at.tokens, at.slot) if library.slots > 1 else at.tokens
    value = library.coordinates.to_value(index, z)
    if not library.plain:
        return np.where(library.integer[at.tokens, at.slot], np.round(value), value)
    return value


def _within(space: Space, options: Options, rows: Ints, at: Places, value: Floats) -> Floats:
    """Numbers[N] moved into their bounds."""
    wide = space.library.wide
    low, high = (wide(ends)[rows, at.tokens, at.slot] for ends in (options.low, options.high))
    inside: Floats = np.minimum(np.maximum(value, low), high)
    return inside


def _bounds(space: Space, options: Options, rows: Ints, at: Places) -> tuple[Floats, Floats]:
    """Interval ends in coordinates, float[N] each."""
    if space.has_fixed_ranges:
        low, high = space.range_coordinates
        return low[at.tokens, at.slot], high[at.tokens, at.slot]
    library = space.library
    index = (at.tokens, at.slot) if library.slots > 1 else at.tokens
    ends = (library.wide(own)[rows, at.tokens, at.slot] for own in (options.low, options.high))
    return space.bounds_to_coordinates(index, *ends)
