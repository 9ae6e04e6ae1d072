"""An expression as a Python function of one row."""

from __future__ import annotations

from discodso.tasks.regression.export.source import (
    ATOM,
    POWER,
    Part,
    Source,
    at_least,
    comment,
    identifiers,
    whole,
)
from discodso.tasks.regression.export.text_form import text
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.operators import OPERATORS


class _Python(Source):
    functions = {name: f"math.{name}" for name in OPERATORS if name != "abs"}  # noqa: RUF012

    def pi(self) -> Part:
        return "math.pi", ATOM

    def power(self, base: Part, exponent: Part) -> Part:
        # Other powers of a negative number would be complex.
        count = whole(exponent)
        return super().power(base, exponent) if count is None else (f"{at_least(base, ATOM)}**{count}", POWER)


def python_source(expression: Expression, name: str = "predict") -> str:
    """A Python function of one row, with no import but math; NaN where the formula is undefined."""
    names = identifiers(expression.columns)
    return (
        "import math\n\n\n"
        f"def {name}({', '.join(names)}):\n"
        f'    """{comment(text(expression))}"""\n'
        f"    try:\n        return {_Python(expression, names).body()}\n"
        "    except (ValueError, ZeroDivisionError, OverflowError):\n        return math.nan\n"
    )
