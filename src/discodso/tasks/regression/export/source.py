"""An expression as source code of Python and C, with all digits."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping

from discodso.tasks.regression.export.text_form import text
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.operators import OPERATORS, Operator

_POWERS = {"n2": "a * a", "n3": "a * a * a", "n4": "(a * a) * (a * a)"}
_RESERVED = {*keyword.kwlist, *"math abs double float int const return x predict".split(), *OPERATORS}


def _templates(library: str, power: str, absolute: str) -> dict[str, str]:
    """A template for each operator, given what stands before functions of the library and before powers."""
    functions = ("sin", "cos", "tan", "tanh", "exp", "log", "sqrt")
    return {
        "add": "({} + {})",
        "sub": "({} - {})",
        "mul": "({} * {})",
        "div": "({} / {})",
        "neg": "(-{})",
        "inv": "(1.0 / {})",
        "abs": f"{absolute}({{}})",
        "pow": f"{library}pow({{}}, {{}})",
        **{name: f"{library}{name}({{}})" for name in functions},
        **{name: f"{power}{name}({{}})" for name in _POWERS},
    }


_PYTHON, _C = _templates("math.", "_", "abs"), _templates("", "", "fabs")


def python_source(expression: Expression, name: str = "predict") -> str:
    """A Python function of one row, with no import but math; NaN where the formula is undefined."""
    names = identifiers(expression.columns)
    body = _body(expression, _PYTHON, names)
    used = {key: power for key, power in _POWERS.items() if f"_{key}(" in body}
    helpers = "".join(f"\n\ndef _{key}(a):\n    return {power}\n" for key, power in used.items())
    return (
        f"import math\n{helpers}\n\n"
        f"def {name}({', '.join(names)}):\n"
        f'    """{_comment(text(expression))}"""\n'
        f"    try:\n        return {body}\n"
        "    except (ValueError, ZeroDivisionError, OverflowError):\n        return math.nan\n"
    )


def c_source(expression: Expression, name: str = "predict") -> str:
    """A C function of one row, `double predict(const double *x)`; x has the columns in order."""
    body = _body(expression, _C, [f"x[{i}]" for i in range(len(expression.columns))])
    listing = ", ".join(f"x[{i}] {_comment(column)}" for i, column in enumerate(expression.columns))
    used = {key: power for key, power in _POWERS.items() if f"{key}(" in body}
    helpers = "".join(f"static double {key}(double a) {{ return {power}; }}\n" for key, power in used.items())
    return (
        f"#include <math.h>\n\n/* {_comment(text(expression))}\n   inputs: {listing} */\n{helpers}"
        f"double {name}(const double *x) {{ return {body}; }}\n"
    )


def _body(expression: Expression, templates: Mapping[str, str], names: list[str]) -> str:
    """The formula in brackets, by a template for each operator, and a call for operators of one's own."""

    def apply(operator: Operator, *operands: str) -> str:
        if operator.is_built_in:
            return templates[operator.name].format(*operands)
        return f"{operator.name}({', '.join(operands)})"

    def number(value: float) -> str:
        return f"({value!r})" if value < 0 else repr(value)

    return expression.fold(names.__getitem__, number, apply)


def identifiers(columns: tuple[str, ...]) -> list[str]:
    """Column names as identifiers of Python and C, all different."""
    taken: list[str] = []
    for name in columns:
        base = re.sub(r"\W", "_", name, flags=re.ASCII) or "x"
        base = f"x_{base}" if base[0].isdigit() or base in _RESERVED or base.startswith("_") else base
        free, count = base, 2
        while free in taken:
            free, count = f"{base}_{count}", count + 1
        taken.append(free)
    return taken


def _comment(words: str) -> str:
    """Text that cannot end the comment or docstring it stands in."""
    return re.sub(r"[\r\n\\]", " ", words).replace("*/", "* /").replace('"""', "'''").strip('"')
