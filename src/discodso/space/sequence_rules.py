"""Rules on sequences that say what must come: what follows what, how a design begins and ends, sums over it.

They look ahead exactly, together with each other, with the limits on the length and with the other rules on tokens
(see `look_ahead`), so that a search never meets a prefix that no token may continue because of them.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache

import numpy as np

from discodso.base.arrays import Bools, Floats
from discodso.base.checks import require_number
from discodso.base.errors import DeclarationError
from discodso.space.constraints import AboutTokens, Apart, Constraint, Names, Repeat, apart_states, names_of
from discodso.space.look_ahead import Automaton, LookAhead, SumLimits, TokenCounts
from discodso.space.prefix import Prefix
from discodso.space.tokens import Grammar, Library


class _LooksAhead(AboutTokens):
    """A constraint on sequences that knows what must still come."""

    def check(self, library: Library, grammar: Grammar) -> None:
        """See `Rule.check`."""
        super().check(library, grammar)
        if not grammar.chain:
            name, other = type(self).__name__, "Where" if isinstance(self, Sum) else "ChildTypes or Repeat"
            raise DeclarationError(f"{name} is for sequences; in a space of shape Tree use {other}")

    def forbidden(self, prefix: Prefix) -> Bools:
        """See `Constraint.forbidden`."""
        alone, length = _alone(self, prefix.library, prefix.grammar)
        # What the limits on the length forbid by themselves is not this rule's doing.
        return alone.forbidden(prefix) & ~length.forbidden(prefix)


@lru_cache(maxsize=64)
def _alone(rule: _LooksAhead, library: Library, grammar: Grammar) -> tuple[LookAhead, LookAhead]:
    """The rule without others, and the limits on the length."""
    alone, length = look_ahead_of([rule], library, grammar), look_ahead_of([], library, grammar)
    assert alone is not None
    assert length is not None
    return alone, length


class SequenceRule(_LooksAhead):
    """A constraint on the order of tokens in a sequence, given by an automaton."""

    @abstractmethod
    def automaton(self, library: Library) -> Automaton | None:
        """The rule as states and steps; None if it is one of counts."""

    def check(self, library: Library, grammar: Grammar) -> None:
        """See `Rule.check`."""
        super().check(library, grammar)
        for own in fields(self):  # type: ignore[arg-type]
            if library.end in library.ids(getattr(self, own.name)):
                name = type(self).__name__
                raise DeclarationError(f"{name} cannot name the end token; use EndsWith for what comes last")


@dataclass(frozen=True)
class Follows(SequenceRule, sees_values=False):
    """Each of `tokens` stands directly after one of `after`: `Follows("svc", "scaler")`."""

    tokens: Names
    after: Names

    def automaton(self, library: Library) -> Automaton:
        """The state says whether one of `after` came last."""
        own, before = library.members(self.tokens).tolist(), library.members(self.after).tolist()
        return Automaton(False, lambda s, k: None if own[k] and not s else before[k])


@dataclass(frozen=True)
class LeadsTo(SequenceRule, sees_values=False):
    """Each of `tokens` is directly followed by one of `following`, so none of them comes last."""

    tokens: Names
    following: Names

    def automaton(self, library: Library) -> Automaton:
        """The state says whether one of `tokens` came last."""
        own, after = library.members(self.tokens).tolist(), library.members(self.following).tolist()
        return Automaton(False, lambda s, k: None if s and not after[k] else own[k], lambda s: not s)


@dataclass(frozen=True)
class Needs(SequenceRule, sees_values=False):
    """Each of `tokens` comes somewhere after one of `earlier`."""

    tokens: Names
    earlier: Names

    def automaton(self, library: Library) -> Automaton:
        """The state says whether one of `earlier` has come."""
        own, before = library.members(self.tokens).tolist(), library.members(self.earlier).tolist()
        return Automaton(False, lambda s, k: None if own[k] and not s else s or before[k])


@dataclass(frozen=True)
class StartsWith(SequenceRule, sees_values=False):
    """The first token is one of `tokens`."""

    tokens: Names

    def automaton(self, library: Library) -> Automaton:
        """The state says whether there is a token."""
        own = library.members(self.tokens).tolist()
        return Automaton(False, lambda s, k: True if s or own[k] else None, lambda s: s)


@dataclass(frozen=True)
class EndsWith(SequenceRule, sees_values=False):
    """The last token is one of `tokens`: `EndsWith(MODELS)`."""

    tokens: Names

    def automaton(self, library: Library) -> Automaton:
        """The state says whether one of `tokens` came last."""
        own = library.members(self.tokens).tolist()
        return Automaton(False, lambda s, k: own[k], lambda s: s)


@dataclass(frozen=True, init=False)
class _OneByOne(SequenceRule):
    """A rule that takes its tokens as arguments."""

    tokens: Names

    def __init__(self, *tokens: str) -> None:
        if len(tokens) == 1 and not isinstance(tokens[0], str):
            rule = type(self).__name__
            how = f"{rule}('a', 'b'), or {rule}(*tokens)"
            raise DeclarationError(f"{rule} takes its tokens one by one: {how}")
        object.__setattr__(self, "tokens", names_of(tokens))
        if twice := sorted({name for name in tokens if tokens.count(name) > 1}):
            raise DeclarationError(
                f"{type(self).__name__} names {', '.join(map(repr, twice))} more than once"
            )


class Together(_OneByOne, sees_values=False):
    """A design has all of the tokens or none: `Together("encoder", "decoder")`."""

    def automaton(self, library: Library) -> None:
        """Each of the tokens is counted, see `TokenCounts.groups`."""


class AnyOrder(_OneByOne, sees_values=False):
    """Tokens whose order does not matter where they are neighbours: of all orders only that of the declaration is
    proposed, so that designs which mean the same count once."""

    def automaton(self, library: Library) -> Automaton:
        """The state is the place of the last token in the declaration, -1 if it is none of them."""
        places = {int(k): at for at, k in enumerate(library.ids(self.tokens))}

        def step(state: int, token: int) -> int | None:
            place = places.get(token, -1)
            return None if 0 <= place < state else place

        return Automaton(-1, step)


@dataclass(frozen=True)
class Sum(_LooksAhead):
    """The sum of a value over the whole design lies between two limits: `Sum("thickness", at_most=800)`.

    For sequences. Values are bounded so that what must still come has room; limits on the same sum are joined, and
    those on several sums are looked at together unless there are too many states. With both limits a value may run
    into a gap between sums that can be reached, and so may two values of one token: such designs are drawn again.

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
        super().check(library, grammar)
        for name in self.tokens:
            library.place(name, self.value)
        if (self.sum_limits(library).slot < 0).all() and self.value not in library.dropped:
            raise DeclarationError(f"no token carries a number called {self.value!r}")

    def sum_limits(self, library: Library, ends: tuple[Floats, Floats] | None = None) -> SumLimits:
        """The rule as numbers; `ends` are narrower ranges, of shape [K, V]."""
        lowest, highest = ends or (library.wide(library.low), library.wide(library.high))
        slot = np.full(len(library), -1, np.int64)
        low, high = np.zeros(len(library)), np.zeros(len(library))
        for column in library.columns:
            wanted = not self.tokens or library.names[column.token] in self.tokens
            if column.name == self.value and wanted and library.numeric[column.token, column.slot]:
                slot[column.token] = column.slot
                at = column.token, column.slot
                low[column.token], high[column.token] = lowest[at], highest[at]
        whole = library.integer[np.arange(len(library)), slot][slot >= 0].all()
        return SumLimits(slot, low, high, self.at_least, self.at_most, bool(whole))


def look_ahead_of(
    rules: Sequence[Constraint],
    library: Library,
    grammar: Grammar,
    ends: tuple[Floats, Floats] | None = None,
) -> LookAhead | None:
    """All rules on tokens and sums of a sequence together. Where they have too many states, without the counts of
    single tokens, or else only the sums; None if there are none.

    Args:
        rules: of the space.
        library, grammar: its tokens and shape.
        ends: float[K, V] twice, ranges of values that are narrower than those declared.
    """
    sums = [rule for rule in rules if isinstance(rule, Sum)]
    limits = [rule.sum_limits(library, ends) for rule in sums]
    counted = [rule for rule in rules if _counts_one(rule, library)]
    others = [rule for rule in rules if automaton_of(rule, library) and not _counts_one(rule, library)]
    tries: list[tuple[list[Constraint], list[Constraint]]] = [(counted, others), ([], others), ([], [])]
    for some, ordered in tries:
        automata = [own for rule in ordered if (own := automaton_of(rule, library))]
        found = LookAhead.of(library, grammar, automata, limits, _counts(some, library, grammar))
        if found is not None and (some or ordered or sums or not rules):
            return replace(found, covers=(*some, *ordered, *sums))
    return None


def is_known(rule: Constraint, library: Library) -> bool:
    """Whether a rule can look ahead together with others in a sequence."""
    return isinstance(rule, (Sum, Together)) or automaton_of(rule, library) is not None


def _counts_one(rule: Constraint, library: Library) -> bool:
    """Whether a rule counts single tokens."""
    if isinstance(rule, Repeat):
        return len(set(rule.tokens)) == 1 and library.end not in library.ids(rule.tokens)
    return isinstance(rule, Together)


def _counts(rules: Sequence[Constraint], library: Library, grammar: Grammar) -> TokenCounts:
    limits: dict[int, tuple[int, int | None]] = {}
    for rule in rules:
        if isinstance(rule, Repeat):
            k, longest = int(library.ids(rule.tokens)[0]), grammar.max_positions
            least, most = limits.get(k, (0, None))
            highest = min(longest if own is None else own for own in (most, rule.at_most))
            least = max(least, min(rule.at_least, longest + 1))
            limits[k] = least, highest if highest < longest else None
    return TokenCounts(
        limits, [library.ids(rule.tokens).tolist() for rule in rules if isinstance(rule, Together)]
    )


def automaton_of(rule: Constraint, library: Library) -> Automaton | None:
    """A rule on tokens as an automaton over sequences; None if it is no such rule."""
    match rule:
        case SequenceRule():
            return rule.automaton(library)
        case Apart():
            rows, first, after = apart_states(rule, library)
            return Automaton(first, lambda s, k: None if rows[s][k] else after(s, k), takes_end=True)
        case Repeat(tokens=tokens, at_least=least, at_most=most):
            own, top = library.members(tokens).tolist(), least if most is None else most

            def step(state: int, token: int) -> int | None:  # counts no further than it matters
                count = state + own[token]
                return None if most is not None and count > most else min(count, top)

            return Automaton(0, step, lambda s: s >= least, takes_end=True)
    return None
