"""Designs as vectors for a kernel: which tokens with which values, where, and after which others.

Three blocks, each a sum over the tokens of a design: tokens with their values by position (by depth in trees), the
same wherever they stand, and with the token before them (their parent in trees). A number spreads over two
neighbours of a few evenly spaced bins, so that close values have close vectors; an option has a bin of its own.
"""

from __future__ import annotations

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.space.design import DesignBatch
from discodso.space.space import Space

_BINS, _COARSE_BINS, _PLACES = 6, 3, 8
_MOST = 4096  # entries of a block; more are folded
_FOLD = 2654435761  # a prime that scatters what is folded

Blocks = tuple[Floats, ...]


def features(space: Space, designs: DesignBatch) -> Blocks:
    """float[B, D] of each of the three blocks; a row depends on its design only."""
    rows, at = np.nonzero(designs.tokens >= 0)
    above, places = _neighbours(space, designs)
    fine, count = _bins(space, designs, rows, at, _BINS)
    coarse, few = _bins(space, designs, rows, at, _COARSE_BINS)
    left, share = _between(places[rows, at], _PLACES)
    size = len(designs)
    by_place = [
        (rows[own], (left[own] + step) * count + bin_, weight * (share[own] if step else 1 - share[own]))
        for own, bin_, weight in fine
        for step in (0, 1)
    ]
    anywhere = [(rows[own], bin_, weight) for own, bin_, weight in fine]
    after = [(rows[own], above[rows, at][own] * few + bin_, weight) for own, bin_, weight in coarse]
    return (
        _summed(by_place, size, _PLACES * count),
        _summed(anywhere, size, count),
        _summed(after, size, (len(space.library) + 1) * few),
    )


Entries = list[tuple[Ints, Ints, Floats]]  # occurrence of a token, bin, weight


def _bins(space: Space, designs: DesignBatch, rows: Ints, at: Ints, bins: int) -> tuple[Entries, int]:
    """The bins of all tokens and their values, and how many bins there are; each token has a weight of 1."""
    library = space.library
    sizes = np.where(library.options > 0, library.options, np.where(library.column_of >= 0, bins, 0))
    carried = (library.column_of >= 0).sum(axis=1)
    sizes[carried == 0, 0] = 1
    ends = np.cumsum(sizes.ravel()).reshape(sizes.shape)
    first = ends - sizes
    tokens, values = designs.tokens[rows, at], designs.all_values[rows, at]
    z = library.wide(library.coordinates.to_z(designs.tokens, designs.values))[rows, at]
    found: Entries = []
    plain = np.flatnonzero(carried[tokens] == 0)
    found.append((plain, first[tokens[plain], 0], np.ones(len(plain))))
    finite = library.wide(np.isfinite(library.low) & np.isfinite(library.high))
    for slot in range(library.slots):
        options = np.flatnonzero(library.options[tokens, slot] > 0)
        own = tokens[options]
        chosen = values[options, slot].astype(np.int64)
        found.append((options, first[own, slot] + chosen, 1.0 / carried[own]))
        numbers = np.flatnonzero(library.numeric[tokens, slot])
        own = tokens[numbers]
        x = z[numbers, slot]
        x = np.where(finite[own, slot], x, 0.5 + np.arctan(x) / np.pi)
        left, share = _between(x, bins)
        found.append((numbers, first[own, slot] + left, (1 - share) / carried[own]))
        found.append((numbers, first[own, slot] + left + 1, share / carried[own]))
    return found, int(ends[-1, -1])


def _between(x: Floats, bins: int) -> tuple[Ints, Floats]:
    """The bin to the left of numbers in [0, 1], and the share of the one to the right."""
    scaled = np.clip(x, 0.0, 1.0) * (bins - 1)
    left = np.minimum(scaled.astype(np.int64), bins - 2)
    return left, scaled - left


def _summed(entries: Entries, size: int, width: int) -> Floats:
    """float[size, width], folded if that is too wide."""
    rows = np.concatenate([row for row, _, _ in entries])
    columns = np.concatenate([column for _, column, _ in entries])
    weights = np.concatenate([weight for _, _, weight in entries])
    if width > _MOST:
        columns, width = (columns * _FOLD) % _MOST, _MOST
    summed = np.bincount(rows * width + columns, weights, size * width)
    return np.asarray(summed, np.float64).reshape(size, width)


def _neighbours(space: Space, designs: DesignBatch) -> tuple[Ints, Floats]:
    """int[B, T], the token before each, or its parent in trees, K if there is none; and float[B, T], where it
    stands, from 0 to 1."""
    tokens, none = designs.tokens, len(space.library)
    size, width = tokens.shape
    above = np.full((size, width), none)
    if space.grammar.chain:
        above[:, 1:] = np.where(tokens[:, :-1] >= 0, tokens[:, :-1], none)
        last = max(space.grammar.max_positions - 1, 1)
        return above, np.broadcast_to(np.arange(width) / last, tokens.shape)
    depth = np.zeros((size, width))
    opens, every = space.grammar.opens, np.arange(size)
    stack, left = np.full((size, width + 2), none), np.zeros((size, width + 2), np.int64)
    top = np.zeros(size, np.int64)
    left[:, 0] = 1  # the root
    for at in range(width):
        alive = tokens[:, at] >= 0
        above[:, at], depth[:, at] = stack[every, top], top
        left[every, top] -= alive
        children = np.where(alive, opens[tokens[:, at]], 0)
        top = top + (children > 0)
        opened = np.flatnonzero(children > 0)
        stack[opened, top[opened]], left[opened, top[opened]] = tokens[opened, at], children[opened]
        while (full := (left[every, top] == 0) & (top > 0)).any():
            top = top - full
    return above, depth / (_PLACES - 1)
