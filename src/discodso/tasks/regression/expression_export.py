"""An expression in other languages: text, SymPy, LaTeX, Python, NumPy, torch and C.

Each gives the raw expression, token by token; `simplified` is SymPy's opinion and stands beside it.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
import sympy
import torch

from discodso.base.errors import DeclarationError
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.operators import OPERATORS, Operator

# ------------------------------------------------------------------------------------------------ text

_SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(5)


def text(expression: Expression, digits: int = 6) -> str:
    """Infix with as few brackets as possible, and the names of the columns."""

    def number(value: float) -> tuple[str, int]:
        shown = f"{value:.{digits}g}"
        return shown, _SIGN if shown.startswith("-") else _ATOM

    def bracket(part: tuple[str, int], least: int) -> str:
        return part[0] if part[1] >= least else f"({part[0]})"

    def apply(operator: Operator, *parts: tuple[str, int]) -> tuple[str, int]:
        match operator.name:
            case "add":
                return f"{bracket(parts[0], _SUM)} + {bracket(parts[1], _PRODUCT)}", _SUM
            case "sub":
                return f"{bracket(parts[0], _SUM)} - {bracket(parts[1], _PRODUCT)}", _SUM
            case "mul":
                return f"{bracket(parts[0], _PRODUCT)} * {bracket(parts[1], _SIGN)}", _PRODUCT
            case "div":
                return f"{bracket(parts[0], _PRODUCT)} / {bracket(parts[1], _POWER)}", _PRODUCT
            case "pow":
                return f"{bracket(parts[0], _ATOM)}^{bracket(parts[1], _ATOM)}", _POWER
            case "n2" | "n3" | "n4":
                return f"{bracket(parts[0], _ATOM)}^{operator.name[1]}", _POWER
            case "neg":
                return f"-{bracket(parts[0], _POWER)}", _SIGN
            case "inv":
                return f"1 / {bracket(parts[0], _POWER)}", _PRODUCT
        return f"{operator.name}({', '.join(part[0] for part in parts)})", _ATOM

    return expression.fold(lambda index: (expression.columns[index], _ATOM), number, apply)[0]


# ------------------------------------------------------------------------------------------------ SymPy


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


def latex(expression: Expression, digits: int = 6) -> str:
    """LaTeX of the raw expression, numbers rounded to some digits."""
    raw = to_sympy(expression)
    rounded = raw.xreplace({n: sympy.Float(n, digits) for n in raw.atoms(sympy.Float)})
    return str(sympy.latex(rounded))


# ------------------------------------------------------------------------------------------------ source code

_PYTHON = MappingProxyType(
    {
        "add": "({} + {})",
        "sub": "({} - {})",
        "mul": "({} * {})",
        "div": "({} / {})",
        "neg": "(-{})",
        "n2": "_n2({})",
        "n3": "_n3({})",
        "n4": "_n4({})",
        "inv": "(1.0 / {})",
        "abs": "abs({})",
        **{name: f"math.{name}({{}})" for name in ("sin", "cos", "tan", "tanh", "exp", "log", "sqrt")},
        "pow": "math.pow({}, {})",
    }
)
_C = MappingProxyType(
    {
        "add": "({} + {})",
        "sub": "({} - {})",
        "mul": "({} * {})",
        "div": "({} / {})",
        "neg": "(-{})",
        "n2": "n2({})",
        "n3": "n3({})",
        "n4": "n4({})",
        "inv": "(1.0 / {})",
        "abs": "fabs({})",
        **{name: f"{name}({{}})" for name in ("sin", "cos", "tan", "tanh", "exp", "log", "sqrt")},
        "pow": "pow({}, {})",
    }
)


def _source(expression: Expression, templates: MappingProxyType[str, str], names: list[str]) -> str:
    def apply(operator: Operator, *operands: str) -> str:
        template = templates.get(operator.name) if operator is OPERATORS.get(operator.name) else None
        return template.format(*operands) if template else f"{operator.name}({', '.join(operands)})"

    def number(value: float) -> str:
        return f"({value!r})" if value < 0 else repr(value)

    return expression.fold(lambda index: names[index], number, apply)


def identifiers(columns: tuple[str, ...]) -> list[str]:
    """Column names as identifiers of Python and C, all different."""
    taken: list[str] = []
    reserved = {
        *keyword.kwlist,
        "math",
        "abs",
        "double",
        "float",
        "int",
        "const",
        "return",
        "x",
        "predict",
        *OPERATORS,
    }
    for name in columns:
        base = re.sub(r"\W", "_", name, flags=re.ASCII) or "x"
        base = f"x_{base}" if base[0].isdigit() or base in reserved or base.startswith("_") else base
        candidate, count = base, 2
        while candidate in taken:
            candidate, count = f"{base}_{count}", count + 1
        taken.append(candidate)
    return taken


def python_source(expression: Expression, name: str = "predict") -> str:
    """A Python function of one row, with no import but math; NaN where the formula is undefined."""
    names = identifiers(expression.columns)
    body = _source(expression, _PYTHON, names)
    powers = {
        "n2": "def _n2(a):\n    return a * a\n",
        "n3": "def _n3(a):\n    return a * a * a\n",
        "n4": "def _n4(a):\n    return (a * a) * (a * a)\n",
    }
    helpers = "".join(f"\n\n{code}" for key, code in powers.items() if f"_{key}(" in body)
    return (
        f"import math\n{helpers}\n\n"
        f"def {name}({', '.join(names)}):\n"
        f'    """{_comment(text(expression))}"""\n'
        f"    try:\n        return {body}\n"
        "    except (ValueError, ZeroDivisionError, OverflowError):\n        return math.nan\n"
    )


def c_source(expression: Expression, name: str = "predict") -> str:
    """A C function of one row, `double predict(const double *x)`; x has the columns in order."""
    body = _source(expression, _C, [f"x[{i}]" for i in range(len(expression.columns))])
    listing = ", ".join(f"x[{i}] {_comment(column)}" for i, column in enumerate(expression.columns))
    powers = {
        "n2": "static double n2(double a) { return a * a; }\n",
        "n3": "static double n3(double a) { return a * a * a; }\n",
        "n4": "static double n4(double a) { return (a * a) * (a * a); }\n",
    }
    helpers = "".join(code for key, code in powers.items() if f"{key}(" in body)
    return (
        f"#include <math.h>\n\n/* {_comment(text(expression))}\n   inputs: {listing} */\n{helpers}"
        f"double {name}(const double *x) {{ return {body}; }}\n"
    )


def _comment(words: str) -> str:
    """Text that cannot end the comment or docstring it stands in."""
    return re.sub(r"[\r\n\\]", " ", words).replace("*/", "* /").replace('"""', "'''").strip('"')


# ------------------------------------------------------------------------------------------------ callables


def numpy_function(expression: Expression) -> Callable[..., Any]:
    """A function of one array for each column, any equal shapes."""

    def predict(*columns: Any) -> Any:
        _require_columns(expression, len(columns))
        arrays = [np.asarray(column, dtype=np.float64) for column in columns]
        with np.errstate(all="ignore"):
            value = expression.fold(
                lambda index: arrays[index],
                np.float64,
                lambda operator, *operands: operator.function(*operands),
            )
        return np.broadcast_to(value, np.broadcast_shapes(*(a.shape for a in arrays))).copy()

    return predict


_TORCH: MappingProxyType[str, Callable[..., Any]] = MappingProxyType(
    {
        "add": torch.add,
        "sub": torch.sub,
        "mul": torch.mul,
        "div": torch.div,
        "pow": torch.pow,
        "neg": torch.neg,
        "abs": torch.abs,
        "inv": torch.reciprocal,
        "n2": lambda a: a * a,
        "n3": lambda a: a * a * a,
        "n4": lambda a: (a * a) * (a * a),
        **{name: getattr(torch, name) for name in ("sin", "cos", "tan", "tanh", "exp", "log", "sqrt")},
    }
)


def torch_function(expression: Expression) -> Callable[..., torch.Tensor]:
    """A differentiable function of one tensor for each column."""
    for name in expression.design.tokens:
        own = expression.operator(name)
        if own is not None and own is not OPERATORS.get(name):
            raise DeclarationError(f"operator {name!r} is your own, and torch has no function for it")

    def predict(*columns: torch.Tensor) -> torch.Tensor:
        _require_columns(expression, len(columns))
        zero = sum((column * 0 for column in columns), start=torch.zeros((), dtype=columns[0].dtype))
        value: torch.Tensor = expression.fold(
            lambda index: columns[index],
            lambda number: torch.as_tensor(number, dtype=columns[0].dtype),
            lambda operator, *operands: _TORCH[operator.name](*operands),
        )
        return value.expand(zero.shape)

    return predict


def _require_columns(expression: Expression, given: int) -> None:
    if given != len(expression.columns):
        raise DeclarationError(f"the expression has {len(expression.columns)} columns, got {given}")
