"""The space of designs: a library, a shape, constraints, priors and bounds, checked once when declared."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.base.errors import DeadEndError, DeclarationError, InvalidDesignError
from discodso.space.bounds import Bounds, FixedRanges
from discodso.space.constraints import Constraint, Length, Prior, Rule
from discodso.space.design import Design, DesignBatch, format_token
from discodso.space.prefix import Prefix
from discodso.space.tokens import Grammar, Library, Shape, Token, library_for


@dataclass(frozen=True)
class Options:
    """What may fill the next slot of B prefixes.

    Attributes:
        forbidden: bool[B, K].
        prior: float[B, K], added to the logits; None for none.
        low, high: float[B, K], bounds of the values in their own units, NaN for discrete tokens.
    """

    forbidden: Bools
    prior: Floats | None
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Violation:
    """A rule that a design breaks, and where."""

    position: int
    token: str
    rule: str
    message: str

    def __str__(self) -> str:
        return f"position {self.position}, {self.token}: {self.message}"


@dataclass(frozen=True)
class Space:
    """All designs that may be proposed.

    Args:
        tokens: the library, or its tokens.
        shape: Tree, FixedSequence or OpenSequence.
        constraints: hard rules; the length limits of the shape are always among them.
        priors: soft rules.
        bounds: intervals for values; the declared ranges by default.
    """

    tokens: Iterable[Token] | Library
    shape: Shape
    constraints: Sequence[Constraint] = ()
    priors: Sequence[Prior] = ()
    bounds: Bounds = field(default_factory=FixedRanges)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", library_for(self.tokens, self.shape))
        for key, kind in (("constraints", Constraint), ("priors", Prior)):
            given = getattr(self, key)
            if not isinstance(given, Iterable):
                raise DeclarationError(f"{key} must be a list of {kind.__name__} objects, got {given!r:.80}")
            rules = tuple(given)
            object.__setattr__(self, key, rules)
            for rule in rules:
                if not isinstance(rule, kind):
                    raise DeclarationError(f"{key} must be {kind.__name__} objects, got {rule!r}")
        if not isinstance(self.bounds, Bounds):
            raise DeclarationError(f"bounds must be a Bounds object, got {self.bounds!r}")
        for rule in (*self.rules, *self.priors, self.bounds):
            try:
                rule.check(self.library, self.grammar)
            except DeclarationError as error:
                raise DeclarationError(f"{rule.name}: {error}") from None
        start = self.start(1)
        if self.options(start).forbidden.all():
            raise DeadEndError(
                f"no design can begin: {self._explain_dead_end(start, 0)}; loosen one of these constraints"
            )

    @cached_property
    def library(self) -> Library:
        """The library, with the end token of an open sequence."""
        assert isinstance(self.tokens, Library)
        return self.tokens

    @cached_property
    def grammar(self) -> Grammar:
        """The shape as counts of open slots."""
        return Grammar.of(self.shape, self.library)

    @cached_property
    def rules(self) -> tuple[Constraint, ...]:
        """All constraints, that on the length first."""
        end = self.library.end is not None
        limits = Length(self.grammar.min_positions - end, self.grammar.max_positions - end)
        return (limits, *self.constraints)

    @cached_property
    def _min_width(self) -> Floats:
        return np.nan_to_num(self.bounds.min_width(self.library), nan=0.0)

    @property
    def has_fixed_ranges(self) -> bool:
        """Whether the bounds are the declared ranges, whatever the prefix."""
        return isinstance(self.bounds, FixedRanges)

    def start(self, size: int) -> Prefix:
        """The empty prefix of `size` designs."""
        return Prefix.start(self.library, self.grammar, size)

    def options(self, prefix: Prefix) -> Options:
        """Apply all rules to a prefix."""
        forbidden = self.rules[0].forbidden(prefix)
        for rule in self.constraints:
            mask = rule.forbidden(prefix)
            _require_array(rule, mask, np.bool_, forbidden.shape)
            forbidden |= mask
        low, high = self.bounds.interval(prefix)
        if not self.has_fixed_ranges:
            low, high = self._within_ranges(low, high)
            forbidden |= self._too_narrow(low, high)
        prior: Floats | None = None
        for soft in self.priors:
            logits = soft.logits(prefix)
            _require_array(soft, logits, np.float64, forbidden.shape)
            if not np.isfinite(logits).all():
                raise DeclarationError(
                    f"{soft.name} gave a logit that is not finite; use a Constraint to forbid"
                )
            prior = logits if prior is None else prior + logits
        return Options(forbidden, prior, low, high)

    def _within_ranges(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        return np.maximum(low, self.library.low), np.minimum(high, self.library.high)

    def _too_narrow(self, low: Floats, high: Floats) -> Bools:
        width = high - low
        with np.errstate(invalid="ignore"):
            narrow: Bools = self.library.parametrised & ~((width > 0) & (width >= self._min_width))
        return narrow

    def require_options(self, prefix: Prefix, options: Options) -> None:
        """Raise DeadEndError if some prefix has no allowed token."""
        stuck = np.flatnonzero(options.forbidden.all(axis=1))
        if len(stuck):
            self.raise_dead_end(prefix, int(stuck[0]))

    def raise_dead_end(self, prefix: Prefix, row: int) -> None:
        """Report the prefix at this row as one that no token may continue."""
        traversal = prefix.batch()[int(prefix.rows[row])]
        raise DeadEndError(
            f"no token may follow {traversal}: {self._explain_dead_end(prefix, row)}; "
            "loosen one of these constraints"
        )

    def _explain_dead_end(self, prefix: Prefix, row: int) -> str:
        parts = []
        for name, forbidden in self._forbidden_by_rule(prefix):
            if forbidden[row].any():
                banned = [self.library.names[k] for k in np.flatnonzero(forbidden[row])]
                parts.append(f"{name} forbids {', '.join(banned)}")
        return "; ".join(parts)

    def _forbidden_by_rule(self, prefix: Prefix) -> list[tuple[str, Bools]]:
        found = [(rule.name, rule.forbidden(prefix)) for rule in self.rules]
        if not self.has_fixed_ranges:
            low, high = self._within_ranges(*self.bounds.interval(prefix))
            found.append((self.bounds.name, self._too_narrow(low, high)))
        return found

    # ------------------------------------------------------------------ designs in and out

    def encode(self, designs: Sequence[Design] | DesignBatch) -> DesignBatch:
        """Designs as arrays, with the end token of an open sequence appended. Names and values are checked
        here; `violations` and `replay` check the rules.
        """
        if isinstance(designs, DesignBatch):
            if designs.library != self.library:
                raise InvalidDesignError("these designs belong to another library than that of the space")
            return designs
        width = self.grammar.max_positions
        tokens = np.full((len(designs), width), -1, np.int64)
        values = np.full((len(designs), width), np.nan)
        lengths = np.zeros(len(designs), np.int64)
        for row, design in enumerate(designs):
            ids, numbers = self._encode_one(design)
            if len(ids) > width:
                raise InvalidDesignError(
                    f"{design} has {len(design)} tokens, more than the longest design of the space"
                )
            lengths[row] = len(ids)
            tokens[row, : len(ids)] = ids
            values[row, : len(ids)] = numbers
        return DesignBatch(self.library, tokens, values, lengths)

    def _encode_one(self, design: Design) -> tuple[list[int], list[float]]:
        if not isinstance(design, Design):
            raise InvalidDesignError(f"expected a Design, got {type(design).__name__}")
        ids, numbers = [], []
        for name, value in design:
            try:
                token = self.library.id(name)
            except DeclarationError as error:
                raise InvalidDesignError(f"{design}: {error}") from None
            if token == self.library.end:
                raise InvalidDesignError(f"{design}: the end token {name!r} is implied, leave it out")
            if self.library.parametrised[token] != (value is not None):
                need = "needs a value" if value is None else "takes no value"
                raise InvalidDesignError(f"{design}: token {name!r} {need}")
            ids.append(token)
            numbers.append(np.nan if value is None else float(value))
        if self.library.end is not None:
            ids.append(self.library.end)
            numbers.append(np.nan)
        return ids, numbers

    def violations(self, design: Design) -> list[Violation]:
        """Every rule that the design breaks, with its position; empty for a design of the space.

        A design with unknown tokens, or with values missing or too many, is refused with InvalidDesignError.
        """
        ids, numbers = self._encode_one(design)
        found: list[Violation] = []
        prefix = self.start(1)
        for position, (token, value) in enumerate(zip(ids, numbers, strict=True)):
            name = self.library.names[token]
            if not len(prefix):
                found.append(Violation(position, name, "shape", "stands after the end of a complete design"))
                return found
            if position >= self.grammar.max_positions:
                found.append(
                    Violation(position, name, self.rules[0].name, "the design is longer than max_length")
                )
                return found
            for rule, forbidden in self._forbidden_by_rule(prefix):
                if forbidden[0, token]:
                    found.append(Violation(position, name, rule, f"forbidden by {rule}"))
            low, high = self._within_ranges(*self.bounds.interval(prefix))
            if self.library.parametrised[token] and not low[0, token] <= value <= high[0, token]:
                message = (
                    f"value {value:g} lies outside [{low[0, token]:g}, {high[0, token]:g}] "
                    f"of {self.bounds.name}"
                )
                found.append(Violation(position, name, self.bounds.name, message))
            prefix = prefix.advance(np.array([token]), np.array([value]))
        if len(prefix):
            missing = int(prefix.open_slots[0])
            message = f"the design ends with {missing} open slot{'s' if missing > 1 else ''}"
            found.append(Violation(len(ids), "(end)", "shape", message))
        return found

    def render(self, design: Design) -> str:
        """A tree as nested calls, `add(x, const(3.14))`; a sequence as a chain of its tokens."""
        if self.grammar.chain:
            return " ".join(format_token(name, value) for name, value in design)
        stack: list[str] = []
        for name, value in reversed(list(design)):
            arity = int(self.library.arity[self.library.id(name)])
            children = [stack.pop() for _ in range(min(arity, len(stack)))]
            stack.append(format_token(name, value) + (f"({', '.join(children)})" if children else ""))
        return " ".join(reversed(stack))

    def complexity(self, design: Design) -> float:
        """Sum of the complexities of the tokens."""
        return float(sum(self.library.tokens[self.library.id(name)].complexity for name in design.tokens))

    @property
    def mark(self) -> str:
        """A mark of tokens, shape and the names of the rules, for checkpoints: equal spaces have equal marks."""
        rules = [rule.name for rule in (*self.rules, *self.priors, self.bounds)]
        parts = [*(repr(token) for token in self.library.tokens), repr(self.shape), *rules]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    @cached_property
    def range_coordinates(self) -> tuple[Floats, Floats]:
        """low[K], high[K]: the declared ranges in the policy's coordinates, NaN for discrete tokens."""
        return self.bounds_to_coordinates(np.arange(len(self.library)), self.library.low, self.library.high)

    def bounds_to_coordinates(self, token: Ints, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Interval ends in the policy's coordinates."""
        coordinates = self.library.coordinates
        return coordinates.to_z(token, low), coordinates.to_z(token, high)


def _require_array(rule: Rule, array: object, kind: type[np.generic], shape: tuple[int, ...]) -> None:
    """Refuse what a rule of the user's own must not return; cheap enough for every step."""
    if not isinstance(array, np.ndarray) or array.dtype != kind or array.shape != shape:
        got = f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else type(array).__name__
        raise DeclarationError(
            f"{rule.name} must return an array {kind.__name__}[B, K] of shape {list(shape)}, got {got}; "
            "discodso.testing.check_constraint helps to find out why"
        )
