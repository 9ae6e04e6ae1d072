"""Seeing a space: how many skeletons it has, which they are, and what was declared, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from itertools import islice
from typing import Any

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.base.checks import require_integer
from discodso.base.errors import DeadEndError, DeclarationError
from discodso.space.look_ahead import LookAhead
from discodso.space.prefix import Prefix
from discodso.space.ruled import RuledSpace
from discodso.space.sequence_rules import Sum, is_known, look_ahead_of
from discodso.space.tokens import FixedSequence
from discodso.space.tree_rules import tree_tables
from discodso.space.values import Choice, Integer

_AT_ONCE = 500  # prefixes
_LISTED = 1_000_000  # skeletons that are counted one by one


def walked(space: RuledSpace, tokens: Ints, values: Floats | None = None) -> Prefix:
    """The prefixes that tokens[B, n] make, with values[B, n, V], or with their values left open."""
    prefix = space.start(len(tokens))
    if values is None:
        values = np.full((*tokens.shape, space.library.slots), np.nan)
    for position in range(tokens.shape[1]):
        own = np.ascontiguousarray(space.library.narrow(values[:, position]))
        prefix = prefix.advance(tokens[:, position].copy(), own)
    return prefix


def skeletons(space: RuledSpace, max_length: int | None = None) -> Iterator[tuple[str, ...]]:
    """All sequences of tokens that keep the rules, by length, one after the other; values are left open.

    Args:
        space: whose skeletons.
        max_length: the longest; that of the space by default.
    """
    if max_length is not None:
        require_integer("max_length", max_length, 0)
    shape, names = space.shape, np.array(space.library.names, dtype=object)
    if isinstance(shape, FixedSequence):
        lengths = range(shape.length, shape.length + 1)
    else:
        lengths = range(shape.min_length, shape.max_length + 1)
    for length in lengths:
        if max_length is not None and length > max_length:
            return
        if length == 0:
            if not space.options(space.start(1)).forbidden[0, space.library.end]:
                yield ()
            continue
        exact: Any = {} if isinstance(shape, FixedSequence) else {"min_length": length, "max_length": length}
        try:
            own = replace(space, shape=replace(shape, **exact))
        except DeadEndError:  # no design has this length
            continue
        waiting = [np.empty((1, 0), np.int64)]
        while waiting:
            part = waiting.pop()
            rows, tokens = np.nonzero(~own.options(walked(own, part)).forbidden)
            longer = np.concatenate((part[rows], tokens[:, None]), axis=1)
            if longer.shape[1] < length:
                chunks = range(0, len(longer), _AT_ONCE)
                waiting += [longer[first : first + _AT_ONCE] for first in reversed(chunks)]
            else:
                yield from map(tuple, names[longer])


def count(space: RuledSpace, max_length: int | None = None) -> int:
    """How many skeletons there are up to a length.

    Exact for the rules on tokens, by their tables where these say it all, else one by one. Bounds and conditions
    on finished designs (`Where`) are not looked at.
    """
    if max_length is not None:
        require_integer("max_length", max_length, 0)
    library, grammar, rules = space.library, space.grammar, space.constraints
    if grammar.chain and not any(isinstance(rule, Sum) or not is_known(rule, library) for rule in rules):
        product = look_ahead_of(rules, library, grammar)
        if product is not None and len(product.covers) == len(rules):
            return _accepted(product, grammar.max_positions if max_length is None else max_length)
    if not grammar.chain and (trees := tree_tables(library, grammar, rules)) is not None:
        longest = grammar.max_positions if max_length is None else max_length
        if (number := trees.count(longest)) is not None:
            return number
    found = sum(1 for _ in islice(skeletons(space, max_length), _LISTED + 1))
    if found > _LISTED:
        what = f"more than {_LISTED} skeletons are too many to count one by one"
        raise DeclarationError(f"{what}; give max_length")
    return found


def _accepted(product: LookAhead, longest: int) -> int:
    """Sequences that end in a final state, of all lengths that are allowed."""
    ways = [0] * len(product.final)
    ways[0], total = 1, 0
    least, most = product.lengths
    following, final = product.following.tolist(), product.final.tolist()
    for length in range(min(most, longest) + 1):
        if length >= least:
            total += sum(number for number, good in zip(ways, final, strict=True) if good)
        after = [0] * len(ways)
        for state, number in enumerate(ways):
            if number:
                for state_after in following[state]:
                    if state_after >= 0:
                        after[state_after] += number
        ways = after
    return total


class Description(str):
    """A text that terminals and notebooks show as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def describe(space: RuledSpace, examples: Sequence[str] = ()) -> Description:
    """What was declared, in words, with some designs."""
    lines = [f"{space.shape}", "", "tokens"]
    for k, token in enumerate(space.library.tokens):
        if k == space.library.end:
            continue
        children = f" with {token.arity} child{'ren' * (token.arity > 1)}" if token.arity else ""
        lines.append(f"  {token.name}{children}")
        for name, value in token.values:
            if isinstance(value, Choice):
                what = value.expected
            else:
                kind = "an integer" if isinstance(value, Integer) else "a number"
                scale = ", by its logarithm" if value.log else ""
                what = f"{kind} from {value.low:g} to {value.high:g}{scale}"
            lines.append(f"    {name}: {what}")
    rules = [rule.name for rule in (*space.constraints, *space.priors)]
    rules += [] if type(space.bounds).__name__ == "FixedRanges" else [space.bounds.name]
    lines += ["", "rules", *(f"  {name}" for name in rules)] if rules else []
    if space.never_used:
        lines += ["", f"no design can have: {', '.join(space.never_used)}"]
    if left_out := [f"  {rule.name}" for rule in space.left_out]:
        lines += ["", "too many to look ahead with the others: designs may be drawn again", *left_out]
    if examples:
        lines += ["", "random designs", *(f"  {line}" for line in examples)]
    return Description("\n".join(lines))
