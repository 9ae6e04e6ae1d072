"""An expression as a SymPy object, as it is or as SymPy would write it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import sympy

from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.operators import OPERATORS, Operator


def _sympy_function(operator: Operator) -> Callable[..., Any]:
    S = sympy
    known: dict[str, Callable[..., Any]] = {
        "add": lambda a, b: S.Add(a, b, evaluate=False),
        "sub": lambda a, b: S.Add(a, S.Mul(-1, b, evaluate=False), evaluate=False),
        "mul": lambda a, b: S.Mul(a, b, evaluate=False),
        "div": lambda a, b: S.Mul(a, S.Pow(b, -1, evaluate=False), evaluate=False),
        "pow": lambda a, b: S.Pow(a, b, evaluate=False),
        "n2": lambda a: S.Pow(a, 2, evaluate=False),
        "n3": lambda a: S.Pow(a, 3, evaluate=False),
        "n4": lambda a: S.Pow(a, 4, evaluate=False),
        "neg": lambda a: S.Mul(-1, a, evaluate=False),
        "inv": lambda a: S.Pow(a, -1, evaluate=False),
        "sqrt": lambda a: S.Pow(a, S.Rational(1, 2), evaluate=False),
        "abs": lambda a: S.Abs(a, evaluate=False),
    }
    if operator.name in known and operator is OPERATORS.get(operator.name):
        return known[operator.name]
    name = operator.sympy or operator.name
    function = getattr(S, name, None) if re.fullmatch(r"[A-Za-z]\w*", name) else None
    if isinstance(function, type) and issubclass(function, S.Function):
        return lambda *args: function(*args, evaluate=False)
    undefined: Callable[..., Any] = S.Function(name)
    return undefined


def to_sympy(expression: Expression) -> Any:
    """The raw expression as a SymPy object, nothing evaluated; symbols are the columns, real numbers."""
    symbols = [sympy.Symbol(name, real=True) for name in expression.columns]
    return expression.fold(
        lambda index: symbols[index],
        lambda value: (
            sympy.Integer(int(value)) if value == int(value) and abs(value) < 1e9 else sympy.Float(value)
        ),
        lambda operator, *operands: _sympy_function(operator)(*operands),
    )


def simplified(expression: Expression) -> Any:
    """What SymPy makes of it: for reading beside the raw expression. Falls back to the raw one if SymPy fails."""
    raw = to_sympy(expression)
    try:
        return sympy.simplify(raw)
    except Exception:  # SymPy raises many kinds on unusual input
        return raw
