"""An expression as MathML, which browsers and notebooks typeset and screen readers speak.

A formula is nested lists, [tag, child, ...], whose leaves are texts: it goes through JSON, and whoever builds a
page from it never has to trust a string of markup.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
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


def _sum(left: _Part, sign: str, right: _Part) -> _Part:
    node = _at_least(right, _PRODUCT)
    if right.without_sign is not None:  # a + -3 is a - 3
        sign, node = ("−" if sign == "+" else "+"), right.without_sign
    return _Part(["mrow", left.node, ["mo", sign], node], _SUM)


def _product(left: _Part, right: _Part) -> _Part:
    first = left.without_sign or _at_least(left, _PRODUCT)
    second = _bracketed(right.node) if right.without_sign is not None else _at_least(right, _PRODUCT)
    node: Node = ["mrow", first, ["mo", "⋅"], second]
    return _negative(node) if left.without_sign else _Part(node, _PRODUCT)


def _apply(operator: Operator, *parts: _Part) -> _Part:
    match operator.name:
        case "add":
            return _sum(parts[0], "+", parts[1])
        case "sub":
            return _sum(parts[0], "−", parts[1])
        case "mul":
            return _product(*parts)
        case "div":
            return _Part(["mfrac", parts[0].node, parts[1].node], _RAISED)
        case "inv":
            return _Part(["mfrac", ["mn", "1"], parts[0].node], _RAISED)
        case "pow":
            return _Part(["msup", _at_least(parts[0], _ATOM), parts[1].node], _RAISED)
        case "n2" | "n3" | "n4":
            return _Part(["msup", _at_least(parts[0], _ATOM), ["mn", operator.name[1]]], _RAISED)
        case "neg":
            signed = parts[0].without_sign is not None
            return _negative(_bracketed(parts[0].node) if signed else _at_least(parts[0], _PRODUCT))
        case "sqrt":
            return _Part(["msqrt", parts[0].node], _ATOM)
        case "exp":
            return _Part(["msup", ["mi", "e"], parts[0].node], _RAISED)
        case "abs":
            return _Part(["mrow", ["mo", "|"], parts[0].node, ["mo", "|"]], _ATOM)
    listed = [item for part in parts for item in (["mo", ","], part.node)][1:]
    return _Part(["mrow", ["mi", operator.name], _bracketed(["mrow", *listed])], _ATOM)
