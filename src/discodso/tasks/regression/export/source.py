"""What source code in every language shares: infix with few brackets, all digits, and names that are allowed."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence

from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.operators import OPERATORS, Operator
from discodso.tasks.regression.printer import Printer

SUM, PRODUCT, POWER, ATOM = range(4)  # how tightly something holds together
Part = tuple[str, int]
_RESERVED = {
    *keyword.kwlist,
    *"math abs double float int const return x predict params function end begin pi e i".split(),
    *OPERATORS,
}


def at_least(part: Part, level: int) -> str:
    """The words of a part, in brackets if it does not hold together as tightly as that."""
    return part[0] if part[1] >= level else f"({part[0]})"


class Source(Printer[Part]):
    """Infix as in C; languages say what is different.

    Attributes:
        times, over: the signs of products and quotients.
        functions: names that are not those of the operators.
    """

    times, over = " * ", " / "
    functions: dict[str, str] = {}  # noqa: RUF012

    def __init__(self, expression: Expression, names: Sequence[str]) -> None:
        super().__init__(expression)
        self._names = list(names)

    def body(self) -> str:
        """The formula."""
        return self.print()[0]

    def number(self, value: float) -> Part:
        """All digits."""
        return repr(float(value)), ATOM

    def pi(self) -> Part:
        """As a number."""
        return "3.141592653589793", ATOM

    def column(self, index: int) -> Part:
        """By its name in this language."""
        return self._names[index], ATOM

    def call(self, operator: Operator, parts: Sequence[Part]) -> Part:
        """A function by its name in this language; one's own by the name of the operator."""
        own = self.functions.get(operator.name) if operator.is_built_in else None
        return f"{own or operator.name}({', '.join(words for words, _ in parts)})", ATOM

    def power(self, base: Part, exponent: Part) -> Part:
        """By a function `pow`, unless the language has a sign for it."""
        return f"{self.functions.get('pow', 'pow')}({base[0]}, {exponent[0]})", ATOM

    def root(self, inner: Part) -> Part:
        """By the function of this language."""
        return f"{self.functions.get('sqrt', 'sqrt')}({inner[0]})", ATOM

    def term(self, numbers: Sequence[Part], above: Sequence[Part], below: Sequence[Part]) -> Part:
        """A product over a product."""
        top = self.times.join(at_least(part, POWER) for part in (*numbers, *above))
        if not below:
            return top, PRODUCT
        bottom = self.times.join(at_least(part, POWER) for part in below)
        return f"{top or '1.0'}{self.over}{bottom if len(below) == 1 else f'({bottom})'}", PRODUCT

    def sum(self, parts: Sequence[tuple[bool, Part]]) -> Part:
        """Signs between terms."""
        words = "".join(f" {'-' if minus else '+'} {at_least(part, PRODUCT)}" for minus, part in parts)
        return (f"-{words[3:]}" if parts[0][0] else words[3:]), SUM


def whole(part: Part) -> str | None:
    """The words of a number without its point if it is a whole one, such as 2 for 2.0."""
    match = re.fullmatch(r"(\d+)\.0", part[0])
    return match[1] if match else None


def identifiers(columns: tuple[str, ...]) -> list[str]:
    """Column names as identifiers of Python, C and Julia, all different."""
    taken: list[str] = []
    for name in columns:
        base = re.sub(r"\W", "_", name, flags=re.ASCII) or "x"
        base = f"x_{base}" if base[0].isdigit() or base in _RESERVED or base.startswith("_") else base
        free, count = base, 2
        while free in taken:
            free, count = f"{base}_{count}", count + 1
        taken.append(free)
    return taken


def comment(words: str) -> str:
    """Text that cannot end the comment or docstring it stands in."""
    return re.sub(r"[\x00-\x1f\x7f\\]", " ", words).replace("*/", "* /").replace('"""', "'''").strip('"')


def inputs(names: Sequence[str], expression: Expression) -> str:
    """What each input is called, for comments."""
    pairs = zip(names, expression.columns, strict=True)
    return ", ".join(f"{name} {comment(column)}" for name, column in pairs)
