"""An expression as a formula of Excel and other spreadsheets."""

from __future__ import annotations

from collections.abc import Sequence

from discodso.tasks.regression.export.source import (
    ATOM,
    POWER,
    PRODUCT,
    SUM,
    Part,
    Source,
    at_least,
    comment,
    whole,
)
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.operators import OPERATORS


class _Excel(Source):
    times, over = "*", "/"
    functions = {name: name.upper() for name in OPERATORS} | {"log": "LN"}

    def number(self, value: float) -> Part:
        shown = repr(float(value)).upper()
        return shown.removesuffix(".0"), ATOM

    def pi(self) -> Part:
        return "PI()", ATOM

    def power(self, base: Part, exponent: Part) -> Part:
        return f"{at_least(base, ATOM)}^{whole(exponent) or at_least(exponent, ATOM)}", POWER

    def term(self, numbers: Sequence[Part], above: Sequence[Part], below: Sequence[Part]) -> Part:
        words, level = super().term(numbers, above, below)
        return words.replace("1.0/", "1/", 1) if words.startswith("1.0/") else words, level

    def sum(self, parts: Sequence[tuple[bool, Part]]) -> Part:
        # A sign in front binds more tightly than anything else: -A2^2 would be the square of -A2.
        (minus, first), *rest = parts
        words = f"-{at_least(first, ATOM)}" if minus else at_least(first, PRODUCT)
        return words + "".join(f"{'-' if m else '+'}{at_least(part, PRODUCT)}" for m, part in rest), SUM


def excel_formula(expression: Expression, row: int = 2) -> str:
    """A formula whose columns are the cells A, B, ... of a row."""
    names = [f"{_letters(i)}{row}" for i in range(len(expression.columns))]
    return f"={_Excel(expression, names).body()}"


def excel_sheet(expression: Expression, row: int = 2) -> str:
    """A table of cells and the names of their columns, one in a line, and then the formula."""
    cells = [f"{_letters(i)}{row}\t{comment(column)}" for i, column in enumerate(expression.columns)]
    return "\n".join([*cells, excel_formula(expression, row), ""])


def _letters(index: int) -> str:
    letters = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters
