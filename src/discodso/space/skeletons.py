"""Designs as a skeleton and units: the discrete part, and where each number lies within its bounds.

The skeleton of a design has its tokens and the options that they carry. A unit stands for one of its numbers.
Where the declared range is finite, 0 and 1 stand for the ends of the interval that the tokens and values before it
leave open, so that every unit in [0, 1] keeps to the bounds. Where it is infinite the unit is the coordinate.
Optimisers and mutations that know nothing of bounds can so work on units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.space.constraints import Constraint, DifferentLeaves, ForbiddenSiblings, Where
from discodso.space.design import DesignBatch
from discodso.space.sequence_rules import Sum
from discodso.space.space import Space
from discodso.space.tokens import Library

_LARGEST = 1e150  # a value beyond it would overflow in any objective


# ------------------------------------------------------------------------------------------ spaces of skeletons


def skeleton_space(space: Space) -> Space:
    """The same tokens, options, shape, constraints and priors without numbers: what a method for skeletons
    searches."""
    library = space.library
    tokens = [token.discrete() for k, token in enumerate(library.tokens) if k != library.end]
    numbers = (column.name for column in library.columns if library.numeric[column.token, column.slot])
    leaves = [token.name for token in library.tokens if token.arity == 0 and not token.parametrised]
    rules = _about_tokens(space, leaves)
    return Space(Library(tokens, dropped=numbers), space.shape, rules, space.priors)


def _about_tokens(space: Space, leaves: list[str]) -> list[Constraint]:
    """Constraints that mean the same for tokens without their values."""
    kept: list[Constraint] = []
    for rule in space.constraints:
        if isinstance(rule, (Sum, Where)):
            continue
        if not isinstance(rule, DifferentLeaves):
            kept.append(rule)
        elif leaves:  # it spares leaves that carry values
            kept.append(ForbiddenSiblings([(name, name) for name in leaves]))
    return kept


def without_numbers(skeletons: Space, designs: DesignBatch) -> DesignBatch:
    """Designs as those of the space of skeletons: their options stay, at their places there."""
    return _moved(designs, skeletons)


def with_room(space: Space, skeletons: DesignBatch) -> DesignBatch:
    """Skeletons as designs of the space whose numbers are not known yet, NaN."""
    return _moved(skeletons, space) if skeletons.library is not space.library else skeletons


def _moved(designs: DesignBatch, to: Space) -> DesignBatch:
    """The tokens and options of designs in another library with the same tokens."""
    library, old = to.library, designs.library
    values = np.full((*designs.tokens.shape, library.slots), np.nan)
    if library.has_options:
        source = np.zeros((len(library), library.slots), np.int64)
        for column in library.columns:
            if library.options[column.token, column.slot]:
                source[column.token, column.slot] = old.place(library.names[column.token], column.name)[1]
        carries = (library.options > 0)[designs.tokens] & (designs.tokens >= 0)[..., None]
        found = np.take_along_axis(designs.all_values, source[designs.tokens], axis=-1)
        values = np.where(carries, found, np.nan)
    return DesignBatch(library, designs.tokens, library.narrow(values), designs.lengths, to)


def unpacked(space: Space, keys: Sequence[bytes]) -> DesignBatch:
    """Skeletons from their keys (see `DesignBatch.skeletons`), as designs of a space of skeletons."""
    library, width = space.library, space.grammar.max_positions
    each = 1 + library.slots * library.has_options  # numbers for each token
    lengths = np.array([len(key) // (8 * each) for key in keys], np.int64)
    tokens = np.full((len(keys), width), -1, np.int64)
    values = np.full((len(keys), width, library.slots), np.nan)
    own = [key[: 8 * count] for key, count in zip(keys, lengths.tolist(), strict=True)]
    used = np.arange(width) < lengths[:, None]
    tokens[used] = np.frombuffer(bytearray(b"".join(own)), np.int64)
    if library.has_options:
        rest = [key[8 * count :] for key, count in zip(keys, lengths.tolist(), strict=True)]
        options = np.frombuffer(b"".join(rest), np.int64).reshape(-1, library.slots)
        values[used] = np.where(options >= 0, options, np.nan)
    return DesignBatch(library, tokens, library.narrow(values), lengths, space)


# ------------------------------------------------------------------------------------------------------ units


def parameters(space: Space, tokens: Ints) -> Bools:
    """bool[..., V], which values of tokens are numbers; padding carries none."""
    return space.library.numeric[tokens] & (tokens >= 0)[..., None]


def unit_limits(space: Space) -> tuple[Floats, Floats]:
    """low[K, V], high[K, V] of units: 0 and 1 for finite ranges, else the ends of the coordinates."""
    low, high = space.range_coordinates
    finite = np.isfinite(low) & np.isfinite(high)
    return np.where(finite, 0.0, low), np.where(finite, 1.0, high)


def fill(space: Space, skeletons: DesignBatch, units: Floats) -> tuple[DesignBatch, Bools]:
    """Designs from skeletons and units[B, T, V], and which of them, bool[B], keep all rules of the space.

    The skeletons must keep the rules on tokens and options; with some numbers a bound may still forbid a token.
    """
    library, skeletons = space.library, with_room(space, skeletons)
    tokens = skeletons.tokens
    if _blind_to_values(space):
        low, high = np.maximum(library.low, -_LARGEST), np.minimum(library.high, _LARGEST)
        drawn = library.coordinates.to_value(tokens, library.narrow(units))
        drawn = np.clip(library.rounded(tokens, drawn), low[tokens], high[tokens])
        values = np.where(parameters(space, tokens), library.wide(drawn), skeletons.all_values)
        designs = _designs(space, skeletons, values)
        return designs, space.accepted(designs)
    values = np.array(skeletons.all_values)
    feasible = np.ones(len(skeletons), np.bool_)
    for step in _walk(space, skeletons, values):
        own = units[step.rows, step.position]
        with np.errstate(invalid="ignore"):  # infinite ranges, whose units are the coordinates
            inside = step.z_low + own * (step.z_high - step.z_low)
        z = np.where(step.finite, inside, np.minimum(np.maximum(own, step.z_low), step.z_high))
        drawn = library.coordinates.to_value(step.tokens, library.narrow(z))
        drawn = library.wide(library.rounded(step.tokens, drawn))
        drawn = np.minimum(np.maximum(drawn, step.low), step.high)
        old = values[step.rows, step.position]
        values[step.rows, step.position] = np.where(library.numeric[step.tokens], drawn, old)
        feasible[step.rows[step.forbidden]] = False
    designs = _designs(space, skeletons, values)
    if space.conditions:
        feasible[feasible] = space.accepted(designs.select(feasible))
    return designs, feasible


def units_of(space: Space, designs: DesignBatch) -> Floats:
    """units[B, T, V] of designs, NaN where there is no number; `fill` gives the designs back, up to rounding."""
    library = space.library
    if _blind_to_values(space):
        z = library.wide(library.coordinates.to_z(designs.tokens, designs.values))
        return np.where(parameters(space, designs.tokens), z, np.nan)
    units = np.full((*designs.tokens.shape, library.slots), np.nan)
    values = designs.all_values
    for step in _walk(space, designs, values):
        own = library.narrow(values[step.rows, step.position])
        z = library.wide(library.coordinates.to_z(step.tokens, own))
        width = np.where(step.finite & (step.z_high > step.z_low), step.z_high - step.z_low, 1.0)
        unit = np.where(step.finite, (z - step.z_low) / width, z)
        units[step.rows, step.position] = np.where(library.numeric[step.tokens], unit, np.nan)
    return units


def keeps_rules(skeletons: Space, designs: DesignBatch) -> Bools:
    """bool[B], which designs of a space without numbers keep its rules; each must be complete."""
    kept = np.ones(len(designs), np.bool_)
    for step in _walk(skeletons, designs, designs.all_values):
        kept[step.rows[step.forbidden]] = False
    return kept


@dataclass(frozen=True)
class _Step:
    """One position of some designs: rows, tokens, whether they are forbidden, and the intervals [N, V] of their
    values."""

    position: int
    rows: Ints
    tokens: Ints
    forbidden: Bools
    low: Floats
    high: Floats
    z_low: Floats
    z_high: Floats
    finite: Bools


def _walk(space: Space, designs: DesignBatch, values: Floats) -> Iterator[_Step]:
    """Position by position; the caller may write the values[B, T, V] of a step before it asks for the next."""
    library = space.library
    prefix = space.start(len(designs))
    ends_finite = library.wide(np.isfinite(library.low) & np.isfinite(library.high))
    while len(prefix):
        rows, position = prefix.rows, prefix.position
        tokens = designs.tokens[rows, position]
        options, at = space.options(prefix), np.arange(len(rows))
        low, high = options.low[at, tokens], options.high[at, tokens]
        z_low, z_high = (library.wide(ends) for ends in space.bounds_to_coordinates(tokens, low, high))
        forbidden = options.refused(library, tokens, values[rows, position])
        low, high, finite = library.wide(low), library.wide(high), ends_finite[tokens]
        yield _Step(position, rows, tokens, forbidden, low, high, z_low, z_high, finite)
        prefix = prefix.advance(tokens, library.narrow(values[rows, position]))


def _blind_to_values(space: Space) -> bool:
    """Whether no rule looks at values, as each declares, and no interval depends on them."""
    return space.has_fixed_ranges and not any(rule.sees_values for rule in space.rules)


def _designs(space: Space, skeletons: DesignBatch, values: Floats) -> DesignBatch:
    own = space.library.narrow(values)
    return DesignBatch(space.library, skeletons.tokens, own, skeletons.lengths, space)
