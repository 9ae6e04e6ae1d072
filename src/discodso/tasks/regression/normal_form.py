"""The normal form of an expression: a sum of terms, each a number times a product of powers.

Like terms and equal factors are merged, numbers multiplied through, quotients are negative powers, and functions
that undo one another are taken out. It is equal to the expression up to rounding wherever that is defined; it may
be defined elsewhere too, as x / x is 1. What would overflow stays as it was written, a `Call` of its operator.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from discodso.tasks.regression.operators import OPERATORS, Operator

Exponent = Fraction | float  # a fraction wherever it is a simple one
_LARGEST_DENOMINATOR = 12
_LARGEST_OFFSET = 50.0  # that leaves exp as a factor: exp(a + f) as exp(a) exp(f)
_MOST_TERMS = 24  # of a product that is multiplied out
_ROUNDING = 4 * float(np.finfo(np.float64).eps)
ODD = ("sin", "tan", "tanh")


@dataclass(frozen=True, order=True)
class Number:
    """A number; it is free if it comes from a constant, which may be fitted again."""

    value: float
    free: bool = False

    def times(self, other: Number) -> Number:
        """The product; `OverflowError` if it is too large or too small."""
        return _finite(self.value * other.value, self.free or other.free)

    def to(self, power: Exponent) -> Number:
        """The power; `OverflowError` where it is too large or not defined."""
        if self.value == 1.0:
            return self
        if self.value < 0 and not is_integer(power):
            raise OverflowError
        whole = int(power) if is_integer(power) else float(power)
        return _finite(_neat(float(self.value) ** whole), self.free)


@dataclass(frozen=True)
class Input:
    """An input, and its place among the names in order."""

    index: int
    rank: int = field(compare=False)
    key: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", f"0{self.rank:05d}")


@dataclass(frozen=True, eq=False)
class Call:
    """An operator that is not taken apart, and its operands."""

    operator: Operator
    operands: tuple[TermSum, ...]
    key: str = field(init=False)

    def __post_init__(self) -> None:
        inner = ",".join(operand.key for operand in self.operands)
        object.__setattr__(self, "key", f"2{self.operator.name}({inner})")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Call) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True, eq=False)
class Term:
    """A number times powers of factors, sorted: columns first, then brackets, then functions."""

    number: Number
    factors: tuple[tuple[Base, Exponent], ...]
    key: str = field(init=False)

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.factors, key=lambda pair: pair[0].key))
        object.__setattr__(self, "factors", ordered)
        object.__setattr__(self, "key", "*".join(f"{base.key}^{power}" for base, power in ordered))

    @property
    def place(self) -> tuple[Any, ...]:
        """Where it stands in a sum: polynomials by falling degree, then functions, then the constant."""
        degree = sum(float(power) for base, power in self.factors if isinstance(base, Input))
        plain = all(isinstance(base, Input) for base, _ in self.factors)
        return not self.factors, not plain, -degree, self.key

    def with_number(self, number: Number) -> Term:
        """The same factors with another number."""
        return Term(number, self.factors)


@dataclass(frozen=True, eq=False)
class TermSum:
    """A sum of terms, sorted; 0 if there are none."""

    terms: tuple[Term, ...]
    key: str = field(init=False)

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.terms, key=lambda term: term.place))
        object.__setattr__(self, "terms", ordered)
        parts = (f"{term.number.value!r}*{term.key}" for term in ordered)
        object.__setattr__(self, "key", f"1[{'+'.join(parts)}]")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TermSum) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def constant(self) -> Number | None:
        """Its number if it is one, None if it depends on something."""
        if not self.terms:
            return Number(0.0)
        return self.terms[0].number if len(self.terms) == 1 and not self.terms[0].factors else None


Base = Input | Call | TermSum
Pair = tuple[Base, Exponent]
ONE, MINUS_ONE = Number(1.0), Number(-1.0)
ZERO_SUM = TermSum(())


def normal_form(expression: Any, expand: bool = False) -> TermSum:
    """The normal form of an `Expression`, whose module imports this one.

    Args:
        expand: whether products of sums are multiplied out, as long as that gives few terms.
    """
    algebra, ranks = _Algebra(expand), name_ranks(expression.columns)
    stack: list[TermSum] = []
    for name, value in reversed(list(expression.design)):
        operator = expression.operator(name)
        if operator is not None:
            stack.append(algebra.applied(operator, [stack.pop() for _ in range(operator.arity)]))
        elif re.fullmatch(r"x[1-9]\d*", name):
            index = int(name[1:]) - 1
            stack.append(base_sum(Input(index, ranks[index])))
        elif value is not None:
            stack.append(number_sum(Number(float(value), free=True)))
        else:
            stack.append(number_sum(Number(float(name))))
    return stack[0]


def name_ranks(columns: Sequence[str]) -> list[int]:
    """The place of each name in alphabetical order, where x2 comes before x10."""

    def natural(index: int) -> list[Any]:
        parts = re.split(r"(\d+)", columns[index])
        return [(int(part), part) if part.isdecimal() else part.lower() for part in parts] + [(index,)]

    ranks = [0] * len(columns)
    for rank, index in enumerate(sorted(range(len(columns)), key=natural)):
        ranks[index] = rank
    return ranks


def is_integer(power: Exponent) -> bool:
    """Whether a power is a whole number."""
    return float(power).is_integer()


def is_even(power: Exponent) -> bool:
    """Whether a power is an even number."""
    return is_integer(power) and int(power) % 2 == 0


def size_of(power: Exponent) -> Exponent:
    """The power without its sign."""
    return -power if power < 0 else power


def exponent_of(value: Exponent) -> Exponent:
    """A fraction if it is a simple one up to rounding, otherwise the number itself."""
    if isinstance(value, Fraction) and value.denominator <= _LARGEST_DENOMINATOR:
        return value
    if not math.isfinite(value):
        raise OverflowError
    simple = Fraction(value).limit_denominator(_LARGEST_DENOMINATOR)
    return simple if abs(float(simple) - value) <= 1e-14 * max(1.0, abs(float(value))) else float(value)


def number_sum(number: Number) -> TermSum:
    """A number as a sum."""
    return TermSum((Term(number, ()),)) if number.value else ZERO_SUM


def base_sum(base: Base) -> TermSum:
    """A factor as a sum."""
    return base if isinstance(base, TermSum) else TermSum((Term(ONE, ((base, Fraction(1)),)),))


def scaled_sum(total: TermSum, number: Number) -> TermSum:
    """The sum with every term multiplied by a number."""
    if number.value == 0:
        return ZERO_SUM
    if number == ONE:
        return total
    return TermSum(tuple(term.with_number(neat(term.number.times(number))) for term in total.terms))


def neat(number: Number) -> Number:
    """The number without the last digits if they are but rounding: 2 for 2.0000000000000004."""
    return Number(_neat(number.value), number.free)


def content(total: TermSum, signed: bool) -> tuple[Number, TermSum]:
    """c and s of a sum c * s, where the first term of s has the number 1, or 1 or -1 if c must be positive."""
    lead = total.terms[0].number
    lead = lead if signed else Number(abs(lead.value), lead.free)
    if lead.value == 1.0:
        return ONE, total
    scale = _finite(1 / lead.value, lead.free)
    first = total.terms[0].with_number(ONE if lead.value * total.terms[0].number.value > 0 else MINUS_ONE)
    rest = (term.with_number(_quotient(term.number, lead, scale)) for term in total.terms[1:])
    return lead, TermSum((first, *rest))


def _common_factors(total: TermSum) -> tuple[list[Pair], TermSum]:
    """Factors that all terms of a sum share, and what is left of it."""
    first, *others = (dict(term.factors) for term in total.terms)
    common: dict[Base, Exponent] = {}
    for base, power in first.items():
        powers = [power, *(other.get(base, Fraction(0)) for other in others)]
        if all(is_integer(own) and own * power > 0 for own in powers):
            common[base] = min(powers, key=size_of)
    if not common:
        return [], total
    pairs = [[(b, e - common.get(b, 0)) for b, e in term.factors] for term in total.terms]
    left = (tuple((base, power) for base, power in own if power) for own in pairs)
    return list(common.items()), TermSum(
        tuple(Term(t.number, f) for t, f in zip(total.terms, left, strict=True))
    )


def is_never_negative(base: Base, power: Exponent = Fraction(1)) -> bool:
    """Whether a power has no negative value wherever it is defined."""
    if is_even(power) or not is_integer(power):
        return True
    if isinstance(base, Call):
        return base.operator.is_built_in and base.operator.name in ("abs", "exp")
    return isinstance(base, TermSum) and all(
        term.number.value > 0 and all(is_never_negative(*pair) for pair in term.factors)
        for term in base.terms
    )


def _quotient(number: Number, by: Number, scale: Number) -> Number:
    value = number.value / by.value
    if not math.isfinite(value) or not value:
        raise OverflowError
    return neat(Number(value, number.free or scale.free))


def _finite(value: float, free: bool) -> Number:
    if not math.isfinite(value) or not value:
        raise OverflowError
    return Number(value, free)


def _neat(value: float) -> float:
    short = float(f"{value:.12g}")
    return short if abs(short - value) <= _ROUNDING * abs(value) else value


class _Algebra:
    """Sums, products and powers of normal forms."""

    def __init__(self, expand: bool) -> None:
        self._expand = expand
        self._rules: dict[str, Callable[..., TermSum]] = {
            "add": lambda a, b: self.add((a, b)),
            "sub": lambda a, b: self.add((a, scaled_sum(b, MINUS_ONE))),
            "mul": self.times,
            "div": lambda a, b: self.times(a, self.power(b, Fraction(-1))),
            "neg": lambda a: scaled_sum(a, MINUS_ONE),
            "inv": lambda a: self.power(a, Fraction(-1)),
            "sqrt": lambda a: self.power(a, Fraction(1, 2)),
            **{f"n{k}": lambda a, k=k: self.power(a, Fraction(k)) for k in (2, 3, 4)},
            "pow": self._pow,
            "exp": self._exp,
            "log": self._log,
            "abs": self._abs,
            "cos": self._cos,
            **{name: lambda a, name=name: self._odd(name, a) for name in ODD},
        }

    def applied(self, operator: Operator, operands: list[TermSum]) -> TermSum:
        """The normal form of an operator of normal forms."""
        numbers = [operand.constant for operand in operands]
        opaque = base_sum(Call(operator, tuple(operands)))
        if all(number is not None for number in numbers):
            known = [number for number in numbers if number is not None]
            with np.errstate(all="ignore"):
                value = float(operator.function(*(np.float64(number.value) for number in known)))
            free = any(number.free for number in known)
            return number_sum(neat(Number(value, free))) if math.isfinite(value) else opaque
        if not operator.is_built_in or operator.name not in self._rules:
            return opaque
        try:
            return self._rules[operator.name](*operands)
        except OverflowError:
            return opaque

    def add(self, sums: Iterable[TermSum]) -> TermSum:
        """All terms, like ones as one."""
        merged: dict[str, Term] = {}
        for term in (term for total in sums for term in total.terms):
            before = merged.get(term.key)
            if before is None:
                merged[term.key] = term
                continue
            a, b = before.number, term.number
            value = a.value + b.value
            if abs(value) <= _ROUNDING * max(abs(a.value), abs(b.value)):
                del merged[term.key]
            else:
                merged[term.key] = term.with_number(neat(_finite(value, a.free or b.free)))
        return TermSum(tuple(merged.values()))

    def times(self, a: TermSum, b: TermSum) -> TermSum:
        """The product; a number is multiplied through."""
        for one, other in ((a, b), (b, a)):
            if (number := one.constant) is not None:
                return scaled_sum(other, number)
        (first, left), (second, right) = self._as_product(a), self._as_product(b)
        return self.product(first.times(second), [*left, *right])

    def _as_product(self, total: TermSum) -> tuple[Number, list[Pair]]:
        if not total.terms:
            raise OverflowError
        if len(total.terms) == 1:
            return total.terms[0].number, list(total.terms[0].factors)
        common, rest = _common_factors(total)
        number, rest = content(rest, signed=True)
        return number, [*common, (rest, Fraction(1))]

    def product(self, number: Number, pairs: list[Pair]) -> TermSum:
        """A number times powers, of which none need to be distinct."""
        merged: dict[Base, Exponent] = {}
        waiting = list(pairs)
        exponents: list[TermSum] = []  # of factors exp(f)
        last = 0
        while waiting or len(exponents) > last:
            if not waiting:
                more, waiting, rest = self._exp_parts(self.add(exponents))
                number = number.times(more)
                exponents = [] if rest is None else [rest]
                last = len(exponents)
                continue
            base, power = waiting.pop()
            if isinstance(base, Call) and base.operator is OPERATORS["exp"]:
                exponents.append(scaled_sum(base.operands[0], _exponent_number(power)))
                continue
            power = exponent_of(power + merged.pop(base, Fraction(0)))
            if isinstance(base, TermSum) and len(base.terms) == 1 and is_integer(power) and power:
                inner = base.terms[0]
                number = number.times(inner.number.to(power))
                waiting += [(own, exponent_of(own_power * power)) for own, own_power in inner.factors]
            elif isinstance(base, Call) and base.operator is OPERATORS["abs"] and is_even(power) and power:
                inside = self.power(base.operands[0], power)
                more, found = self._as_product(inside)
                number = number.times(more)
                waiting += found
            elif power:
                merged[base] = power
        merged = self._roots_gathered(merged)
        merged |= {Call(OPERATORS["exp"], (total,)): Fraction(1) for total in exponents}
        return self._flat(Term(neat(number), tuple(merged.items())))

    def _roots_gathered(self, merged: dict[Base, Exponent]) -> dict[Base, Exponent]:
        """Roots and other broken powers with one exponent as one: sqrt(x) * sqrt(y) as sqrt(x * y)."""
        groups: dict[Exponent, list[Pair]] = {}
        for base, power in merged.items():
            if not is_integer(power):
                groups.setdefault(size_of(power), []).append((base, power))
        for size, group in groups.items():
            if len(group) == 1:
                continue
            sign = 1.0
            inner: dict[Base, Exponent] = {}
            for base, power in group:
                del merged[base]
                parts: Sequence[Pair] = [(base, Fraction(1))]
                if isinstance(base, TermSum) and len(base.terms) == 1:
                    parts, sign = base.terms[0].factors, sign * base.terms[0].number.value
                for own, own_power in parts:
                    signed = own_power if power > 0 else -own_power
                    inner[own] = exponent_of(inner.get(own, Fraction(0)) + signed)
            alone = {base for base, _ in group}
            for base, power in list(inner.items()):
                if is_even(power):
                    del inner[base]
                    base = base if base in alone or is_never_negative(base) else _absolute(base)
                    if total := exponent_of(power * size + merged.pop(base, Fraction(0))):
                        merged[base] = total
            if not inner:
                continue
            positive = all(power < 0 for power in inner.values())
            if positive:
                inner = {base: -power for base, power in inner.items()}
                size = -size
            if len(inner) == 1 and sign > 0:
                base, power = next(iter(inner.items()))
                power = exponent_of(power * size)
            else:
                base, power = TermSum((Term(Number(sign), tuple(inner.items())),)), size
            if total := exponent_of(power + merged.pop(base, Fraction(0))):
                merged[base] = total
        return merged

    def _flat(self, term: Term) -> TermSum:
        """A term as a sum: a bracket that stands alone is opened, others only if products are multiplied out."""
        if len(term.factors) == 1:
            base, power = term.factors[0]
            if isinstance(base, TermSum) and power == 1:
                return scaled_sum(base, term.number)
        if self._expand:
            for place, (base, power) in enumerate(term.factors):
                if not isinstance(base, TermSum) or len(base.terms) < 2 or power not in (1, 2, 3):
                    continue
                count = len(base.terms) ** int(power)
                if count <= _MOST_TERMS:
                    rest = Term(term.number, term.factors[:place] + term.factors[place + 1 :])
                    return self._multiplied_out(rest, [base] * int(power))
        return TermSum((term,))

    def _multiplied_out(self, term: Term, brackets: list[TermSum]) -> TermSum:
        terms = [term]
        for bracket in brackets:
            terms = [
                piece
                for left in terms
                for right in bracket.terms
                for piece in self.product(
                    left.number.times(right.number), [*left.factors, *right.factors]
                ).terms
            ]
            terms = list(self.add([TermSum((piece,)) for piece in terms]).terms)
            if len(terms) > _MOST_TERMS:
                raise OverflowError
        return TermSum(tuple(terms))

    def power(self, total: TermSum, power: Exponent) -> TermSum:
        """A power of a normal form; `OverflowError` where it is not defined or too large."""
        power = exponent_of(power)
        number = total.constant
        if power == 0:
            return number_sum(ONE)
        if power == 1:
            return total
        if number is not None:
            if number.value:
                return number_sum(number.to(power))
            if power > 0:
                return ZERO_SUM
            raise OverflowError
        if len(total.terms) > 1 and is_integer(power):
            lead, pairs = self._as_product(total)
            return self.product(lead.to(power), [(base, own * power) for base, own in pairs])
        if len(total.terms) > 1:
            lead, rest = content(total, signed=False)
            return self.product(lead.to(power), [(rest, power)])
        term = total.terms[0]
        if is_integer(power):
            pairs = [(base, exponent_of(own * power)) for base, own in term.factors]
            return self.product(term.number.to(power), pairs)
        outside: list[Pair] = []
        inside: list[Pair] = []
        for base, own in term.factors:
            if not is_never_negative(base, own):
                inside.append((base, own))
            elif is_even(own) and not is_even(own * power) and not is_never_negative(base):
                outside.append((_absolute(base), own * power))
            else:
                outside.append((base, own * power))
        sign = math.copysign(1.0, term.number.value)
        if len(inside) == 1 and sign > 0:
            outside.append((inside[0][0], inside[0][1] * power))
        elif inside:
            outside.append((self._flat(Term(Number(sign), tuple(inside))), power))
        elif sign < 0:
            raise OverflowError
        outside = [(base, exponent_of(own)) for base, own in outside]
        return self.product(Number(abs(term.number.value), term.number.free).to(power), outside)

    # ------------------------------------------------------------------------------------------ functions

    def _pow(self, base: TermSum, power: TermSum) -> TermSum:
        if (number := power.constant) is not None:
            return self.power(base, number.value)
        if len(base.terms) == 1:
            term = base.terms[0]
            if term.number == ONE and len(term.factors) == 1:
                inner, own = term.factors[0]
                if isinstance(inner, Call) and inner.operator is OPERATORS["exp"] and own == 1:
                    return self._exp(self.times(inner.operands[0], power))
        return base_sum(Call(OPERATORS["pow"], (base, power)))

    def _exp(self, total: TermSum) -> TermSum:
        number, pairs, rest = self._exp_parts(total)
        if rest is not None:
            pairs.append((Call(OPERATORS["exp"], (rest,)), Fraction(1)))
        return self.product(number, pairs)

    def _exp_parts(self, total: TermSum) -> tuple[Number, list[Pair], TermSum | None]:
        """exp of a sum: the offset as a number, k * log(f) as f^k, and the rest."""
        number = ONE
        pairs: list[Pair] = []
        rest: list[Term] = []
        for term in total.terms:
            base, power = term.factors[0] if len(term.factors) == 1 else (None, Fraction(0))
            if not term.factors and abs(term.number.value) <= _LARGEST_OFFSET:
                number = number.times(Number(math.exp(term.number.value), term.number.free))
            elif isinstance(base, Call) and base.operator is OPERATORS["log"] and power == 1:
                raised = self.power(base.operands[0], term.number.value)
                more, found = self._as_product(raised)
                number = number.times(more)
                pairs += found
            else:
                rest.append(term)
        return number, pairs, TermSum(tuple(rest)) if rest else None

    def _log(self, total: TermSum) -> TermSum:
        log = OPERATORS["log"]
        if len(total.terms) > 1:
            return base_sum(Call(log, (total,)))
        term, outside = total.terms[0], []
        inside: list[Pair] = []
        for base, power in term.factors:
            if isinstance(base, Call) and base.operator is OPERATORS["exp"]:
                outside.append(scaled_sum(base.operands[0], _exponent_number(power)))
            else:
                inside.append((base, power))
        number = term.number
        alone = len(inside) == 1 and not is_even(inside[0][1])
        bracket = alone and isinstance(inside[0][0], TermSum) and is_integer(inside[0][1])
        if number.value > 0 or bracket:
            outside.append(number_sum(Number(math.log(abs(number.value)), number.free)))
            number = ONE if number.value > 0 else MINUS_ONE
        if alone and (number == ONE or bracket):
            base, power = inside[0]
            if number == MINUS_ONE:  # log(-1 / f) is -log(-f)
                inner = base_sum(Call(log, (scaled_sum(base_sum(base), MINUS_ONE),)))
            elif isinstance(base, TermSum) and len(base.terms) == 1:  # of a root of a product
                inner = self._log(base)
            else:
                inner = base_sum(Call(log, (base_sum(base),)))
            return self.add([*outside, scaled_sum(inner, _exponent_number(power))])
        if inside or number != ONE:
            rest = self._flat(Term(number, tuple(inside)))
            if rest.constant is not None:
                raise OverflowError
            outside.append(base_sum(Call(log, (rest,))))
        return self.add(outside)

    def _abs(self, total: TermSum) -> TermSum:
        if len(total.terms) > 1:
            if all(is_never_negative(TermSum((term,))) for term in total.terms):
                return total
            return base_sum(Call(OPERATORS["abs"], (_upright(total),)))
        term = total.terms[0]
        outside: list[Pair] = []
        inside: list[Pair] = []
        for base, power in term.factors:
            (outside if is_never_negative(base, power) else inside).append((base, power))
        if inside:
            if len(inside) == 1 and isinstance(inside[0][0], (Input, Call)):
                outside.append((_absolute(inside[0][0]), inside[0][1]))
            else:
                rest = _upright(self._flat(Term(ONE, tuple(inside))))
                outside.append((Call(OPERATORS["abs"], (rest,)), Fraction(1)))
        return self.product(Number(abs(term.number.value), term.number.free), outside)

    def _cos(self, total: TermSum) -> TermSum:
        return base_sum(Call(OPERATORS["cos"], (_upright(_in_phase(total, 0.0)),)))

    def _odd(self, name: str, total: TermSum) -> TermSum:
        """f(-x) as -f(x)."""
        total = _in_phase(total, math.pi) if name == "sin" else total
        negative = all(term.number.value < 0 for term in total.terms)
        inner = base_sum(Call(OPERATORS[name], (scaled_sum(total, MINUS_ONE) if negative else total,)))
        return scaled_sum(inner, MINUS_ONE) if negative else inner


def _absolute(base: Base) -> Call:
    return Call(OPERATORS["abs"], (base_sum(base),))


def _upright(total: TermSum) -> TermSum:
    """The sum or its negative, whichever has fewer minus signs."""
    signs = [math.copysign(1.0, term.number.value) for term in total.terms]
    return scaled_sum(total, MINUS_ONE) if (sum(signs), signs[0]) < (0, 0) else total


def _in_phase(total: TermSum, turned: float) -> TermSum:
    """What stands in a wave, with a fitted phase between -pi and pi, and a - f as f + turned - a."""
    *others, last = total.terms
    if last.factors or not last.number.free or not others:
        return total
    phase, negative = last.number.value, all(term.number.value < 0 for term in others)
    if negative:
        phase = turned - phase
        others = [term.with_number(term.number.times(MINUS_ONE)) for term in others]
    phase = math.remainder(phase, 2 * math.pi) if abs(phase) > math.pi else phase
    return TermSum((*others, *([Term(Number(phase, True), ())] if phase else [])))


def _exponent_number(power: Exponent) -> Number:
    """A power as a number; one that is no fraction comes from a constant."""
    return Number(float(power), free=not isinstance(power, Fraction))
