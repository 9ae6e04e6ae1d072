"""Shorter ways to write the same expression: numbers are worked out, factors and offsets gathered, and functions
that undo one another taken out."""

from __future__ import annotations

import math

import numpy as np

from discodso.space.design import Design
from discodso.tasks.regression.expression import CONST, Expression
from discodso.tasks.regression.operators import Operator

_LARGEST_EXPONENT = 50.0  # that becomes a factor: exp(a + f) as exp(a) exp(f)

Node = float | str | tuple[str, list["Node"]]  # a number, an input, or an operator and its operands


def rewritten(expression: Expression) -> Expression:
    """An expression that is no longer, and equal up to rounding wherever this one is defined."""
    node = expression.fold(lambda index: f"x{index + 1}", lambda number: number, _build)
    shorter = Expression(Design.of(*_tokens(node)), expression.columns, expression.operators)
    return shorter if len(shorter) <= len(expression) else expression


def _build(operator: Operator, *operands: Node) -> Node:
    name, nodes = operator.name, list(operands)
    if all(isinstance(node, float) for node in nodes):
        with np.errstate(all="ignore"):
            number = float(operator.function(*nodes))
        return number if math.isfinite(number) else (name, nodes)
    # Offsets are written before what they are added to, and factors likewise.
    if name in ("add", "mul") and isinstance(nodes[1], float):
        nodes.reverse()
    if name == "sub" and isinstance(nodes[1], float):
        name, nodes = "add", [-nodes[1], nodes[0]]
    if name == "div" and isinstance(nodes[1], float) and nodes[1] and math.isfinite(1 / nodes[1]):
        name, nodes = "mul", [1 / nodes[1], nodes[0]]
    if name == "sub":
        factor, rest = _factor(nodes[1])
        if factor < 0:
            name, nodes = "add", [nodes[0], _times(-factor, rest)]
    if len(nodes) == 1:
        return _of_one(name, nodes[0])
    if name in ("mul", "div") and not isinstance(nodes[0], float):
        return _product(name, nodes[0], nodes[1])
    if name == "div":
        factor, rest = _factor(nodes[1])
        number = nodes[0] / factor if isinstance(nodes[0], float) else math.nan
        return ("div", [number, rest]) if math.isfinite(number) and number else (name, nodes)
    return _gathered(name, nodes)


def _factor(node: Node) -> tuple[float, Node]:
    """c and f of c * f; 1 and the node itself if it is none."""
    if isinstance(node, tuple) and node[0] == "mul" and isinstance(node[1][0], float):
        return node[1][0], node[1][1]
    return 1.0, node


def _times(number: float, node: Node) -> Node:
    return _gathered("mul", [number, node])


def _product(name: str, first: Node, second: Node) -> Node:
    """(a f) * (b g) as (a b) * (f * g), (a f) / (b g) as (a / b) * (f / g), (a / f) * g as a * (g / f)."""
    if name == "mul" and _over(second):
        first, second = second, first
    if name == "mul" and isinstance(first, tuple) and _over(first):
        number, below = first[1]
        factor, rest = _factor(second)
        total, node = float(number) * factor, _product("div", rest, below)  # type: ignore[arg-type]
    else:
        (a, f), (b, g) = _factor(first), _factor(second)
        total = a * b if name == "mul" else a / b if b else math.nan
        node = (name, [f, g])
    return _times(total, node) if math.isfinite(total) and total else (name, [first, second])


def _over(node: Node) -> bool:
    """Whether it is a number over something."""
    return isinstance(node, tuple) and node[0] == "div" and isinstance(node[1][0], float)


def _of_one(name: str, node: Node) -> Node:
    """Functions of one operand: factors come out of roots and powers, offsets out of exp as factors, and likewise
    for log; a square of a root, and exp of log, are taken out."""
    inner = node[0] if isinstance(node, tuple) else None
    if isinstance(node, tuple) and (name, inner) in (("n2", "sqrt"), ("exp", "log"), ("log", "exp")):
        return node[1][0]
    factor, rest = _factor(node)
    outside = 1.0
    if name in ("n2", "n3", "n4"):
        outside = math.prod((factor,) * int(name[1]))
    elif name == "sqrt" and factor > 0:
        outside = math.sqrt(factor)
    elif name == "abs":
        outside = abs(factor)
    elif name == "neg" and factor != 1.0:
        return _times(-factor, rest)
    if outside != 1.0 and math.isfinite(outside) and outside:
        return _times(outside, _of_one(name, rest))
    if name == "log" and factor > 0 and factor != 1.0:
        return _gathered("add", [math.log(factor), _of_one(name, rest)])
    if name == "exp" and isinstance(node, tuple) and inner == "add":
        offset, rest = node[1]
        if isinstance(offset, float) and abs(offset) <= _LARGEST_EXPONENT:
            return _times(math.exp(offset), _of_one(name, rest))
    return name, [node]


def _gathered(name: str, nodes: list[Node]) -> Node:
    """a + (b + f) as (a + b) + f, a * (b * f) as (a * b) * f, a + b * (c + f) as (a + b * c) + b * f."""
    if name not in ("add", "mul") or not isinstance(nodes[0], float):
        return name, nodes
    number, inner = nodes[0], nodes[1]
    if number == (0.0 if name == "add" else 1.0):
        return inner
    if isinstance(inner, tuple) and inner[0] == name and isinstance(inner[1][0], float):
        both = number + inner[1][0] if name == "add" else number * inner[1][0]
        return _gathered(name, [both, inner[1][1]])
    if name == "add" and isinstance(inner, tuple) and inner[0] == "mul":
        factor, deeper = inner[1]
        if isinstance(factor, float) and isinstance(deeper, tuple) and deeper[0] == "add":
            offset, rest = deeper[1]
            if isinstance(offset, float):
                return _gathered("add", [number + factor * offset, _gathered("mul", [factor, rest])])
    return name, nodes


def _tokens(node: Node) -> list[str | tuple[str, float]]:
    found: list[str | tuple[str, float]] = []
    waiting: list[Node] = [node]
    while waiting:
        item = waiting.pop()
        if isinstance(item, tuple):
            found.append(item[0])
            waiting.extend(reversed(item[1]))
        else:
            found.append((CONST, item) if isinstance(item, float) else item)
    return found
