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

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.base.checks import require_integer, require_number
from discodso.base.errors import DeclarationError
from discodso.space.design import Design
from discodso.space.prefix import Prefix
from discodso.space.tokens import Grammar, Library

Names = str | Iterable[str]


class Rule(ABC):  # noqa: B024 - its kinds have an abstract method each
    """What constraints, priors and bounds share: a name, and a check when the space is declared.

    Attributes:
        sees_values: whether the answer may depend on the values of a prefix. A class that looks at tokens only may
            say `sees_values = False`; methods then work on values without walking through every design. A subclass
            says it again for itself, or counts as one that looks at values.
    """

    sees_values: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "sees_values" not in cls.__dict__:  # what a parent says of itself need not hold for its subclass
            cls.sees_values = True

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
class Where(Constraint):
    """A condition on finished designs, for what no rule on prefixes can say: `Where(lambda design: ...)`.

    A design that fails it is drawn again and costs no call; the history counts these. A rule that looks ahead is
    better wherever there is one: a condition that few designs meet takes long.

    Args:
        predicate: from a `Design` to True or False.
        called: its name in messages; that of the function by default.
    """

    sees_values = False

    predicate: Callable[[Design], bool]
    called: str = ""

    def __post_init__(self) -> None:
        if not callable(self.predicate):
            raise DeclarationError(f"Where needs a function of a design, got {self.predicate!r:.80}")

    @property
    def name(self) -> str:
        """How errors and reports call it."""
        return f"Where({self.called or getattr(self.predicate, '__name__', 'predicate')})"

    def forbidden(self, prefix: Prefix) -> Bools:
        """See `Constraint.forbidden`."""
        return prefix.forbid_nothing()

    def accepts(self, design: Design) -> bool:
        """Whether a finished design meets the condition."""
        try:
            return bool(self.predicate(design))
        except Exception as error:
            raise DeclarationError(
                f"{self.name} raised {type(error).__name__} for {design}: {error}"
            ) from error


class Prior(Rule):
    """A soft rule: a number added to the logits before sampling, and before scoring."""

    @abstractmethod
    def logits(self, prefix: Prefix) -> Floats:
        """float[B, K], finite."""


class _AboutTokens(Constraint):
    """A constraint about named tokens: a dataclass whose fields hold names, or pairs of names."""

    def __post_init__(self) -> None:
        for own in fields(self):  # type: ignore[arg-type]
            given = getattr(self, own.name)
            object.__setattr__(self, own.name, _pairs(given) if own.name == "pairs" else names_of(given))

    def check(self, library: Library, grammar: Grammar) -> None:
        """See `Rule.check`."""
        for own in fields(self):  # type: ignore[arg-type]
            for item in getattr(self, own.name):
                library.ids((item,) if isinstance(item, str) else item)


def names_of(given: Names) -> tuple[str, ...]:
    """Names of tokens, of which there must be one at least."""
    if isinstance(given, str):
        return (given,)
    names = tuple(given) if isinstance(given, Iterable) else (given,)
    if not names or not all(isinstance(name, str) for name in names):
        raise DeclarationError(f"a constraint needs at least one token name, got {given!r:.80}")
    return names


def _pairs(given: Iterable[Sequence[str]]) -> tuple[tuple[str, str], ...]:
    pairs = []
    for pair in given:
        if isinstance(pair, str) or len(pair) != 2:
            raise DeclarationError(f"expected pairs of token names, got {pair!r}")
        pairs.append((pair[0], pair[1]))
    if not pairs:
        raise DeclarationError("a constraint on pairs needs at least one pair of token names, got none")
    return tuple(pairs)


def _needs_tree(grammar: Grammar) -> None:
    if grammar.chain:
        raise DeclarationError("siblings need a space of shape Tree, and this one is a sequence")


@lru_cache(maxsize=256)
def _pair_table(library: Library, pairs: tuple[tuple[str, str], ...]) -> Bools:
    """bool[K + 1, K], True at (first, second); the last row answers for "no token", id -1."""
    table = np.zeros((len(library) + 1, len(library)), np.bool_)
    for first, second in pairs:
        table[library.id(first), library.id(second)] = True
    return table


@lru_cache(maxsize=256)
def _member_array(library: Library, names: tuple[str, ...]) -> Bools:
    return library.members(names)


def _product(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((a, b) for a in first for b in second)


# ------------------------------------------------------------------------------------- lengths and counts


_LARGEST_TABLE = 400 * 10**6  # bytes


@lru_cache(maxsize=64)
def _completion_table(
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
    kinds = sorted(set(zip(grammar.opens_of, family, strict=True)))
    kind = np.array(
        [kinds.index(pair) for pair in zip(grammar.opens_of, family, strict=True)], dtype=np.int64
    )
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


def _long_enough(prefix: Prefix) -> Bools:
    """bool[B, K], tokens after which the limits on the length can still be kept."""
    grammar = prefix.grammar
    allowed, kind = _completion_table(grammar, (False,) * len(grammar.opens_of), 0, 0)
    possible: Bools = allowed[prefix.position, _slots(prefix, allowed), 0][:, kind]
    return possible


def _slots(prefix: Prefix, allowed: Bools) -> Ints:
    """Open slots, those beyond the table as its last entry, from which nothing can be completed."""
    slots: Ints = np.minimum(prefix.open_slots, allowed.shape[1] - 1)
    return slots


@dataclass(frozen=True)
class Length(Constraint):
    """Minimum and maximum length, as the shape of the space says; every space has this constraint.

    A token is forbidden if no continuation within the limits exists for the arities of the library. For
    arities 0, 1 and 2 this is the length constraint of the paper's appendix. The limits are those of the shape;
    the fields only say them.
    """

    sees_values = False

    minimum: int
    maximum: int

    def forbidden(self, prefix: Prefix) -> Bools:
        """See `Constraint.forbidden`."""
        return ~_long_enough(prefix)


@dataclass(frozen=True)
class Repeat(Constraint):
    """The tokens occur, together, at least `at_least` and at most `at_most` times in a design.

    Looks ahead: a token is forbidden as soon as taking it would leave too little room.
    """

    sees_values = False

    tokens: Names
    at_least: int = 0
    at_most: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", names_of(self.tokens))
        require_integer("Repeat: at_least", self.at_least, 0)
        if self.at_most is not None:
            require_integer("Repeat: at_most", self.at_most, self.at_least)

    def check(self, library: Library, grammar: Grammar) -> None:
        """See `Rule.check`."""
        library.ids(self.tokens)

    def forbidden(self, prefix: Prefix) -> Bools:
        """See `Constraint.forbidden`."""
        member = _member_array(prefix.library, tuple(self.tokens))
        allowed, kind = _completion_table(prefix.grammar, tuple(member.tolist()), self.at_least, self.at_most)
        used = np.minimum(prefix.counts[:, member].sum(axis=1), allowed.shape[2] - 1)
        possible: Bools = allowed[prefix.position, _slots(prefix, allowed), used][:, kind]
        # What the limits on the length forbid by themselves is not this rule's doing.
        return ~possible & _long_enough(prefix)


def Required(tokens: Names) -> Repeat:
    """At least one of the tokens occurs in a design."""
    return Repeat(tokens, at_least=1)


# ------------------------------------------------------------------------------------- who stands beside whom


@dataclass(frozen=True)
class NoNesting(_AboutTokens):
    """No token of the family stands below another of it: the paper's trigonometry rule."""

    sees_values = False

    tokens: Names

    def forbidden(self, prefix: Prefix) -> Bools:
        """See `Constraint.forbidden`."""
        member = _member_array(prefix.library, tuple(self.tokens))
        return prefix.ancestors[:, member].any(axis=1, keepdims=True) & member


@dataclass(frozen=True)
class ForbiddenChild(_AboutTokens):
    """None of `children` is a child of any of `parents`; in a sequence, none directly follows one."""

    sees_values = False

    parents: Names
    children: Names

    def forbidden(self, prefix: Prefix) -> Bools:
        """See `Constraint.forbidden`."""
        pairs = _product(tuple(self.parents), tuple(self.children))
        return _pair_table(prefix.library, pairs)[prefix.parent]


@dataclass(frozen=True)
class ForbiddenDescendant(_AboutTokens):
    """None of `descendants` stands anywhere below any of `ancestors`; in a sequence, anywhere after one."""

    sees_values = False

    ancestors: Names
    descendants: Names

    def forbidden(self, prefix: Prefix) -> Bools:
        """See `Constraint.forbidden`."""
        above = _member_array(prefix.library, tuple(self.ancestors))
        below = _member_array(prefix.library, tuple(self.descendants))
        return prefix.ancestors[:, above].any(axis=1, keepdims=True) & below


@dataclass(frozen=True)
class ForbiddenSiblings(_AboutTokens):
    """The two tokens of a pair are never neighbouring children of one parent, in either order."""

    sees_values = False

    pairs: Iterable[Sequence[str]]

    def check(self, library: Library, grammar: Grammar) -> None:
        """See `Rule.check`."""
        _needs_tree(grammar)
        super().check(library, grammar)

    def forbidden(self, prefix: Prefix) -> Bools:
        """See `Constraint.forbidden`."""
        pairs = _pairs(self.pairs)
        return _pair_table(prefix.library, pairs + tuple((b, a) for a, b in pairs))[prefix.sibling]


@dataclass(frozen=True)
class InversePairs(_AboutTokens):
    """Neither token of a pair is the child of the other: exp(log(x)) and log(exp(x)) are both x."""

    sees_values = False

    pairs: Iterable[Sequence[str]]

    def forbidden(self, prefix: Prefix) -> Bools:
        """See `Constraint.forbidden`."""
        pairs = _pairs(self.pairs)
        return _pair_table(prefix.library, pairs + tuple((b, a) for a, b in pairs))[prefix.parent]


@dataclass(frozen=True)
class DifferentLeaves(Constraint):
    """Neighbouring siblings are not the same strictly discrete leaf.

    The appendix has it as "Constraint on discrete action tokens".
    """

    sees_values = False

    def check(self, library: Library, grammar: Grammar) -> None:
        """See `Rule.check`."""
        _needs_tree(grammar)

    def forbidden(self, prefix: Prefix) -> Bools:
        """See `Constraint.forbidden`."""
        return _same_leaf_table(prefix.library)[prefix.sibling]


@lru_cache(maxsize=256)
def _same_leaf_table(library: Library) -> Bools:
    leaves = tuple(t.name for t in library.tokens if t.arity == 0 and not t.parametrised)
    return _pair_table(library, tuple((name, name) for name in leaves))


# ------------------------------------------------------------------------------------- soft priors


@dataclass(frozen=True)
class SoftLength(Prior):
    """Prefers lengths near `centre`.

    A token after which the design has at least L tokens loses (L - centre)^2 / (2 spread^2) if that is beyond
    the centre; a token that completes the design loses it on either side of the centre.
    """

    sees_values = False

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
class UniformArity(Prior):
    """Makes every arity equally likely for flat logits, however many tokens share it."""

    sees_values = False

    def logits(self, prefix: Prefix) -> Floats:
        """See `Prior.logits`."""
        opens = prefix.grammar.opens
        row = -np.log((opens[:, None] == opens[None, :]).sum(axis=0))
        return np.broadcast_to(row, (len(prefix), len(row)))
