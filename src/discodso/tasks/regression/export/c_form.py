"""An expression as C source code."""

from __future__ import annotations

from types import MappingProxyType

from discodso.tasks.regression.export.source import comment, source
from discodso.tasks.regression.export.text_form import text
from discodso.tasks.regression.expression import Expression

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


def c_source(expression: Expression, name: str = "predict") -> str:
    """A C function of one row, `double predict(const double *x)`; x has the columns in order."""
    body = source(expression, _C, [f"x[{i}]" for i in range(len(expression.columns))])
    listing = ", ".join(f"x[{i}] {comment(column)}" for i, column in enumerate(expression.columns))
    powers = {
        "n2": "static double n2(double a) { return a * a; }\n",
        "n3": "static double n3(double a) { return a * a * a; }\n",
        "n4": "static double n4(double a) { return (a * a) * (a * a); }\n",
    }
    helpers = "".join(code for key, code in powers.items() if f"{key}(" in body)
    return (
        f"#include <math.h>\n\n/* {comment(text(expression))}\n   inputs: {listing} */\n{helpers}"
        f"double {name}(const double *x) {{ return {body}; }}\n"
    )
