"""Shorter ways to write the same expression: numbers are worked out, and factors and offsets gathered."""

from __future__ import annotations

import math

import numpy as np

from discodso.design import Design
from discodso.tasks.regression.expression import CONST, Expression
from discodso.tasks.regression.operators import Operator

Node = float | str | tuple[str, list["Node"]]  # a number, an input, or an operator and its operands


def simplified(expression: Expression) -> Expression:
    """An equal expression, up to rounding, that is no longer."""
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
    return _gathered(name, nodes)


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
