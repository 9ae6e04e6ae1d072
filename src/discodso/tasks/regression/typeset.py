"""An expression as MathML, which browsers and notebooks typeset and screen readers speak.

A formula is nested lists, [tag, child, ...], whose leaves are texts: it goes through JSON, and whoever builds a
page from it never has to trust a string of markup.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from discodso.tasks.regression.operators import Operator
from discodso.tasks.regression.printer import Printer, shown_number

Node = list[Any]
_SUM, _PRODUCT, _RAISED, _ATOM = range(4)  # how tightly something holds together
_INDEXED = re.compile(r"([A-Za-z])_?(\d+)")


@dataclass(frozen=True)
class _Part:
    """A piece of a formula, and how tightly it holds together."""

    node: Node
    level: int


def mathml(expression: Any, digits: int = 4) -> Node:
    """The formula of an `Expression`, which imports this module, as nested lists; digits are significant ones."""
    return _MathML(expression, digits).print(lambda words: _Part(["mtext", words], _ATOM)).node


def equation(target: str, formula: Node) -> Node:
    """target = formula."""
    return ["mrow", _name(target), ["mo", "="], formula]


def markup(formula: Node) -> str:
    """The formula as text of a page, for notebooks."""
    namespace = "http://www.w3.org/1998/Math/MathML"
    return f'<math xmlns="{namespace}" display="block">{_markup(formula)}</math>'


def _markup(node: Node | str) -> str:
    if isinstance(node, str):
        return escape(node)
    tag, *children = node
    return f"<{tag}>{''.join(map(_markup, children))}</{tag}>"


def _name(name: str) -> Node:
    indexed = _INDEXED.fullmatch(name)
    return ["msub", ["mi", indexed[1]], ["mn", indexed[2]]] if indexed else ["mi", name]


def _at_least(part: _Part, level: int) -> Node:
    return part.node if part.level >= level else ["mrow", ["mo", "("], part.node, ["mo", ")"]]


def _row(parts: Sequence[_Part]) -> _Part:
    """A product."""
    if len(parts) == 1:
        return parts[0]
    nodes = [item for part in parts for item in (["mo", "⋅"], _at_least(part, _PRODUCT))]
    return _Part(["mrow", *nodes[1:]], _PRODUCT)


class _MathML(Printer[_Part]):
    def __init__(self, expression: Any, digits: int) -> None:
        super().__init__(expression)
        self._digits = digits

    def number(self, value: float) -> _Part:
        mantissa, _, exponent = shown_number(value, self._digits).partition("e")
        part = _Part(["mn", mantissa], _ATOM)
        if not exponent:
            return part
        power: Node = ["mn", str(abs(int(exponent)))]
        power = ["mrow", ["mo", "−"], power] if int(exponent) < 0 else power
        return _Part(["mrow", part.node, ["mo", "×"], ["msup", ["mn", "10"], power]], _PRODUCT)

    def pi(self) -> _Part:
        return _Part(["mi", "π"], _ATOM)

    def column(self, index: int) -> _Part:
        return _Part(_name(self.expression.columns[index]), _ATOM)

    def call(self, operator: Operator, parts: Sequence[_Part]) -> _Part:
        if operator.is_built_in and operator.name == "exp":
            return _Part(["msup", ["mi", "e"], parts[0].node], _RAISED)
        if operator.is_built_in and operator.name == "abs":
            return _Part(["mrow", ["mo", "|"], parts[0].node, ["mo", "|"]], _ATOM)
        listed = [item for part in parts for item in (["mo", ","], part.node)][1:]
        inner = _at_least(_Part(["mrow", *listed], -1), _ATOM)
        return _Part(["mrow", ["mi", operator.name], inner], _ATOM)

    def power(self, base: _Part, exponent: _Part) -> _Part:
        return _Part(["msup", _at_least(base, _ATOM), exponent.node], _RAISED)

    def root(self, inner: _Part) -> _Part:
        return _Part(["msqrt", inner.node], _ATOM)

    def term(self, numbers: Sequence[_Part], above: Sequence[_Part], below: Sequence[_Part]) -> _Part:
        if not below:
            return _row([*numbers, *above])
        if not above:
            return _Part(["mfrac", _row(numbers).node, _row(below).node], _RAISED)
        return _row([*numbers, _Part(["mfrac", _row(above).node, _row(below).node], _RAISED)])

    def sum(self, parts: Sequence[tuple[bool, _Part]]) -> _Part:
        nodes: list[Node] = []
        for minus, part in parts:
            sign = [["mo", "−"]] if minus else [["mo", "+"]] if nodes else []
            nodes += [*sign, _at_least(part, _PRODUCT)]
        return _Part(["mrow", *nodes], _SUM)
