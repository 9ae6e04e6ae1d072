"""The space of designs: random ones, those that keep its rules, and designs as arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.base.checks import require_integer
from discodso.base.errors import DeadEndError, DiscodsoError, InvalidDesignError
from discodso.space import listing
from discodso.space.constraints import Where
from discodso.space.design import Design, DesignBatch, format_token, nested
from discodso.space.prefix import Prefix
from discodso.space.ruled import RuledSpace
from discodso.space.sequence_rules import Sum
from discodso.space.values import Choice

_ATTEMPTS = 200  # to draw random designs again


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
class Space(RuledSpace):
    """All designs that may be proposed.

    Args:
        tokens: the library, or its tokens.
        shape: Tree, FixedSequence or OpenSequence.
        constraints: hard rules; the length limits of the shape are always among them.
        priors: soft rules.
        bounds: intervals for values; the declared ranges by default.
    """

    # ------------------------------------------------------------------ random designs

    def random_step(self, prefix: Prefix, rng: np.random.Generator) -> tuple[Ints, Floats]:
        """Tokens int[B] for the next slots, every allowed one as likely, and their values, likewise; numbers of
        infinite ranges within three units of the coordinate 0. DeadEndError if nothing is allowed."""
        library, options, rows = self.library, self.options(prefix), np.arange(len(prefix))
        if (stuck := options.forbidden.all(axis=1)).any():
            raise DeadEndError(self.dead_end(prefix, int(stuck.argmax())))
        tokens: Ints = np.where(options.forbidden, -1.0, rng.random(options.forbidden.shape)).argmax(axis=1)
        low, high = options.low[rows, tokens], options.high[rows, tokens]
        ends = self.bounds_to_coordinates(tokens, low, high)
        z_low, z_high = np.maximum(ends[0], -3.0), np.minimum(ends[1], 3.0)
        values = library.coordinates.to_value(tokens, z_low + rng.random(z_low.shape) * (z_high - z_low))
        values = library.wide(np.clip(library.rounded(tokens, values), low, high))
        for index, column in enumerate(library.columns):
            if count := int(library.options[column.token, column.slot]):
                own = np.flatnonzero(tokens == column.token)
                weights = rng.random((len(own), count))
                if index in options.barred:
                    weights[options.barred[index][own]] = -1.0
                values[own, column.slot] = weights.argmax(axis=1)
        values = np.where(library.column_of[tokens] >= 0, values, np.nan)
        return tokens, library.narrow(values)

    def sample(self, n: int = 1, seed: int | np.random.Generator = 0) -> DesignBatch:
        """Random designs that keep all rules, to see what a space is like: tokens and values evenly, step by step.

        Example:
            `for design in space.sample(5): print(space.render(design))`
        """
        require_integer("n", n, 0)
        rng = np.random.default_rng(seed)
        kept: list[DesignBatch] = []
        missing, why = n, dict[str, None]()  # in order
        for _ in range(_ATTEMPTS):
            drawn, stuck = self._drawn(missing, rng)
            if stuck and not why:
                why[stuck] = None
            kept.append(drawn.select(self.accepted(drawn)))
            if len(kept[-1]) < len(drawn):
                why[f"others do not meet {' and '.join(rule.name for rule in self.conditions)}"] = None
            missing -= len(kept[-1])
            if not missing:
                return DesignBatch.concatenate(kept)
        raise DeadEndError(
            f"only {n - missing} of {n} designs were found that keep all rules: {'; '.join(why)}"
        )

    def count(self, max_length: int | None = None) -> int:
        """How many skeletons, sequences of tokens that keep the rules, there are up to a length; exact, but
        conditions on finished designs (`Where`) are not looked at."""
        return listing.count(self, max_length)

    def enumerate(self, max_length: int | None = None) -> Iterator[tuple[str, ...]]:
        """All skeletons by length, one after the other."""
        return listing.skeletons(self, max_length)

    def describe(self, examples: int = 3) -> str:
        """What was declared, in words, with some random designs; for a terminal and a notebook."""
        require_integer("examples", examples, 0)
        try:
            drawn = [self.render(design) for design in self.sample(examples)]
        except DeadEndError as error:
            drawn = [str(error)]
        return listing.describe(self, drawn)

    def _drawn(self, count: int, rng: np.random.Generator) -> tuple[DesignBatch, str]:
        """So many random designs, but for those that met a dead end, and why the first of these did."""
        prefix, why = self.start(count), ""
        stuck = np.zeros(count, np.bool_)
        while len(prefix):
            closed: Bools = np.asarray(self.options(prefix).forbidden.all(axis=1))
            stuck[prefix.rows[closed]] = True
            if closed.any():
                why = why or self.dead_end(prefix, int(closed.argmax()))
                prefix = prefix.keep(~closed)
            if len(prefix):
                prefix = prefix.advance(*self.random_step(prefix, rng))
        return replace(prefix.batch(), origin=self).select(~stuck), why

    def acceptance(self, n: int = 200, seed: int = 0) -> float:
        """The share of n random designs, drawn as by `sample`, that meet all conditions (`Where`)."""
        require_integer("n", n, 1)
        drawn, _ = self._drawn(n, np.random.default_rng(seed))
        return float(self.accepted(drawn).mean()) if len(drawn) else 0.0

    def accepted(self, designs: DesignBatch) -> Bools:
        """bool[B], which finished designs meet all conditions (`Where`)."""
        if not self.conditions:
            return np.ones(len(designs), np.bool_)
        good = [all(rule.accepts(design) for rule in self.conditions) for design in designs]
        return np.array(good, np.bool_)

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
        values = np.full((len(designs), width, self.library.slots), np.nan)
        lengths = np.zeros(len(designs), np.int64)
        for row, design in enumerate(designs):
            ids, numbers = self._encode_one(design)
            if len(ids) > width:
                what = f"{design} has {len(design)} tokens"
                raise InvalidDesignError(f"{what}, more than the longest design of the space")
            lengths[row] = len(ids)
            tokens[row, : len(ids)] = ids
            values[row, : len(ids)] = numbers
        return DesignBatch(self.library, tokens, self.library.narrow(values), lengths)

    def _encode_one(self, design: Design) -> tuple[list[int], list[list[float]]]:
        if not isinstance(design, Design):
            raise InvalidDesignError(f"expected a Design, got {type(design).__name__}")
        ids, numbers = [], []
        nothing = [np.nan] * self.library.slots
        for name, entry in zip(design.tokens, design.values, strict=True):
            try:
                token = self.library.id(name)
                if token == self.library.end:
                    raise InvalidDesignError(f"the end token {name!r} is implied, leave it out")
                own = self._numbers(token, entry)
            except DiscodsoError as error:
                raise InvalidDesignError(f"{design}: {error}") from None
            ids.append(token)
            numbers.append(own + nothing[len(own) :])
        if self.library.end is not None:
            ids.append(self.library.end)
            numbers.append(nothing)
        return ids, numbers

    def _numbers(self, token: int, entry: Any) -> list[float]:
        """The values of a part as numbers for arrays."""
        declared = self.library.tokens[token]
        if declared.parametrised != (entry is not None):
            need = "needs a value" if entry is None else "takes no value"
            raise InvalidDesignError(f"token {declared.name!r} {need}")
        known = dict(declared.values)
        if len(known) > 1 and not isinstance(entry, Mapping):
            raise InvalidDesignError(f"token {declared.name!r} needs its values by name: {', '.join(known)}")
        given = entry if isinstance(entry, Mapping) else dict.fromkeys(known, entry)
        if unknown := [name for name in given if name not in known]:
            raise InvalidDesignError(f"token {declared.name!r} has no value {unknown[0]!r}")
        numbers: list[float] = []
        for name, value in known.items():
            if name not in given:
                raise InvalidDesignError(f"token {declared.name!r} needs a value {name!r}")
            number = value.encode(given[name])
            if number is None:
                what = f"{name} of token {declared.name!r} must be {value.expected}"
                raise InvalidDesignError(f"{what}, got {given[name]!r:.80}")
            numbers.append(number)
        return numbers

    def violations(self, design: Design) -> list[Violation]:
        """Every rule that the design breaks, with its position; empty for a design of the space.

        A design with unknown tokens, or with values missing or too many, is refused with InvalidDesignError.
        """
        ids, numbers = self._encode_one(design)
        found: list[Violation] = []
        prefix = self.start(1)
        for position, (token, own) in enumerate(zip(ids, numbers, strict=True)):
            name = self.library.names[token]
            if not len(prefix):
                message = "stands after the end of a complete design"
                return [*found, Violation(position, name, "shape", message)]
            if position >= self.grammar.max_positions:
                message = "the design is longer than max_length"
                return [*found, Violation(position, name, self.rules[0].name, message)]
            rules = [rule for rule, mask in self._forbidden_by_rule(prefix) if mask[0, token]]
            found += [Violation(position, name, rule, f"forbidden by {rule}") for rule in rules]
            found += self._value_violations(prefix, position, token, own)
            prefix = prefix.advance(np.array([token]), self.library.narrow(np.array([own])))
        if not len(prefix) and not found:
            failed = [rule.name for rule in self.conditions if not rule.accepts(design)]
            found += [Violation(len(design), "(end)", r, f"the design does not meet {r}") for r in failed]
        if len(prefix):
            missing = int(prefix.open_slots[0])
            message = f"the design ends with {missing} open slot{'s' if missing > 1 else ''}"
            found.append(Violation(len(ids), "(end)", "shape", message))
        return found

    def _value_violations(
        self, prefix: Prefix, position: int, token: int, numbers: list[float]
    ) -> list[Violation]:
        """Values outside their bounds, and options that a rule forbids."""
        library, found = self.library, list[Violation]()
        declared = library.tokens[token]
        own_bounds = self._within_ranges(*self.bounds.interval(prefix))
        sums = " and ".join(rule.name for rule in self.constraints if isinstance(rule, Sum))
        blamed = set[str]()
        for ends, rule_name in ((own_bounds, self.bounds.name), (self._interval(prefix), sums)):
            limits = (library.wide(end)[0, token] for end in ends)
            for (name, value), number, low, high in zip(declared.values, numbers, *limits, strict=False):
                if not isinstance(value, Choice) and name not in blamed and not low <= number <= high:
                    blamed.add(name)
                    what = "value" if declared.plain else name
                    message = f"{what} {number:g} lies outside [{low:g}, {high:g}] of {rule_name}"
                    found.append(Violation(position, declared.name, rule_name, message))
        for rule in self._option_rules:
            for column, mask in self._barred_by(rule, prefix).items():
                own = library.columns[column]
                if own.token == token and mask[0, int(numbers[own.slot])]:
                    option = own.value.decode(numbers[own.slot])
                    message = f"{own.name}={option} is forbidden by {rule.name}"
                    found.append(Violation(position, declared.name, rule.name, message))
        return found

    def render(self, design: Design) -> str:
        """A tree as nested calls, `add(x, const(3.14))`; a sequence as a chain of its tokens."""
        if self.grammar.chain:
            return " ".join(map(format_token, design.tokens, design.values))
        return nested(design, self.library.arities or {})

    def complexity(self, design: Design) -> float:
        """Sum of the complexities of the tokens."""
        return float(sum(self.library.tokens[self.library.id(name)].complexity for name in design.tokens))

    @property
    def mark(self) -> str:
        """A mark of tokens, shape, names of rules and code of conditions, for checkpoints: equal spaces have equal
        marks."""
        everything = (*self.rules, *self.priors, self.bounds)
        rules = [rule.mark if isinstance(rule, Where) else rule.name for rule in everything]
        parts = [*(repr(token) for token in self.library.tokens), repr(self.shape), *rules]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    @cached_property
    def range_coordinates(self) -> tuple[Floats, Floats]:
        """low[K, V], high[K, V]: the declared ranges in the policy's coordinates, NaN where there is no number."""
        library = self.library
        ends = self.bounds_to_coordinates(slice(None), library.low, library.high)
        low, high = (np.where(library.numeric, library.wide(end), np.nan) for end in ends)
        return low, high

    def bounds_to_coordinates(self, at: Any, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Interval ends in the policy's coordinates; `at` indexes the values of the library, as for `library.low`.
        Those of integers reach half a step further."""
        coordinates, half = self.library.coordinates, self.library.half[at]
        return coordinates.to_z(at, low - half), coordinates.to_z(at, high + half)
