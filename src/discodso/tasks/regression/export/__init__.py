"""An expression in other languages; a new one is a file here and a line in `FORMATS`.

`source` writes it for people and as Python and C, `sympy_form` as a SymPy object and LaTeX, `functions` for NumPy
and torch. MathML stands in `tasks/regression/typeset.py`, since an expression shows itself by it. Each
gives the raw expression, token by token; `simplified` is SymPy's opinion and stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discodso.base.checks import require_one_of
from discodso.tasks.regression.export.functions import numpy_function, torch_function
from discodso.tasks.regression.export.latex_form import latex, latex_table
from discodso.tasks.regression.export.source import c_source, python_source
from discodso.tasks.regression.export.sympy_form import simplified, to_sympy
from discodso.tasks.regression.export.text_form import text
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.typeset import markup, mathml

FORMATS: dict[str, Callable[[Expression], Any]] = {
    "text": text,
    "latex": latex,
    "mathml": lambda expression: markup(mathml(expression)),
    "python": python_source,
    "c": c_source,
    "sympy": to_sympy,
    "numpy": numpy_function,
    "torch": torch_function,
}


def export(expression: Expression, form: str) -> Any:
    """The expression in one of the `FORMATS`: text, a SymPy object or a function."""
    require_one_of("form", form, tuple(FORMATS))
    return FORMATS[form](expression)


__all__ = ["FORMATS", "export", "latex", "latex_table", "simplified", "text", "to_sympy"]
