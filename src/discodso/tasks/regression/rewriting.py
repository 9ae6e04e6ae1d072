"""Shorter ways to write the same expression: numbers are worked out, factors and offsets gathered, and functions
that undo one another taken out."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from discodso.space.design import Design
from discodso.tasks.regression.expression import CONST, Expression, Item
from discodso.tasks.regression.operators import Operator

_LARGEST_EXPONENT = 50.0  # that becomes a factor: exp(a + f) as exp(a) exp(f)

Node = float | str | tuple[str, list["Node"]]  # a number, an input, or an operator and its operands


def rewritten(expression: Expression) -> Expression:
    """An expression that is no longer, and equal up to rounding wherever this one is defined."""
    node = expression.fold(lambda index: f"x{index + 1}", lambda number: number, _build)
    shorter = replace(expression, design=Design.of(*_tokens(node)))
    return shorter if len(shorter) <= len(expression) else expression


def _build(operator: Operator, *operands: Node) -> Node:
    name, nodes = operator.name, list(operands)
    if all(isinstance(node, float) for node in nodes):
        with np.errstate(all="ignore"):
            number = float(operator.function(*nodes))
        return number if math.isfinite(number) else (name, nodes)
    # Offsets are written before what they are added to, and factors likewise.
    match name, nodes:
        case (("add" | "mul"), [node, float() as number]):
            return _gathered(name, [number, node])
        case "sub", [node, float() as number]:
            return _gathered("add", [-number, node])
        case "div", [node, float() as number] if number and math.isfinite(1 / number):
            return _gathered("mul", [1 / number, node])
        case "sub", [first, ("mul", [float() as factor, rest])] if factor < 0:
            return _gathered("add", [first, _times(-factor, rest)])
        case "div", [float() as number, second]:
            factor, rest = _factor(second)
            number = number / factor if factor else math.nan
            return ("div", [number, rest]) if math.isfinite(number) and number else (name, nodes)
        case _, [node]:
            return _of_one(name, node)
        case (("mul" | "div"), [first, second]) if not isinstance(first, float):
            return _product(name, first, second)
    return _gathered(name, nodes)


def _factor(node: Node) -> tuple[float, Node]:
    """c and f of c * f; 1 and the node itself if it is none."""
    match node:
        case "mul", [float() as factor, rest]:
            return factor, rest
    return 1.0, node


def _times(number: float, node: Node) -> Node:
    return _gathered("mul", [number, node])


def _product(name: str, first: Node, second: Node) -> Node:
    """(a f) * (b g) as (a b) * (f * g), (a f) / (b g) as (a / b) * (f / g), (a / f) * g as a * (g / f)."""
    match name, second:
        case "mul", ("div", [float(), _]):
            first, second = second, first
    match name, first:
        case "mul", ("div", [float() as number, below]):
            factor, rest = _factor(second)
            total, node = number * factor, _product("div", rest, below)
        case _:
            (a, f), (b, g) = _factor(first), _factor(second)
            total = a * b if name == "mul" else a / b if b else math.nan
            node = (name, [f, g])
    return _times(total, node) if math.isfinite(total) and total else (name, [first, second])


def _of_one(name: str, node: Node) -> Node:
    """Functions of one operand: factors come out of roots and powers, offsets out of exp as factors, and likewise
    for log; a square of a root, and exp of log, are taken out."""
    match name, node:
        case ("n2", ("sqrt", [inner])) | ("exp", ("log", [inner])) | ("log", ("exp", [inner])):
            return inner
        case "exp", ("add", [float() as offset, rest]) if abs(offset) <= _LARGEST_EXPONENT:
            return _times(math.exp(offset), _of_one(name, rest))
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
    elif name == "log" and factor > 0 and factor != 1.0:
        return _gathered("add", [math.log(factor), _of_one(name, rest)])
    if outside != 1.0 and math.isfinite(outside) and outside:
        return _times(outside, _of_one(name, rest))
    return name, [node]


def _gathered(name: str, nodes: list[Node]) -> Node:
    """a + (b + f) as (a + b) + f, a * (b * f) as (a * b) * f, a + b * (c + f) as (a + b * c) + b * f."""
    match name, nodes:
        case ("add", [0.0, inner]) | ("mul", [1.0, inner]):
            return inner
        case "add", [float() as number, ("add", [float() as more, rest])]:
            return _gathered("add", [number + more, rest])
        case "mul", [float() as number, ("mul", [float() as more, rest])]:
            return _gathered("mul", [number * more, rest])
        case "add", [float() as number, ("mul", [float() as factor, ("add", [float() as more, rest])])]:
            return _gathered("add", [number + factor * more, _times(factor, rest)])
    return name, nodes


def _tokens(node: Node) -> list[Item]:
    found: list[Item] = []
    waiting: list[Node] = [node]
    while waiting:
        item = waiting.pop()
        if isinstance(item, tuple):
            found.append(item[0])
            waiting.extend(reversed(item[1]))
        else:
            found.append((CONST, item) if isinstance(item, float) else item)
    return found
