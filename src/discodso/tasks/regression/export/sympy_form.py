"""An expression as a SymPy object, as it is or as SymPy would write it, and in LaTeX by SymPy."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import sympy

from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.operators import Operator

_add, _mul, _pow = (partial(function, evaluate=False) for function in (sympy.Add, sympy.Mul, sympy.Pow))
_BUILT_IN: dict[str, Callable[..., Any]] = {
    "add": _add,
    "sub": lambda a, b: _add(a, _mul(-1, b)),
    "mul": _mul,
    "div": lambda a, b: _mul(a, _pow(b, -1)),
    "pow": _pow,
    "n2": lambda a: _pow(a, 2),
    "n3": lambda a: _pow(a, 3),
    "n4": lambda a: _pow(a, 4),
    "neg": lambda a: _mul(-1, a),
    "inv": lambda a: _pow(a, -1),
    "sqrt": lambda a: _pow(a, sympy.Rational(1, 2)),
    "abs": partial(sympy.Abs, evaluate=False),
}


def to_sympy(expression: Expression) -> Any:
    """The raw expression as a SymPy object, nothing evaluated; symbols are the columns, real numbers."""
    symbols = [sympy.Symbol(name, real=True) for name in expression.columns]
    return expression.fold(lambda index: symbols[index], _number, _apply)


def simplified(expression: Expression) -> Any:
    """What SymPy makes of it: for reading beside the raw expression. Falls back to the raw one if SymPy fails."""
    raw = to_sympy(expression)
    try:
        return sympy.simplify(raw)
    except Exception:  # SymPy raises many kinds on unusual input
        return raw


def latex(expression: Expression, digits: int = 6) -> str:
    """LaTeX of the raw expression, numbers rounded to some digits."""
    raw = to_sympy(expression)
    rounded = raw.xreplace({n: sympy.Float(n, digits) for n in raw.atoms(sympy.Float)})
    return str(sympy.latex(rounded))


def _number(value: float) -> Any:
    return sympy.Integer(int(value)) if value == int(value) and abs(value) < 1e9 else sympy.Float(value)


def _apply(operator: Operator, *operands: Any) -> Any:
    if operator.is_built_in and operator.name in _BUILT_IN:
        return _BUILT_IN[operator.name](*operands)
    name = operator.sympy or operator.name
    function = getattr(sympy, name, None) if re.fullmatch(r"[A-Za-z]\w*", name) else None
    if isinstance(function, type) and issubclass(function, sympy.Function):
        return function(*operands, evaluate=False)
    return sympy.Function(name)(*operands)
