"""Trying rules on random prefixes: constraints, priors and bounds that a user has written.

Every check raises AssertionError with one clear sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from discodso.base.errors import DeadEndError, DeclarationError, DiscodsoError
from discodso.space.bounds import Bounds
from discodso.space.constraints import Constraint, Prior
from discodso.space.prefix import Prefix
from discodso.space.space import Space

Rule = Constraint | Prior | Bounds


def random_prefixes(space: Space, size: int = 64, seed: int = 0) -> Iterator[Prefix]:
    """Prefixes of designs drawn uniformly under the rules of the space, from the empty one on."""
    rng = np.random.default_rng(seed)
    prefix = space.start(size)
    while len(prefix):
        yield prefix
        prefix = prefix.advance(*space.random_step(prefix, rng))


def check_constraint(rule: Rule, space: Space, *, seed: int = 0) -> None:
    """Try a constraint, prior or bounds object on random prefixes of a space.

    Checks the type and shape of what it returns, that it does not change the prefix, that it answers for each
    prefix alone as it does in a batch, that it gives the same answer twice, that a rule with `sees_values = False`
    gives the same answer for other values, and that it leaves every prefix something to go on with.
    """
    good = isinstance(rule, (Constraint, Prior, Bounds))
    assert good, f"{rule!r} must be a subclass of Constraint, Prior or Bounds, got {type(rule).__name__}"
    try:
        rule.check(space.library, space.grammar)
    except DeclarationError as error:
        raise AssertionError(f"{rule.name} does not fit the space: {error}") from None
    usable = np.zeros(space.library.low.shape, np.bool_)  # values that bounds have left an interval for
    for prefix in random_prefixes(space, seed=seed):
        first = _check_at(rule, space, prefix, seed)
        if isinstance(rule, Bounds):
            usable |= (first[0] < first[1] + space.library.half).any(axis=0)
    if isinstance(rule, Bounds):
        shape, widths = space.library.low.shape, rule.min_width(space.library)
        good = isinstance(widths, np.ndarray) and widths.shape == shape
        assert good, f"min_width of {rule.name} must return an array of shape {shape}, got {widths!r:.80}"
        unused = (space.library.numeric & ~space.library.wide(usable)).any(axis=1)
        never = [space.library.names[k] for k in np.flatnonzero(unused)]
        assert not never, f"{rule.name} never leaves {', '.join(never)} an interval with low < high"
        space = replace(space, bounds=rule)
    elif isinstance(rule, Constraint) and rule not in space.rules:
        space = replace(space, constraints=(*space.constraints, rule))
    try:
        for _ in random_prefixes(space, seed=seed):
            pass
    except DiscodsoError as error:
        raise AssertionError(f"{rule.name} leads into a dead end: {error}") from None


def try_rules(space: Space, rules: Iterable[Rule], *, positions: int = 6, size: int = 8) -> None:
    """Try some rules of a space in a moment: the first positions of a few designs, wherever these lead."""
    for rule in rules:
        try:
            for prefix in islice(random_prefixes(space, size), positions):
                _check_at(rule, space, prefix, 0)
        except DeadEndError:  # which a search survives
            continue


def _check_at(rule: Rule, space: Space, prefix: Prefix, seed: int) -> tuple[Any, ...]:
    """What a rule answers for some prefixes, once that was looked at from all sides."""
    before = _snapshot(prefix)
    with blamed(rule.name, f"at position {prefix.position}"):
        first, second = _answer(rule, prefix), _answer(rule, prefix)
    _check_answer(rule, prefix, first)
    same = _equal(first, second)
    assert same, f"{rule.name} gave two answers for one prefix; it must not keep state between calls"
    assert _equal(before, _snapshot(prefix)), f"{rule.name} changed the prefix, which it must only read"
    _check_alone(rule, space, prefix, first)
    if not rule.sees_values:
        _check_blind(rule, space, prefix, first, seed)
    return first


@contextmanager
def blamed(name: str, where: str) -> Iterator[None]:
    """What a user's object raises, as an AssertionError that says so."""
    try:
        yield
    except (AssertionError, DiscodsoError):
        raise
    except Exception as error:
        raise AssertionError(f"{name} raised {type(error).__name__} {where}: {error}") from error


def _answer(rule: Rule, prefix: Prefix) -> tuple[Any, ...]:
    if isinstance(rule, Constraint):
        return (rule.forbidden(prefix),)
    if isinstance(rule, Prior):
        return (rule.logits(prefix),)
    answer: Any = rule.interval(prefix)
    good = isinstance(answer, tuple) and len(answer) == 2
    assert good, f"{rule.name} must return a pair low, high of arrays, got {type(answer).__name__}"
    return (answer[0], answer[1])


def _check_answer(rule: Rule, prefix: Prefix, answer: tuple[Any, ...]) -> None:
    name, library = rule.name, prefix.library
    own = library.low.shape if isinstance(rule, Bounds) else (len(library),)
    shape, letters = (len(prefix), *own), "[B, K, V]" if len(own) == 2 else "[B, K]"
    for array in answer:
        assert isinstance(array, np.ndarray), f"{name} must return NumPy arrays, got {type(array).__name__}"
        assert array.shape == shape, f"{name} must return shape {letters} = {shape}, got {array.shape}"
    if isinstance(rule, Constraint):
        assert answer[0].dtype == np.bool_, f"{name} must return booleans, got {answer[0].dtype}"
    elif isinstance(rule, Prior):
        finite = np.issubdtype(answer[0].dtype, np.floating) and np.isfinite(answer[0]).all()
        assert finite, f"{name} must return finite floats; use a Constraint to forbid a token"
    else:
        numeric = library.narrow(library.numeric)
        known = not any(np.isnan(array[:, numeric]).any() for array in answer)
        assert known, f"{name} gives NaN bounds for a parametrised token"


def _check_alone(rule: Rule, space: Space, prefix: Prefix, answer: tuple[Any, ...]) -> None:
    for row in range(0, len(prefix), max(1, len(prefix) // 3)):
        alone = space.start(1)
        for token, value in zip(prefix.tokens[row], prefix.values[row], strict=True):
            alone = alone.advance(np.array([token]), np.array([value]))
        same = _equal((array[row] for array in answer), (array[0] for array in _answer(rule, alone)))
        where = prefix.batch()[int(prefix.rows[row])]
        assert same, f"{rule.name} answers otherwise for a prefix alone than in a batch, for {where}"


def _check_blind(rule: Rule, space: Space, prefix: Prefix, answer: tuple[Any, ...], seed: int) -> None:
    """The same tokens with other values, drawn anew for every length, must get the same answer."""
    rng = np.random.default_rng((seed, prefix.position))
    library = space.library
    changed = space.start(len(prefix))
    for tokens in prefix.tokens.T:
        z = library.wide(rng.random((len(tokens), *library.low.shape[1:])))
        values = library.coordinates.to_value(tokens, library.narrow(z))
        if not library.plain:
            whole = library.half[tokens] > 0
            values = np.where(whole, np.round(values), values)
            options = library.options[tokens]
            chosen = np.floor(z * np.maximum(options, 1))
            values = library.narrow(np.where(options > 0, chosen, library.wide(values)))
        values = np.clip(values, library.low[tokens], library.high[tokens])
        carries = library.narrow(library.column_of >= 0)[tokens]
        changed = changed.advance(tokens, np.where(carries, values, np.nan))
    same = _equal(answer, _answer(rule, changed))
    assert same, (
        f"{rule.name} declares sees_values = False, but its answer changes with the values of a prefix"
    )


def _snapshot(prefix: Prefix) -> tuple[Any, ...]:
    t = prefix.traversals
    arrays = (
        prefix.slots,
        prefix.path,
        prefix.previous,
        t.tokens,
        t.values,
        t.coordinates,
        t.parents,
        t.siblings,
    )
    return tuple(array.copy() for array in arrays)


def _equal(first: Iterable[Any], second: Iterable[Any]) -> bool:
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, second, strict=True))
