"""Distance of an edge and the polygon of a body (b2Distance).

In the frame of the world. A row of a simplex: a point of the edge, one of the polygon, their difference, its
weight. pairs: their vertices (edge, polygon), and those of a round before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discodso.tasks.policies.lunar._worlds import EPSILON, HALF, ONE, TWO, ZERO, compiled


@compiled
def support(polygon: Any, sides: int, x: float, y: float) -> int:
    """The vertex farthest along (x, y)."""
    best, value = 0, polygon[0, 0] * x + polygon[0, 1] * y
    for v in range(1, sides):
        d = polygon[v, 0] * x + polygon[v, 1] * y
        if d > value:
            best, value = v, d
    return best


@compiled
def set_vertex(
    simplex: Any, n: int, edge: Any, polygon: Any, ia: int, ib: int, s: float, c: float, px: float, py: float
) -> None:
    """Row n of the simplex: vertex ia of the edge, ib of the polygon."""
    row = simplex[n]
    row[0], row[1] = edge[2 * ia], edge[2 * ia + 1]
    x, y = polygon[ib, 0], polygon[ib, 1]
    row[2], row[3] = (c * x - s * y) + px, (s * x + c * y) + py
    row[4], row[5] = row[2] - row[0], row[3] - row[1]
    row[6] = ZERO


@compiled
def metric_of(simplex: Any, count: int) -> float:
    """Length or area of a simplex."""
    if count < 2:
        return ZERO
    x, y = simplex[1, 4] - simplex[0, 4], simplex[1, 5] - simplex[0, 5]
    if count == 2:
        return length_of(simplex[0, 4] - simplex[1, 4], simplex[0, 5] - simplex[1, 5])
    u, v = simplex[2, 4] - simplex[0, 4], simplex[2, 5] - simplex[0, 5]
    return x * v - y * u


@compiled
def length_of(x: float, y: float) -> float:
    """Length of a vector."""
    return np.sqrt(x * x + y * y)


@compiled
def copy_row(simplex: Any, pairs: Any, to: int, source: int) -> None:
    """Row `to` becomes another."""
    for column in range(7):
        simplex[to, column] = simplex[source, column]
    pairs[2 * to], pairs[2 * to + 1] = pairs[2 * source], pairs[2 * source + 1]


@compiled
def reduce_two(simplex: Any, pairs: Any) -> int:
    """Weights of the point of a segment nearest to 0, and only the ends it needs."""
    x, y = simplex[1, 4] - simplex[0, 4], simplex[1, 5] - simplex[0, 5]
    d2 = -(simplex[0, 4] * x + simplex[0, 5] * y)
    if d2 <= ZERO:
        simplex[0, 6] = ONE
        return 1
    d1 = simplex[1, 4] * x + simplex[1, 5] * y
    if d1 <= ZERO:
        simplex[1, 6] = ONE
        copy_row(simplex, pairs, 0, 1)
        return 1
    inverse = ONE / (d1 + d2)
    simplex[0, 6] = d1 * inverse
    simplex[1, 6] = d2 * inverse
    return 2


@compiled
def reduce_three(simplex: Any, pairs: Any) -> int:
    """Likewise for a triangle; 3 if 0 is inside."""
    x1, y1 = simplex[0, 4], simplex[0, 5]
    x2, y2 = simplex[1, 4], simplex[1, 5]
    x3, y3 = simplex[2, 4], simplex[2, 5]
    ex, ey = x2 - x1, y2 - y1
    d12_1, d12_2 = x2 * ex + y2 * ey, -(x1 * ex + y1 * ey)
    fx, fy = x3 - x1, y3 - y1
    d13_1, d13_2 = x3 * fx + y3 * fy, -(x1 * fx + y1 * fy)
    gx, gy = x3 - x2, y3 - y2
    d23_1, d23_2 = x3 * gx + y3 * gy, -(x2 * gx + y2 * gy)
    n = ex * fy - ey * fx
    d1 = n * (x2 * y3 - y2 * x3)
    d2 = n * (x3 * y1 - y3 * x1)
    d3 = n * (x1 * y2 - y1 * x2)
    if d12_2 <= ZERO and d13_2 <= ZERO:
        simplex[0, 6] = ONE
        return 1
    if d12_1 > ZERO and d12_2 > ZERO and d3 <= ZERO:
        inverse = ONE / (d12_1 + d12_2)
        simplex[0, 6], simplex[1, 6] = d12_1 * inverse, d12_2 * inverse
        return 2
    if d13_1 > ZERO and d13_2 > ZERO and d2 <= ZERO:
        inverse = ONE / (d13_1 + d13_2)
        simplex[0, 6], simplex[2, 6] = d13_1 * inverse, d13_2 * inverse
        copy_row(simplex, pairs, 1, 2)
        return 2
    if d12_1 <= ZERO and d23_2 <= ZERO:
        simplex[1, 6] = ONE
        copy_row(simplex, pairs, 0, 1)
        return 1
    if d13_1 <= ZERO and d23_1 <= ZERO:
        simplex[2, 6] = ONE
        copy_row(simplex, pairs, 0, 2)
        return 1
    if d23_1 > ZERO and d23_2 > ZERO and d1 <= ZERO:
        inverse = ONE / (d23_1 + d23_2)
        simplex[1, 6], simplex[2, 6] = d23_1 * inverse, d23_2 * inverse
        copy_row(simplex, pairs, 0, 2)
        return 2
    inverse = ONE / (d1 + d2 + d3)
    simplex[0, 6], simplex[1, 6], simplex[2, 6] = d1 * inverse, d2 * inverse, d3 * inverse
    return 3


@compiled
def distance(
    edge: Any, polygon: Any, sides: int, s: float, c: float, px: float, py: float,
    simplex: Any, pairs: Any, cached: int, metric: float,
) -> tuple[float, int]:  # fmt: skip
    """Distance of an edge and a polygon, and the size of the last simplex, which begins the next search."""
    n = cached
    for at in range(n):
        set_vertex(simplex, at, edge, polygon, pairs[2 * at], pairs[2 * at + 1], s, c, px, py)
    if n > 1:
        now = metric_of(simplex, n)
        if now < HALF * metric or TWO * metric < now or now < EPSILON:
            n = 0
    if n == 0:
        pairs[0] = pairs[1] = 0
        set_vertex(simplex, n, edge, polygon, pairs[0], pairs[1], s, c, px, py)
        n += 1
    for _ in range(20):
        saved = n
        for at in range(6):
            pairs[6 + at] = pairs[at]
        if n == 2:
            n = reduce_two(simplex, pairs)
        elif n == 3:
            n = reduce_three(simplex, pairs)
        if n == 3:
            break
        if n == 1:
            dx, dy = -simplex[0, 4], -simplex[0, 5]
        else:
            x, y = simplex[1, 4] - simplex[0, 4], simplex[1, 5] - simplex[0, 5]
            if x * -simplex[0, 5] - y * -simplex[0, 4] > ZERO:
                dx, dy = -y, x
            else:
                dx, dy = y, -x
        if dx * dx + dy * dy < EPSILON * EPSILON:
            break
        ia = np.int64(edge[2] * -dx + edge[3] * -dy > edge[0] * -dx + edge[1] * -dy)
        ib = support(polygon, sides, c * dx + s * dy, -s * dx + c * dy)
        set_vertex(simplex, n, edge, polygon, ia, ib, s, c, px, py)
        pairs[2 * n], pairs[2 * n + 1] = ia, ib
        again = False
        for at in range(saved):
            if pairs[6 + 2 * at] == ia and pairs[7 + 2 * at] == ib:
                again = True
        if again:
            break
        n += 1
    r = simplex
    if n == 1:
        gap = length_of(r[0, 0] - r[0, 2], r[0, 1] - r[0, 3])
    elif n == 2:
        ax, ay = r[0, 6] * r[0, 0] + r[1, 6] * r[1, 0], r[0, 6] * r[0, 1] + r[1, 6] * r[1, 1]
        bx, by = r[0, 6] * r[0, 2] + r[1, 6] * r[1, 2], r[0, 6] * r[0, 3] + r[1, 6] * r[1, 3]
        gap = length_of(ax - bx, ay - by)
    else:
        gap = ZERO
    return gap, n
