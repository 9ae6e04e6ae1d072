"""What a design is made of: tokens, the library that holds them, and the shape of a traversal.

In the paper a token l may carry one real parameter beta from its range A(l) (section "Notation and problem
definition"); here it carries any number of values. The policy never sees beta itself but its *coordinate*: a
finite range is mapped to [0, 1], linearly or by the logarithm, so that a scale of 0.5 means the same for volts and
for farads. A range with an infinite end keeps its own units (or their logarithm).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from discodso.base.arrays import Bools, Floats, Ints
from discodso.base.checks import require, require_integer, require_number, require_one_of, settle_integers
from discodso.base.errors import DeclarationError
from discodso.space.values import Choice, Integer, Real, Value, checked_range

Kind = TypeVar("Kind", bound=np.generic)
VALUE = "value"  # the name of the one value of a token that is declared by its range


@dataclass(frozen=True, init=False, repr=False)
class Token:
    """One symbol of a library.

    Args:
        name: unique in its library.
        arity: number of children in a tree; 0 for leaves and for every token of a sequence.
        range: (low, high) of one real number, infinite ends allowed: short for `value=Real(low, high)`.
        scale: "log" for `value=Real(low, high, log=True)`.
        complexity: what the token adds to the complexity of a design.
        values: by name, each a `Real`, `Integer` or `Choice`; drawn in this order.

    Attributes:
        values: pairs of a name and a `Real`, `Integer` or `Choice`.
    """

    name: str
    arity: int
    complexity: float
    values: tuple[tuple[str, Value], ...]

    def __init__(
        self,
        name: str,
        arity: int = 0,
        range: tuple[float, float] | None = None,
        scale: Literal["linear", "log"] = "linear",
        complexity: float = 1.0,
        **values: Value,
    ) -> None:
        if not isinstance(name, str) or not name.strip():
            raise DeclarationError(f"a token needs a name that is a non-empty string, got {name!r}")
        of_token = f"token {name!r}: "
        if isinstance(arity, (Real, Integer, Choice)):
            raise DeclarationError(f"{of_token}give values by name: Token({name!r}, x={arity!r:.80})")
        if isinstance(arity, (tuple, list, dict)):
            how = f"**{arity!r:.80}" if isinstance(arity, dict) else f"range={arity!r:.80}"
            raise DeclarationError(f"{of_token}give ranges and values by name: Token({name!r}, {how})")
        require_integer(of_token + "arity", arity, 0)
        require_one_of(of_token + "scale", scale, ("linear", "log"))
        require_number(of_token + "complexity", complexity)
        if range is not None:
            if values:
                raise DeclarationError(f"{of_token}give a range or values by name, not both")
            pair = isinstance(range, (tuple, list, np.ndarray)) and len(range) == 2
            require(of_token + "range", range, pair, "a pair (low, high) of numbers")
            low, high = checked_range(of_token + "range", range[0], range[1], scale == "log")
            values = {VALUE: Real(low, high, scale == "log")}
        elif scale == "log":
            raise DeclarationError(f"{of_token}scale 'log' needs a range")
        for own, value in values.items():
            good = isinstance(value, (Real, Integer, Choice))
            require(f"{of_token}value {own!r}", value, good, "a Real, Integer or Choice")
            if not own.isidentifier() or own in _TAKEN or own.startswith("_"):
                raise DeclarationError(f"{of_token}a value cannot be called {own!r}")
        for key, given in (("name", name), ("arity", int(arity)), ("complexity", complexity)):
            object.__setattr__(self, key, given)
        object.__setattr__(self, "values", tuple(values.items()))

    def __repr__(self) -> str:
        parts = [repr(self.name)] + ([f"arity={self.arity}"] if self.arity else [])
        if self.plain:
            parts += [f"range={self.range}"] + (["scale='log'"] if self.values[0][1].log else [])
        else:
            parts += [f"{name}={value!r}" for name, value in self.values]
        parts += [f"complexity={self.complexity!r}"] if self.complexity != 1.0 else []
        return f"Token({', '.join(parts)})"

    @property
    def parametrised(self) -> bool:
        """Whether the token carries values."""
        return bool(self.values)

    @property
    def plain(self) -> bool:
        """Whether it carries one real number that has no name of its own, as in the paper."""
        return len(self.values) == 1 and self.values[0][0] == VALUE and isinstance(self.values[0][1], Real)

    @property
    def range(self) -> tuple[float, float] | None:
        """(low, high) of its number, if it carries one without a name."""
        return (self.values[0][1].low, self.values[0][1].high) if self.plain else None

    def discrete(self) -> Token:
        """The token without its numbers; options stay."""
        options: dict[str, Any] = {name: value for name, value in self.values if isinstance(value, Choice)}
        return Token(self.name, self.arity, complexity=self.complexity, **options)


_TAKEN = ("name", "values", "arity", "range", "scale", "complexity")  # of a part of a design, or of a token
_MOST_ROWS = 2**31
_LOG_LIMITS = (math.log(sys.float_info.min), math.log(sys.float_info.max))


# The cache of compiled code does not notice a change of the fields: touch both `_kernels.py` as well.
class Coordinates(NamedTuple):
    """The map between values beta and the policy's coordinates z, an entry for each value of each token.

    z = (g(beta) - offset) / width, with g the logarithm where `log` is set and the identity elsewhere. A finite
    range is mapped to [0, 1]; one with a single finite end keeps its units and counts from that end. An integer n
    has the interval from n - 1/2 to n + 1/2. Options have no coordinates but their numbers.

    Attributes:
        log, offset, width: [K], or [K, V] where some token carries more than one value.
    """

    log: Bools
    offset: Floats
    width: Floats

    @classmethod
    def of(cls, columns: Iterable[Column], shape: tuple[int, ...]) -> Coordinates:
        """Build the map for the values of K tokens; `shape` is [K] or [K, V]."""
        log, offset, width = np.zeros(shape, np.bool_), np.zeros(shape), np.ones(shape)
        for column in columns:
            at, value = (column.token, column.slot)[: len(shape)], column.value
            if not isinstance(value, Choice):
                log[at] = value.log
                half = 0.5 if isinstance(value, Integer) else 0.0
                low, high = (_log(e) if value.log else e for e in (value.low - half, value.high + half))
                if finite := [end for end in (low, high) if math.isfinite(end)]:
                    offset[at], width[at] = finite[0], high - low if len(finite) == 2 else 1.0
        return cls(log, offset, width)

    def to_z(self, token: Any, value: Floats) -> Floats:
        """Coordinates of values; `token` indexes the entries: ids, or ids and slots."""
        log, offset, width = self.log[token], self.offset[token], self.width[token]
        if not log.any():
            plain: Floats = (value - offset) / width
            return plain
        raw = np.array(np.broadcast_to(value, np.broadcast(log, value).shape), dtype=np.float64)
        log = np.broadcast_to(log, raw.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            raw[log] = np.log(raw[log])
        z: Floats = (raw - offset) / width
        return z

    def to_value(self, token: Any, z: Floats) -> Floats:
        """Values at coordinates; the inverse of `to_z`, but for the rounding of integers."""
        raw: Floats = z * self.width[token] + self.offset[token]
        log = self.log[token]
        if log.any():
            raw[log] = np.exp(np.clip(raw[log], *_LOG_LIMITS))
        return raw


def _log(value: float) -> float:
    """The logarithm; the smallest normal number stands for 0, see `checked_range`."""
    return math.log(value) if value > sys.float_info.min else -math.inf


@dataclass(frozen=True)
class Column:
    """One value of one token: the P columns of a library are all of them, in order.

    Attributes:
        token, slot: id of the token, and which of its values it is.
        name: of the value.
        value: what it is.
    """

    token: int
    slot: int
    name: str
    value: Value


class Library:
    """An ordered set of K tokens with distinct names, and its tables as arrays.

    Attributes:
        tokens: the tokens, in order; the index of a token in here is its id.
        names: their names.
        end: id of the end token of an open sequence, else None.
        dropped: names of values that its tokens carry elsewhere; rules may ask for them.
        arity: int[K].
        arities: the same by name; None if no token has children.
        parametrised: bool[K], tokens that carry values.
        slots: V, the most values of a token, at least 1.
        columns: the P values of all tokens.
        column_of: int[K, V], the column of each value, -1 where there is none.
        numeric, integer: bool[K, V], numbers, and those of them that are integers.
        number_of: int[K, V], which of all numbers it is, -1 where there is none.
        options: int[K, V], how many options, 0 where there is no Choice.
        has_options, has_integers: whether there is any.
        plain: whether no token carries more than one real number without a name, as in the paper.
        readers: for each token its values by name, each with its options by their numbers, `int` for an integer,
            None for a real number; empty for one real number without a name, None for no value.
        low, high: declared ranges, NaN for discrete tokens; of options the first and last number. Of shape [K],
            or [K, V] where some token carries more than one value: only then arrays of values have a last axis for
            the values of a token.
        ranges: low and high with a first axis of any number of rows, to be cut to those that are wanted.
        half: likewise, 1/2 for integers, which reach so far to both sides, else 0.
        coordinates: the map from values to what the policy sees.
    """

    def __init__(self, tokens: Iterable[Token], end: str | None = None, dropped: Iterable[str] = ()) -> None:
        self.tokens = tuple(tokens)
        self.dropped = frozenset(dropped)
        for token in self.tokens:
            if not isinstance(token, Token):
                raise DeclarationError(f"a library is made of Token objects, got {token!r}")
        if not self.tokens:
            raise DeclarationError("a library needs at least one token")
        self.names = tuple(token.name for token in self.tokens)
        if twice := ", ".join(sorted({name for name in self.names if self.names.count(name) > 1})):
            raise DeclarationError(f"token names must be distinct, but {twice} occurs more than once")
        self._ids = {name: k for k, name in enumerate(self.names)}
        self.end = None if end is None else self._ids[end]
        self.arity: Ints = np.array([token.arity for token in self.tokens], dtype=np.int64)
        self.arities = {t.name: t.arity for t in self.tokens} if self.arity.any() else None
        self.parametrised: Bools = np.array([token.parametrised for token in self.tokens])
        self.slots = max(1, *(len(token.values) for token in self.tokens))
        self.columns = tuple(
            Column(k, j, name, value)
            for k, token in enumerate(self.tokens)
            for j, (name, value) in enumerate(token.values)
        )
        shape = len(self.tokens), self.slots
        self.column_of: Ints = np.full(shape, -1, np.int64)
        self.numeric, self.integer = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
        self.options: Ints = np.zeros(shape, np.int64)
        low, high = np.full(shape, np.nan), np.full(shape, np.nan)
        for index, column in enumerate(self.columns):
            at, value = (column.token, column.slot), column.value
            self.column_of[at] = index
            self.numeric[at] = not isinstance(value, Choice)
            self.integer[at] = isinstance(value, Integer)
            self.options[at] = len(value.options) if isinstance(value, Choice) else 0
            low[at], high[at] = value.low, value.high
        self.number_of: Ints = np.where(self.numeric, np.cumsum(self.numeric).reshape(shape) - 1, -1)
        self.low, self.high, self.half = (self.narrow(own) for own in (low, high, 0.5 * self.integer))
        endless = (_MOST_ROWS, *self.low.shape)  # no memory: every row is the same one
        self.ranges = np.broadcast_to(self.low, endless), np.broadcast_to(self.high, endless)
        self.coordinates = Coordinates.of(self.columns, self.low.shape)
        c = self.coordinates
        self.wide_coordinates = Coordinates(self.wide(c.log), self.wide(c.offset), self.wide(c.width))
        self.has_options, self.has_integers = bool(self.options.any()), bool(self.integer.any())
        self.plain = all(token.plain or not token.parametrised for token in self.tokens)
        self.readers = tuple(map(_readers, self.tokens))
        self._hash = hash((self.tokens, self.end))

    def __len__(self) -> int:
        return len(self.tokens)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Library) and (self.tokens, self.end) == (other.tokens, other.end)
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Library], tuple[Any, ...]]:
        return Library, (self.tokens, None if self.end is None else self.names[self.end], self.dropped)

    def __repr__(self) -> str:
        return f"Library({', '.join(self.names)})"

    def id(self, name: str) -> int:
        """Index of the token with this name."""
        try:
            return self._ids[name]
        except (KeyError, TypeError):
            close = get_close_matches(str(name), self.names, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; it has {', '.join(self.names)}"
            raise DeclarationError(f"the library has no token {name!r}{hint}") from None

    def ids(self, names: Iterable[str]) -> Ints:
        """Indices of several tokens."""
        return np.array([self.id(name) for name in names], dtype=np.int64)

    def place(self, token: str, value: str | None = None) -> tuple[int, int]:
        """Id of a token, and which of its values this is; its only one if no name is given."""
        k = self.id(token)
        names = [name for name, _ in self.tokens[k].values]
        if value is None and len(names) == 1:
            return k, 0
        if value not in names:
            has = f"it has {', '.join(names)}" if names else "it carries none"
            raise DeclarationError(f"token {token!r} has no value {value!r}; {has}")
        return k, names.index(value)

    def wide(self, array: NDArray[Kind]) -> NDArray[Kind]:
        """An array of values with a last axis for the values of a token, whether or not it has one."""
        return array[..., None] if self.slots == 1 else array

    def narrow(self, array: NDArray[Kind]) -> NDArray[Kind]:
        """Inverse of `wide`."""
        return array[..., 0] if self.slots == 1 else array

    def rounded(self, at: Any, values: Floats) -> Floats:
        """Values with those rounded that must be integers; `at` indexes them, as for `low`."""
        return np.where(self.half[at] > 0, np.round(values), values) if self.has_integers else values

    def members(self, names: Iterable[str]) -> Bools:
        """bool[K], True at the named tokens."""
        member = np.zeros(len(self), dtype=np.bool_)
        member[self.ids(names)] = True
        return member


Readers = tuple[tuple[str, Any], ...]


_KINDS = {Integer: int, Real: None}


def _readers(token: Token) -> Readers | None:
    if not token.parametrised:
        return None
    named = () if token.plain else token.values
    return tuple(
        (name, value.options if isinstance(value, Choice) else _KINDS[type(value)]) for name, value in named
    )


MAX_LENGTH = 10_000  # tables of completions grow with its square


def _check_lengths(shape: Tree | OpenSequence, least: int) -> None:
    settle_integers(shape, {"min_length": least, "max_length": 1})
    most = shape.max_length
    require("min_length", shape.min_length, shape.min_length <= most, f"at most max_length = {most}")
    require("max_length", most, most <= MAX_LENGTH, f"at most {MAX_LENGTH}")


@dataclass(frozen=True, slots=True)
class Tree:
    """A traversal is a tree in pre-order; its length counts all nodes."""

    min_length: int = 1
    max_length: int = 32

    def __post_init__(self) -> None:
        _check_lengths(self, least=1)


@dataclass(frozen=True, slots=True)
class FixedSequence:
    """A traversal has exactly `length` tokens."""

    length: int

    def __post_init__(self) -> None:
        settle_integers(self, {"length": 1})
        require("length", self.length, self.length <= MAX_LENGTH, f"at most {MAX_LENGTH}")


@dataclass(frozen=True, slots=True)
class OpenSequence:
    """A traversal goes on until the end token, which the space adds to the library and does not count."""

    min_length: int = 1
    max_length: int = 32
    end: str = "end"

    def __post_init__(self) -> None:
        _check_lengths(self, least=0)
        if not isinstance(self.end, str) or not self.end.strip():
            raise DeclarationError(f"the end token needs a name that is a non-empty string, got {self.end!r}")


Shape = Tree | FixedSequence | OpenSequence


@dataclass(frozen=True)
class Grammar:
    """A shape reduced to counting open slots: every token closes one and opens `opens[k]` new ones.

    A design begins with `start` open slots and is complete when none is left. This rule alone covers trees
    (start 1, a token opens its arity), fixed sequences (start at the length, nothing opens) and open
    sequences (start 1, every token but the end token opens one).

    Attributes:
        start: open slots of the empty prefix.
        opens_of: slots that each token opens, K entries.
        min_positions, max_positions: limits on the number of positions, the end token included.
        chain: True for sequences, where the parent of a token is the token before it.
    """

    start: int
    opens_of: tuple[int, ...]
    min_positions: int
    max_positions: int
    chain: bool

    @cached_property
    def opens(self) -> Ints:
        """int[K], slots that each token opens."""
        return np.array(self.opens_of, dtype=np.int64)

    @classmethod
    def of(cls, shape: Shape, library: Library) -> Grammar:
        """Grammar of a shape over a library that already holds the end token."""
        match shape:
            case Tree():
                opens = tuple(token.arity for token in library.tokens)
                return cls(1, opens, shape.min_length, shape.max_length, chain=False)
            case FixedSequence():
                return cls(shape.length, (0,) * len(library), shape.length, shape.length, chain=True)
            case OpenSequence():
                opens = tuple(int(k != library.end) for k in range(len(library)))
                return cls(1, opens, shape.min_length + 1, shape.max_length + 1, chain=True)


def library_for(tokens: Iterable[Token] | Library, shape: Shape) -> Library:
    """Check tokens against a shape and return the library, with the end token where the shape has one."""
    if not isinstance(shape, (Tree, FixedSequence, OpenSequence)):
        raise DeclarationError(f"shape must be a Tree, FixedSequence or OpenSequence, got {shape!r}")
    if isinstance(tokens, (Token, str)) or not isinstance(tokens, (Library, Iterable)):
        raise DeclarationError(f"tokens must be a list of Token objects, got {tokens!r}")
    library = tokens if isinstance(tokens, Library) else Library(tokens)
    if library.end is not None:  # taken from an open sequence; its end token belongs to that shape
        own = (token for k, token in enumerate(library.tokens) if k != library.end)
        library = Library(own, dropped=library.dropped)
    if isinstance(shape, Tree):
        if not np.any(library.arity == 0):
            raise DeclarationError("a tree library needs at least one leaf, a token of arity 0")
        return library
    if parents := ", ".join(token.name for token in library.tokens if token.arity > 0):
        raise DeclarationError(
            f"tokens of a sequence have arity 0, but {parents} has children; use shape Tree"
        )
    if isinstance(shape, OpenSequence):
        if shape.end in library.names:
            raise DeclarationError(
                f"the end token {shape.end!r} is added by OpenSequence; rename the token of that name"
            )
        tokens = (*library.tokens, Token(shape.end, complexity=0.0))
        return Library(tokens, end=shape.end, dropped=library.dropped)
    return library
