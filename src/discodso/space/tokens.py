"""What a design is made of: tokens, the library that holds them, and the shape of a traversal.

A token l may carry one real parameter beta from its range A(l) (paper, section "Notation and problem
definition"). The policy never sees beta itself but its *coordinate*: a finite range is mapped to [0, 1],
linearly or by the logarithm, so that a scale of 0.5 means the same for volts and for farads. A range with an
infinite end keeps its own units (or their logarithm).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Literal

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.base.checks import require, require_integer, require_number, require_one_of, settle_integers
from discodso.base.errors import DeclarationError


@dataclass(frozen=True, slots=True)
class Token:
    """One symbol of a library.

    Args:
        name: unique in its library.
        arity: number of children in a tree; 0 for leaves and for every token of a sequence.
        range: (low, high) of the parameter, infinite ends allowed; None for a strictly discrete token.
        scale: "log" spreads the policy's attention evenly over orders of magnitude.
        complexity: what the token adds to the complexity of a design.
    """

    name: str
    arity: int = 0
    range: tuple[float, float] | None = None
    scale: Literal["linear", "log"] = "linear"
    complexity: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise DeclarationError(f"a token needs a name that is a non-empty string, got {self.name!r}")
        of_token = f"token {self.name!r}: "
        require_integer(of_token + "arity", self.arity, 0)
        require_one_of(of_token + "scale", self.scale, ("linear", "log"))
        require_number(of_token + "complexity", self.complexity)
        if self.range is not None:
            object.__setattr__(self, "range", self._checked_range(self.range))
        elif self.scale == "log":
            raise DeclarationError(f"token {self.name!r}: scale 'log' needs a range")

    def _checked_range(self, given: tuple[float, float]) -> tuple[float, float]:
        try:
            if not isinstance(given, (tuple, list, np.ndarray)):
                raise TypeError
            low, high = (float(end) for end in given)
        except (TypeError, ValueError, OverflowError):
            raise DeclarationError(
                f"token {self.name!r}: range must be a pair (low, high) of numbers, got {given!r:.80}"
            ) from None
        if not low < high or low == math.inf or high == -math.inf:
            raise DeclarationError(
                f"token {self.name!r}: range ({low:g}, {high:g}) is empty, low must be below high"
            )
        if self.scale == "log" and (low < 0 or (low == 0 and math.isfinite(high))):
            raise DeclarationError(
                f"token {self.name!r}: scale 'log' needs a positive lower end, got ({low:g}, {high:g})"
            )
        if self.scale == "log":
            low = max(low, sys.float_info.min)  # the logarithm of 0 is no coordinate
            if not math.log(low) < math.log(min(high, sys.float_info.max)):
                raise DeclarationError(f"token {self.name!r}: range ({low!r}, {high!r}) is too narrow")
        if math.isinf(high - low) and math.isfinite(low) and math.isfinite(high):
            raise DeclarationError(
                f"token {self.name!r}: range ({low:g}, {high:g}) is too wide for float64; "
                "use infinite ends, or scale='log'"
            )
        return low, high

    @property
    def parametrised(self) -> bool:
        """Whether the token carries a value."""
        return self.range is not None


_LOG_LIMITS = (math.log(sys.float_info.min), math.log(sys.float_info.max))


@dataclass(frozen=True)
class Coordinates:
    """The map between values beta and the policy's coordinates z, one entry for each token.

    z = (g(beta) - offset) / width, with g the logarithm where `log` is set and the identity elsewhere. A finite
    range is mapped to [0, 1]; one with a single finite end keeps its units and counts from that end.
    """

    log: Bools
    offset: Floats
    width: Floats

    @classmethod
    def of(cls, tokens: Sequence[Token]) -> Coordinates:
        """Build the map for a list of K tokens."""
        count = len(tokens)
        log, offset, width = np.zeros(count, np.bool_), np.zeros(count), np.ones(count)
        for k, token in enumerate(tokens):
            if token.range is None:
                continue
            log[k] = token.scale == "log"
            low, high = (_log(end) if log[k] else end for end in token.range)
            finite = [end for end in (low, high) if math.isfinite(end)]
            if finite:
                offset[k] = finite[0]
                width[k] = high - low if len(finite) == 2 else 1.0
        return cls(log, offset, width)

    def to_z(self, token: Ints, value: Floats) -> Floats:
        """Coordinates of values; both arguments broadcast, any shape."""
        raw = np.array(np.broadcast_to(value, np.broadcast(token, value).shape), dtype=np.float64)
        log = np.broadcast_to(self.log[token], raw.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            raw[log] = np.log(raw[log])
        z: Floats = (raw - self.offset[token]) / self.width[token]
        return z

    def to_value(self, token: Ints, z: Floats) -> Floats:
        """Values at coordinates; the inverse of `to_z`."""
        raw: Floats = z * self.width[token] + self.offset[token]
        log = self.log[token]
        raw[log] = np.exp(np.clip(raw[log], *_LOG_LIMITS))
        return raw


def _log(value: float) -> float:
    """The logarithm; the smallest normal number stands for 0, see `Token`."""
    return math.log(value) if value > sys.float_info.min else -math.inf


class Library:
    """An ordered set of K tokens with distinct names, and its tables as arrays.

    Attributes:
        tokens: the tokens, in order; the index of a token in here is its id.
        names: their names.
        end: id of the end token of an open sequence, else None.
        arity: int[K].
        parametrised: bool[K].
        parametrised_ids: int[P], ids of the parametrised tokens.
        parameter_index: int[K], column of a token among the parametrised ones, -1 for discrete tokens.
        low, high: float[K], declared ranges, NaN for discrete tokens.
        coordinates: the map from values to what the policy sees.
    """

    def __init__(self, tokens: Iterable[Token], end: str | None = None) -> None:
        self.tokens = tuple(tokens)
        for token in self.tokens:
            if not isinstance(token, Token):
                raise DeclarationError(f"a library is made of Token objects, got {token!r}")
        if not self.tokens:
            raise DeclarationError("a library needs at least one token")
        self.names = tuple(token.name for token in self.tokens)
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if twice:
            raise DeclarationError(
                f"token names must be distinct, but {', '.join(twice)} occurs more than once"
            )
        self._ids = {name: k for k, name in enumerate(self.names)}
        self.end = None if end is None else self._ids[end]
        self.arity: Ints = np.array([token.arity for token in self.tokens], dtype=np.int64)
        self.parametrised: Bools = np.array([token.parametrised for token in self.tokens])
        self.parametrised_ids: Ints = np.flatnonzero(self.parametrised)
        self.parameter_index: Ints = np.where(self.parametrised, np.cumsum(self.parametrised) - 1, -1)
        ranges = [token.range or (math.nan, math.nan) for token in self.tokens]
        self.low: Floats = np.array([low for low, _ in ranges])
        self.high: Floats = np.array([high for _, high in ranges])
        self.coordinates = Coordinates.of(self.tokens)
        self._hash = hash((self.tokens, self.end))

    def __len__(self) -> int:
        return len(self.tokens)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Library) and (self.tokens, self.end) == (other.tokens, other.end)
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Library], tuple[tuple[Token, ...], str | None]]:
        return Library, (self.tokens, None if self.end is None else self.names[self.end])

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

    def members(self, names: Iterable[str]) -> Bools:
        """bool[K], True at the named tokens."""
        member = np.zeros(len(self), dtype=np.bool_)
        member[self.ids(names)] = True
        return member


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
        count = len(library)
        match shape:
            case Tree():
                opens = tuple(token.arity for token in library.tokens)
                return cls(1, opens, shape.min_length, shape.max_length, chain=False)
            case FixedSequence():
                return cls(shape.length, (0,) * count, shape.length, shape.length, chain=True)
            case OpenSequence():
                opens = tuple(int(k != library.end) for k in range(count))
                return cls(1, opens, shape.min_length + 1, shape.max_length + 1, chain=True)


def library_for(tokens: Iterable[Token] | Library, shape: Shape) -> Library:
    """Check tokens against a shape and return the library, with the end token where the shape has one."""
    if not isinstance(shape, (Tree, FixedSequence, OpenSequence)):
        raise DeclarationError(f"shape must be a Tree, FixedSequence or OpenSequence, got {shape!r}")
    if isinstance(tokens, (Token, str)) or not isinstance(tokens, (Library, Iterable)):
        raise DeclarationError(f"tokens must be a list of Token objects, got {tokens!r}")
    library = tokens if isinstance(tokens, Library) else Library(tokens)
    if library.end is not None:  # taken from an open sequence; its end token belongs to that shape
        library = Library(token for k, token in enumerate(library.tokens) if k != library.end)
    if isinstance(shape, Tree):
        if not np.any(library.arity == 0):
            raise DeclarationError("a tree library needs at least one leaf, a token of arity 0")
        return library
    with_children = [token.name for token in library.tokens if token.arity > 0]
    if with_children:
        raise DeclarationError(
            f"tokens of a sequence have arity 0, but {', '.join(with_children)} has children; use shape Tree"
        )
    if isinstance(shape, OpenSequence):
        if shape.end in library.names:
            raise DeclarationError(
                f"the end token {shape.end!r} is added by OpenSequence; rename the token of that name"
            )
        return Library((*library.tokens, Token(shape.end, complexity=0.0)), end=shape.end)
    return library
