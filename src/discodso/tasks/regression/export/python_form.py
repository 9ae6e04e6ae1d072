"""An expression as Python source code."""

from __future__ import annotations

from types import MappingProxyType

from discodso.tasks.regression.export.source import comment, identifiers, source
from discodso.tasks.regression.export.text_form import text
from discodso.tasks.regression.expression import Expression

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


def python_source(expression: Expression, name: str = "predict") -> str:
    """A Python function of one row, with no import but math; NaN where the formula is undefined."""
    names = identifiers(expression.columns)
    body = source(expression, _PYTHON, names)
    powers = {
        "n2": "def _n2(a):\n    return a * a\n",
        "n3": "def _n3(a):\n    return a * a * a\n",
        "n4": "def _n4(a):\n    return (a * a) * (a * a)\n",
    }
    helpers = "".join(f"\n\n{code}" for key, code in powers.items() if f"_{key}(" in body)
    return (
        f"import math\n{helpers}\n\n"
        f"def {name}({', '.join(names)}):\n"
        f'    """{comment(text(expression))}"""\n'
        f"    try:\n        return {body}\n"
        "    except (ValueError, ZeroDivisionError, OverflowError):\n        return math.nan\n"
    )
