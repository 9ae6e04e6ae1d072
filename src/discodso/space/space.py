"""The space of designs: a library, a shape, constraints, priors and bounds, checked once when declared."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.base.checks import require, require_integer
from discodso.base.errors import DeadEndError, DeclarationError, DiscodsoError, InvalidDesignError
from discodso.space.bounds import Bounds, FixedRanges, static_interval
from discodso.space.constraints import Constraint, Length, Prior, Rule, Where
from discodso.space.design import Design, DesignBatch, format_token, nested
from discodso.space.look_ahead import LookAhead
from discodso.space.prefix import Prefix
from discodso.space.sequence_rules import Sum, is_known, look_ahead_of
from discodso.space.tokens import Grammar, Library, Shape, Token, library_for
from discodso.space.tree_rules import TreeLookAhead
from discodso.space.values import Choice

_ATTEMPTS = 200  # to draw random designs again
_EXPLAINED = 500_000  # states of look aheads that are made to explain a contradiction


@dataclass(frozen=True)
class Options:
    """What may fill the next slot of B prefixes.

    Attributes:
        forbidden: bool[B, K].
        prior: float[B, K], added to the logits; None for none.
        low, high: float[B, K], bounds of the values in their own units, NaN for discrete tokens; float[B, K, V]
            where some token carries more than one value.
        barred: bool[B, n] for some columns of the library that are options, True where one may not be taken.
    """

    forbidden: Bools
    prior: Floats | None
    low: Floats
    high: Floats
    barred: Mapping[int, Bools] = field(default_factory=dict)

    def refused(self, library: Library, tokens: Ints, values: Floats) -> Bools:
        """bool[B], whether tokens[B] with values[B, V] are forbidden, or have an option that may not be taken."""
        found = self.forbidden[np.arange(len(tokens)), tokens]
        for column, mask in self.barred.items():
            own = library.columns[column]
            rows = np.flatnonzero(tokens == own.token)
            numbers = np.clip(np.nan_to_num(values[rows, own.slot]), 0, mask.shape[1] - 1)
            found[rows] |= mask[rows, numbers.astype(np.int64)]
        return found


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
            good = isinstance(given, Iterable)
            require(key, given, good, f"a list of {kind.__name__} objects")
            object.__setattr__(self, key, tuple(given))
            for rule in getattr(self, key):
                require(key, rule, isinstance(rule, kind), f"{kind.__name__} objects")
        require("bounds", self.bounds, isinstance(self.bounds, Bounds), "a Bounds object")
        for rule in (*self.rules, *self.priors, self.bounds):
            try:
                rule.check(self.library, self.grammar)
            except DeclarationError as error:
                raise DeclarationError(f"{rule.name}: {error}") from None
        start = self.start(1)
        if self.options(start).forbidden.all():
            why = self._explain_start(start)
            raise DeadEndError(f"no design can begin: {why}; loosen one of these constraints")

    def __getstate__(self) -> dict[str, Any]:
        """Without tables, which are made again when they are needed."""
        return {own.name: getattr(self, own.name) for own in fields(self)}

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

    @cached_property
    def has_fixed_ranges(self) -> bool:
        """Whether the bounds are the declared ranges, whatever the prefix."""
        sums = any(isinstance(rule, Sum) for rule in self.constraints)
        return isinstance(self.bounds, FixedRanges) and not sums

    @cached_property
    def conditions(self) -> tuple[Where, ...]:
        """Conditions on finished designs."""
        return tuple(rule for rule in self.constraints if isinstance(rule, Where))

    @cached_property
    def _look_ahead(self) -> LookAhead | TreeLookAhead | None:
        """The rules that look ahead together; None where none leads into a dead end, or where they have too many
        states."""
        library, grammar, rules = self.library, self.grammar, self.constraints
        if not grammar.chain:
            return TreeLookAhead.of(library, grammar, rules)
        known = any(is_known(rule, library) for rule in rules)
        return look_ahead_of(rules, library, grammar, self._static_ends) if known else None

    @cached_property
    def _static_ends(self) -> tuple[Floats, Floats] | None:
        """float[K, V] twice, the interval of each value where it does not depend on the prefix; else None."""
        if self.has_fixed_ranges or not any(isinstance(rule, Sum) for rule in self.constraints):
            return None
        found = static_interval(self.bounds, self.start(1))
        if found is None:
            return None
        low, high = self._within_ranges(*found)
        return self.library.wide(low[0]), self.library.wide(high[0])

    @property
    def left_out(self) -> tuple[Constraint, ...]:
        """Rules that would look ahead with others, were these not too many: a design that runs into a wall because
        of them is drawn again."""
        if self._look_ahead is None and not self.grammar.chain:
            return ()
        return tuple(rule for rule in self._stepwise if type(rule).__module__.startswith("discodso.space."))

    @cached_property
    def _stepwise(self) -> tuple[Constraint, ...]:
        """Constraints that are asked at every step: those that do not look ahead together."""
        together = () if self._look_ahead is None else self._look_ahead.covers
        known = {id(rule) for rule in together}
        return tuple(r for r in self.constraints if not isinstance(r, Where) and id(r) not in known)

    def start(self, size: int) -> Prefix:
        """The empty prefix of `size` designs."""
        return Prefix.start(self.library, self.grammar, size)

    def options(self, prefix: Prefix) -> Options:
        """Apply all rules to a prefix."""
        forbidden = self.rules[0].forbidden(prefix)
        for rule in self._stepwise:
            mask = rule.forbidden(prefix)
            _require_array(rule, mask, np.bool_, forbidden.shape)
            forbidden |= mask
        if self._look_ahead is not None:
            forbidden |= self._look_ahead.forbidden(prefix)
        low, high = self._interval(prefix)
        if not self.has_fixed_ranges:
            forbidden |= self._too_narrow(low, high)
        barred: dict[int, Bools] = {}
        for rule in self._option_rules:
            for column, mask in self._barred_by(rule, prefix).items():
                barred[column] = mask | barred.get(column, False)
        for column, mask in barred.items():
            forbidden[:, self.library.columns[column].token] |= mask.all(axis=1)
        prior: Floats | None = None
        for soft in self.priors:
            logits = soft.logits(prefix)
            _require_array(soft, logits, np.float64, forbidden.shape)
            if not np.isfinite(logits).all():
                what = f"{soft.name} gave a logit that is not finite"
                raise DeclarationError(f"{what}; use a Constraint to forbid")
            prior = logits if prior is None else prior + logits
        return Options(forbidden, prior, low, high, barred)

    @cached_property
    def _option_rules(self) -> tuple[Constraint, ...]:
        """Constraints that look at options."""
        plain = Constraint.forbidden_options
        return tuple(rule for rule in self.constraints if type(rule).forbidden_options is not plain)

    def _barred_by(self, rule: Constraint, prefix: Prefix) -> dict[int, Bools]:
        """Options that a rule forbids, by column."""
        found: dict[int, Bools] = {}
        given = rule.forbidden_options(prefix)
        if not isinstance(given, Mapping):
            raise DeclarationError(
                f"{rule.name}.forbidden_options must return a dictionary, got {given!r:.80}"
            )
        for (token, name), mask in given.items():
            at = self.library.place(token, name)
            count = int(self.library.options[at])
            if not count:
                raise DeclarationError(f"{rule.name}.forbidden_options: {name!r} of {token!r} is no Choice")
            _require_array(rule, mask, np.bool_, (len(prefix), count), "forbidden_options")
            found[int(self.library.column_of[at])] = mask
        return found

    def _interval(self, prefix: Prefix) -> tuple[Floats, Floats]:
        """Bounds of the values of the next token, within the declared ranges and the sums."""
        low, high = self.bounds.interval(prefix)
        if self.has_fixed_ranges:
            return low, high
        low, high = self._within_ranges(low, high)
        if not isinstance(self._look_ahead, LookAhead) or not self._look_ahead.sums:
            return low, high
        library = self.library
        low, high = self._look_ahead.limits(prefix, library.wide(low), library.wide(high))
        return self._within_ranges(library.narrow(low), library.narrow(high))

    def _within_ranges(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        low, high = np.maximum(low, self.library.low), np.minimum(high, self.library.high)
        if self.library.integer.any():
            whole = self.library.half > 0
            return np.where(whole, np.ceil(low), low), np.where(whole, np.floor(high), high)
        return low, high

    def _too_narrow(self, low: Floats, high: Floats) -> Bools:
        """bool[B, K]; an interval of integers counts its ends."""
        library = self.library
        width = library.wide(high - low + 2 * library.half)
        with np.errstate(invalid="ignore"):
            narrow = library.numeric & ~((width > 0) & (width >= library.wide(self._min_width)))
        return np.asarray(narrow.any(axis=-1))

    def dead_end(self, prefix: Prefix, row: int) -> str:
        """Why no token may continue the prefix at this row."""
        traversal = prefix.batch()[int(prefix.rows[row])]
        why = self._explain_dead_end(prefix, row)
        return f"no token may follow {traversal}: {why}; loosen one of these constraints"

    def _explain_dead_end(self, prefix: Prefix, row: int) -> str:
        names = np.array(self.library.names, object)
        found = [(name, names[forbidden[row]]) for name, forbidden in self._forbidden_by_rule(prefix)]
        return "; ".join(f"{name} forbids {', '.join(banned)}" for name, banned in found if len(banned))

    def _forbidden_by_rule(self, prefix: Prefix) -> list[tuple[str, Bools]]:
        found = [(rule.name, rule.forbidden(prefix)) for rule in self.rules]
        for rule in self._option_rules:
            for column, mask in self._barred_by(rule, prefix).items():
                nothing_left = prefix.forbid_nothing()
                nothing_left[:, self.library.columns[column].token] = mask.all(axis=1)
                found.append((rule.name, nothing_left))
        if not self.has_fixed_ranges:
            low, high = self._within_ranges(*self.bounds.interval(prefix))
            found.append((self.bounds.name, self._too_narrow(low, high)))
        if self._look_ahead is not None:
            together = self._look_ahead.forbidden(prefix)
            for _, forbidden in found:
                together = together & ~forbidden
            found.append(("the rules together", together))
        return found

    def _explain_start(self, start: Prefix) -> str:
        """Why no design can begin: what each rule forbids, or the fewest rules that contradict each other."""
        found = self._forbidden_by_rule(start)
        if self._look_ahead is None or any(forbidden[0].all() for _, forbidden in found[:-1]):
            return self._explain_dead_end(start, 0)
        needed: list[Rule] = [*self.constraints]
        if not isinstance(self.bounds, FixedRanges):
            needed.append(self.bounds)
        tries = _EXPLAINED // self._look_ahead.states
        size = len(needed)
        while size := size // 2:  # leave out many at once while that goes
            for first in reversed(range(0, len(needed), size)):
                others = needed[:first] + needed[first + size :]
                tries -= 1
                if tries > 0 and self._contradict(others):
                    needed = others
        if len(needed) < 2:
            return self._explain_dead_end(start, 0)
        names = [rule.name for rule in needed]
        more = f" and {len(names) - 8} others" if len(names) > 8 else ""
        return f"{' and '.join(names[:8])}{more} contradict each other"

    def _contradict(self, rules: Sequence[Rule]) -> bool:
        """Whether no design can begin under some of the constraints and bounds."""
        bounds = self.bounds if any(rule is self.bounds for rule in rules) else FixedRanges()
        trial = copy(self)  # without tables, and unchecked
        object.__setattr__(
            trial, "constraints", tuple(rule for rule in rules if isinstance(rule, Constraint))
        )
        object.__setattr__(trial, "bounds", bounds)
        return bool(trial.options(trial.start(1)).forbidden.all())

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
            prefix = self.start(missing)
            stuck = np.zeros(missing, np.bool_)
            while len(prefix):
                closed: Bools = np.asarray(self.options(prefix).forbidden.all(axis=1))
                stuck[prefix.rows[closed]] = True
                if closed.any():
                    if not why:
                        why[self.dead_end(prefix, int(closed.argmax()))] = None
                    prefix = prefix.keep(~closed)
                if len(prefix):
                    prefix = prefix.advance(*self.random_step(prefix, rng))
            drawn = replace(prefix.batch(), origin=self).select(~stuck)
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
        return int(import_module("discodso.space.listing").count(self, max_length))

    def enumerate(self, max_length: int | None = None) -> Iterator[tuple[str, ...]]:
        """All skeletons by length, one after the other."""
        found: Iterator[tuple[str, ...]] = import_module("discodso.space.listing").skeletons(self, max_length)
        return found

    def describe(self, examples: int = 3) -> str:
        """What was declared, in words, with some random designs; for a terminal and a notebook."""
        text: str = import_module("discodso.space.listing").describe(self, examples)
        return text

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
        """A mark of tokens, shape and the names of the rules, for checkpoints: equal spaces have equal marks."""
        rules = [rule.name for rule in (*self.rules, *self.priors, self.bounds)]
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


def _require_array(
    rule: Rule, array: object, kind: type[np.generic], shape: tuple[int, ...], where: str = ""
) -> None:
    """Refuse what a rule of the user's own must not return; cheap enough for every step."""
    if not isinstance(array, np.ndarray) or array.dtype != kind or array.shape != shape:
        got = f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else type(array).__name__
        what = f"{kind.__name__}[B, {'n' if where else 'K'}] of shape {list(shape)}"
        raise DeclarationError(
            f"{rule.name}{where and f'.{where}'} must return an array {what}, got {got}; "
            "discodso.testing.check_constraint helps to find out why"
        )
