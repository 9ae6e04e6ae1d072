"""A declaration of tokens, shape and rules, checked once: what may fill the next slot, and why nothing may."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from functools import cached_property
from inspect import isfunction
from typing import Any

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.base.checks import require
from discodso.base.errors import DeadEndError, DeclarationError
from discodso.space.bounds import Bounds, FixedRanges, static_interval
from discodso.space.constraints import Constraint, Length, Prior, Repeat, Rule, Where
from discodso.space.look_ahead import LookAhead
from discodso.space.prefix import Prefix
from discodso.space.sequence_rules import Sum, is_known, look_ahead_of
from discodso.space.tokens import Grammar, Library, Shape, Token, library_for
from discodso.space.tree_rules import TooLargeError, TreeLookAhead
from discodso.space.tree_rules import is_known as is_known_in_trees

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
class RuledSpace:
    """What a `Space` declares, and what its rules say about the next slot of a prefix."""

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
                what = f"{kind.__name__} objects"
                if key == "constraints":
                    what += ", for a function Where(function)" if isfunction(rule) else ""
                    what += " (priors go into priors=[...])" if isinstance(rule, Prior) else ""
                require(key, rule, isinstance(rule, kind), what)
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
        return self._foresight[0]

    @cached_property
    def _foresight(self) -> tuple[LookAhead | TreeLookAhead | None, bool]:
        """The rules that look ahead together, and whether others do not which might lead into a dead end."""
        library, grammar, rules = self.library, self.grammar, self.constraints
        if not grammar.chain:
            try:
                found = TreeLookAhead.of(library, grammar, rules)
            except TooLargeError:
                return None, True
            return found, found is not None
        known = any(map(self._is_known, rules))
        return look_ahead_of(rules, library, grammar, self._static_ends) if known else None, True

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
        return tuple(filter(self._is_known, self._stepwise)) if self._foresight[1] else ()

    def _is_known(self, rule: Constraint) -> bool:
        """Whether a rule can look ahead together with others."""
        return is_known(rule, self.library) if self.grammar.chain else is_known_in_trees(rule)

    @cached_property
    def never_used(self) -> tuple[str, ...]:
        """Tokens that no design can have, as far as the rules that look ahead together tell."""
        names = [name for k, name in enumerate(self.library.names) if k != self.library.end]
        states = 1 if self._look_ahead is None else self._look_ahead.states
        too_many = self.grammar.chain and self.left_out
        if too_many or states * len(names) > _EXPLAINED:
            return ()  # it would take long, as too many rules do for each token anew
        rules = (*self.constraints, self.bounds)
        return tuple(name for name in names if self._contradict([Repeat(name, at_least=1), *rules]))

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
        if self.library.has_integers:
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
        if not needed:
            return self._explain_dead_end(start, 0)
        names = [rule.name for rule in (needed if len(needed) > 1 else (*needed, self.rules[0]))]
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
