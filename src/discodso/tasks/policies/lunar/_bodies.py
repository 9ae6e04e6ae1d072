"""Bodies: their transforms, their boxes with margins, and how they move (b2Transform, b2AABB, b2Sweep)."""

from __future__ import annotations

from typing import Any

import numpy as np

from discodso.tasks.policies.lunar._worlds import (
    C0,
    CENTREX,
    CENTREY,
    CX,
    CY,
    HIGHX,
    HIGHY,
    LOWX,
    LOWY,
    MARGIN,
    MAX_ROTATION,
    MAX_TRANSLATION,
    P0X,
    P0Y,
    PX,
    PY,
    RADIUS,
    S0,
    SIDES,
    TWO,
    VX,
    VY,
    ZERO,
    A,
    C,
    S,
    Shapes,
    W,
    compiled,
    cosf,
    sinf,
)


@compiled
def place(b: Any, i: int, fixed: Any) -> None:
    """The transform of a body from its centre and angle."""
    s, c = sinf(b[i, A]), cosf(b[i, A])
    x, y = fixed[i, CENTREX], fixed[i, CENTREY]
    b[i, S], b[i, C] = s, c
    b[i, PX], b[i, PY] = b[i, CX] - (c * x - s * y), b[i, CY] - (s * x + c * y)


@compiled
def box_of(
    s: float, c: float, px: float, py: float, polygon: Any, sides: int
) -> tuple[float, float, float, float]:
    """Corners of the box around a polygon."""
    x, y = polygon[0, 0], polygon[0, 1]
    x, y = (c * x - s * y) + px, (s * x + c * y) + py
    lx, ly, hx, hy = x, y, x, y
    for v in range(1, sides):
        x, y = polygon[v, 0], polygon[v, 1]
        x, y = (c * x - s * y) + px, (s * x + c * y) + py
        lx, ly, hx, hy = min(lx, x), min(ly, y), max(hx, x), max(hy, y)
    return lx - RADIUS, ly - RADIUS, hx + RADIUS, hy + RADIUS


@compiled
def synchronize(b: Any, i: int, shapes: Shapes) -> bool:
    """Whether a body left its box, which then moves ahead of it."""
    polygon = shapes.polygons[i]
    lx, ly, hx, hy = box_of(b[i, S0], b[i, C0], b[i, P0X], b[i, P0Y], polygon, SIDES[i])
    l2x, l2y, h2x, h2y = box_of(b[i, S], b[i, C], b[i, PX], b[i, PY], polygon, SIDES[i])
    lx, ly, hx, hy = min(lx, l2x), min(ly, l2y), max(hx, h2x), max(hy, h2y)
    if b[i, LOWX] <= lx and b[i, LOWY] <= ly and hx <= b[i, HIGHX] and hy <= b[i, HIGHY]:
        return False
    lx, ly, hx, hy = lx - MARGIN, ly - MARGIN, hx + MARGIN, hy + MARGIN
    dx, dy = TWO * (b[i, PX] - b[i, P0X]), TWO * (b[i, PY] - b[i, P0Y])
    if dx < ZERO:
        lx += dx
    else:
        hx += dx
    if dy < ZERO:
        ly += dy
    else:
        hy += dy
    b[i, LOWX], b[i, LOWY], b[i, HIGHX], b[i, HIGHY] = lx, ly, hx, hy
    return True


@compiled
def overlap(b: Any, i: int, edges: Any, edge: int) -> bool:
    """Whether the boxes of a body and an edge overlap."""
    return (
        b[i, LOWX] <= edges[edge, 6]
        and b[i, LOWY] <= edges[edge, 7]
        and edges[edge, 4] <= b[i, HIGHX]
        and edges[edge, 5] <= b[i, HIGHY]
    )


@compiled
def move(b: Any, i: int, h: float) -> None:
    """Integrate the position of a body, within the largest translation and rotation."""
    x, y, turn = h * b[i, VX], h * b[i, VY], h * b[i, W]
    square = x * x + y * y
    if square > MAX_TRANSLATION * MAX_TRANSLATION:
        ratio = MAX_TRANSLATION / np.sqrt(square)
        b[i, VX] *= ratio
        b[i, VY] *= ratio
    if turn * turn > MAX_ROTATION * MAX_ROTATION:
        b[i, W] *= MAX_ROTATION / abs(turn)
    b[i, CX] += h * b[i, VX]
    b[i, CY] += h * b[i, VY]
    b[i, A] += h * b[i, W]
