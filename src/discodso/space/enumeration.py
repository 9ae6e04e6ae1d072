"""All designs of a small space without values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discodso.base.arrays import Ints
from discodso.space.design import DesignBatch
from discodso.space.prefix import Prefix
from discodso.space.space import Space

_AT_ONCE = 2_000  # prefixes; a batch of them takes room for the longest design each


def all_designs(space: Space, most: int) -> DesignBatch | None:
    """Every design that keeps the rules, shorter ones first; None if tokens carry values, or if there are more
    than `most` designs or prefixes of one length."""
    if space.library.parametrised.any():
        return None
    partial: Ints = np.empty((1, 0), np.int64)
    complete: list[DesignBatch] = []
    found = 0
    while len(partial):
        unfinished: list[Ints] = []
        for first in range(0, len(partial), _AT_ONCE):
            part = partial[first : first + _AT_ONCE]
            rows, tokens = np.nonzero(~space.options(_walked(space, part)).forbidden)
            part = np.concatenate((part[rows], tokens[:, None]), axis=1)
            after = _walked(space, part)
            open_rows = np.zeros(len(part), np.bool_)
            open_rows[after.rows] = True
            complete.append(replace(after.batch().select(~open_rows), origin=space))
            unfinished.append(part[open_rows])
            found += len(complete[-1])
            if found > most or sum(map(len, unfinished)) > most:
                return None
        partial = np.concatenate(unfinished)
    return DesignBatch.concatenate(complete)


def _walked(space: Space, tokens: Ints) -> Prefix:
    """The prefixes that tokens[B, n] make."""
    prefix = space.start(len(tokens))
    nothing = np.full(len(tokens), np.nan)
    for position in range(tokens.shape[1]):
        prefix = prefix.advance(tokens[:, position].copy(), nothing)
    return prefix
