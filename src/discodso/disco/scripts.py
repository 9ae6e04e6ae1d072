"""Scripts: designs that sampling follows, with places left open where the network draws.

Where a rule of the space forbids the token that a script wants, the network draws in its place, and a value that
falls outside its bounds moves to the nearest one: whatever a script says, the result belongs to the space. In a
sequence the part below a token is the token itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.space.design import DesignBatch, padded
from discodso.space.prefix import Prefix
from discodso.space.ruled import Options
from discodso.space.space import Space

FRESH = -2  # in place of a token: the policy draws it, and all below it
_END = -1

# A script as a list: token id or FRESH, its V values (NaN: the policy draws it), steps from them in coordinates.
Entry = tuple[int, tuple[float, ...], tuple[float, ...]]
Script = list[Entry]


@dataclass(frozen=True)
class Scripts:
    """B scripts.

    Attributes:
        tokens: int[B, L], ids, FRESH, or -1 after the end.
        values: float[B, L, V], NaN where the policy draws.
        skip: int[B, L], entries of the part that begins there.
    """

    tokens: Ints
    values: Floats
    skip: Ints

    @classmethod
    def of(cls, space: Space, scripts: Sequence[Script]) -> Scripts:
        """Lists as arrays; steps are taken, and thrown back where they would leave the declared range."""
        shape = (len(scripts), max((len(script) for script in scripts), default=0) + 1)
        library, wide = space.library, (*shape, space.library.slots)
        tokens, values, steps = np.full(shape, _END, np.int64), np.full(wide, np.nan), np.zeros(wide)
        skip = np.ones(shape, np.int64)
        for row, script in enumerate(scripts):
            if script:
                count = len(script)
                tokens[row, :count], values[row, :count], steps[row, :count] = zip(*script, strict=True)
                if not space.grammar.chain:
                    skip[row, :count] = spans(space, script)
        moved = steps.nonzero()
        at: Any = (tokens[moved[:2]], moved[2])[: library.low.ndim]
        low, high = (library.narrow(ends)[at] for ends in space.range_coordinates)
        old = values[moved]
        z = library.coordinates.to_z(at, old) + steps[moved]
        z = np.where(z > high, 2 * high - z, np.where(z < low, 2 * low - z, z))
        values[moved] = library.coordinates.to_value(at, np.clip(z, low, high))
        if not library.plain:  # a step of an integer is one at least
            rounded = library.rounded(at, values[moved])
            still = (library.half[at] > 0) & (rounded == old)
            values[moved] = np.where(still, old + np.sign(steps[moved]), rounded)
        return cls(tokens, values, skip)

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def joined(cls, space: Space, parts: Sequence[Scripts], empty: int) -> Scripts:
        """Scripts one after the other, then some empty ones, which leave all to the network."""
        parts = [*parts, cls.of(space, [[] for _ in range(empty)])]
        return cls(
            padded([part.tokens for part in parts], _END),
            padded([part.values for part in parts], np.nan),
            padded([part.skip for part in parts], 1),
        )


class Reader:
    """Follows scripts while their designs are sampled."""

    def __init__(self, space: Space, scripts: Scripts) -> None:
        self._space = space
        self._scripts = scripts
        self._at = np.zeros(len(scripts.tokens), np.int64)
        self._free_above = np.full(len(scripts.tokens), -1)  # open slots at which a fresh part is complete

    def tokens(self, prefix: Prefix, options: Options, drawn: Ints) -> tuple[Ints, Floats]:
        """Tokens int[B], those of the scripts where they may stand, and values float[B, V], NaN to draw."""
        rows = prefix.rows
        following = prefix.open_slots <= self._free_above[rows]
        self._free_above[rows[following]] = -1
        following = self._free_above[rows] < 0
        s, at = self._scripts, self._at[rows]
        wanted = np.where(following, s.tokens[rows, at], _END)
        legal: Bools = (wanted >= 0) & ~options.forbidden[np.arange(len(rows)), np.maximum(wanted, 0)]
        anew = (wanted != _END) & ~legal
        if not prefix.grammar.chain:
            self._free_above[rows[anew]] = prefix.open_slots[anew] - 1
        values = np.where(legal[:, None], s.values[rows, at], np.nan)
        self._at[rows] += np.where(legal, 1, np.where(anew, s.skip[rows, at], 0))
        return np.where(legal, wanted, drawn), values

    def place(self, chosen: Ints, drawn: Floats, wanted: Floats, options: Options) -> Floats:
        """Values float[B, V]: the drawn ones, or those of the scripts, within their bounds. An option that may not
        be taken leaves the drawn one."""
        library = self._space.library
        rows, slots = np.nonzero(np.isfinite(wanted) & (library.column_of[chosen] >= 0))
        if not len(rows):
            return drawn
        values, tokens = drawn.copy(), chosen[rows]
        low, high = (library.wide(ends)[rows, tokens, slots] for ends in (options.low, options.high))
        values[rows, slots] = np.minimum(np.maximum(wanted[rows, slots], low), high)
        for column, mask in options.barred.items():
            own = library.columns[column]
            here = np.flatnonzero((chosen == own.token) & np.isfinite(wanted[:, own.slot]))
            barred = here[mask[here, values[here, own.slot].astype(np.int64)]]
            values[barred, own.slot] = drawn[barred, own.slot]
        return values


def spans(space: Space, script: Script) -> list[int]:
    """For each entry of a script, how many entries the part that begins there has."""
    count = len(script)
    if space.grammar.chain:
        return [1] * count
    opens = space.grammar.opens
    found = [1] * count
    for at in range(count - 1, -1, -1):
        token = script[at][0]
        end = at + 1
        for _ in range(int(opens[token]) if token >= 0 else 0):
            end += found[end] if end < count else 0
        found[at] = end - at
    return found


def script_of(designs: DesignBatch, row: int) -> Script:
    """A design as it is."""
    length, still = int(designs.lengths[row]), (0.0,) * designs.library.slots
    ids, values = designs.tokens[row, :length].tolist(), designs.all_values[row, :length].tolist()
    return [(token, tuple(own), still) for token, own in zip(ids, values, strict=True)]
