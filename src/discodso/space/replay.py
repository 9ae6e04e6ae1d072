"""Replaying finished designs: what the policy saw, and what was allowed, at every position.

Scoring needs nothing else, so a design can be scored whether or not the policy proposed it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.base.errors import InvalidDesignError
from discodso.space.design import DesignBatch
from discodso.space.prefix import Prefix, Traversals
from discodso.space.space import Space


@dataclass(frozen=True)
class Trace:
    """B designs position by position; time comes first, as recurrent networks read it.

    Attributes:
        tokens: int[T, B], -1 after the end.
        z: float[T, B], coordinates of the values, 0 for discrete tokens.
        neighbours: int[3, T, B], previous token, parent, left sibling; -1 for none.
        neighbour_z: float[3, T, B], their coordinates.
        forbidden: bool[T, B, K].
        prior: float[T, B, K], or None.
        low, high: float[T, B, P] bounds in coordinates, or float[P] if the ranges are fixed.
        active: bool[T, B], positions in use.
    """

    tokens: Ints
    z: Floats
    neighbours: Ints
    neighbour_z: Floats
    forbidden: Bools
    prior: Floats | None
    low: Floats
    high: Floats
    active: Bools


def neighbours_of(traversals: Traversals, positions: int) -> tuple[Ints, Floats]:
    """Previous, parent and sibling of every position: ids int[3, T, B] and coordinates float[3, T, B]."""
    size = len(traversals.lengths)
    before = np.broadcast_to(np.arange(-1, positions - 1), (size, positions))
    where = np.stack((before, traversals.parents[:, :positions], traversals.siblings[:, :positions]))
    at, row = np.maximum(where, 0), np.arange(size)[None, :, None]
    ids = np.where(where >= 0, traversals.tokens[row, at], -1)
    z = np.where(where >= 0, traversals.coordinates[row, at], 0.0)
    return ids.transpose(0, 2, 1), z.transpose(0, 2, 1)


def replay(space: Space, batch: DesignBatch) -> Trace:
    """Walk a batch of designs through the rules of the space; a design that breaks one is refused."""
    size, positions, count = len(batch), int(batch.lengths.max(initial=1)), len(space.library)
    if positions > space.grammar.max_positions or positions > batch.tokens.shape[1]:
        raise InvalidDesignError("these designs are longer than the longest of the space")
    forbidden = np.zeros((positions, size, count), np.bool_)
    prior = np.zeros((positions, size, count)) if space.priors else None
    moving = not space.has_fixed_ranges
    low, high = space.library.low, space.library.high
    if moving:
        low, high = (np.tile(ends, (positions, size, 1)) for ends in (low, high))
    prefix = space.start(size)
    for position in range(positions):
        rows = prefix.rows
        tokens, values = batch.tokens[rows, position], batch.values[rows, position]
        _require_tokens(prefix, batch, tokens)
        options = space.options(prefix)
        forbidden[position, rows] = options.forbidden
        if prior is not None:
            prior[position, rows] = options.prior
        if moving:
            low[position, rows], high[position, rows] = options.low, options.high
        at = np.arange(len(rows))
        outside = (values < options.low[at, tokens]) | (values > options.high[at, tokens])
        wrong_kind = np.isnan(values) == space.library.parametrised[tokens]
        broken = np.flatnonzero(options.forbidden[at, tokens] | outside | wrong_kind)
        if len(broken):
            _refuse(space, batch, int(rows[broken[0]]))
        prefix = prefix.advance(tokens, values)
    if len(prefix):
        _refuse(space, batch, int(prefix.rows[0]))
    traversals = prefix.traversals
    unequal = np.flatnonzero(traversals.lengths != batch.lengths)
    if len(unequal):
        _refuse(space, batch, int(unequal[0]))
    neighbours, neighbour_z = neighbours_of(traversals, positions)
    ids = space.library.parametrised_ids
    z_low, z_high = space.bounds_to_coordinates(ids, low[..., ids], high[..., ids])
    tokens_first = traversals.tokens[:, :positions].T
    return Trace(
        tokens=tokens_first,
        z=traversals.coordinates[:, :positions].T,
        neighbours=neighbours,
        neighbour_z=neighbour_z,
        forbidden=forbidden,
        prior=prior,
        low=z_low,
        high=z_high,
        active=tokens_first >= 0,
    )


def _require_tokens(prefix: Prefix, batch: DesignBatch, tokens: Ints) -> None:
    short = np.flatnonzero((tokens < 0) | (tokens >= len(prefix.library)))
    if len(short):
        design = batch[int(prefix.rows[short[0]])]
        raise InvalidDesignError(f"{design} does not belong to the space: it ends with open slots")


def _refuse(space: Space, batch: DesignBatch, row: int) -> None:
    design = batch[row]
    reasons = "; ".join(str(violation) for violation in space.violations(design))
    raise InvalidDesignError(f"{design} does not belong to the space: {reasons}")
