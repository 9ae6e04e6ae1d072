"""Contacts of bodies with edges of the ground (b2ContactManager), and where they touch (b2EPCollider)."""

from __future__ import annotations

from typing import Any

from discodso.tasks.policies.lunar._bodies import overlap
from discodso.tasks.policies.lunar._worlds import (
    ABSOLUTE,
    ANGULAR_SLOP,
    BODIES,
    BOTH_RADII,
    BYTES,
    COUNT,
    EDGES,
    ENABLED,
    EXISTING,
    EXISTS,
    FACE,
    FACE_OF_A,
    FACE_OF_B,
    GROUND,
    ID,
    IMPULSES,
    LANDER,
    LARGEST,
    LEFTX,
    LEFTY,
    MIDDLEX,
    MIDDLEY,
    NORMAL,
    NORMALX,
    NORMALY,
    POINT,
    POINTS,
    PX,
    PY,
    REACH,
    RELATIVE,
    SIDES,
    TOUCHING,
    WORK,
    ZERO,
    C,
    S,
    Shapes,
    World,
    compiled,
    inlined,
)


@compiled
def add_contacts(w: World, moved: int) -> None:
    """New contacts of bodies whose boxes moved (bits): by edge, then lander, left leg, right leg."""
    marks, lists = w.marks, w.lists
    for edge in range(EDGES):
        for at in range(BODIES):
            i = (1 + at) % BODIES
            contact = i * EDGES + edge
            if (moved >> i) & 1 == 0 or marks[contact, EXISTS] or not overlap(w.bodies, i, w.edges, edge):
                continue
            for column in range(10):
                marks[contact, column] = 0
            marks[contact, EXISTS] = marks[contact, ENABLED] = 1
            for spot in range(lists[EXISTING], 0, -1):
                lists[spot] = lists[spot - 1]
            lists[0] = contact
            lists[EXISTING] += 1


@compiled
def clip(
    out: Any, ids: Any, given: Any, given_ids: Any, nx: float, ny: float, offset: float, index: int
) -> int:
    """The part of a segment behind a line; the number of its ends."""
    n = 0
    d0 = (nx * given[0, 0] + ny * given[0, 1]) - offset
    d1 = (nx * given[1, 0] + ny * given[1, 1]) - offset
    if d0 <= ZERO:
        out[n, 0], out[n, 1], ids[n] = given[0, 0], given[0, 1], given_ids[0]
        n += 1
    if d1 <= ZERO:
        out[n, 0], out[n, 1], ids[n] = given[1, 0], given[1, 1], given_ids[1]
        n += 1
    if d0 * d1 < ZERO:
        part = d0 / (d0 - d1)
        out[n, 0] = given[0, 0] + part * (given[1, 0] - given[0, 0])
        out[n, 1] = given[0, 1] + part * (given[1, 1] - given[0, 1])
        ids[n] = index | given_ids[0] & (255 << 8) | FACE_OF_B
        n += 1
    return n


@inlined
def evaluate(w: World, contact: int, shapes: Shapes) -> int:
    """The manifold of an edge and a polygon; the number of its points."""
    i, edge = contact // EDGES, contact % EDGES
    b, m, marks = w.bodies, w.contacts[contact], w.marks[contact]
    e1x, e1y, e2x, e2y = w.edges[edge, 0], w.edges[edge, 1], w.edges[edge, 2], w.edges[edge, 3]
    s, c, px, py = b[i, S], b[i, C], b[i, PX], b[i, PY]
    sides, polygon = SIDES[i], shapes.polygons[i]
    p, q, segment = w.scratch[0:6], w.scratch[6:12], w.scratch[12:20]  # vertices, normals, segments
    ids = w.lists[WORK : WORK + 8]
    n1x, n1y = w.edges[edge, NORMALX], w.edges[edge, NORMALY]
    x, y = shapes.bodies[i, MIDDLEX], shapes.bodies[i, MIDDLEY]
    x, y = (c * x - s * y) + px, (s * x + c * y) + py
    front = n1x * (x - e1x) + n1y * (y - e1y) >= ZERO
    nx, ny = (n1x, n1y) if front else (-n1x, -n1y)
    along = LARGEST  # separation along the normal of the edge
    for v in range(sides):
        x, y = polygon[v, 0], polygon[v, 1]
        p[v, 0], p[v, 1] = (c * x - s * y) + px, (s * x + c * y) + py
        along = min(along, nx * (p[v, 0] - e1x) + ny * (p[v, 1] - e1y))
    if along > BOTH_RADII:
        return 0
    best, across = -1, -LARGEST
    for v in range(sides):
        x, y = polygon[v, 2], polygon[v, 3]
        q[v, 0], q[v, 1] = c * x - s * y, s * x + c * y
        ax, ay = -q[v, 0], -q[v, 1]
        d = min(ax * (p[v, 0] - e1x) + ay * (p[v, 1] - e1y), ax * (p[v, 0] - e2x) + ay * (p[v, 1] - e2y))
        if d > BOTH_RADII:
            return 0
        if (ax + nx) * nx + (ay + ny) * ny >= -ANGULAR_SLOP and d > across:
            best, across = v, d
    if best >= 0 and across > RELATIVE * along + ABSOLUTE:
        segment[0, 0], segment[0, 1], segment[1, 0], segment[1, 1] = e1x, e1y, e2x, e2y
        ids[0] = ids[1] = best << 8 | FACE_OF_B
        i1 = best
        i2 = best + 1 if best + 1 < sides else 0
        v1x, v1y, v2x, v2y = p[i1, 0], p[i1, 1], p[i2, 0], p[i2, 1]
        rx, ry = q[i1, 0], q[i1, 1]
        m[NORMAL], m[NORMAL + 1] = polygon[i1, 2], polygon[i1, 3]
        m[POINT], m[POINT + 1] = polygon[i1, 0], polygon[i1, 1]
        marks[FACE] = 1
    else:
        i1, least = 0, nx * q[0, 0] + ny * q[0, 1]
        for v in range(1, sides):
            d = nx * q[v, 0] + ny * q[v, 1]
            if d < least:
                i1, least = v, d
        i2 = i1 + 1 if i1 + 1 < sides else 0
        segment[0, 0], segment[0, 1], segment[1, 0], segment[1, 1] = p[i1, 0], p[i1, 1], p[i2, 0], p[i2, 1]
        ids[0], ids[1] = i1 << 8 | FACE_OF_A, i2 << 8 | FACE_OF_A
        rx, ry = nx, ny
        if front:
            i1, i2, v1x, v1y, v2x, v2y = 0, 1, e1x, e1y, e2x, e2y
        else:
            i1, i2, v1x, v1y, v2x, v2y = 1, 0, e2x, e2y, e1x, e1y
        m[NORMAL], m[NORMAL + 1], m[POINT], m[POINT + 1] = rx, ry, v1x, v1y
        marks[FACE] = 0
    sx, sy = ry, -rx
    if clip(segment[2:5], ids[2:5], segment[0:2], ids[0:2], sx, sy, sx * v1x + sy * v1y, i1) < 2:
        return 0
    if clip(segment[5:8], ids[5:8], segment[2:4], ids[2:4], -sx, -sy, -sx * v2x + -sy * v2y, i2) < 2:
        return 0
    n = 0
    for at in range(5, 7):
        x, y, which = segment[at, 0], segment[at, 1], ids[at]
        if rx * (x - v1x) + ry * (y - v1y) <= BOTH_RADII:
            if marks[FACE]:
                which = (which >> 8) & BYTES | (which & BYTES) << 8  # A and B change places
            else:
                x, y = x - px, y - py
                x, y = c * x + s * y, -s * x + c * y
            m[POINTS + 2 * n], m[POINTS + 2 * n + 1] = x, y
            marks[ID + n] = which
            n += 1
    return n


@compiled
def update(w: World, contact: int, shapes: Shapes) -> None:
    """A contact as the bodies lie now; points that stay keep their impulses."""
    i, m, marks = contact // EDGES, w.contacts[contact], w.marks[contact]
    before, id0, id1 = marks[COUNT], marks[ID], marks[ID + 1]
    n0, t0, n1, t1 = m[IMPULSES], m[IMPULSES + 1], m[IMPULSES + 2], m[IMPULSES + 3]
    marks[ENABLED] = 1
    points = evaluate(w, contact, shapes)
    for n in range(points):
        normal, tangent = ZERO, ZERO
        if before > 0 and marks[ID + n] == id0:
            normal, tangent = n0, t0
        elif before > 1 and marks[ID + n] == id1:
            normal, tangent = n1, t1
        m[IMPULSES + 2 * n], m[IMPULSES + 2 * n + 1] = normal, tangent
    if points > 0 and not marks[TOUCHING]:
        w.lists[GROUND + i] = 1
    elif points == 0 and marks[TOUCHING] and i != LANDER:
        w.lists[GROUND + i] = 0
    marks[COUNT], marks[TOUCHING] = points, min(points, 1)


@inlined
def is_near(b: Any, i: int, edge: Any, fixed: Any) -> bool:
    """Whether the circle around a body comes near the line of an edge; if not, `evaluate` finds no points."""
    x, y = fixed[i, MIDDLEX], fixed[i, MIDDLEY]
    x, y = (
        b[i, C] * x - b[i, S] * y + b[i, PX] - edge[LEFTX],
        b[i, S] * x + b[i, C] * y + b[i, PY] - edge[LEFTY],
    )
    return abs(edge[NORMALX] * x + edge[NORMALY] * y) <= fixed[i, REACH] + BOTH_RADII


@inlined
def collide(w: World, shapes: Shapes) -> None:
    """Forget contacts whose boxes no longer overlap, bring the others up to date."""
    lists, kept = w.lists, 0
    for at in range(lists[EXISTING]):
        contact = lists[at]
        i = contact // EDGES
        if overlap(w.bodies, i, w.edges, contact % EDGES):
            lists[kept] = contact
            kept += 1
            if w.marks[contact, TOUCHING] or is_near(w.bodies, i, w.edges[contact % EDGES], shapes.bodies):
                update(w, contact, shapes)
            else:
                w.marks[contact, ENABLED] = 1
        else:
            if w.marks[contact, TOUCHING] and i != LANDER:
                lists[GROUND + i] = 0
            w.marks[contact, EXISTS] = 0
    lists[EXISTING] = kept
