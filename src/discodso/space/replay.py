"""Replaying finished designs: what the policy saw, and what was allowed, at every position.

Scoring needs nothing else, so a design can be scored whether or not the policy proposed it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.base.errors import InvalidDesignError
from discodso.space.design import DesignBatch
from discodso.space.ruled import Options
from discodso.space.space import Space
from discodso.space.traversals import Traversals


@dataclass(frozen=True)
class Trace:
    """B designs position by position; time comes first, as recurrent networks read it.

    Attributes:
        tokens: int[T, B], -1 after the end.
        values: float[T, B, V], NaN where there is none.
        z: float[T, B, V], coordinates of the values, 0 where there is none.
        neighbours: int[3, T, B], previous token, parent, left sibling; -1 for none.
        neighbour_z: float[3, T, B, V], their coordinates.
        forbidden: bool[T, B, K].
        prior: float[T, B, K], or None.
        low, high: float[T, B, P] bounds in coordinates, or float[P] if the ranges are fixed.
        active: bool[T, B], positions in use.
        barred: bool[T, B, n] for some columns that are options, True where one may not be taken.
    """

    tokens: Ints
    values: Floats
    z: Floats
    neighbours: Ints
    neighbour_z: Floats
    forbidden: Bools
    prior: Floats | None
    low: Floats
    high: Floats
    active: Bools
    barred: Mapping[int, Bools] = field(default_factory=dict)


def neighbours_of(traversals: Traversals, positions: int) -> tuple[Ints, Floats]:
    """Previous, parent and sibling of every position: ids int[3, T, B] and coordinates float[3, T, B, V]."""
    size = len(traversals.lengths)
    before = np.broadcast_to(np.arange(-1, positions - 1), (size, positions))
    where = np.stack((before, traversals.parents[:, :positions], traversals.siblings[:, :positions]))
    at, row = np.maximum(where, 0), np.arange(size)[None, :, None]
    ids = np.where(where >= 0, traversals.tokens[row, at], -1)
    z = np.where((where >= 0)[..., None], traversals.coordinates[row, at], 0.0)
    return ids.transpose(0, 2, 1), z.transpose(0, 2, 1, 3)


def replay(space: Space, batch: DesignBatch) -> Trace:
    """Walk a batch of designs through the rules of the space; a design that breaks one is refused."""
    size, positions, count = len(batch), int(batch.lengths.max(initial=1)), len(space.library)
    if positions > space.grammar.max_positions or positions > batch.tokens.shape[1]:
        raise InvalidDesignError("these designs are longer than the longest of the space")
    forbidden = np.zeros((positions, size, count), np.bool_)
    prior = np.zeros((positions, size, count)) if space.priors else None
    moving, library = not space.has_fixed_ranges, space.library
    low, high = library.low, library.high
    if moving:
        low, high = (np.array(np.broadcast_to(ends, (positions, size, *ends.shape))) for ends in (low, high))
    barred: dict[int, Bools] = {}
    prefix = space.start(size)
    for position in range(positions):
        rows = prefix.rows
        tokens, values = batch.tokens[rows, position], batch.values[rows, position]
        if (short := (tokens < 0) | (tokens >= count)).any():
            design = batch[int(rows[short.argmax()])]
            raise InvalidDesignError(f"{design} does not belong to the space: it ends with open slots")
        options = space.options(prefix)
        forbidden[position, rows] = options.forbidden
        if prior is not None:
            prior[position, rows] = options.prior
        if moving:
            low[position, rows], high[position, rows] = options.low, options.high
        for column, mask in options.barred.items():
            whole = barred.setdefault(column, np.zeros((positions, size, mask.shape[1]), np.bool_))
            whole[position, rows] = mask
        broken = options.refused(library, tokens, library.wide(values))
        _refuse(space, batch, rows[broken | _misfit(space, options, tokens, values)])
        prefix = prefix.advance(tokens, values)
    _refuse(space, batch, prefix.rows)
    if space.conditions and batch.origin is not space:
        _refuse(space, batch, np.flatnonzero(~space.accepted(batch)))
    traversals = prefix.traversals
    _refuse(space, batch, np.flatnonzero(traversals.lengths != batch.lengths))
    neighbours, neighbour_z = neighbours_of(traversals, positions)
    tokens_of, slots_of = np.nonzero(library.column_of >= 0)
    of_columns: Any = (tokens_of, slots_of)[: library.low.ndim]
    ends = low[(..., *of_columns)], high[(..., *of_columns)]
    z_low, z_high = space.bounds_to_coordinates(of_columns, *ends)
    tokens_first = traversals.tokens[:, :positions].T
    return Trace(
        tokens=tokens_first,
        values=traversals.values[:, :positions].transpose(1, 0, 2),
        z=traversals.coordinates[:, :positions].transpose(1, 0, 2),
        neighbours=neighbours,
        neighbour_z=neighbour_z,
        forbidden=forbidden,
        prior=prior,
        low=z_low,
        high=z_high,
        active=tokens_first >= 0,
        barred=barred,
    )


def _misfit(space: Space, options: Options, tokens: Ints, values: Floats) -> Bools:
    """bool[B], whether values are missing or too many, lie outside their bounds, or are no integers or options."""
    library, at = space.library, np.arange(len(tokens))
    outside = (values < options.low[at, tokens]) | (values > options.high[at, tokens])
    wrong_kind = np.isnan(values) == library.narrow(library.column_of >= 0)[tokens]
    wrong = library.wide(outside | wrong_kind)
    if not library.plain:
        whole = (library.integer | (library.options > 0))[tokens]
        own = library.wide(values)
        wrong = wrong | (whole & (own != np.round(own)))
    return np.asarray(wrong.any(axis=-1))


def _refuse(space: Space, batch: DesignBatch, rows: Ints) -> None:
    """Raise InvalidDesignError for the first of these rows, if there are any."""
    if len(rows):
        design = batch[int(rows[0])]
        reasons = "; ".join(map(str, space.violations(design)))
        raise InvalidDesignError(f"{design} does not belong to the space: {reasons}")
