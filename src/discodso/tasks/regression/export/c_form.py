"""An expression as a C function of one row."""

from __future__ import annotations

from discodso.tasks.regression.export.source import Source, comment, inputs
from discodso.tasks.regression.export.text_form import text
from discodso.tasks.regression.expression import Expression


class _C(Source):
    functions = {"abs": "fabs"}  # noqa: RUF012


def c_source(expression: Expression, name: str = "predict") -> str:
    """A C function of one row, `double predict(const double *x)`; x has the columns in order."""
    names = [f"x[{i}]" for i in range(len(expression.columns))]
    return (
        f"#include <math.h>\n\n/* {comment(text(expression))}\n   inputs: {inputs(names, expression)} */\n"
        f"double {name}(const double *x) {{ return {_C(expression, names).body()}; }}\n"
    )
