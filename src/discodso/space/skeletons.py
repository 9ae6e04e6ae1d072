"""Designs as a skeleton and units: the discrete part, and where each value lies within its bounds.

A unit is a number for the value of one token. Where the declared range is finite, 0 and 1 stand for the ends of
the interval that the tokens and values before it leave open, so that every unit in [0, 1] keeps to the bounds.
Where the range is infinite the unit is the coordinate itself. Optimisers and mutations that know nothing of
bounds can so work on units.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.space.constraints import Constraint, DifferentLeaves, ForbiddenSiblings
from discodso.space.design import DesignBatch
from discodso.space.space import Space

_LARGEST = 1e150  # a value beyond it would overflow in any objective


def skeleton_space(space: Space) -> Space:
    """The same tokens, shape, constraints and priors without values: what a method for skeletons searches."""
    tokens = [replace(token, range=None, scale="linear") for token in space.library.tokens]
    end = space.library.end
    tokens = [token for k, token in enumerate(tokens) if k != end]  # the shape adds it again
    leaves = [token.name for token in space.library.tokens if token.arity == 0 and not token.parametrised]
    return Space(tokens, space.shape, _about_tokens(space, leaves), space.priors)


def _about_tokens(space: Space, leaves: list[str]) -> list[Constraint]:
    """Constraints that mean the same for tokens without their values."""
    kept: list[Constraint] = []
    for rule in space.constraints:
        if not isinstance(rule, DifferentLeaves):
            kept.append(rule)
        elif leaves:  # it spares leaves that carry values
            kept.append(ForbiddenSiblings([(name, name) for name in leaves]))
    return kept


def parameters(space: Space, tokens: Ints) -> Bools:
    """bool[...], which tokens carry a value; padding carries none."""
    carries: Bools = space.library.parametrised[tokens] & (tokens >= 0)
    return carries


def unit_limits(space: Space) -> tuple[Floats, Floats]:
    """low[K], high[K] of units: 0 and 1 for finite ranges, else the ends of the coordinates."""
    low, high = space.range_coordinates
    finite = np.isfinite(low) & np.isfinite(high)
    return np.where(finite, 0.0, low), np.where(finite, 1.0, high)


def fill(space: Space, skeletons: DesignBatch, units: Floats) -> tuple[DesignBatch, Bools]:
    """Designs from skeletons and units[B, T], and which of them, bool[B], keep all rules of the space.

    The skeletons must keep the rules on tokens; with some values a bound may still forbid one of their tokens.
    """
    library = space.library
    if _blind_to_values(space):
        tokens = skeletons.tokens
        low, high = np.maximum(library.low, -_LARGEST), np.minimum(library.high, _LARGEST)
        values = np.clip(library.coordinates.to_value(tokens, units), low[tokens], high[tokens])
        values = np.where(parameters(space, tokens), values, np.nan)
        return _designs(space, skeletons, values), np.ones(len(skeletons), np.bool_)
    values = np.full(skeletons.tokens.shape, np.nan)
    feasible = np.ones(len(skeletons), np.bool_)
    for step in _walk(space, skeletons, values):
        own = units[step.rows, step.position]
        with np.errstate(invalid="ignore"):  # infinite ranges, whose units are the coordinates
            inside = step.z_low + own * (step.z_high - step.z_low)
        z = np.where(step.finite, inside, np.minimum(np.maximum(own, step.z_low), step.z_high))
        value = library.coordinates.to_value(step.tokens, z)
        values[step.rows, step.position] = np.minimum(np.maximum(value, step.low), step.high)
        feasible[step.rows[step.forbidden]] = False
    return _designs(space, skeletons, values), feasible


def units_of(space: Space, designs: DesignBatch) -> Floats:
    """units[B, T] of designs; `fill` gives the designs back, up to rounding."""
    if _blind_to_values(space):
        z = space.library.coordinates.to_z(designs.tokens, designs.values)
        return np.where(parameters(space, designs.tokens), z, np.nan)
    units = np.full(designs.tokens.shape, np.nan)
    for step in _walk(space, designs, designs.values):
        z = space.library.coordinates.to_z(step.tokens, designs.values[step.rows, step.position])
        width = np.where(step.finite & (step.z_high > step.z_low), step.z_high - step.z_low, 1.0)
        units[step.rows, step.position] = np.where(step.finite, (z - step.z_low) / width, z)
    return units


def keeps_rules(space: Space, tokens: Ints, lengths: Ints) -> Bools:
    """bool[B], which traversals without values keep the rules of a space without values; each must be complete."""
    skeletons = DesignBatch(space.library, tokens, np.full(tokens.shape, np.nan), lengths)
    kept = np.ones(len(lengths), np.bool_)
    for step in _walk(space, skeletons, skeletons.values):
        kept[step.rows[step.forbidden]] = False
    return kept


@dataclass(frozen=True)
class _Step:
    """One position of some designs: rows, tokens, whether they are forbidden, and their intervals."""

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
    """Position by position; the caller may write the values of a step before it asks for the next."""
    library = space.library
    prefix = space.start(len(designs))
    ends_finite = np.isfinite(library.low) & np.isfinite(library.high)
    while len(prefix):
        rows, position = prefix.rows, prefix.position
        tokens = designs.tokens[rows, position]
        options, at = space.options(prefix), np.arange(len(rows))
        low, high = options.low[at, tokens], options.high[at, tokens]
        z_low, z_high = space.bounds_to_coordinates(tokens, low, high)
        finite, forbidden = ends_finite[tokens], options.forbidden[at, tokens]
        yield _Step(position, rows, tokens, forbidden, low, high, z_low, z_high, finite)
        prefix = prefix.advance(tokens, values[rows, position])


def _blind_to_values(space: Space) -> bool:
    """Whether no rule looks at values, as each declares, and no interval depends on them."""
    return space.has_fixed_ranges and not any(rule.sees_values for rule in space.rules)


def _designs(space: Space, skeletons: DesignBatch, values: Floats) -> DesignBatch:
    return DesignBatch(space.library, skeletons.tokens, values, skeletons.lengths, space)
