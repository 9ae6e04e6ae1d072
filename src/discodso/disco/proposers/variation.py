"""The proposer that varies archived designs: scripts that say what to keep of them and where the network draws."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from discodso.base.arrays import Floats
from discodso.disco.archive import Archive, Pool
from discodso.disco.focus import Focus
from discodso.disco.scripts import FRESH, Entry, Script, Scripts, script_of, spans
from discodso.disco.settings import VariationSettings
from discodso.space.design import DesignBatch
from discodso.space.space import Space
from discodso.space.state import State
from discodso.space.values import Choice

Reach = tuple[Floats, Floats]
_SPREADS = (0.002, 0.3)  # of varied values, in coordinates; even on the logarithm
_SHARE_OF_VALUES = 0.3  # that one variation changes, if not a single one
_ANYWHERE = 0.5  # of moves of a single value
_BOTH = 0.3  # of variations of tokens also move values


class Variation:
    """Proposes variations of the designs of an archive, as scripts that the network completes."""

    name = "variation"
    floor = 0.15
    screened = True

    def __init__(self, space: Space, settings: VariationSettings, focus: Focus | None = None) -> None:
        self.share = settings.share
        self._focus = focus
        self._space = space
        self._single = settings.single

    def propose(self, archive: Archive, count: int, rng: np.random.Generator) -> Scripts | None:
        """As many scripts, None while there are not two designs to vary."""
        if len(archive) < 2:
            return None
        reach = None if self._focus is None else self._focus.reach()
        return vary(self._space, archive.members.designs, count, rng, self._single, reach)

    def learn(self, told: Pool, archive: Archive) -> None:
        """Nothing to learn."""

    def state(self) -> State:
        """It remembers nothing."""
        return State()

    def restore(self, state: State) -> None:
        """It remembers nothing."""


def vary(
    space: Space,
    parents: DesignBatch,
    count: int,
    rng: np.random.Generator,
    single: float = 0.0,
    reach: Reach | None = None,
) -> Scripts:
    """Variations of parents, which are given best first; better ones are taken more often.

    `single` is the share of moves of values that move one only. Values move by steps of the size of their
    `reach`, low[K, V] and high[K, V] in coordinates, of which the declared range is the default.
    """
    own = random.Random(int(rng.integers(2**63)))  # many single draws, at a tenth of the time of NumPy's
    scripts = [script_of(parents, row) for row in range(len(parents))]

    def pick() -> Script:
        return scripts[int(min(own.random(), own.random()) * len(scripts))]

    weights = (_MOVES * (1 - single), *_WEIGHTS, _MOVES * single)
    operators = own.choices((vary_values, *_OPERATORS, vary_value), weights, k=count)
    varied = [operator(space, pick(), pick(), own) for operator in operators]
    for row, operator in enumerate(operators):
        if operator not in (vary_values, vary_value) and own.random() < _BOTH:
            share = 0.0 if single and own.random() < single else _SHARE_OF_VALUES
            varied[row] = _moved(space, varied[row], own, share) or varied[row]
    return Scripts.of(space, varied if reach is None else [_scaled(script, reach) for script in varied])


def _scaled(script: Script, reach: Reach) -> Script:
    """With steps that are shares of the reach of a value."""
    low, high = reach
    return [
        (token, values, tuple(step * (high[token, slot] - low[token, slot]) if step else 0.0
                              for slot, step in enumerate(steps)))
        for token, values, steps in script
    ]  # fmt: skip


def _body(space: Space, script: Script) -> int:
    """Entries without the end token of an open sequence."""
    end = space.library.end
    return len(script) - (end is not None and script[-1][0] == end)


def _part(space: Space, script: Script, rng: random.Random) -> tuple[int, int]:
    """First and last + 1 entry of a random part; the end token of an open sequence stays."""
    at = int(rng.random() * _body(space, script))
    return at, at + (1 if space.grammar.chain else spans(space, script)[at])


def vary_values(space: Space, own: Script, other: Script, rng: random.Random) -> Script:
    """Some values move a little; an option becomes another one."""
    return _moved(space, own, rng, _SHARE_OF_VALUES) or replace_part(space, own, other, rng)


def vary_value(space: Space, own: Script, other: Script, rng: random.Random) -> Script:
    """One value moves a little, or anywhere within its range if that is finite."""
    moved = _moved(space, own, rng, 0.0)
    if not moved:
        return replace_part(space, own, other, rng)
    if rng.random() < _ANYWHERE:
        found = (
            (at, slot) for at, (_, _, steps) in enumerate(moved) for slot, step in enumerate(steps) if step
        )
        at, slot = next(found, (-1, -1))
        if at < 0:  # an option, which has moved anywhere already
            return moved
        token, values, steps = moved[at]
        low, high = (float(ends[token, slot]) for ends in space.range_coordinates)
        if math.isfinite(high - low):
            value = _at_coordinate(space, token, slot, rng.uniform(low, high))
            moved[at] = (token, _changed(values, slot, value), _changed(steps, slot, 0.0))
    return moved


def _moved(space: Space, script: Script, rng: random.Random, share: float) -> Script:
    """With one other value, and a share of the rest; empty if there is none."""
    places = [(at, slot) for at, (_, own, _) in enumerate(script) for slot, v in enumerate(own) if v == v]
    if not places:
        return []
    spread = math.exp(rng.uniform(math.log(_SPREADS[0]), math.log(_SPREADS[1])))
    moved = {rng.choice(places)}
    if share:
        moved |= {place for place in places if rng.random() < share}
    options = space.library.options
    result = list(script)
    for at, slot in sorted(moved):
        token, values, steps = result[at]
        count = int(options[token, slot]) if token >= 0 else 0
        if not count:
            result[at] = (token, values, _changed(steps, slot, rng.gauss(0.0, spread)))
        elif count > 1:
            option = (int(values[slot]) + rng.randrange(1, count)) % count
            result[at] = (token, _changed(values, slot, float(option)), steps)
    return result


def _changed(numbers: tuple[float, ...], slot: int, number: float) -> tuple[float, ...]:
    return (*numbers[:slot], number, *numbers[slot + 1 :])


def _at_coordinate(space: Space, token: int, slot: int, z: float) -> float:
    """The value of a token at a coordinate, a whole one where it must be."""
    library = space.library
    at = (np.array([token]), np.array([slot]))[: library.low.ndim]
    value = float(library.coordinates.to_value(at if len(at) > 1 else at[0], np.array([z]))[0])
    return float(round(value)) if library.integer[token, slot] else value


def replace_part(space: Space, own: Script, other: Script, rng: random.Random) -> Script:
    """The policy draws one part anew."""
    first, last = _part(space, own, rng)
    return [*own[:first], _drawn(space, FRESH), *own[last:]]


def _drawn(space: Space, token: int) -> Entry:
    """A token whose values the policy draws."""
    slots = space.library.slots
    return token, (np.nan,) * slots, (0.0,) * slots


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
    opens, (old, values, _) = space.grammar.opens, own[at]
    alike = [k for k in np.flatnonzero(opens == opens[old]).tolist() if k != old]
    if not alike:
        return replace_part(space, own, other, rng)
    token = rng.choice(alike)
    library = space.library
    if library.parametrised[old] and library.parametrised[token] and rng.random() < 0.5:
        return [*own[:at], _carried_over(space, old, values, token), *own[at + 1 :]]
    return [*own[:at], _drawn(space, token), *own[at + 1 :]]


def _carried_over(space: Space, old: int, values: tuple[float, ...], token: int) -> Entry:
    """Another token with the values of one: those of the same name, else those in the same place, as far as they
    are of the same kind; numbers keep their place in the range."""
    library = space.library
    names = [name for name, _ in library.tokens[old].values]
    kept = [np.nan] * library.slots
    for slot, (name, value) in enumerate(library.tokens[token].values):
        source = names.index(name) if name in names else slot
        if source >= len(names):
            continue
        if isinstance(value, Choice):
            same = library.tokens[old].values[source][1] == value
            kept[slot] = values[source] if same else np.nan
        elif library.numeric[old, source]:
            at: Any = (np.array([old]), np.array([source]))[: library.low.ndim]
            z = library.coordinates.to_z(at if len(at) > 1 else at[0], np.array([values[source]]))
            kept[slot] = _at_coordinate(space, token, slot, float(z[0]))
    return token, tuple(kept), (0.0,) * library.slots


def insert(space: Space, own: Script, other: Script, rng: random.Random) -> Script:
    """A new token over a part, which becomes one of its children; in a sequence, a new token before another."""
    first, last = _part(space, own, rng)
    part = own[first:last]
    opens = space.grammar.opens
    parents = np.flatnonzero(opens > 0).tolist()
    if space.grammar.chain or not parents:
        return [*own[:first], _drawn(space, FRESH), *own[first:]]
    token = rng.choice(parents)
    children: list[Script] = [[_drawn(space, FRESH)] for _ in range(int(opens[token]))]
    children[rng.randrange(len(children))] = part
    return [*own[:first], _drawn(space, token), *(e for child in children for e in child), *own[last:]]


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
