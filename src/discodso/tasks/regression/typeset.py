"""An expression as MathML, which browsers and notebooks typeset and screen readers speak.

A formula is nested lists, [tag, child, ...], whose leaves are texts: it goes through JSON, and whoever builds a
page from it never has to trust a string of markup.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any

from discodso.tasks.regression.operators import Operator

Node = list[Any]
_SUM, _PRODUCT, _RAISED, _ATOM = range(4)  # how tightly something holds together
_INDEXED = re.compile(r"([A-Za-z])_?(\d+)")


@dataclass(frozen=True)
class _Part:
    """A piece of a formula, how tightly it holds together, and for a negative one what follows its sign."""

    node: Node
    level: int
    without_sign: Node | None = None


def mathml(expression: Any, digits: int = 4) -> Node:
    """The formula of an `Expression`, which imports this module, as nested lists; digits are significant ones."""
    found: _Part = expression.fold(
        lambda index: _Part(_name(expression.columns[index]), _ATOM),
        lambda value: _number(value, digits),
        _apply,
    )
    return found.node


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


def _number(value: float, digits: int) -> _Part:
    mantissa, _, exponent = f"{abs(value):.{digits}g}".partition("e")
    part = _Part(["mn", mantissa], _ATOM)
    if exponent:
        power: Node = ["mn", str(abs(int(exponent)))]
        power = ["mrow", ["mo", "−"], power] if int(exponent) < 0 else power
        part = _Part(["mrow", part.node, ["mo", "×"], ["msup", ["mn", "10"], power]], _PRODUCT)
    return _negative(part.node) if value < 0 else part


def _negative(node: Node) -> _Part:
    return _Part(["mrow", ["mo", "−"], node], _PRODUCT, node)


def _bracketed(node: Node) -> Node:
    return ["mrow", ["mo", "("], node, ["mo", ")"]]


def _at_least(part: _Part, level: int) -> Node:
    return part.node if part.level >= level else _bracketed(part.node)


def _factor(part: _Part) -> Node:
    """As it stands behind a sign: a negative one in brackets."""
    return _at_least(part, _PRODUCT) if part.without_sign is None else _bracketed(part.node)


def _sum(left: _Part, sign: str, right: _Part) -> _Part:
    node = _at_least(right, _PRODUCT)
    if right.without_sign is not None:  # a + -3 is a - 3
        sign, node = ("−" if sign == "+" else "+"), right.without_sign
    return _Part(["mrow", left.node, ["mo", sign], node], _SUM)


def _product(left: _Part, right: _Part) -> _Part:
    first = left.without_sign or _at_least(left, _PRODUCT)
    node: Node = ["mrow", first, ["mo", "⋅"], _factor(right)]
    return _negative(node) if left.without_sign else _Part(node, _PRODUCT)


def _power(base: _Part, exponent: Node) -> _Part:
    return _Part(["msup", _at_least(base, _ATOM), exponent], _RAISED)


_FORMS: dict[str, Callable[..., _Part]] = {
    "add": lambda a, b: _sum(a, "+", b),
    "sub": lambda a, b: _sum(a, "−", b),
    "mul": _product,
    "div": lambda a, b: _Part(["mfrac", a.node, b.node], _RAISED),
    "inv": lambda a: _Part(["mfrac", ["mn", "1"], a.node], _RAISED),
    "pow": lambda a, b: _power(a, b.node),
    **{f"n{k}": partial(_power, exponent=["mn", str(k)]) for k in (2, 3, 4)},
    "neg": lambda a: _negative(_factor(a)),
    "sqrt": lambda a: _Part(["msqrt", a.node], _ATOM),
    "exp": lambda a: _Part(["msup", ["mi", "e"], a.node], _RAISED),
    "abs": lambda a: _Part(["mrow", ["mo", "|"], a.node, ["mo", "|"]], _ATOM),
}


def _apply(operator: Operator, *parts: _Part) -> _Part:
    if operator.name in _FORMS:
        return _FORMS[operator.name](*parts)
    listed = [item for part in parts for item in (["mo", ","], part.node)][1:]
    return _Part(["mrow", ["mi", operator.name], _bracketed(["mrow", *listed])], _ATOM)
