"""An expression as a SymPy object, as it is written or as SymPy would write it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import sympy

from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.operators import Operator
from discodso.tasks.regression.printer import Printer


def to_sympy(expression: Expression) -> Any:
    """The expression in its shortest form as a SymPy object, nothing evaluated; symbols are the columns, real
    numbers."""
    return _SymPy(expression).print()


def simplified(expression: Expression) -> Any:
    """What SymPy makes of it. Falls back to the expression as it is if SymPy fails."""
    raw = to_sympy(expression)
    try:
        return sympy.simplify(raw)
    except Exception:  # SymPy raises many kinds on unusual input
        return raw


def _product(parts: Sequence[Any]) -> Any:
    return parts[0] if len(parts) == 1 else sympy.Mul(*parts, evaluate=False)


def _negative(part: Any) -> Any:
    return -part if part.is_Number else sympy.Mul(-1, part, evaluate=False)


def _power(base: Any, exponent: Any) -> Any:
    return sympy.Pow(base, exponent, evaluate=False)


class _SymPy(Printer[Any]):
    def number(self, value: float) -> Any:
        return sympy.Integer(int(value)) if value == int(value) and abs(value) < 1e9 else sympy.Float(value)

    def pi(self) -> Any:
        return sympy.pi

    def column(self, index: int) -> Any:
        return sympy.Symbol(self.expression.columns[index], real=True)

    def call(self, operator: Operator, parts: Sequence[Any]) -> Any:
        name = "Abs" if operator.is_built_in and operator.name == "abs" else operator.sympy or operator.name
        function = getattr(sympy, name, None) if re.fullmatch(r"[A-Za-z]\w*", name) else None
        if isinstance(function, type) and issubclass(function, sympy.Function):
            return function(*parts, evaluate=False)
        return sympy.Function(name)(*parts)

    def power(self, base: Any, exponent: Any) -> Any:
        return _power(base, exponent)

    def root(self, inner: Any) -> Any:
        return _power(inner, sympy.Rational(1, 2))

    def term(self, numbers: Sequence[Any], above: Sequence[Any], below: Sequence[Any]) -> Any:
        inverse = [_power(_product(below), -1)] if below else []
        return _product([*numbers, *above, *inverse])

    def sum(self, parts: Sequence[tuple[bool, Any]]) -> Any:
        signed = [_negative(part) if minus else part for minus, part in parts]
        return signed[0] if len(signed) == 1 else sympy.Add(*signed, evaluate=False)
