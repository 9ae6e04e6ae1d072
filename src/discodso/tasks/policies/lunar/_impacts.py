"""Continuous collision: the first impact of a step (b2TimeOfImpact), and going on from it (b2World::SolveTOI)."""

from __future__ import annotations

from typing import Any

import numpy as np

from discodso.tasks.policies.lunar._bodies import move, place, synchronize
from discodso.tasks.policies.lunar._contacts import add_contacts, update
from discodso.tasks.policies.lunar._distances import distance, length_of, metric_of, support
from discodso.tasks.policies.lunar._positions import push_contacts
from discodso.tasks.policies.lunar._velocities import solve_impact
from discodso.tasks.policies.lunar._worlds import (
    A0,
    ALPHA,
    AT_END,
    BODIES,
    C0,
    C0X,
    C0Y,
    CENTREX,
    CENTREY,
    CERTAIN,
    CX,
    CY,
    DEEPEST_IMPACT,
    DT,
    EDGES,
    ENABLED,
    EPSILON,
    EXISTING,
    HALF,
    IMPACT,
    IMPACT_BAUMGARTE,
    KNOWN,
    LARGEST,
    LEFTX,
    LEFTY,
    NORMALX,
    NORMALY,
    ONE,
    P0X,
    P0Y,
    PI,
    PX,
    PY,
    REACH,
    RIGHTX,
    S0,
    SIDES,
    SOLVED,
    SOLVING,
    SUB_STEPS,
    TARGET,
    TOLERANCE,
    TOUCHING,
    TRIES,
    TWO,
    WORK,
    ZERO,
    A,
    C,
    F,
    S,
    Shapes,
    World,
    compiled,
    cosf,
    inlined,
    sinf,
)


@compiled
def swept(b: Any, i: int, t: float, fixed: Any) -> tuple[float, float, float, float]:
    """Transform of a body at a time of its sweep: sine, cosine, origin."""
    rest = ONE - t
    x, y = rest * b[i, C0X] + t * b[i, CX], rest * b[i, C0Y] + t * b[i, CY]
    angle = rest * b[i, A0] + t * b[i, A]
    s, c = sinf(angle), cosf(angle)
    lx, ly = fixed[i, CENTREX], fixed[i, CENTREY]
    return s, c, x - (c * lx - s * ly), y - (s * lx + c * ly)


@compiled
def axis_of(
    edge: Any, polygon: Any, simplex: Any, pairs: Any, size: int, s: float, c: float, px: float, py: float
) -> tuple[int, float, float, float, float]:
    """What to measure separation along: kind (0 two vertices, 1 the edge, 2 a side), axis, a point on it."""
    kind, lx, ly = 0, ZERO, ZERO
    if size == 1:
        ax, ay = simplex[0, 2] - simplex[0, 0], simplex[0, 3] - simplex[0, 1]
    elif pairs[0] == pairs[2]:
        kind, b1, b2 = 2, pairs[1], pairs[3]
        ax, ay = polygon[b2, 1] - polygon[b1, 1], -(polygon[b2, 0] - polygon[b1, 0])
        lx, ly = HALF * (polygon[b1, 0] + polygon[b2, 0]), HALF * (polygon[b1, 1] + polygon[b2, 1])
    else:
        kind, a1, a2 = 1, 2 * pairs[0], 2 * pairs[2]
        ax, ay = edge[a2 + 1] - edge[a1 + 1], -(edge[a2] - edge[a1])
        lx, ly = HALF * (edge[a1] + edge[a2]), HALF * (edge[a1 + 1] + edge[a2 + 1])
    length = length_of(ax, ay)
    if length >= EPSILON:
        inverse = ONE / length
        ax *= inverse
        ay *= inverse
    if kind == 0:
        return kind, ax, ay, lx, ly
    if kind == 2:
        nx, ny = c * ax - s * ay, s * ax + c * ay
        x, y = (c * lx - s * ly) + px, (s * lx + c * ly) + py
        d = (edge[2 * pairs[0]] - x) * nx + (edge[2 * pairs[0] + 1] - y) * ny
    else:
        x, y = polygon[pairs[1], 0], polygon[pairs[1], 1]
        x, y = (c * x - s * y) + px, (s * x + c * y) + py
        d = (x - lx) * ax + (y - ly) * ay
    return (kind, -ax, -ay, lx, ly) if d < ZERO else (kind, ax, ay, lx, ly)


@compiled
def deepest(
    b: Any, i: int, t: float, edge: Any, kind: int, ax: float, ay: float, shapes: Shapes
) -> tuple[int, int]:
    """The vertices, of edge and polygon, that lie deepest along an axis at a time."""
    s, c, _, _ = swept(b, i, t, shapes.bodies)
    ia = ib = 0
    if kind == 2:
        nx, ny = -(c * ax - s * ay), -(s * ax + c * ay)
    else:
        nx, ny = ax, ay
        ib = support(shapes.polygons[i], SIDES[i], c * -ax + s * -ay, -s * -ax + c * -ay)
    if kind != 1 and edge[2] * nx + edge[3] * ny > edge[0] * nx + edge[1] * ny:
        ia = 1
    return ia, ib


@compiled
def separation(
    b: Any, i: int, t: float, edge: Any, kind: int, ax: float, ay: float, lx: float, ly: float, ia: int, ib: int,
    shapes: Shapes,
) -> float:  # fmt: skip
    """Separation of two vertices, or of one and a side, along an axis at a time."""
    s, c, px, py = swept(b, i, t, shapes.bodies)
    if kind == 2:
        ax, ay = c * ax - s * ay, s * ax + c * ay
        lx, ly = (c * lx - s * ly) + px, (s * lx + c * ly) + py
        return (edge[2 * ia] - lx) * ax + (edge[2 * ia + 1] - ly) * ay
    x, y = shapes.polygons[i, ib, 0], shapes.polygons[i, ib, 1]
    x, y = (c * x - s * y) + px, (s * x + c * y) + py
    if kind == 0:
        lx, ly = edge[2 * ia], edge[2 * ia + 1]
    return (x - lx) * ax + (y - ly) * ay


@compiled
def impact(b: Any, i: int, edge: Any, simplex: Any, pairs: Any, shapes: Shapes) -> float:
    """The part of a body's sweep after which it meets an edge; 1.0 if it does not."""
    polygon, sides = shapes.polygons[i], SIDES[i]
    t1, size, metric = ZERO, np.int64(0), ZERO
    for _ in range(20):
        s, c, px, py = swept(b, i, t1, shapes.bodies)
        gap, size = distance(edge, polygon, sides, s, c, px, py, simplex, pairs, size, metric)
        metric = metric_of(simplex, size)
        if gap <= ZERO:
            return ONE
        if gap < TARGET + TOLERANCE:
            return t1
        kind, ax, ay, lx, ly = axis_of(edge, polygon, simplex, pairs, size, s, c, px, py)
        t2 = ONE
        for _ in range(16):
            ia, ib = deepest(b, i, t2, edge, kind, ax, ay, shapes)
            s2 = separation(b, i, t2, edge, kind, ax, ay, lx, ly, ia, ib, shapes)
            if s2 > TARGET + TOLERANCE:
                return ONE
            if s2 > TARGET - TOLERANCE:
                t1 = t2
                break
            s1 = separation(b, i, t1, edge, kind, ax, ay, lx, ly, ia, ib, shapes)
            if s1 < TARGET - TOLERANCE:
                return ONE
            if s1 <= TARGET + TOLERANCE:
                return t1
            u1, u2 = t1, t2
            for turn in range(50):  # false position and bisection by turns
                t = u1 + (TARGET - s1) * (u2 - u1) / (s2 - s1) if turn & 1 else HALF * (u1 + u2)
                d = separation(b, i, t, edge, kind, ax, ay, lx, ly, ia, ib, shapes)
                if abs(d - TARGET) < TOLERANCE:
                    t2 = t
                    break
                if d > TARGET:
                    u1, s1 = t, d
                else:
                    u2, s2 = t, d
    return ONE


@compiled
def advance(b: Any, i: int, alpha: float) -> None:
    """Let the sweep of a body begin at alpha."""
    beta = (alpha - b[i, ALPHA]) / (ONE - b[i, ALPHA])
    rest = ONE - beta
    b[i, C0X] = rest * b[i, C0X] + beta * b[i, CX]
    b[i, C0Y] = rest * b[i, C0Y] + beta * b[i, CY]
    b[i, A0] = rest * b[i, A0] + beta * b[i, A]
    b[i, ALPHA] = alpha


@inlined
def stays_away(b: Any, i: int, edge: Any, shapes: Shapes) -> bool:
    """Whether a body, in the whole of a sweep from its beginning, stays clear of an edge; if not sure, not.

    Then `impact` would find nothing. The circle around the body passes beside the edge; or all vertices stay on
    one side of its line, where between the two ends a vertex is nearer by the bend of its arc at most.
    """
    nx, ny, clear = edge[NORMALX], edge[NORMALY], TARGET + TOLERANCE + CERTAIN
    reach, turn = shapes.bodies[i, REACH], b[i, A] - b[i, A0]
    if max(b[i, CX], b[i, C0X]) + reach + clear < edge[LEFTX]:
        return True
    if min(b[i, CX], b[i, C0X]) - reach - clear > edge[RIGHTX]:
        return True
    x, y = edge[LEFTX], edge[LEFTY]
    d0, d1 = nx * (b[i, P0X] - x) + ny * (b[i, P0Y] - y), nx * (b[i, PX] - x) + ny * (b[i, PY] - y)
    x0, y0 = b[i, C0] * nx + b[i, S0] * ny, b[i, C0] * ny - b[i, S0] * nx
    x1, y1 = b[i, C] * nx + b[i, S] * ny, b[i, C] * ny - b[i, S] * nx
    low, high, polygon = LARGEST, -LARGEST, shapes.polygons[i]
    for v in range(SIDES[i]):
        x, y = polygon[v, 0], polygon[v, 1]
        at0, at1 = d0 + (x0 * x + y0 * y), d1 + (x1 * x + y1 * y)
        low, high = min(low, min(at0, at1)), max(high, max(at0, at1))
    return max(low, -high) > clear + reach * turn * turn


@inlined
def first_impact(w: World, ground: float, shapes: Shapes) -> tuple[int, float, float]:
    """The contact that is met first and when, -1 for none; and how far the sweep of the ground is advanced."""
    b, lists, marks = w.bodies, w.lists, w.marks
    first, least = -1, ONE
    for at in range(lists[EXISTING]):
        contact = lists[at]
        if not marks[contact, ENABLED] or marks[contact, TRIES] > SUB_STEPS:
            continue
        if not marks[contact, KNOWN]:
            i = contact // EDGES
            alpha = b[i, ALPHA]
            if ground < alpha:
                ground = alpha
            elif alpha < ground:
                alpha = ground
                advance(b, i, alpha)
            if alpha == ZERO and stays_away(b, i, w.edges[contact % EDGES], shapes):
                w.contacts[contact, IMPACT], marks[contact, KNOWN] = ONE, 1
                continue
            a0, a = b[i, A0], b[i, A]
            turns = TWO * PI * F(np.floor(a0 / (TWO * PI)))
            b[i, A0], b[i, A] = a0 - turns, a - turns
            pairs = lists[WORK : WORK + 12]
            beta = impact(b, i, w.edges[contact % EDGES], w.scratch[20:24], pairs, shapes)
            b[i, A0], b[i, A] = a0, a
            w.contacts[contact, IMPACT] = min(alpha + (ONE - alpha) * beta, ONE) if beta < ONE else ONE
            marks[contact, KNOWN] = 1
        if w.contacts[contact, IMPACT] < least:
            first, least = contact, w.contacts[contact, IMPACT]
    return first, least, ground


@inlined
def continuous(w: World, shapes: Shapes) -> None:
    """Go back to the first impact of the step and go on from there, as often as there is one."""
    b, lists, marks, fixed = w.bodies, w.lists, w.marks, shapes.bodies
    for at in range(lists[EXISTING]):
        marks[lists[at], KNOWN] = marks[lists[at], TRIES] = 0
        marks[lists[at], ENABLED] = 1
    for i in range(BODIES):
        b[i, ALPHA] = ZERO
    ground = ZERO
    while True:
        first, least, ground = first_impact(w, ground, shapes)
        if first < 0 or least > AT_END:
            return
        i, before, saved = first // EDGES, ground, w.scratch[24]
        for column in range(23):
            saved[column] = b[i, column]
        advance(b, i, least)
        b[i, CX], b[i, CY], b[i, A] = b[i, C0X], b[i, C0Y], b[i, A0]
        place(b, i, fixed)
        ground = least
        update(w, first, shapes)
        marks[first, KNOWN] = 0
        marks[first, TRIES] += 1
        if not marks[first, TOUCHING]:
            marks[first, ENABLED] = 0
            ground = before
            for column in range(23):
                b[i, column] = saved[column]
            continue
        lists[SOLVED], lists[SOLVING] = first, 1
        for at in range(lists[EXISTING]):
            contact = lists[at]
            if contact // EDGES == i and contact != first:
                update(w, contact, shapes)
                if marks[contact, TOUCHING]:
                    lists[SOLVED + lists[SOLVING]] = contact
                    lists[SOLVING] += 1
        for _ in range(20):
            if push_contacts(w, shapes, IMPACT_BAUMGARTE) >= DEEPEST_IMPACT:
                break
        place(b, i, fixed)
        b[i, C0X], b[i, C0Y], b[i, A0] = b[i, CX], b[i, CY], b[i, A]
        for column in range(4):
            b[i, S0 + column] = b[i, S + column]
        solve_impact(w, i, shapes)
        move(b, i, (ONE - least) * DT)
        place(b, i, fixed)
        for at in range(lists[EXISTING]):
            if lists[at] // EDGES == i:
                marks[lists[at], KNOWN] = 0
        if synchronize(b, i, shapes):
            add_contacts(w, 1 << i)
