"""All designs of a small space whose values are integers and options, if there are any."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.space.design import DesignBatch
from discodso.space.listing import walked
from discodso.space.ruled import Options
from discodso.space.space import Space

_AT_ONCE = 2_000  # prefixes; a batch of them takes room for the longest design each


def all_designs(space: Space, most: int) -> DesignBatch | None:
    """Every design that keeps the rules, shorter ones first; None if tokens carry real numbers, or if there are
    more than `most` designs or prefixes of one length."""
    library = space.library
    if (library.numeric & ~library.integer).any():
        return None
    begun: Ints = np.empty((1, 0), np.int64)
    carried: Floats = np.empty((1, 0, library.slots))
    complete: list[DesignBatch] = []
    found = 0
    while len(begun):
        unfinished: list[tuple[Ints, Floats]] = []
        for first in range(0, len(begun), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            options = space.options(walked(space, begun[some], carried[some]))
            rows, tokens = np.nonzero(~options.forbidden)
            chosen = _values(space, options, rows, tokens, most)
            if chosen is None:
                return None
            rows, tokens, values = chosen
            longer = np.concatenate((begun[some][rows], tokens[:, None]), axis=1)
            filled = np.concatenate((carried[some][rows], values[:, None]), axis=1)
            after = walked(space, longer, filled)
            open_rows = np.zeros(len(longer), np.bool_)
            open_rows[after.rows] = True
            finished = replace(after.batch().select(~open_rows), origin=space)
            complete.append(finished.select(space.accepted(finished)))
            unfinished.append((longer[open_rows], filled[open_rows]))
            found += len(complete[-1])
            if found > most or sum(len(own) for own, _ in unfinished) > most:
                return None
        begun = np.concatenate([own for own, _ in unfinished])
        carried = np.concatenate([own for _, own in unfinished])
    return DesignBatch.concatenate(complete)


def _values(
    space: Space, options: Options, rows: Ints, tokens: Ints, most: int
) -> tuple[Ints, Ints, Floats] | None:
    """All values of tokens[N] at rows[N]: rows, tokens and values [M, V]; None if there are too many."""
    library = space.library
    if not library.parametrised.any():
        return rows, tokens, np.full((len(rows), library.slots), np.nan)
    low, high = library.wide(options.low), library.wide(options.high)
    found: list[tuple[int, int, tuple[float, ...]]] = []
    for row, token in zip(rows.tolist(), tokens.tolist(), strict=True):
        choices = []
        for slot in range(len(library.tokens[token].values)):
            numbers = range(int(np.ceil(low[row, token, slot])), int(np.floor(high[row, token, slot])) + 1)
            if len(numbers) > most:
                return None
            barred = options.barred.get(int(library.column_of[token, slot]))
            choices.append([n for n in numbers if barred is None or not barred[row, n]])
        missing = (np.nan,) * (library.slots - len(choices))
        for values in product(*choices):
            found.append((row, token, (*values, *missing)))
            if len(found) > most:
                return None
    if not found:
        return rows[:0], tokens[:0], np.empty((0, library.slots))
    own_rows, own_tokens, values_ = zip(*found, strict=True)
    return np.array(own_rows), np.array(own_tokens), np.array(values_)
