"""How a normal form is written: which factors stand before a bracket, and where its numbers stand.

An arrangement is made of the same parts as a normal form; it has the fewest tokens that a greedy search finds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from discodso.tasks.regression.normal_form import (
    MINUS_ONE,
    ODD,
    ONE,
    Base,
    Call,
    Exponent,
    Input,
    Number,
    Term,
    TermSum,
    base_sum,
    is_integer,
    neat,
    normal_form,
    scaled_sum,
    size_of,
)
from discodso.tasks.regression.operators import OPERATORS

Item = str | tuple[str, float]  # a token, perhaps with its value
_CONST = "const"


def arrangement(expression: Any, brackets: int = 1) -> TermSum:
    """The shortest way that is found to write an `Expression`, with products multiplied out or not.

    Args:
        brackets: what a pair of brackets costs, in tokens: 0 for machines, 1 for people.
    """
    arrange = _Arranger(brackets)
    found = [normal_form(expression, expand=False)]
    if _brackets(found[0]):
        found.append(normal_form(expression, expand=True))
    return min((arrange.sum(way) for way in dict.fromkeys(found)), key=lambda way: arrange.cost(way)[0])


def tokens(total: TermSum, known: dict[str, list[Item]] | None = None) -> list[Item]:
    """The sum in pre-order; `known` remembers those of parts, by their keys."""
    known = {} if known is None else known
    if total.key in known:
        return known[total.key]
    if not total.terms:
        return [_number(Number(0.0))]
    first, *rest = in_reading_order(total)
    found = _signed_tokens(first, known)
    for term in rest:
        found = ["sub" if term.number.value < 0 else "add", *found, *_tokens(_positive(term), known)]
    known[total.key] = found
    return found


def in_reading_order(total: TermSum) -> list[Term]:
    """Its terms as they are written: a positive one first; if there is none, one that has a number."""
    terms = list(total.terms)
    best = [t for t in terms if t.number.value > 0] or [t for t in terms if abs(t.number.value) != 1.0]
    if best and terms[0].number.value < 0:
        terms.remove(best[0])
        terms.insert(0, best[0])
    return terms


def split_fraction(term: Term) -> tuple[list[tuple[Base, Exponent]], list[tuple[Base, Exponent]]]:
    """Factors above and below the line, all with positive powers."""
    above = [(base, power) for base, power in term.factors if power > 0]
    return above, [(base, -power) for base, power in term.factors if power < 0]


def _positive(term: Term) -> Term:
    return term.with_number(Number(abs(term.number.value), term.number.free))


def _number(number: Number) -> Item:
    value = float(number.value)
    if number.free:
        return _CONST, value
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _signed_tokens(term: Term, known: dict[str, list[Item]]) -> list[Item]:
    if term.number.value == -1.0 and term.factors:
        return ["neg", *_tokens(_positive(term), known)]
    return _tokens(term, known)


def _tokens(term: Term, known: dict[str, list[Item]]) -> list[Item]:
    above, below = split_fraction(term)
    numerator = [_power_tokens(*pair, known) for pair in above]
    denominator = [_power_tokens(*pair, known) for pair in below]
    if term.number.value != 1.0 or not term.factors:
        numerator.insert(0, [_number(term.number)])
    # x * exp(-y) is one token longer than x / exp(y).
    for place, (base, power) in enumerate(above):
        negative = _negative_exponent(base) if power == 1 else None
        if negative is not None and len(numerator) > 1:
            del numerator[len(numerator) - len(above) + place]
            denominator.append(["exp", *tokens(negative, known)])
            break
    if not numerator:
        return ["inv", *_joined(denominator)]
    return ["div", *_joined(numerator), *_joined(denominator)] if denominator else _joined(numerator)


def _negative_exponent(base: Base) -> TermSum | None:
    """f of exp(-f) where f has no minus sign."""
    if not isinstance(base, Call) or base.operator is not OPERATORS["exp"]:
        return None
    inner = base.operands[0]
    return scaled_sum(inner, MINUS_ONE) if all(t.number.value == -1.0 for t in inner.terms) else None


def _joined(parts: list[list[Item]]) -> list[Item]:
    found = parts[0]
    for part in parts[1:]:
        found = ["mul", *found, *part]
    return found


def _power_tokens(base: Base, power: Exponent, known: dict[str, list[Item]]) -> list[Item]:
    if isinstance(base, Input):
        inner: list[Item] = [f"x{base.index + 1}"]
    elif isinstance(base, TermSum):
        inner = tokens(base, known)
    else:
        inner = [base.operator.name, *(item for operand in base.operands for item in tokens(operand, known))]
    names = _POWERS.get(power if isinstance(power, Fraction) else Fraction(0))
    if names is not None:
        return [*names, *inner]
    return ["pow", *inner, _number(Number(float(power), free=not isinstance(power, Fraction)))]


# Powers above 0 as a chain of operators.
_POWERS: dict[Fraction, tuple[str, ...]] = {
    Fraction(1): (),
    **{Fraction(k): (f"n{k}",) for k in (2, 3, 4)},
    Fraction(6): ("n2", "n3"),
    Fraction(8): ("n2", "n4"),
    Fraction(9): ("n3", "n3"),
    Fraction(1, 2): ("sqrt",),
    Fraction(1, 4): ("sqrt", "sqrt"),
    Fraction(3, 2): ("sqrt", "n3"),
}


class _Arranger:
    """Arranges the parts of one expression; it remembers what it has seen by their keys."""

    def __init__(self, brackets: int) -> None:
        self._brackets = brackets
        self._tokens: dict[str, list[Item]] = {}
        self._costs: dict[str, tuple[int, int, int]] = {}
        self._sums: dict[str, TermSum] = {}

    def cost(self, total: TermSum) -> tuple[int, int, int]:
        """Tokens and brackets, how many numbers are not simple, and how many minus signs there are."""
        if total.key not in self._costs:
            self._costs[total.key] = self._cost(total)
        return self._costs[total.key]

    def _cost(self, total: TermSum) -> tuple[int, int, int]:
        items = tokens(total, self._tokens)
        values = [item[1] for item in items if not isinstance(item, str)]
        values += [float(item) for item in items if isinstance(item, str) and item[0] in "-0123456789"]
        simple = sum(value == round(value, 2) and abs(value) < 1000 for value in values)
        minus = sum(value < 0 for value in values) + sum(item in ("sub", "neg") for item in items)
        return len(items) + self._brackets * _brackets(total), len(values) - simple, minus

    def sum(self, total: TermSum) -> TermSum:
        """The sum with its parts arranged, and common factors before brackets where that is shorter."""
        if total.key not in self._sums:
            found = self._sum(total)
            self._sums[total.key] = self._sums[found.key] = found
        return self._sums[total.key]

    def _sum(self, total: TermSum) -> TermSum:
        found = TermSum(tuple(self.term(term) for term in total.terms))
        if len(found.terms) == 1:
            return self._opened(found)
        cost = self.cost(found)[0]
        while True:
            ways = [(self.cost(way)[0], place, way) for place, way in enumerate(self._factored(found))]
            if not ways or min(ways)[0] >= cost:
                return found
            cost, _, found = min(ways)

    def _opened(self, total: TermSum) -> TermSum:
        """A single bracket with nothing before it, as the sum that stands in it."""
        term = total.terms[0]
        if term.number == ONE and len(term.factors) == 1:
            base, power = term.factors[0]
            if isinstance(base, TermSum) and power == 1:
                return base
        return total

    def term(self, term: Term) -> Term:
        """The term with its parts arranged, and its number where it is shortest: before it, or in a bracket."""
        term = Term(term.number, tuple((self._base(base), power) for base, power in term.factors))
        if term.number.value == 1.0:
            return term
        ways = [term, *self._absorbed(term)]
        return min(ways, key=lambda way: self.cost(TermSum((way,))))

    def _absorbed(self, term: Term) -> Iterator[Term]:
        """The same with its number, or its sign, in one of the brackets, roots or odd functions."""
        for place, (base, power) in enumerate(term.factors):
            if isinstance(base, Call) and base.operator.name in ODD and base.operator.is_built_in:
                # -sin(5 x) takes a token more than sin(-5 x), but reads better.
                if self._brackets and all(own.number.value > 0 for own in base.operands[0].terms):
                    continue
                if term.number.value < 0 and is_integer(power) and int(power) % 2:
                    turned = Call(base.operator, (self.sum(scaled_sum(base.operands[0], MINUS_ONE)),))
                    factors = (*term.factors[:place], (turned, power), *term.factors[place + 1 :])
                    yield Term(_positive(term).number, factors)
                continue
            root = not is_integer(power)
            bracket = isinstance(base, TermSum) and len(base.terms) > 1
            if not (root or bracket) or (term.number.value < 0 and (root or int(power) % 2 == 0)):
                continue
            before, behind, size = term.factors[:place], term.factors[place + 1 :], _positive(term).number
            if term.number.value < 0:  # the sign alone
                inner = self.sum(scaled_sum(base_sum(base), MINUS_ONE))
                yield Term(size, (*before, (inner, power), *behind))
            try:
                size = size.to(1 / power)
                size = neat(Number(math.copysign(size.value, term.number.value), size.free))
                inner = self.sum(scaled_sum(base_sum(base), size))
            except OverflowError:
                continue
            yield Term(ONE, (*before, (inner, power), *behind))

    def _base(self, base: Base) -> Base:
        if isinstance(base, Call):
            return Call(base.operator, tuple(self.sum(operand) for operand in base.operands))
        return self.sum(base) if isinstance(base, TermSum) else base

    def _factored(self, total: TermSum) -> Iterator[TermSum]:
        """Every way to write one common factor, or number, of some terms before a bracket."""
        terms = total.terms
        count = Counter(base for term in terms for base, _ in term.factors)
        for common in (base for base, times in count.items() if times > 1):
            for sign in (1, -1):
                powers = [_power_of(term, common) for term in terms]
                group = [i for i, power in enumerate(powers) if power * sign > 0]
                least = min((size_of(powers[i]) for i in group), default=Fraction(0))
                if len(group) > 1 and all(
                    is_integer(powers[i]) or size_of(powers[i]) == least for i in group
                ):
                    if not is_integer(least) and any(is_integer(powers[i]) for i in group):
                        continue
                    taken = [_without(terms[i], common, least * sign) for i in group]
                    yield self._regrouped(terms, group, Term(ONE, ((common, least * sign),)), taken)
        sizes = Counter(abs(term.number.value) for term in terms)
        for size in (size for size, times in sizes.items() if times > 1 and size != 1.0):
            group = [i for i, term in enumerate(terms) if abs(term.number.value) == size]
            free = any(terms[i].number.free for i in group)
            taken = [terms[i].with_number(ONE if terms[i].number.value > 0 else MINUS_ONE) for i in group]
            yield self._regrouped(terms, group, Term(Number(size, free), ()), taken)

    def _regrouped(
        self, terms: tuple[Term, ...], group: list[int], before: Term, taken: list[Term]
    ) -> TermSum:
        inner = self.sum(TermSum(tuple(taken)))
        number, factors = before.number, list(before.factors)
        if all(term.number.value < 0 for term in inner.terms):
            inner = scaled_sum(inner, MINUS_ONE)
            number = Number(-number.value, number.free)
        if len(inner.terms) == 1:
            only = inner.terms[0]
            number = Number(number.value * only.number.value, number.free or only.number.free)
            factors += only.factors
        else:
            factors.append((inner, Fraction(1)))
        rest = [term for i, term in enumerate(terms) if i not in group]
        return TermSum((*rest, Term(number, tuple(factors))))


def _power_of(term: Term, base: Base) -> Exponent:
    return next((power for own, power in term.factors if own == base), Fraction(0))


def _without(term: Term, base: Base, power: Exponent) -> Term:
    pairs = ((own, own_power - power if own == base else own_power) for own, own_power in term.factors)
    return Term(term.number, tuple((own, left) for own, left in pairs if left))


def _brackets(total: TermSum) -> int:
    """Brackets that are not those of a function."""
    found = 0
    for term in total.terms:
        for base, power in term.factors:
            if isinstance(base, TermSum):
                found += _brackets(base) + (power != Fraction(1, 2))
            elif isinstance(base, Call):
                found += sum(map(_brackets, base.operands))
    return found
