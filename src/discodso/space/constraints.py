"""Which tokens a prefix forbids (paper, "Prefix-dependent positional constraints"), and soft priors.

A constraint of one's own is one small class with one vectorised method:

    class NoDoubleInductor(Constraint):
        def forbidden(self, prefix):
            inductor = prefix.library.id("L")
            mask = prefix.forbid_nothing()
            mask[prefix.previous == inductor, inductor] = True
            return mask

It sees the values chosen so far (`prefix.values`), not only the tokens; one that does not look at them may declare
`sees_values = False`. `discodso.testing.check_constraint` tries it on random prefixes. In a sequence the parent of
a token is the token before it.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from inspect import unwrap
from itertools import product
from types import CodeType
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.base.checks import require_integer, require_number
from discodso.base.errors import DeclarationError
from discodso.space.design import Design
from discodso.space.prefix import Prefix
from discodso.space.tokens import Grammar, Library

Names = str | Iterable[str]
Pairs = Iterable[Sequence[str]]
Relation = Literal["parent", "ancestors", "sibling"]


class Rule(ABC):  # noqa: B024 - its kinds have an abstract method each
    """What constraints, priors and bounds share: a name, and a check when the space is declared.

    Attributes:
        sees_values: whether the answer may depend on the values of a prefix. A class that looks at tokens only may
            say `sees_values = False`; methods then work on values without walking through every design. A subclass
            says it again for itself, or counts as one that looks at values.
    """

    sees_values: ClassVar[bool] = True

    def __init_subclass__(cls, sees_values: bool = True, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "sees_values" not in cls.__dict__:  # what a parent says of itself need not hold for its subclass
            cls.sees_values = sees_values

    @property
    def name(self) -> str:
        """How errors and reports call it."""
        return repr(self) if type(self).__repr__ is not object.__repr__ else type(self).__name__

    def check(self, library: Library, grammar: Grammar) -> None:
        """Raise DeclarationError if the rule cannot apply to this library; called once, at declaration."""
        return


class Constraint(Rule):
    """A hard rule: forbidden tokens get probability 0."""

    @abstractmethod
    def forbidden(self, prefix: Prefix) -> Bools:
        """bool[B, K], True where the token may not fill the next slot. The prefix must not be changed."""

    def forbidden_options(self, prefix: Prefix) -> Mapping[tuple[str, str], Bools]:
        """By token and name of a `Choice` that it carries: bool[B, n], True where the next token, if it is that
        one, may not have the option. A token with no option left is forbidden. None are by default."""
        return {}


@dataclass(frozen=True)
class Where(Constraint, sees_values=False):
    """A condition on finished designs, for what no rule on prefixes can say: `Where(lambda design: ...)`.

    A design that fails it is drawn again and costs no call; the history counts these. A rule that looks ahead is
    better wherever there is one: a condition that few designs meet takes long.

    Args:
        predicate: from a `Design` to True or False.
        called: its name in messages; that of the function by default.
    """

    predicate: Callable[[Design], bool]
    called: str = ""

    def __post_init__(self) -> None:
        if not callable(self.predicate):
            raise DeclarationError(f"Where needs a function of a design, got {self.predicate!r:.80}")

    @property
    def name(self) -> str:
        """How errors and reports call it."""
        return f"Where({self.called or getattr(self.predicate, '__name__', 'predicate')})"

    @property
    def mark(self) -> str:
        """Its name, and without `called` a hash of the function's code, so that `resume` knows another one."""
        made = unwrap(self.predicate)
        code = getattr(made, "__code__", None) or getattr(type(made).__call__, "__code__", None)
        if self.called or not isinstance(code, CodeType):
            return self.name
        return f"{self.name} {hashlib.sha256(_written_out(code).encode()).hexdigest()[:16]}"

    def forbidden(self, prefix: Prefix) -> Bools:
        """See `Constraint.forbidden`."""
        return prefix.forbid_nothing()

    def accepts(self, design: Design) -> bool:
        """Whether a finished design meets the condition."""
        try:
            if (answer := self.predicate(design)) is not None:
                return bool(answer)
        except Exception as error:
            what = f"{self.name} raised {type(error).__name__}"
            raise DeclarationError(f"{what} for {design}: {error}") from error
        raise DeclarationError(f"{self.name} must return True or False, got None for {design}")


def _written_out(constant: Any) -> str:
    """Code, or a constant of it, as a text that is the same in every process of one version of Python."""
    if isinstance(constant, CodeType):
        names = (constant.co_names, constant.co_freevars)
        return f"{constant.co_code.hex()} {names} {_written_out(constant.co_consts)}"
    if isinstance(constant, tuple):
        return f"({', '.join(map(_written_out, constant))})"
    if isinstance(constant, frozenset):  # whose order is another one in every process
        return f"{{{', '.join(sorted(map(_written_out, constant)))}}}"
    return repr(constant)


class Prior(Rule):
    """A soft rule: a number added to the logits before sampling, and before scoring."""

    @abstractmethod
    def logits(self, prefix: Prefix) -> Floats:
        """float[B, K], finite."""


class AboutTokens(Constraint):
    """A constraint about named tokens: a dataclass whose fields of type `Names` and `Pairs` hold them."""

    def __post_init__(self) -> None:
        for own in fields(self):  # type: ignore[arg-type]
            if settled := {"Names": names_of, "Pairs": _pairs}.get(str(own.type)):
                object.__setattr__(self, own.name, settled(getattr(self, own.name)))

    def check(self, library: Library, grammar: Grammar) -> None:
        """See `Rule.check`."""
        for own in fields(self):  # type: ignore[arg-type]
            if own.type == "Names":
                library.ids(getattr(self, own.name))


def names_of(given: Names) -> tuple[str, ...]:
    """Names of tokens, of which there must be one at least."""
    names = _in_order(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    if not names or not all(isinstance(name, str) for name in names):
        raise DeclarationError(
            f"a constraint takes names of tokens, strings, and at least one, got {given!r:.80}"
        )
    return names


def _pairs(given: Pairs) -> tuple[tuple[str, ...], ...]:
    for pair in (pairs := _in_order(given)):
        if isinstance(pair, str) or len(pair) != 2 or not all(isinstance(name, str) for name in pair):
            raise DeclarationError(f"expected pairs of token names, got {pair!r}")
    if not pairs:
        raise DeclarationError("a constraint on pairs needs at least one pair of token names, got none")
    return tuple(map(_in_order, pairs))


def _in_order(given: Iterable[Any]) -> tuple[Any, ...]:
    """The entries; of a set in an order that is the same in every process, so that marks of equal spaces are."""
    return tuple(sorted(given, key=repr)) if isinstance(given, (set, frozenset)) else tuple(given)


# ------------------------------------------------------------------------------------- lengths and counts


_LARGEST_TABLE = 400 * 10**6  # bytes


@lru_cache(maxsize=64)
def completion_table(
    grammar: Grammar, family: tuple[bool, ...], least: int, most: int | None
) -> tuple[Bools, Ints]:
    """Which kinds of token leave a prefix that can still be completed, by dynamic programming.

    A completion respects the limits on the length and uses the family at least `least` and at most `most`
    times. Tokens that open as many slots and are alike in or out of the family are of one kind.

    Returns:
        allowed: bool[T, slots, count, kinds], indexed by position, open slots, uses of the family so far.
        kind: int[K].
    """
    positions, widest = grammar.max_positions, max(grammar.opens_of)
    # No design is longer, so higher counts are alike.
    least, most = min(least, positions + 1), None if most is None else min(most, positions + 1)
    pairs = list(zip(grammar.opens_of, family, strict=True))
    kinds = sorted(set(pairs))
    kind = np.array([kinds.index(pair) for pair in pairs], dtype=np.int64)
    top = least if most is None else most  # counts above `least` are alike if there is no upper limit
    slots = positions + widest + 2
    if positions * slots * (top + 2) * len(kinds) > _LARGEST_TABLE:
        raise DeclarationError(
            f"counting up to {top} uses in designs of up to {positions} tokens needs a table of more than "
            f"{_LARGEST_TABLE // 10**6} MB; lower max_length, or the count"
        )
    done = np.zeros((slots, top + 2), np.bool_)  # the last count stands for "too many"
    done[0, least : top + 1] = True
    allowed = np.zeros((positions, slots, top + 1, len(kinds)), np.bool_)
    feasible = done.copy()
    for position in reversed(range(positions)):
        before = np.zeros_like(feasible)
        if position >= grammar.min_positions:
            before |= done
        for g, (opens, member) in enumerate(kinds):
            after = np.zeros_like(feasible)
            reach = slots - max(opens, 1)
            after[1 : reach + 1] = feasible[opens : opens + reach]
            if member:
                shifted = np.zeros_like(after)
                shifted[:, : top + 1] = after[:, 1:]
                if most is None:
                    shifted[:, top] = after[:, top]
                after = shifted
            after[:, top + 1] = False
            allowed[position, :, :, g] = after[:, : top + 1]
            before |= after
        feasible = before
    return allowed, kind


def _completable(prefix: Prefix, family: tuple[bool, ...], least: int, most: int | None, used: Any) -> Bools:
    """bool[B, K], tokens after which a design can be completed that has used[B] of the family so far."""
    allowed, kind = completion_table(prefix.grammar, family, least, most)
    # What lies beyond the table is as its last entry.
    slots = np.minimum(prefix.open_slots, allowed.shape[1] - 1)
    possible: Bools = allowed[prefix.position, slots, np.minimum(used, allowed.shape[2] - 1)][:, kind]
    return possible


def _long_enough(prefix: Prefix) -> Bools:
    """bool[B, K], tokens after which the limits on the length can still be kept."""
    return _completable(prefix, (False,) * len(prefix.library), 0, 0, 0)


@dataclass(frozen=True)
class Length(Constraint, sees_values=False):
    """Minimum and maximum length, as the shape of the space says; every space has this constraint.

    A token is forbidden if no continuation within the limits exists for the arities of the library. For
    arities 0, 1 and 2 this is the length constraint of the paper's appendix. The limits are those of the shape;
    the fields only say them.
    """

    minimum: int
    maximum: int

    def forbidden(self, prefix: Prefix) -> Bools:
        """See `Constraint.forbidden`."""
        return ~_long_enough(prefix)


@dataclass(frozen=True)
class Repeat(AboutTokens, sees_values=False):
    """The tokens occur, together, at least `at_least` and at most `at_most` times in a design.

    Looks ahead: a token is forbidden as soon as taking it would leave too little room.
    """

    tokens: Names
    at_least: int = 0
    at_most: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integer("Repeat: at_least", self.at_least, 0)
        if self.at_most is not None:
            require_integer("Repeat: at_most", self.at_most, self.at_least)

    def forbidden(self, prefix: Prefix) -> Bools:
        """See `Constraint.forbidden`."""
        member = prefix.library.members(self.tokens)
        used = prefix.counts[:, member].sum(axis=1)
        possible = _completable(prefix, tuple(member.tolist()), self.at_least, self.at_most, used)
        # What the limits on the length forbid by themselves is not this rule's doing.
        return ~possible & _long_enough(prefix)


def Required(tokens: Names) -> Repeat:
    """At least one of the tokens occurs in a design."""
    return Repeat(tokens, at_least=1)


# ------------------------------------------------------------------------------------- who stands beside whom


class Apart(AboutTokens):
    """Pairs of tokens of which the second never stands to the first as the rule says."""

    @abstractmethod
    def _apart(self, library: Library) -> tuple[Relation, Pairs]:
        """What the first token of a pair may not be to the slot of the second, and the pairs."""

    def check(self, library: Library, grammar: Grammar) -> None:
        """See `Rule.check`."""
        if apart_pairs(self, library).relation == "sibling" and grammar.chain:
            raise DeclarationError("siblings need a space of shape Tree, and this one is a sequence")

    def forbidden(self, prefix: Prefix) -> Bools:
        """See `Constraint.forbidden`."""
        relation, table, above, below = apart_pairs(self, prefix.library)
        if relation == "ancestors":
            return prefix.ancestors[:, above].any(axis=1, keepdims=True) & below
        found: Bools = table[getattr(prefix, relation)]
        return found


class ApartPairs(NamedTuple):
    """The pairs of a rule as an array.

    Attributes:
        relation: the attribute of a prefix that has the first tokens.
        table: bool[K + 1, K], True at (first, second); the last row answers for "no token", id -1.
        first, second: bool[K], the tokens that occur so. All rows that forbid anything are alike for "ancestors".
    """

    relation: Relation
    table: Bools
    first: Bools
    second: Bools


@lru_cache(maxsize=256)
def apart_pairs(rule: Apart, library: Library) -> ApartPairs:
    """The pairs of a rule for the tokens of a library."""
    relation, pairs = rule._apart(library)
    table = np.zeros((len(library) + 1, len(library)), np.bool_)
    for first, second in pairs:
        table[library.id(first), library.id(second)] = True
    return ApartPairs(relation, table, np.asarray(table[:-1].any(axis=1)), np.asarray(table.any(axis=0)))


def apart_states(rule: Apart, library: Library) -> tuple[list[list[bool]], int, Callable[[int, int], int]]:
    """A rule as states: which tokens each forbids, the first one, and from a state and a token to the next one."""
    relation, table, _, _ = apart_pairs(rule, library)
    rows: list[list[bool]] = table.tolist()
    kind = [rows.index(row) for row in rows]  # tokens that forbid the same lead to one state
    free = kind[-1]
    if relation == "ancestors":
        return rows, free, lambda state, token: state if state != free else kind[token]
    return rows, free, lambda state, token: kind[token]


def _both_ways(pairs: Pairs) -> Pairs:
    return [*pairs, *((b, a) for a, b in pairs)]


@dataclass(frozen=True)
class NoNesting(Apart, sees_values=False):
    """No token of the family stands below another of it: the paper's trigonometry rule."""

    tokens: Names

    def _apart(self, library: Library) -> tuple[Relation, Pairs]:
        return "ancestors", product(self.tokens, self.tokens)


@dataclass(frozen=True)
class ForbiddenChild(Apart, sees_values=False):
    """None of `children` is a child of any of `parents`; in a sequence, none directly follows one."""

    parents: Names
    children: Names

    def _apart(self, library: Library) -> tuple[Relation, Pairs]:
        return "parent", product(self.parents, self.children)


@dataclass(frozen=True)
class ForbiddenDescendant(Apart, sees_values=False):
    """None of `descendants` stands anywhere below any of `ancestors`; in a sequence, anywhere after one."""

    ancestors: Names
    descendants: Names

    def _apart(self, library: Library) -> tuple[Relation, Pairs]:
        return "ancestors", product(self.ancestors, self.descendants)


@dataclass(frozen=True)
class ForbiddenSiblings(Apart, sees_values=False):
    """The two tokens of a pair are never neighbouring children of one parent, in either order."""

    pairs: Pairs

    def _apart(self, library: Library) -> tuple[Relation, Pairs]:
        return "sibling", _both_ways(self.pairs)


@dataclass(frozen=True)
class InversePairs(Apart, sees_values=False):
    """Neither token of a pair is the child of the other: exp(log(x)) and log(exp(x)) are both x."""

    pairs: Pairs

    def _apart(self, library: Library) -> tuple[Relation, Pairs]:
        return "parent", _both_ways(self.pairs)


@dataclass(frozen=True)
class DifferentLeaves(Apart, sees_values=False):
    """Neighbouring siblings are not the same strictly discrete leaf.

    The appendix has it as "Constraint on discrete action tokens".
    """

    def _apart(self, library: Library) -> tuple[Relation, Pairs]:
        return "sibling", [(t.name, t.name) for t in library.tokens if not t.arity and not t.parametrised]


# ------------------------------------------------------------------------------------- soft priors


@dataclass(frozen=True)
class SoftLength(Prior, sees_values=False):
    """Prefers lengths near `centre`.

    A token after which the design has at least L tokens loses (L - centre)^2 / (2 spread^2) if that is beyond
    the centre; a token that completes the design loses it on either side of the centre.
    """

    centre: float
    spread: float

    def __post_init__(self) -> None:
        require_number("SoftLength: centre", self.centre)
        require_number("SoftLength: spread", self.spread, least=0.01)

    def logits(self, prefix: Prefix) -> Floats:
        """See `Prior.logits`."""
        slots_after = prefix.open_slots[:, None] - 1 + prefix.grammar.opens
        # The end token stands in a slot but is not counted in the length.
        shortest = prefix.position + 1 + slots_after - (prefix.library.end is not None)
        away = shortest - self.centre
        counts = (slots_after == 0) | (away > 0)
        return np.where(counts, -(away**2) / (2 * self.spread**2), 0.0)


@dataclass(frozen=True)
class UniformArity(Prior, sees_values=False):
    """Makes every arity equally likely for flat logits, however many tokens share it."""

    def logits(self, prefix: Prefix) -> Floats:
        """See `Prior.logits`."""
        opens = prefix.grammar.opens
        row = -np.log((opens[:, None] == opens[None, :]).sum(axis=0))
        return np.broadcast_to(row, (len(prefix), len(row)))
