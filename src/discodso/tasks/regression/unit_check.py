"""Whether a formula respects units, and which units its constants must have.

Every "const" may have a unit; numbers that are tokens, such as "2", have none. The dimension of a subtree is
linear in those of its constants, so each sum, each operand of sin, exp or log, and the target give a linear
equation, and the formula is consistent if they have a solution.

A compiled engine needs no equations, because a constant stands in one place only: the dimensions that a subtree
can have are either one vector or all of them. From the leaves up:

- a constant has all; an input has its vector; a literal has zeros
- mul, div: all, if one operand has all; else the sum or the difference of the vectors
- n2, n3, n4, sqrt, inv: all stays all; a vector is multiplied by 2, 3, 4, 1/2, -1 (an odd number cannot be halved)
- add, sub: all of two that have all; the vector of the one that has one; two vectors must be equal
- sin, cos, tan, tanh, exp, log: an operand with a vector must have zeros; the result has zeros
- the whole must have all, or the vector of the target
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from discodso.base.errors import DeclarationError
from discodso.space.design import Design
from discodso.tasks.regression.export import text
from discodso.tasks.regression.expression import CONST, Expression, input_index, literal_value
from discodso.tasks.regression.operators import Operator
from discodso.tasks.regression.units import NO_DIMENSION, Dimension, UnitLike, dimension_of

_POWERS = {
    "n2": Fraction(2),
    "n3": Fraction(3),
    "n4": Fraction(4),
    "sqrt": Fraction(1, 2),
    "inv": Fraction(-1),
    "neg": Fraction(1),
    "abs": Fraction(1),
}
_LEAST_STEP = 10**6  # largest denominator of an exponent


@dataclass(frozen=True)
class UnitCheck:
    """What `check` has found.

    Attributes:
        violations: a sentence for each place where units do not fit.
        constants: what each constant must have, in the order of `Expression.constants`; None if that is open.
        whole: the dimension of the formula; None if that is open.
    """

    violations: tuple[str, ...]
    constants: tuple[Dimension | None, ...]
    whole: Dimension | None

    @property
    def consistent(self) -> bool:
        """Whether all units fit."""
        return not self.violations


def check(
    expression: Expression,
    column_units: Sequence[UnitLike] | Mapping[str, UnitLike],
    target_unit: UnitLike = None,
) -> UnitCheck:
    """Say whether constants can have units such that the formula is consistent.

    Args:
        column_units: of every column, in order, or by name; texts such as "m/s^2" are read. None, or a name that
            is not there, is a unit that is not known, but the same one wherever the column stands.
        target_unit: of the whole; None if any will do.
    """
    if isinstance(column_units, Mapping):
        unknown = [name for name in column_units if name not in expression.columns]
        if unknown:
            raise DeclarationError(
                f"units of {unknown[0]!r}, but the columns are {', '.join(expression.columns)}"
            )
        column_units = [column_units.get(name) for name in expression.columns]
    if len(column_units) != len(expression.columns):
        raise DeclarationError(
            f"{len(column_units)} units for {len(expression.columns)} columns; give one for each"
        )
    return _Checker(expression, [dimension_of(unit) for unit in column_units]).checked(
        dimension_of(target_unit)
    )


_Unknown = tuple[str, int]  # "const" or "column", and its number


@dataclass(frozen=True)
class _OpenDimension:
    """A dimension that is linear in unknown ones: known + sum of shares times unknowns."""

    known: Dimension = NO_DIMENSION
    shares: Mapping[_Unknown, Fraction] = field(default_factory=dict)

    def plus(self, other: _OpenDimension, times: Fraction) -> _OpenDimension:
        shares = dict(self.shares)
        for key, share in other.shares.items():
            shares[key] = shares.get(key, Fraction(0)) + times * share
        kept = {key: share for key, share in shares.items() if share}
        return _OpenDimension(self.known * other.known**times, kept)


@dataclass(frozen=True)
class _Subtree:
    """A subtree: its dimension, its value if it has no inputs, and its tokens."""

    form: _OpenDimension
    value: float | None
    items: tuple[tuple[str, float | None], ...]


class _Checker:
    """One pass over one expression."""

    def __init__(self, expression: Expression, units: list[Dimension | None]) -> None:
        self._expression, self._units = expression, units
        self._solved: dict[_Unknown, _OpenDimension] = {}  # unknowns by others that are not solved
        self._violations: list[str] = []

    def checked(self, target: Dimension | None) -> UnitCheck:
        expression = self._expression
        stack: list[_Subtree] = []
        constants = len(expression.constants)
        for name, value in reversed(list(expression.design)):
            operator, index = expression.operator(name), input_index(name)
            if operator is not None:
                stack.append(self._apply(operator, [stack.pop() for _ in range(operator.arity)]))
            elif index is not None:
                unit = self._units[index]
                form = (
                    _OpenDimension(shares={("column", index): Fraction(1)})
                    if unit is None
                    else _OpenDimension(unit)
                )
                stack.append(_Subtree(form, None, ((name, None),)))
            elif name == CONST:
                constants -= 1
                stack.append(
                    _Subtree(
                        _OpenDimension(shares={(CONST, constants): Fraction(1)}), value, ((name, value),)
                    )
                )
            else:
                stack.append(_Subtree(_OpenDimension(), literal_value(name), ((name, None),)))
        whole = stack[0]
        if target is not None and not self._equal(whole.form, _OpenDimension(target)):
            self._violations.append(f"the whole is in {self._words(whole)}, expected {target}")
        count = len(expression.constants)
        found = tuple(self._solution(_OpenDimension(shares={(CONST, i): Fraction(1)})) for i in range(count))
        return UnitCheck(tuple(self._violations), found, self._solution(whole.form))

    def _apply(self, operator: Operator, parts: list[_Subtree]) -> _Subtree:
        name, items = operator.name, tuple(item for part in parts for item in part.items)
        return _Subtree(
            self._form(name if operator.is_built_in else "", parts),
            _value(operator, [part.value for part in parts]),
            ((name, None), *items),
        )

    def _form(self, name: str, parts: list[_Subtree]) -> _OpenDimension:
        first = parts[0]
        if name in ("mul", "div"):
            return first.form.plus(parts[1].form, Fraction(1 if name == "mul" else -1))
        if name in ("add", "sub"):
            if not self._equal(first.form, parts[1].form):
                left, right = (f"{self._text(part)} in {self._words(part)}" for part in parts)
                done = "added" if name == "add" else "subtracted"
                self._violations.append(f"{left} and {right} cannot be {done}")
            return first.form
        if name in _POWERS:
            return _OpenDimension().plus(first.form, _POWERS[name])
        if name == "pow":
            self._require_none(parts[1], "an exponent")
            exponent = parts[1].value
            if exponent is not None and math.isfinite(exponent):
                return _OpenDimension().plus(first.form, Fraction(exponent).limit_denominator(_LEAST_STEP))
            self._require_none(first, "what has an exponent that varies")
            return _OpenDimension()
        for part in parts:  # sin, exp, log, and operators of one's own, of which nothing is known
            self._require_none(part, f"an operand of {name}" if name else "an operand")
        return _OpenDimension()

    def _require_none(self, part: _Subtree, what: str) -> None:
        if not self._equal(part.form, _OpenDimension()):
            self._violations.append(f"{self._text(part)} is in {self._words(part)}, but {what} has no unit")

    def _equal(self, left: _OpenDimension, right: _OpenDimension) -> bool:
        """Require two dimensions to be equal, if they can be."""
        gap = self._reduced(left.plus(right, Fraction(-1)))
        if not gap.shares:
            return not gap.known
        pivot = min(gap.shares, key=lambda key: (key[0] == "column", key))  # rather a constant than a column
        share = gap.shares[pivot]
        rest = _OpenDimension(gap.known, {key: own for key, own in gap.shares.items() if key != pivot})
        solution = _OpenDimension().plus(rest, -1 / share)
        for key, own in self._solved.items():
            if pivot in own.shares:
                without = _OpenDimension(
                    own.known, {other: s for other, s in own.shares.items() if other != pivot}
                )
                self._solved[key] = without.plus(solution, own.shares[pivot])
        self._solved[pivot] = solution
        return True

    def _reduced(self, form: _OpenDimension) -> _OpenDimension:
        """The same with all that is solved put in."""
        found = _OpenDimension(form.known)
        for key, share in form.shares.items():
            found = found.plus(self._solved.get(key, _OpenDimension(shares={key: Fraction(1)})), share)
        return found

    def _solution(self, form: _OpenDimension) -> Dimension | None:
        found = self._reduced(form)
        return None if found.shares else found.known

    def _words(self, part: _Subtree) -> str:
        found = self._solution(part.form)
        return "an open unit" if found is None else "no unit" if not found else str(found)

    def _text(self, part: _Subtree) -> str:
        tokens, values = zip(*part.items, strict=True)
        own = self._expression
        return text(Expression(Design(tokens, values), own.columns, own.operators), digits=4)


def _value(operator: Operator, values: list[float | None]) -> float | None:
    if any(value is None for value in values):
        return None
    try:
        with np.errstate(all="ignore"):
            return float(operator.function(*values))
    except (ArithmeticError, TypeError, ValueError):
        return math.nan
