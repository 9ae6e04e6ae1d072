"""Rules on sequences that say what must come: what follows what, how a design begins and ends, sums over it.

They look ahead exactly, together with each other, with the limits on the length and with the other rules on tokens
(see `look_ahead`), so that a search never meets a prefix that no token may continue because of them.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np

from discodso.base.arrays import Bools
from discodso.base.checks import require_number
from discodso.base.errors import DeclarationError
from discodso.space.constraints import (
    Constraint,
    ForbiddenChild,
    ForbiddenDescendant,
    InversePairs,
    Names,
    NoNesting,
    Repeat,
    names_of,
)
from discodso.space.look_ahead import Automaton, LookAhead, SumLimits
from discodso.space.prefix import Prefix
from discodso.space.tokens import Grammar, Library


class SequenceRule(Constraint):
    """A constraint on the order of tokens in a sequence, given by an automaton."""

    @abstractmethod
    def automaton(self, library: Library) -> Automaton:
        """The rule as states and steps."""

    def __post_init__(self) -> None:
        for own in fields(self):  # type: ignore[arg-type]
            object.__setattr__(self, own.name, names_of(getattr(self, own.name)))

    def check(self, library: Library, grammar: Grammar) -> None:
        """See `Rule.check`."""
        name = type(self).__name__
        _needs_sequence(name, grammar)
        for own in fields(self):  # type: ignore[arg-type]
            if library.end in library.ids(getattr(self, own.name)):
                raise DeclarationError(f"{name} cannot name the end token; use EndsWith for what comes last")

    def forbidden(self, prefix: Prefix) -> Bools:
        """See `Constraint.forbidden`."""
        alone, length = _alone(self, prefix.library, prefix.grammar)
        # What the limits on the length forbid by themselves is not this rule's doing.
        return alone.forbidden(prefix) & ~length.forbidden(prefix)


def one_by_one(rule: str, tokens: tuple[str, ...]) -> tuple[str, ...]:
    """Names that were given as arguments."""
    if len(tokens) == 1 and not isinstance(tokens[0], str):
        raise DeclarationError(f"{rule} takes its tokens one by one: {rule}('a', 'b'), or {rule}(*tokens)")
    return names_of(tokens)


@lru_cache(maxsize=64)
def _alone(rule: SequenceRule, library: Library, grammar: Grammar) -> tuple[LookAhead, LookAhead]:
    alone = LookAhead.of(library, grammar, [rule.automaton(library)])
    length = LookAhead.of(library, grammar, [])
    assert alone is not None
    assert length is not None
    return alone, length


def _needs_sequence(name: str, grammar: Grammar) -> None:
    if not grammar.chain:
        raise DeclarationError(f"{name} is for sequences; in a space of shape Tree use ChildTypes or Repeat")


@dataclass(frozen=True)
class Follows(SequenceRule):
    """Each of `tokens` stands directly after one of `after`: `Follows("svc", "scaler")`."""

    sees_values = False

    tokens: Names
    after: Names

    def automaton(self, library: Library) -> Automaton:
        """The state says whether one of `after` came last."""
        own, before = library.members(self.tokens).tolist(), library.members(self.after).tolist()
        return Automaton(False, lambda state, token: None if own[token] and not state else before[token])


@dataclass(frozen=True)
class LeadsTo(SequenceRule):
    """Each of `tokens` is directly followed by one of `following`, so none of them comes last."""

    sees_values = False

    tokens: Names
    following: Names

    def automaton(self, library: Library) -> Automaton:
        """The state says whether one of `tokens` came last."""
        own, after = library.members(self.tokens).tolist(), library.members(self.following).tolist()
        return Automaton(
            False,
            lambda state, token: None if state and not after[token] else own[token],
            lambda state: not state,
        )


@dataclass(frozen=True)
class Needs(SequenceRule):
    """Each of `tokens` comes somewhere after one of `earlier`."""

    sees_values = False

    tokens: Names
    earlier: Names

    def automaton(self, library: Library) -> Automaton:
        """The state says whether one of `earlier` has come."""
        own, before = library.members(self.tokens).tolist(), library.members(self.earlier).tolist()
        return Automaton(
            False, lambda state, token: None if own[token] and not state else state or before[token]
        )


@dataclass(frozen=True)
class StartsWith(SequenceRule):
    """The first token is one of `tokens`."""

    sees_values = False

    tokens: Names

    def automaton(self, library: Library) -> Automaton:
        """The state says whether there is a token."""
        own = library.members(self.tokens).tolist()
        return Automaton(
            False, lambda state, token: True if state or own[token] else None, lambda state: state
        )


@dataclass(frozen=True)
class EndsWith(SequenceRule):
    """The last token is one of `tokens`: `EndsWith(MODELS)`."""

    sees_values = False

    tokens: Names

    def automaton(self, library: Library) -> Automaton:
        """The state says whether one of `tokens` came last."""
        own = library.members(self.tokens).tolist()
        return Automaton(False, lambda state, token: own[token], lambda state: state)


@dataclass(frozen=True, init=False)
class Together(SequenceRule):
    """A design has all of the tokens or none: `Together("encoder", "decoder")`."""

    sees_values = False

    tokens: Names

    def __init__(self, *tokens: str) -> None:
        object.__setattr__(self, "tokens", one_by_one(type(self).__name__, tokens))

    def automaton(self, library: Library) -> Automaton:
        """The state has those that came."""
        places = {int(k): 1 << at for at, k in enumerate(library.ids(self.tokens))}
        every = (1 << len(places)) - 1
        return Automaton(
            0, lambda state, token: state | places.get(token, 0), lambda state: state in (0, every)
        )


@dataclass(frozen=True, init=False)
class AnyOrder(SequenceRule):
    """Tokens whose order does not matter where they are neighbours: of all orders only that of the declaration is
    proposed, so that designs which mean the same count once."""

    sees_values = False

    tokens: Names

    def __init__(self, *tokens: str) -> None:
        object.__setattr__(self, "tokens", one_by_one(type(self).__name__, tokens))

    def automaton(self, library: Library) -> Automaton:
        """The state is the place of the last token in the declaration, -1 if it is none of them."""
        places = {int(k): at for at, k in enumerate(library.ids(self.tokens))}

        def step(state: int, token: int) -> int | None:
            place = places.get(token, -1)
            return None if 0 <= place < state else place

        return Automaton(-1, step)


@dataclass(frozen=True)
class Sum(Constraint):
    """The sum of a value over the whole design lies between two limits: `Sum("thickness", at_most=800)`.

    Values are bounded so that what must still come has room. With both limits some sums between them may be out of
    reach, such as 2.5 for integers: a design that runs into such a gap is drawn again.

    Args:
        value: its name; "value" for numbers that have none.
        at_most, at_least: limits of the sum.
        tokens: whose values count; all that carry one of that name by default.
    """

    value: str
    at_most: float = math.inf
    at_least: float = -math.inf
    tokens: Names = ()

    def __post_init__(self) -> None:
        if not isinstance(self.value, str):
            raise DeclarationError(f"Sum: value must be the name of a value, got {self.value!r:.80}")
        for key in ("at_most", "at_least"):
            limit = getattr(self, key)
            if limit not in (math.inf, -math.inf):
                require_number(f"Sum: {key}", limit)
        if not self.at_least <= self.at_most:
            raise DeclarationError(f"Sum: at_least {self.at_least:g} is above at_most {self.at_most:g}")
        if math.isinf(self.at_least) and math.isinf(self.at_most):
            raise DeclarationError("Sum needs at_most or at_least")
        object.__setattr__(self, "tokens", names_of(self.tokens) if self.tokens else ())

    def check(self, library: Library, grammar: Grammar) -> None:
        """See `Rule.check`."""
        _needs_sequence("Sum", grammar)
        for name in self.tokens:
            library.place(name, self.value)
        if (self.sum_limits(library).slot < 0).all() and self.value not in library.dropped:
            raise DeclarationError(f"no token carries a number called {self.value!r}")

    def sum_limits(self, library: Library) -> SumLimits:
        """The rule as numbers."""
        slot = np.full(len(library), -1, np.int64)
        low, high = np.zeros(len(library)), np.zeros(len(library))
        for column in library.columns:
            wanted = not self.tokens or library.names[column.token] in self.tokens
            if column.name == self.value and wanted and library.numeric[column.token, column.slot]:
                slot[column.token] = column.slot
                low[column.token], high[column.token] = column.value.low, column.value.high
        return SumLimits(slot, low, high, self.at_least, self.at_most)

    def forbidden(self, prefix: Prefix) -> Bools:
        """See `Constraint.forbidden`."""
        alone, length = _sum_alone(self, prefix.library, prefix.grammar)
        return alone.forbidden(prefix) & ~length.forbidden(prefix)


@lru_cache(maxsize=64)
def _sum_alone(rule: Sum, library: Library, grammar: Grammar) -> tuple[LookAhead, LookAhead]:
    alone = LookAhead.of(library, grammar, [], [rule.sum_limits(library)])
    length = LookAhead.of(library, grammar, [])
    assert alone is not None
    assert length is not None
    return alone, length


def automaton_of(rule: Constraint, library: Library) -> Automaton | None:
    """A rule on tokens as an automaton over sequences; None if it is no such rule."""
    match rule:
        case SequenceRule():
            return rule.automaton(library)
        case ForbiddenChild():
            first, then = library.members(rule.parents).tolist(), library.members(rule.children).tolist()
            return Automaton(
                False, lambda state, token: None if state and then[token] else first[token], takes_end=True
            )
        case ForbiddenDescendant():
            first, then = library.members(rule.ancestors).tolist(), library.members(rule.descendants).tolist()
            return Automaton(
                False,
                lambda state, token: None if state and then[token] else state or first[token],
                takes_end=True,
            )
        case NoNesting():
            own = library.members(rule.tokens).tolist()
            return Automaton(
                False,
                lambda state, token: None if state and own[token] else state or own[token],
                takes_end=True,
            )
        case InversePairs():
            pairs = {tuple(library.ids(pair).tolist()) for pair in rule.pairs}
            pairs |= {(b, a) for a, b in pairs}
            return Automaton(
                -1, lambda state, token: None if (state, token) in pairs else token, takes_end=True
            )
        case Repeat():
            return _counting(library.members(rule.tokens).tolist(), rule.at_least, rule.at_most)
    return None


def _counting(own: list[bool], at_least: int, at_most: int | None) -> Automaton:
    """Counts tokens, no further than it matters."""
    top = at_least if at_most is None else at_most

    def step(state: int, token: int) -> int | None:
        count = state + own[token]
        return None if at_most is not None and count > at_most else min(count, top)

    return Automaton(0, step, lambda state: state >= at_least, takes_end=True)
