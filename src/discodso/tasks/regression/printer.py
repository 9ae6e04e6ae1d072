"""The walk over an arranged expression that text, LaTeX, MathML and SymPy share; each says how its parts look."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Generic, TypeVar

from discodso.base.errors import InvalidDesignError
from discodso.tasks.regression.arrangement import arrangement, in_reading_order, split_fraction
from discodso.tasks.regression.normal_form import Base, Call, Exponent, Input, Term, TermSum, size_of
from discodso.tasks.regression.operators import Operator

P = TypeVar("P")
_EXACT = 1e-15
_LARGEST = 12  # number above or below the line of a fraction that is written as one
_POWERS = {"n2": 2, "n3": 3, "n4": 4}
PI = "pi"


class Printer(ABC, Generic[P]):
    """Prints an expression, from its arrangement; P is a piece of what it prints.

    Subclasses say how numbers, columns, calls, powers, roots, terms and sums look; all of these are given pieces.
    """

    def __init__(self, expression: Any) -> None:
        self.expression = expression
        self.has_pi = PI not in expression.columns

    def print(self, otherwise: Callable[[str], P] | None = None) -> P:
        """The whole expression; one that is nested too deeply is refused, or shown as its design."""
        try:
            return self._sum(arrangement(self.expression))
        except RecursionError:
            if otherwise is None:
                raise InvalidDesignError("the expression is nested too deeply to be printed") from None
            return otherwise(str(self.expression.design))

    @abstractmethod
    def number(self, value: float) -> P:
        """A number that is not negative."""

    @abstractmethod
    def pi(self) -> P:
        """The number pi."""

    @abstractmethod
    def column(self, index: int) -> P:
        """A column."""

    @abstractmethod
    def call(self, operator: Operator, parts: Sequence[P]) -> P:
        """A function of its operands."""

    @abstractmethod
    def power(self, base: P, exponent: P) -> P:
        """A power."""

    @abstractmethod
    def root(self, inner: P) -> P:
        """A square root."""

    @abstractmethod
    def term(self, numbers: Sequence[P], above: Sequence[P], below: Sequence[P]) -> P:
        """Numbers times factors, over what is below the line; there are two pieces at least."""

    @abstractmethod
    def sum(self, parts: Sequence[tuple[bool, P]]) -> P:
        """A sum of pieces, each with whether it is subtracted; a single one is."""

    def exponent(self, value: Exponent) -> P:
        """An exponent, which may be negative: a decimal number if that is exact, otherwise a fraction."""
        size = size_of(value)
        if isinstance(size, Fraction) and 10**6 % size.denominator:
            part = self.term([], [self.number(size.numerator)], [self.number(size.denominator)])
        else:
            part = self.number(float(size))
        return self.sum([(True, part)]) if value < 0 else part

    def _sum(self, total: TermSum) -> P:
        parts = [(term.number.value < 0, self._term(term)) for term in in_reading_order(total)]
        if not parts:
            return self.number(0.0)
        return self.sum(parts) if len(parts) > 1 or parts[0][0] else parts[0][1]

    def _term(self, term: Term) -> P:
        above, below = ([self._factor(*pair) for pair in pairs] for pairs in split_fraction(term))
        top, bottom = self._number_pieces(abs(term.number.value))
        below = [*bottom, *below]
        if not top and not above:
            top = [self.number(1.0)]
        if len(top) + len(above) + len(below) == 1:
            return (top or above)[0]
        return self.term(top, above, below)

    def _number_pieces(self, value: float) -> tuple[list[P], list[P]]:
        """Above and below the line: 1 / 3 and multiples of pi are written as such, and 1 not at all."""
        if not math.isfinite(value):
            return [self.number(value)], []
        plain = simple_fraction(value)
        if plain is not None and (plain.denominator == 1 or 10**6 % plain.denominator):
            return self._whole(plain.numerator), self._whole(plain.denominator)
        over = simple_fraction(value / math.pi) if self.has_pi else None
        if over is not None:
            return [*self._whole(over.numerator), self.pi()], self._whole(over.denominator)
        under = simple_fraction(value * math.pi) if self.has_pi else None
        if under is not None:
            return self._whole(under.numerator), [*self._whole(under.denominator), self.pi()]
        return [self.number(value)], []

    def _whole(self, value: int) -> list[P]:
        return [] if value == 1 else [self.number(float(value))]

    def _factor(self, base: Base, power: Exponent) -> P:
        inner = self._base(base)
        if power == 1:
            return inner
        return self.root(inner) if power == Fraction(1, 2) else self.power(inner, self.exponent(power))

    def _base(self, base: Base) -> P:
        if isinstance(base, Input):
            return self.column(base.index)
        return self._sum(base) if isinstance(base, TermSum) else self._call(base)

    def _call(self, call: Call) -> P:
        """A function, or arithmetic that could not be taken apart."""
        parts = [self._sum(operand) for operand in call.operands]
        match call.operator.name if call.operator.is_built_in else "":
            case "add" | "sub" as name:
                return self.sum([(False, parts[0]), (name == "sub", parts[1])])
            case "mul":
                return self.term([], parts, [])
            case "div":
                return self.term([], parts[:1], parts[1:])
            case "inv":
                return self.term([], [self.number(1.0)], parts)
            case "neg":
                return self.sum([(True, parts[0])])
            case "pow":
                return self.power(*parts)
            case "sqrt":
                return self.root(parts[0])
            case "n2" | "n3" | "n4" as name:
                return self.power(parts[0], self.number(_POWERS[name]))
        return self.call(call.operator, parts)


def simple_fraction(value: float) -> Fraction | None:
    """A fraction of small numbers that a number is up to rounding."""
    found = Fraction(value).limit_denominator(_LARGEST) if 1e-3 < value < 1e6 else Fraction(0)
    small = found.denominator == 1 or found.numerator <= _LARGEST
    return found if found and small and abs(float(found) - value) <= _EXACT * value else None


def shown_number(value: float, digits: int) -> str:
    """A number with some significant digits."""
    return f"{value:.{digits}g}"
