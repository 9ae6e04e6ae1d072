"""An expression in other languages; a new one is a file here and a line in `FORMATS`.

Texts are printed from the canonical form by `tasks/regression/printer.py`; MathML stands in
`tasks/regression/typeset.py`, since an expression shows itself by it. Code has all digits. The functions for NumPy
and torch compute what the expression computes, step by step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discodso.base.checks import require_one_of
from discodso.tasks.regression.export.c_form import c_source
from discodso.tasks.regression.export.excel_form import excel_formula, excel_sheet
from discodso.tasks.regression.export.functions import numpy_function, torch_function
from discodso.tasks.regression.export.jax_form import jax_source
from discodso.tasks.regression.export.julia_form import julia_source
from discodso.tasks.regression.export.latex_form import latex, latex_table
from discodso.tasks.regression.export.matlab_form import matlab_source
from discodso.tasks.regression.export.onnx_form import onnx_model
from discodso.tasks.regression.export.python_form import python_source
from discodso.tasks.regression.export.sympy_form import simplified, to_sympy
from discodso.tasks.regression.export.text_form import quoted, text
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.typeset import markup, mathml

FORMATS: dict[str, Callable[[Expression], Any]] = {
    "text": text,
    "latex": latex,
    "mathml": lambda expression: markup(mathml(expression)),
    "sympy": to_sympy,
    "python": python_source,
    "c": c_source,
    "jax": jax_source,
    "julia": julia_source,
    "matlab": matlab_source,
    "excel": excel_sheet,
    "numpy": numpy_function,
    "torch": torch_function,
    "onnx": onnx_model,
}


def export(expression: Expression, form: str) -> Any:
    """The expression in one of the `FORMATS`: text, a SymPy object, a function or the bytes of a model."""
    require_one_of("form", form, tuple(FORMATS))
    return FORMATS[form](expression)


__all__ = [
    "FORMATS",
    "c_source",
    "excel_formula",
    "excel_sheet",
    "export",
    "jax_source",
    "julia_source",
    "latex",
    "latex_table",
    "matlab_source",
    "numpy_function",
    "onnx_model",
    "python_source",
    "quoted",
    "simplified",
    "text",
    "to_sympy",
    "torch_function",
]
