"""Variations of good designs: scripts that say what to keep of them and where the policy draws anew.

A script is followed while a design is sampled. Where a rule of the space forbids the token that a script wants,
the policy draws in its place, and a value that falls outside its bounds moves to the nearest one: whatever the
operators do, the result belongs to the space. In a sequence the part below a token is the token itself.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.space.design import DesignBatch
from discodso.space.prefix import Prefix
from discodso.space.space import Options, Space

FRESH = -2  # in place of a token: the policy draws it, and all below it
_END = -1
_SPREADS = (0.002, 0.3)  # of varied values, in coordinates; even on the logarithm
_SHARE_OF_VALUES = 0.3  # that one variation changes, if not a single one
_ANYWHERE = 0.5  # of moves of a single value
_BOTH = 0.3  # of variations of tokens also move values

# A script as a list: token id or FRESH, value (NaN: the policy draws it), step from that value in coordinates.
Entry = tuple[int, float, float]
Script = list[Entry]


@dataclass(frozen=True)
class Scripts:
    """B scripts.

    Attributes:
        tokens: int[B, L], ids, FRESH, or -1 after the end.
        values: float[B, L], NaN where the policy draws.
        skip: int[B, L], entries of the part that begins there.
    """

    tokens: Ints
    values: Floats
    skip: Ints

    @classmethod
    def of(cls, space: Space, scripts: Sequence[Script]) -> Scripts:
        """Lists as arrays; steps are taken, and thrown back where they would leave the declared range."""
        shape = (len(scripts), max((len(script) for script in scripts), default=0) + 1)
        tokens, values, steps = np.full(shape, _END, np.int64), np.full(shape, np.nan), np.zeros(shape)
        skip = np.ones(shape, np.int64)
        for row, script in enumerate(scripts):
            if script:
                count = len(script)
                tokens[row, :count], values[row, :count], steps[row, :count] = zip(*script, strict=True)
                if not space.grammar.chain:
                    skip[row, :count] = spans(space, script)
        moved = steps.nonzero()
        own, c = tokens[moved], space.library.coordinates
        low, high = (ends[own] for ends in space.range_coordinates)
        z = c.to_z(own, values[moved]) + steps[moved]
        z = np.where(z > high, 2 * high - z, np.where(z < low, 2 * low - z, z))
        values[moved] = c.to_value(own, np.clip(z, low, high))
        return cls(tokens, values, skip)


class Reader:
    """Follows scripts while their designs are sampled."""

    def __init__(self, space: Space, scripts: Scripts) -> None:
        self._space = space
        self._scripts = scripts
        self._at = np.zeros(len(scripts.tokens), np.int64)
        self._free_above = np.full(len(scripts.tokens), -1)  # open slots at which a fresh part is complete

    def tokens(self, prefix: Prefix, options: Options, drawn: Ints) -> tuple[Ints, Floats]:
        """Tokens int[B], those of the scripts where they may stand, and values float[B], NaN to draw."""
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
        values = np.where(legal, s.values[rows, at], np.nan)
        self._at[rows] += np.where(legal, 1, np.where(anew, s.skip[rows, at], 0))
        return np.where(legal, wanted, drawn), values

    def place(self, chosen: Ints, drawn: Floats, wanted: Floats, options: Options) -> Floats:
        """Values float[B]: the drawn ones, or those of the scripts, within their bounds."""
        rows = np.flatnonzero(np.isfinite(wanted) & self._space.library.parametrised[chosen])
        if not len(rows):
            return drawn
        values, tokens = drawn.copy(), chosen[rows]
        low, high = options.low[rows, tokens], options.high[rows, tokens]
        values[rows] = np.minimum(np.maximum(wanted[rows], low), high)
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


def vary(
    space: Space, parents: DesignBatch, count: int, size: int, rng: np.random.Generator, single: float = 0.0
) -> Scripts:
    """`size` scripts: `count` variations, then empty ones, which leave all to the policy. Parents are given best
    first, and better ones are taken more often. `single` is the share of moves of values that move one only."""
    if not len(parents):
        return Scripts.of(space, [[] for _ in range(size)])
    own = random.Random(int(rng.integers(2**63)))  # many single draws, at a tenth of the time of NumPy's
    scripts = [_script(parents, row) for row in range(len(parents))]

    def pick() -> Script:
        return scripts[int(min(own.random(), own.random()) * len(scripts))]

    weights = (_MOVES * (1 - single), *_WEIGHTS, _MOVES * single)
    operators = own.choices((vary_values, *_OPERATORS, vary_value), weights, k=count)
    varied = [operator(space, pick(), pick(), own) for operator in operators]
    for row, operator in enumerate(operators):
        if operator not in (vary_values, vary_value) and own.random() < _BOTH:
            share = 0.0 if single and own.random() < single else _SHARE_OF_VALUES
            varied[row] = _moved(varied[row], own, share) or varied[row]
    return Scripts.of(space, [*varied, *([] for _ in range(size - count))])


def unchanged(space: Space, designs: DesignBatch) -> Scripts:
    """Scripts that ask for these designs as they are; drawing after them gives the nearest the space allows."""
    return Scripts.of(space, [_script(designs, row) for row in range(len(designs))])


def _script(designs: DesignBatch, row: int) -> Script:
    """A design as it is."""
    length = int(designs.lengths[row])
    ids, values = designs.tokens[row, :length].tolist(), designs.values[row, :length].tolist()
    return [(token, value, 0.0) for token, value in zip(ids, values, strict=True)]


def _body(space: Space, script: Script) -> int:
    """Entries without the end token of an open sequence."""
    end = space.library.end
    return len(script) - (end is not None and script[-1][0] == end)


def _part(space: Space, script: Script, rng: random.Random) -> tuple[int, int]:
    """First and last + 1 entry of a random part; the end token of an open sequence stays."""
    at = int(rng.random() * _body(space, script))
    return at, at + (1 if space.grammar.chain else spans(space, script)[at])


def vary_values(space: Space, own: Script, other: Script, rng: random.Random) -> Script:
    """Some values move a little."""
    return _moved(own, rng, _SHARE_OF_VALUES) or replace_part(space, own, other, rng)


def vary_value(space: Space, own: Script, other: Script, rng: random.Random) -> Script:
    """One value moves a little, or anywhere within its range if that is finite."""
    moved = _moved(own, rng, 0.0)
    if not moved:
        return replace_part(space, own, other, rng)
    if rng.random() < _ANYWHERE:
        at = next(at for at, (_, _, step) in enumerate(moved) if step)
        token = moved[at][0]
        low, high = (float(ends[token]) for ends in space.range_coordinates)
        if math.isfinite(high - low):
            z = np.array([rng.uniform(low, high)])
            moved[at] = (token, float(space.library.coordinates.to_value(np.array([token]), z)[0]), 0.0)
    return moved


def _moved(script: Script, rng: random.Random, share: float) -> Script:
    """With one other value, and a share of the rest; empty if there is none."""
    places = [at for at, (_, value, _) in enumerate(script) if value == value]
    if not places:
        return []
    spread = math.exp(rng.uniform(math.log(_SPREADS[0]), math.log(_SPREADS[1])))
    moved = {rng.choice(places)}
    if share:
        moved |= {at for at in places if rng.random() < share}
    return [
        (token, value, rng.gauss(0.0, spread) if at in moved else step)
        for at, (token, value, step) in enumerate(script)
    ]


def replace_part(space: Space, own: Script, other: Script, rng: random.Random) -> Script:
    """The policy draws one part anew."""
    first, last = _part(space, own, rng)
    return [*own[:first], (FRESH, np.nan, 0.0), *own[last:]]


def cross(space: Space, own: Script, other: Script, rng: random.Random) -> Script:
    """A part of another design takes the place of one; in a sequence, some tokens in a row, from the same place
    of the other design or, where lengths may differ, from any."""
    first, last = _part(space, own, rng)
    theirs, end = _part(space, other, rng)
    if space.grammar.chain:
        last = first + 1 + int(rng.random() * (_body(space, own) - first))
        aligned = space.library.end is None or rng.random() < 0.5
        theirs = first if aligned else theirs
        end = min(theirs + last - first, _body(space, other))
    return [*own[:first], *other[theirs:end], *own[last:]]


def change_token(space: Space, own: Script, other: Script, rng: random.Random) -> Script:
    """One token becomes another with as many children; its value keeps its place in the range, or the policy
    draws it."""
    at, _ = _part(space, own, rng)
    opens, (old, value, _) = space.grammar.opens, own[at]
    alike = [k for k in np.flatnonzero(opens == opens[old]).tolist() if k != old]
    if not alike:
        return replace_part(space, own, other, rng)
    token = rng.choice(alike)
    kept = np.nan
    if value == value and space.library.parametrised[token] and rng.random() < 0.5:
        c = space.library.coordinates
        kept = float(c.to_value(np.array([token]), c.to_z(np.array([old]), np.array([value])))[0])
    return [*own[:at], (token, kept, 0.0), *own[at + 1 :]]


def insert(space: Space, own: Script, other: Script, rng: random.Random) -> Script:
    """A new token over a part, which becomes one of its children; in a sequence, a new token before another."""
    first, last = _part(space, own, rng)
    part = own[first:last]
    opens = space.grammar.opens
    parents = np.flatnonzero(opens > 0).tolist()
    if space.grammar.chain or not parents:
        return [*own[:first], (FRESH, np.nan, 0.0), *own[first:]]
    token = rng.choice(parents)
    children: list[Script] = [[(FRESH, np.nan, 0.0)] for _ in range(int(opens[token]))]
    children[rng.randrange(len(children))] = part
    return [*own[:first], (token, np.nan, 0.0), *(e for child in children for e in child), *own[last:]]


def hoist(space: Space, own: Script, other: Script, rng: random.Random) -> Script:
    """A part gives way to one of its own parts; in a sequence, a token goes."""
    if space.grammar.chain:
        first, last = _part(space, own, rng)
        return [*own[:first], *own[last:]]
    sizes = spans(space, own)
    larger = [at for at, size in enumerate(sizes) if size > 1]
    if not larger:
        return replace_part(space, own, other, rng)
    first = rng.choice(larger)
    inner = rng.randrange(first + 1, first + sizes[first])
    return [*own[:first], *own[inner : inner + sizes[inner]], *own[first + sizes[first] :]]


Operator = Callable[[Space, Script, Script, random.Random], Script]
_MOVES = 0.4  # share of moves of values; the rest:
_OPERATORS: tuple[Operator, ...] = (replace_part, cross, change_token, insert, hoist)
_WEIGHTS = (0.15, 0.15, 0.1, 0.1, 0.1)
