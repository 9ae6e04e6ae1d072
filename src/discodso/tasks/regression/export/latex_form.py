"""An expression in LaTeX, and a front of expressions as a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.operators import Operator
from discodso.tasks.regression.printer import Printer, shown_number

_SUM, _PRODUCT, _RAISED, _ATOM = range(4)  # how tightly something holds together
_Part = tuple[str, int]
_INDEXED = re.compile(r"([A-Za-z])_?(\d+)")
_GREEK = "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi rho sigma tau phi chi psi omega"
_FUNCTIONS = ("sin", "cos", "tan", "tanh", "log")
_ESCAPED = {char: rf"\{char}" for char in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\n": " ",
    "\r": " ",
}


def latex(expression: Expression, digits: int = 6) -> str:
    """The expression in its shortest form, for mathematics mode; digits are significant ones."""
    return _Latex(expression, digits).print(lambda words: (_words(words), _ATOM))[0]


def latex_name(name: str) -> str:
    """A name for mathematics mode: x1 with an index, Greek letters, upright words; anything else as text."""
    indexed = _INDEXED.fullmatch(name)
    if indexed:
        return f"{indexed[1]}_{{{indexed[2]}}}"
    if re.fullmatch(r"[A-Za-z]", name):
        return name
    if name in _GREEK.split():
        return rf"\{name}"
    return _words(name, "mathrm" if re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) else "text")


def _words(name: str, font: str = "text") -> str:
    return rf"\{font}{{{''.join(_ESCAPED.get(char, char) for char in name)}}}"


def latex_table(
    rows: Iterable[tuple[float, float, Expression]],
    target: str = "y",
    digits: int = 4,
    chosen: Expression | None = None,
) -> str:
    """A front as a table; it needs the package booktabs.

    Args:
        rows: complexity, loss and expression of each.
        target: name of what they explain.
        digits: significant ones of numbers.
        chosen: the expression that is marked by a star.
    """
    lines = [
        r"\begin{tabular}{rrl}",
        r"\toprule",
        r"complexity & loss & equation \\",
        r"\midrule",
    ]
    for complexity, loss, expression in rows:
        mark = r" $\star$" if chosen is not None and expression == chosen else ""
        shown = f"${latex_name(target)} = {latex(expression, digits)}${mark}"
        lines.append(rf"{complexity:g} & ${_number(loss, digits)}$ & {shown} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _number(value: float, digits: int) -> str:
    mantissa, _, exponent = shown_number(value, digits).partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa.replace("inf", r"\infty")


def _at_least(part: _Part, level: int) -> str:
    return part[0] if part[1] >= level else rf"\left({part[0]}\right)"


def _row(parts: Sequence[_Part]) -> _Part:
    """A product; a dot where two numbers meet, and otherwise a thin space."""
    if len(parts) == 1:
        return parts[0]
    words = _at_least(parts[0], _PRODUCT)
    for part in parts[1:]:
        right = _at_least(part, _PRODUCT)
        words += rf" \cdot {right}" if right[0].isdigit() else rf" \, {right}"
    return words, _PRODUCT


class _Latex(Printer[_Part]):
    def __init__(self, expression: Expression, digits: int) -> None:
        super().__init__(expression)
        self._digits = digits

    def number(self, value: float) -> _Part:
        words = _number(value, self._digits)
        return words, _PRODUCT if "cdot" in words else _ATOM

    def pi(self) -> _Part:
        return r"\pi", _ATOM

    def column(self, index: int) -> _Part:
        return latex_name(self.expression.columns[index]), _ATOM

    def call(self, operator: Operator, parts: Sequence[_Part]) -> _Part:
        if operator.is_built_in and operator.name == "exp":
            return f"e^{{{parts[0][0]}}}", _RAISED
        if operator.is_built_in and operator.name == "abs":
            return rf"\left|{parts[0][0]}\right|", _ATOM
        known = operator.is_built_in and operator.name in _FUNCTIONS
        escaped = operator.name.replace("_", r"\_")
        name = rf"\{operator.name}" if known else rf"\operatorname{{{escaped}}}"
        return rf"{name}\left({', '.join(words for words, _ in parts)}\right)", _ATOM

    def power(self, base: _Part, exponent: _Part) -> _Part:
        return f"{_at_least(base, _ATOM)}^{{{exponent[0]}}}", _RAISED

    def root(self, inner: _Part) -> _Part:
        return rf"\sqrt{{{inner[0]}}}", _ATOM

    def term(self, numbers: Sequence[_Part], above: Sequence[_Part], below: Sequence[_Part]) -> _Part:
        if not below:
            return _row([*numbers, *above])
        first, top = (numbers, above) if above else ((), numbers)
        fraction = rf"\frac{{{_row(top)[0]}}}{{{_row(below)[0]}}}", _RAISED
        return _row([*first, fraction])

    def sum(self, parts: Sequence[tuple[bool, _Part]]) -> _Part:
        words = "".join(f" {'-' if minus else '+'} {_at_least(part, _PRODUCT)}" for minus, part in parts)
        return (f"-{words[3:]}" if parts[0][0] else words[3:]), _SUM
