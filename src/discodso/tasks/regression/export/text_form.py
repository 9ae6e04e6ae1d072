"""An expression as text, as people write it and `Expression.parse` reads it."""

from __future__ import annotations

import keyword
import unicodedata
from collections.abc import Sequence

from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.operators import OPERATORS, Operator
from discodso.tasks.regression.printer import PI, Printer, shown_number

_SUM, _PRODUCT, _POWER, _ATOM = range(4)  # how tightly something holds together
_Part = tuple[str, int]


def text(expression: Expression, digits: int = 6) -> str:
    """The expression in its shortest form, with the names of the columns; digits are significant ones."""
    return _Text(expression, digits).print(lambda words: (words, _ATOM))[0]


def quoted(name: str, operators: Sequence[Operator] = ()) -> str:
    """A column's name as it stands in text: between backticks if it could be read as something else."""
    functions = {*OPERATORS, *(operator.name for operator in operators), PI}
    plain = name.isidentifier() and not keyword.iskeyword(name) and name not in functions
    if plain and unicodedata.normalize("NFKC", name) == name:
        return name
    return f"`{name.replace('`', '``')}`"


def _at_least(part: _Part, level: int) -> str:
    return part[0] if part[1] >= level else f"({part[0]})"


class _Text(Printer[_Part]):
    def __init__(self, expression: Expression, digits: int) -> None:
        super().__init__(expression)
        self._digits = digits

    def number(self, value: float) -> _Part:
        return shown_number(value, self._digits), _ATOM

    def pi(self) -> _Part:
        return PI, _ATOM

    def column(self, index: int) -> _Part:
        name = self.expression.columns[index] or f"x{index + 1}"  # of a column without a name
        return quoted(name, self.expression.operators), _ATOM

    def call(self, operator: Operator, parts: Sequence[_Part]) -> _Part:
        return f"{operator.name}({', '.join(words for words, _ in parts)})", _ATOM

    def power(self, base: _Part, exponent: _Part) -> _Part:
        return f"{_at_least(base, _ATOM)}^{_at_least(exponent, _ATOM)}", _POWER

    def root(self, inner: _Part) -> _Part:
        return f"sqrt({inner[0]})", _ATOM

    def term(self, numbers: Sequence[_Part], above: Sequence[_Part], below: Sequence[_Part]) -> _Part:
        top = " * ".join(_at_least(part, _POWER) for part in (*numbers, *above)) or "1"
        bottom = " * ".join(_at_least(part, _POWER) for part in below)
        if not below:
            return top, _PRODUCT
        return f"{top} / {bottom if len(below) == 1 else f'({bottom})'}", _PRODUCT

    def sum(self, parts: Sequence[tuple[bool, _Part]]) -> _Part:
        words = "".join(f" {'-' if minus else '+'} {_at_least(part, _PRODUCT)}" for minus, part in parts)
        return (f"-{words[3:]}" if parts[0][0] else words[3:]), _SUM
