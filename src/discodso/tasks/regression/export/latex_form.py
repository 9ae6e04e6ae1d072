"""An expression in LaTeX."""

from __future__ import annotations

import sympy

from discodso.tasks.regression.export.sympy_form import to_sympy
from discodso.tasks.regression.expression import Expression


def latex(expression: Expression, digits: int = 6) -> str:
    """LaTeX of the raw expression, numbers rounded to some digits."""
    raw = to_sympy(expression)
    rounded = raw.xreplace({n: sympy.Float(n, digits) for n in raw.atoms(sympy.Float)})
    return str(sympy.latex(rounded))
