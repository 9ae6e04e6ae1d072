"""The front of equations as a table: for papers in LaTeX, for notebooks in HTML, and as a data frame."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Any

from discodso.tasks.regression.export import latex
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.front import FrontPoint
from discodso.tasks.regression.typeset import equation, markup, mathml

_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def as_frame(rows: list[dict[str, Any]]) -> Any:
    """Rows as a pandas DataFrame, or as they are where pandas is not installed."""
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows)


def latex_equation(target: str, expression: Expression, digits: int = 6) -> str:
    """target = formula, for between dollar signs."""
    return rf"{_latex_name(target)} = {latex(expression, digits)}"


def latex_table(front: Sequence[FrontPoint], chosen: Expression, target: str = "y", digits: int = 4) -> str:
    """A table for the package booktabs; the complexity of the chosen equation is bold."""
    lines = [
        r"\begin{tabular}{rrl}",
        r"\toprule",
        rf"complexity & loss & ${_latex_name(target)} = {{}}$ \\",
        r"\midrule",
    ]
    for point in front:
        count = f"{point.complexity:g}"
        if point.expression.design == chosen.design:
            count = rf"\textbf{{{count}}}"
        lines.append(rf"{count} & ${_latex_number(point.loss)}$ & ${latex(point.expression, digits)}$ \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def html_front(front: Sequence[FrontPoint], chosen: Expression, target: str = "y") -> str:
    """The chosen equation, and the front below it, for notebooks."""
    rows = []
    for point in front:
        style = ' style="font-weight:bold"' if point.expression.design == chosen.design else ""
        cells = (f"{point.complexity:g}", f"{point.loss:.4g}")
        numbers = "".join(f"<td>{cell}</td>" for cell in cells)
        formula = markup(mathml(point.expression)).replace(' display="block"', "")
        rows.append(f'<tr{style}>{numbers}<td style="text-align:left">{formula}</td></tr>')
    head = "".join(f"<th>{name}</th>" for name in ("complexity", "loss", escape(target)))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    shown = markup(equation(target, mathml(chosen)))
    return (
        f"<div>{shown}<details><summary>{len(front)} equations of the front</summary>{table}</details></div>"
    )


def _latex_name(name: str) -> str:
    if re.fullmatch(r"[A-Za-z]", name):
        return name
    plain = re.sub(r"[\\~^&%$#_{}]", lambda match: _SPECIAL.get(match[0], f"\\{match[0]}"), name)
    return rf"\mathrm{{{plain}}}" if re.fullmatch(r"\w+", name) and "_" not in name else rf"\text{{{plain}}}"


def _latex_number(value: float) -> str:
    if value in (float("inf"), float("-inf")) or value != value:
        return r"\text{--}"
    mantissa, _, exponent = f"{value:.4g}".partition("e")
    return rf"{mantissa} \times 10^{{{int(exponent)}}}" if exponent else mantissa
