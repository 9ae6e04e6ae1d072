"""LunarLander compiled, with the tree inside the loop: the step of Gymnasium, and the world of Box2D 2.3 below it.

The world is the lander, two legs, two joints and the edges of the ground. Its numbers are float32, and every
operation is in the order of the installed library, so that states have the same bits: contacts (edges against
polygons), sequential impulses with warm starting, position correction, sleeping, continuous collision. The order
in which contacts are made and solved is part of that. Particles are left out: Gymnasium has them only in pictures.

Most time goes into the 180 velocity iterations. They run for LANES episodes side by side, in vector registers,
those on the ground first, since the others have only joints. All else is done episode by episode.

Bodies are the right leg, the lander, the left leg, which is how the solver meets them. A contact is
body * EDGES + edge.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from discodso.base.arrays import Floats, Ints
from discodso.tasks.policies.columns import Columns, fill_action, walk

# Only the whole is cached, and called from Python.
_options: Any = {"nogil": True, "error_model": "numpy"}
_njit: Any = njit
_compiled = _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_options)
F, U = np.float32, np.uint64

LANES = 16  # side by side in the solver
WORLDS = 128
GROUPS = WORLDS // LANES + 2  # of lanes: in the air, on the ground, and one to work in
SLOTS, SLOT_ROWS = 4, 22  # contacts that a body may have at once in the solver
RIGHT, LANDER, LEFT = range(3)
BODIES, EDGES = 3, 11
CONTACTS = BODIES * EDGES
SIDES = (4, 6, 4)  # of the polygons
# A body: centre of mass, angle, velocities; where its sweep began; transforms at the end and at the beginning
# (sine, cosine, origin); time at rest; its box with a margin; how far its sweep is advanced.
CX, CY, A, VX, VY, W, C0X, C0Y, A0, S, C, PX, PY, S0, C0, P0X, P0Y, REST, LOWX, LOWY, HIGHX, HIGHY, ALPHA = (
    range(23)
)
# What stays the same of a body; ARM is the joint's anchor, TURNING its mass for rotations.
(
    MASS,
    INERTIA,
    CENTREX,
    CENTREY,
    MIDDLEX,
    MIDDLEY,
    ARMX,
    ARMY,
    LOWER,
    UPPER,
    SPEED,
    ZEROED,
    BOTTOM,
    GRIP,
    TURNING,
) = range(15)
# A contact: normal, point, its points, impulses (normal and tangent, by point), time of impact; and marks.
NORMAL, POINT, POINTS, IMPULSES, IMPACT = 0, 2, 4, 8, 12
EXISTS, TOUCHING, COUNT, FACE, ID, KNOWN, ENABLED, TRIES, SOLVED_AS = 0, 1, 2, 3, 4, 6, 7, 8, 9
# Which parts of two shapes made a point: the number of a vertex or side in A and in B, and which is a side.
FACE_OF_A, FACE_OF_B, BYTES = 1 << 16, 1 << 24, 255 | 255 << 16
# Lists: contacts newest first, their number; limits that joints are at; ground contact or crash, by body; the
# contacts to be solved; room to work in.
EXISTING, LIMITS, GROUND, SOLVING, SOLVED, WORK = 33, 34, 36, 39, 40, 73
# A constraint: normal, friction; by point: arm, impulses, masses; the matrix of two points, its inverse, whether
# it is used. All are 0 where there is none, and then change nothing.
NX, NY, MU, RX, RY, NI, TI, NM, TM, SECOND = 0, 1, 2, 3, 4, 5, 6, 7, 8, 6
K11, K12, K22, M11, M12, M22, TWICE = 15, 16, 17, 18, 19, 20, 21
# Rows of lanes: velocities of the bodies, then for each joint impulses, arms, and what its equations need.
JOINT, JOINT_ROWS = 9, 20
IX, IY, IZ, MOTOR = range(4)

ZERO, HALF, ONE, TWO = F(0), F(0.5), F(1), F(2)
PI = F(3.14159265359)
SLOP, ANGULAR_SLOP = F(0.005), TWO / F(180) * PI
RADIUS, BOTH_RADII, MARGIN = TWO * SLOP, TWO * (TWO * SLOP), F(0.1)
EPSILON, LARGEST = np.finfo(F).eps, np.finfo(F).max
DT = F(1.0 / 50)
DT_RATIO = ONE / DT * DT
VELOCITY_ITERATIONS, POSITION_ITERATIONS, SUB_STEPS = 180, 60, 8
MAX_TURN, MAX_PUSH = F(8) / F(180) * PI, F(0.2)
MAX_ROTATION, MAX_TRANSLATION = HALF * PI, F(2)
MAX_IMPULSE = DT * F(40)
SLEEP, SLOW, SLOW_TURN = F(0.5), F(0.01) * F(0.01), ANGULAR_SLOP * ANGULAR_SLOP
BAUMGARTE, IMPACT_BAUMGARTE = F(0.2), F(0.75)
DEEPEST, DEEPEST_IMPACT = F(-3) * SLOP, F(-1.5) * SLOP
TARGET, TOLERANCE = SLOP, F(0.25) * SLOP  # of the distance at an impact
AT_END = ONE - F(10) * EPSILON
WORST_CONDITION, RELATIVE, ABSOLUTE = F(1000), F(0.98), F(0.001)

_sinf: Any = types.ExternalFunction("sinf", types.float32(types.float32))
_cosf: Any = types.ExternalFunction("cosf", types.float32(types.float32))


class Shapes(NamedTuple):
    """What is the same in all worlds."""

    polygons: Any  # float32[3, 6, 4], vertices and normals
    bodies: Any  # float32[3, 15]


class Settings(NamedTuple):
    """Arguments of the environment."""

    continuous: bool
    gravity: Any  # float32
    windy: bool
    wind_power: float
    turbulence_power: float


class World(NamedTuple):
    """Several worlds, or one of them without the first axis. What is not by world is to work in."""

    bodies: Any  # float32[WORLDS, 3, 23]
    contacts: Any  # float32[WORLDS, 33, 13]
    marks: Any  # int64[WORLDS, 33, 10]
    lists: Any  # int64[WORLDS, 85]
    edges: Any  # float32[WORLDS, 11, 8], both ends, and the box
    joints: Any  # float32[WORLDS, 2, 4], impulses
    rows: Any  # float32[GROUPS, (9 + 2 * 20) * LANES]
    slots: Any  # float32[GROUPS, 3 * SLOTS * SLOT_ROWS * LANES], constraints of contacts
    used: Any  # int64[GROUPS, 3], slots that some lane uses, by body
    scratch: Any  # float32[32, 23]
    seen: Any  # float64[WORLDS, 8], observations
    force: Any  # float32[WORLDS, 3]


def new_world() -> World:
    """Room for all worlds."""
    shapes = (3, 23), (CONTACTS, 13), (EDGES, 8), (2, 4)
    bodies, contacts, edges, joints = (np.zeros((WORLDS, *shape), np.float32) for shape in shapes)
    marks, lists = (np.zeros((WORLDS, *shape), np.int64) for shape in ((CONTACTS, 10), (85,)))
    rows = np.zeros((GROUPS, (JOINT + 2 * JOINT_ROWS) * LANES), np.float32)
    slots = np.zeros((GROUPS, BODIES * SLOTS * SLOT_ROWS * LANES), np.float32)
    used, scratch = np.zeros((GROUPS, BODIES), np.int64), np.zeros((32, 23), np.float32)
    seen, force = np.zeros((WORLDS, 8)), np.zeros((WORLDS, 3), np.float32)
    return World(bodies, contacts, marks, lists, edges, joints, rows, slots, used, scratch, seen, force)


@intrinsic
def uncounted(typing_context: Any, array: Any) -> Any:
    """The same array, whose uses are not counted, which would take most of the time; the caller keeps it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.return_type)(context, builder, arguments[0])
        view.meminfo = ir.Constant(view.meminfo.type, None)
        return view._getvalue()

    return array(array), generate


@_compiled
def uncounted_world(w: World) -> World:
    """Likewise for all arrays."""
    return World(
        uncounted(w.bodies),
        uncounted(w.contacts),
        uncounted(w.marks),
        uncounted(w.lists),
        uncounted(w.edges),
        uncounted(w.joints),
        uncounted(w.rows),
        uncounted(w.slots),
        uncounted(w.used),
        uncounted(w.scratch),
        uncounted(w.seen),
        uncounted(w.force),
    )


@_compiled
def world_of(worlds: World, n: int) -> World:
    """One of several worlds."""
    return World(
        worlds.bodies[n],
        worlds.contacts[n],
        worlds.marks[n],
        worlds.lists[n],
        worlds.edges[n],
        worlds.joints[n],
        worlds.rows,
        worlds.slots,
        worlds.used,
        worlds.scratch,
        worlds.seen[n],
        worlds.force[n],
    )


# ------------------------------------------------------------------------------------- transforms, boxes


@_compiled
def place(b: Any, i: int, fixed: Any) -> None:
    """The transform of a body from its centre and angle."""
    s, c = _sinf(b[i, A]), _cosf(b[i, A])
    x, y = fixed[i, CENTREX], fixed[i, CENTREY]
    b[i, S], b[i, C] = s, c
    b[i, PX], b[i, PY] = b[i, CX] - (c * x - s * y), b[i, CY] - (s * x + c * y)


@_compiled
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


@_compiled
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


@_compiled
def overlap(b: Any, i: int, edges: Any, edge: int) -> bool:
    """Whether the boxes of a body and an edge overlap."""
    return (
        b[i, LOWX] <= edges[edge, 6]
        and b[i, LOWY] <= edges[edge, 7]
        and edges[edge, 4] <= b[i, HIGHX]
        and edges[edge, 5] <= b[i, HIGHY]
    )


@_compiled
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


@_compiled
def collide(w: World, shapes: Shapes) -> None:
    """Forget contacts whose boxes no longer overlap, bring the others up to date."""
    lists, kept = w.lists, 0
    for at in range(lists[EXISTING]):
        contact = lists[at]
        i = contact // EDGES
        if overlap(w.bodies, i, w.edges, contact % EDGES):
            lists[kept] = contact
            kept += 1
            update(w, contact, shapes)
        else:
            if w.marks[contact, TOUCHING] and i != LANDER:
                lists[GROUND + i] = 0
            w.marks[contact, EXISTS] = 0
    lists[EXISTING] = kept


# ------------------------------------------------------------------------------------- manifolds


@_compiled
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


@_compiled
def evaluate(w: World, contact: int, shapes: Shapes) -> int:
    """The manifold of an edge and a polygon; the number of its points."""
    i, edge = contact // EDGES, contact % EDGES
    b, m, marks = w.bodies, w.contacts[contact], w.marks[contact]
    e1x, e1y, e2x, e2y = w.edges[edge, 0], w.edges[edge, 1], w.edges[edge, 2], w.edges[edge, 3]
    s, c, px, py = b[i, S], b[i, C], b[i, PX], b[i, PY]
    sides, polygon = SIDES[i], shapes.polygons[i]
    p, q, segment = w.scratch[0:6], w.scratch[6:12], w.scratch[12:20]  # vertices, normals, segments
    ids = w.lists[WORK : WORK + 8]
    dx, dy = e2x - e1x, e2y - e1y
    inverse = ONE / np.sqrt(dx * dx + dy * dy)
    n1x, n1y = dy * inverse, -(dx * inverse)
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


@_compiled
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


# ------------------------------------------------------------------------------------- contact solver


@_compiled
def begin_contacts(w: World, group: int, lane: int, shapes: Shapes) -> None:
    """Constraints of the contacts to be solved, and their impulses of the step before, but not after an impact."""
    warm = group < GROUPS - 1
    b, lists, t, before, slot = w.bodies, w.lists, w.slots[group], -1, 0
    for at in range(lists[SOLVING]):
        contact = lists[SOLVED + at]
        i, m, face = contact // EDGES, w.contacts[contact], w.marks[contact, FACE]
        slot = slot + 1 if i == before else 0
        before = i
        if slot >= SLOTS:
            continue
        w.used[group, i] = max(w.used[group, i], slot + 1)
        mass, inertia = shapes.bodies[i, MASS], shapes.bodies[i, INERTIA]
        base = (i * SLOTS + slot) * SLOT_ROWS * LANES + lane
        s, c, px, py = b[i, S], b[i, C], b[i, PX], b[i, PY]
        nx, ny, ox, oy = m[NORMAL], m[NORMAL + 1], m[POINT], m[POINT + 1]
        if face:
            nx, ny = c * nx - s * ny, s * nx + c * ny
            ox, oy = (c * ox - s * oy) + px, (s * ox + c * oy) + py
        points = w.marks[contact, COUNT]
        turn1, turn2 = ZERO, ZERO
        for n in range(points):
            x, y = m[POINTS + 2 * n], m[POINTS + 2 * n + 1]
            if not face:
                x, y = (c * x - s * y) + px, (s * x + c * y) + py
            d = RADIUS - ((x - ox) * nx + (y - oy) * ny)
            rx = HALF * ((x + d * nx) + (x - RADIUS * nx)) - b[i, CX]
            ry = HALF * ((y + d * ny) + (y - RADIUS * ny)) - b[i, CY]
            turn1, turn2 = turn2, rx * ny - ry * nx
            along = rx * -nx - ry * ny
            own = base + SECOND * n * LANES
            t[own + RX * LANES], t[own + RY * LANES] = rx, ry
            t[own + NM * LANES] = ONE / (mass + inertia * turn2 * turn2)
            t[own + TM * LANES] = ONE / (mass + inertia * along * along)
            t[own + NI * LANES] = DT_RATIO * m[IMPULSES + 2 * n] if warm else ZERO
            t[own + TI * LANES] = DT_RATIO * m[IMPULSES + 2 * n + 1] if warm else ZERO
        if face:
            nx, ny, turn1, turn2 = -nx, -ny, -turn1, -turn2
        t[base + NX * LANES], t[base + NY * LANES] = nx, ny
        t[base + MU * LANES] = shapes.bodies[i, GRIP if contact % EDGES else BOTTOM]
        if points == 2:
            k11, k22 = mass + inertia * turn1 * turn1, mass + inertia * turn2 * turn2
            k12 = mass + inertia * turn1 * turn2
            det = k11 * k22 - k12 * k12
            if k11 * k11 < WORST_CONDITION * det:
                t[base + K11 * LANES], t[base + K12 * LANES], t[base + K22 * LANES] = k11, k12, k22
                det = ONE / det
                t[base + M11 * LANES], t[base + M12 * LANES], t[base + M22 * LANES] = (
                    det * k22,
                    -det * k12,
                    det * k11,
                )
                t[base + TWICE * LANES] = ONE
            else:
                points = 1
                for row in range(RX + SECOND, K11):
                    t[base + row * LANES] = ZERO
        w.marks[contact, SOLVED_AS] = points
        if warm:
            for n in range(points):
                own = base + SECOND * n * LANES
                normal, tangent = t[own + NI * LANES], t[own + TI * LANES]
                x, y = normal * nx + tangent * ny, normal * ny + tangent * -nx
                b[i, W] += inertia * (t[own + RX * LANES] * y - t[own + RY * LANES] * x)
                b[i, VX] += mass * x
                b[i, VY] += mass * y


@_compiled
def store_impulses(w: World, group: int, lane: int) -> None:
    """Impulses of contacts that were solved, for the next step."""
    lists, t, before, slot = w.lists, w.slots[group], -1, 0
    for at in range(lists[SOLVING]):
        contact = lists[SOLVED + at]
        i = contact // EDGES
        slot = slot + 1 if i == before else 0
        before = i
        if slot < SLOTS:
            base = (i * SLOTS + slot) * SLOT_ROWS * LANES + lane
            for n in range(w.marks[contact, SOLVED_AS]):
                w.contacts[contact, IMPULSES + 2 * n] = t[base + (NI + SECOND * n) * LANES]
                w.contacts[contact, IMPULSES + 2 * n + 1] = t[base + (TI + SECOND * n) * LANES]


@_compiled
def solve_contacts(rows: Any, t: Any, used: Any, fixed: Any) -> None:
    """One velocity iteration over the contacts of a group; without branches, so that it is vectorised."""
    for i in range(BODIES):
        mass, inertia = fixed[i, MASS], fixed[i, INERTIA]
        for slot in range(used[i]):
            start = (i * SLOTS + slot) * SLOT_ROWS * LANES
            for lane in range(LANES):
                p, v = start + lane, 3 * i * LANES + lane
                vx, vy, w = rows[v], rows[v + LANES], rows[v + 2 * LANES]
                nx, ny, mu = t[p], t[p + NY * LANES], t[p + MU * LANES]
                r1x, r1y, n1, t1 = t[p + 3 * LANES], t[p + 4 * LANES], t[p + 5 * LANES], t[p + 6 * LANES]
                r2x, r2y, n2, t2 = t[p + 9 * LANES], t[p + 10 * LANES], t[p + 11 * LANES], t[p + 12 * LANES]
                m1, m2 = t[p + NM * LANES], t[p + (NM + SECOND) * LANES]
                k12, twice = t[p + K12 * LANES], t[p + TWICE * LANES] > ZERO
                # Friction, point by point.
                impulse = t[p + TM * LANES] * -((vx + -w * r1y) * ny + (vy + w * r1x) * -nx)
                most = mu * n1
                new = max(-most, min(t1 + impulse, most))
                t[p + TI * LANES] = new
                impulse = new - t1
                x, y = impulse * ny, impulse * -nx
                vx += mass * x
                vy += mass * y
                w += inertia * (r1x * y - r1y * x)
                impulse = t[p + (TM + SECOND) * LANES] * -((vx + -w * r2y) * ny + (vy + w * r2x) * -nx)
                most = mu * n2
                new = max(-most, min(t2 + impulse, most))
                t[p + (TI + SECOND) * LANES] = new
                impulse = new - t2
                x, y = impulse * ny, impulse * -nx
                vx += mass * x
                vy += mass * y
                w += inertia * (r2x * y - r2y * x)
                # Normal impulse of a single point.
                b1 = (vx + -w * r1y) * nx + (vy + w * r1x) * ny
                b2 = (vx + -w * r2y) * nx + (vy + w * r2x) * ny
                single = max(n1 + -m1 * b1, ZERO)
                # Of two at once: four cases of which of them push.
                b1 -= t[p + K11 * LANES] * n1 + k12 * n2
                b2 -= k12 * n1 + t[p + K22 * LANES] * n2
                m11, m12, m22 = t[p + M11 * LANES], t[p + M12 * LANES], t[p + M22 * LANES]
                both1, both2 = -(m11 * b1 + m12 * b2), -(m12 * b1 + m22 * b2)
                first, second = -m1 * b1, -m2 * b2
                one = (first >= ZERO) & (k12 * first + b2 >= ZERO)
                other = (second >= ZERO) & (k12 * second + b1 >= ZERO)
                none = (b1 >= ZERO) & (b2 >= ZERO)
                new1 = first if one else (ZERO if other | none else n1)
                new2 = ZERO if one else (second if other else (ZERO if none else n2))
                both = (both1 >= ZERO) & (both2 >= ZERO)
                new1 = both1 if both else new1
                new2 = both2 if both else new2
                new1 = new1 if twice else single
                new2 = new2 if twice else ZERO
                x1, y1, x2, y2 = (new1 - n1) * nx, (new1 - n1) * ny, (new2 - n2) * nx, (new2 - n2) * ny
                t[p + NI * LANES], t[p + (NI + SECOND) * LANES] = new1, new2
                rows[v] = vx + mass * (x1 + x2)
                rows[v + LANES] = vy + mass * (y1 + y2)
                rows[v + 2 * LANES] = w + inertia * ((r1x * y1 - r1y * x1) + (r2x * y2 - r2y * x2))


@_compiled
def push_contacts(w: World, shapes: Shapes, share: float) -> float:
    """One position iteration over the contacts to be solved; the least separation."""
    b, lists, least = w.bodies, w.lists, ZERO
    for at in range(lists[SOLVING]):
        contact = lists[SOLVED + at]
        i, m, face = contact // EDGES, w.contacts[contact], w.marks[contact, FACE]
        mass, inertia = shapes.bodies[i, MASS], shapes.bodies[i, INERTIA]
        for n in range(w.marks[contact, COUNT]):
            place(b, i, shapes.bodies)
            s, c, px, py = b[i, S], b[i, C], b[i, PX], b[i, PY]
            nx, ny, ox, oy = m[NORMAL], m[NORMAL + 1], m[POINT], m[POINT + 1]
            x, y = m[POINTS + 2 * n], m[POINTS + 2 * n + 1]
            if face:
                nx, ny = c * nx - s * ny, s * nx + c * ny
                ox, oy = (c * ox - s * oy) + px, (s * ox + c * oy) + py
            else:
                x, y = (c * x - s * y) + px, (s * x + c * y) + py
            separation = ((x - ox) * nx + (y - oy) * ny) - RADIUS - RADIUS
            if face:
                nx, ny = -nx, -ny
            least = min(least, separation)
            rx, ry = x - b[i, CX], y - b[i, CY]
            wanted = max(-MAX_PUSH, min(share * (separation + SLOP), ZERO))
            turn = rx * ny - ry * nx
            impulse = -wanted / (mass + inertia * turn * turn)
            x, y = impulse * nx, impulse * ny
            b[i, CX] += mass * x
            b[i, CY] += mass * y
            b[i, A] += inertia * (rx * y - ry * x)
    return least


# ------------------------------------------------------------------------------------- joints


@_compiled
def begin_joints(w: World, group: int, lane: int, fixed: Any) -> None:
    """Equations of the joints, and their impulses of the step before."""
    b, lists, rows = w.bodies, w.lists, w.rows[group]
    mass_a, inertia_a = fixed[LANDER, MASS], fixed[LANDER, INERTIA]
    s, c = b[LANDER, S], b[LANDER, C]
    x, y = fixed[LANDER, ARMX], fixed[LANDER, ARMY]
    ax, ay = c * x - s * y, s * x + c * y
    for at in range(2):
        i, q = 2 * at, (JOINT + JOINT_ROWS * at) * LANES + lane
        mass, inertia = fixed[i, MASS], fixed[i, INERTIA]
        s, c = b[i, S], b[i, C]
        x, y = fixed[i, ARMX], fixed[i, ARMY]
        bx, by = c * x - s * y, s * x + c * y
        a11 = mass_a + mass + ay * ay * inertia_a + by * by * inertia
        a12 = -ay * ax * inertia_a - by * bx * inertia
        a13 = -ay * inertia_a - by * inertia
        a22 = mass_a + mass + ax * ax * inertia_a + bx * bx * inertia
        a23 = ax * inertia_a + bx * inertia
        a33 = inertia_a + inertia
        ux, uy, uz = a22 * a33 - a23 * a23, a23 * a13 - a12 * a33, a12 * a23 - a22 * a13
        angle = b[i, A] - b[LANDER, A] - fixed[i, ZEROED]
        limit = 1 if angle <= fixed[i, LOWER] else (2 if angle >= fixed[i, UPPER] else 0)
        if limit == 0 or limit != lists[LIMITS + at]:
            w.joints[at, IZ] = ZERO
        lists[LIMITS + at] = limit
        for row in range(4):
            w.joints[at, row] *= DT_RATIO
            rows[q + row * LANES] = w.joints[at, row]
        rows[q + 4 * LANES], rows[q + 5 * LANES], rows[q + 6 * LANES], rows[q + 7 * LANES] = ax, ay, bx, by
        rows[q + 8 * LANES], rows[q + 9 * LANES], rows[q + 10 * LANES] = a11, a12, a22
        rows[q + 11 * LANES] = ONE / (a11 * a22 - a12 * a12)
        rows[q + 12 * LANES], rows[q + 13 * LANES], rows[q + 14 * LANES] = ux, uy, uz
        rows[q + 15 * LANES] = ONE / (a11 * ux + a12 * uy + a13 * uz)
        rows[q + 16 * LANES], rows[q + 17 * LANES] = a13, a23
        # The impulse of the limit is undone where side * impulse < bound: always, if it is at none.
        rows[q + 18 * LANES] = ONE if limit == 1 else (-ONE if limit == 2 else ZERO)
        rows[q + 19 * LANES] = ZERO if limit else ONE
        x, y, z, motor = w.joints[at, IX], w.joints[at, IY], w.joints[at, IZ], w.joints[at, MOTOR]
        b[LANDER, VX] -= mass_a * x
        b[LANDER, VY] -= mass_a * y
        b[LANDER, W] -= inertia_a * ((ax * y - ay * x) + motor + z)
        b[i, VX] += mass * x
        b[i, VY] += mass * y
        b[i, W] += inertia * ((bx * y - by * x) + motor + z)


@_compiled
def solve_joints(rows: Any, iterations: int, fixed: Any) -> None:
    """Velocity iterations over the joints, for all lanes; without branches, so that they are vectorised."""
    mass_a, inertia_a = fixed[LANDER, MASS], fixed[LANDER, INERTIA]
    mass, inertia, turning = fixed[RIGHT, MASS], fixed[RIGHT, INERTIA], fixed[RIGHT, TURNING]
    a33 = inertia_a + inertia
    for _ in range(iterations):
        for at in range(2):
            speed = fixed[2 * at, SPEED]
            for lane in range(LANES):
                q = (JOINT + JOINT_ROWS * at) * LANES + lane
                p = 6 * at * LANES + lane
                ix, iy, iz, motor = rows[q], rows[q + LANES], rows[q + 2 * LANES], rows[q + 3 * LANES]
                ax, ay, bx, by = (
                    rows[q + 4 * LANES], rows[q + 5 * LANES], rows[q + 6 * LANES], rows[q + 7 * LANES]
                )  # fmt: skip
                a11, a12, a22, inverse2 = (
                    rows[q + 8 * LANES], rows[q + 9 * LANES], rows[q + 10 * LANES], rows[q + 11 * LANES]
                )  # fmt: skip
                ux, uy, uz, inverse3 = (
                    rows[q + 12 * LANES], rows[q + 13 * LANES], rows[q + 14 * LANES], rows[q + 15 * LANES]
                )  # fmt: skip
                a13, a23, side, bound = (
                    rows[q + 16 * LANES], rows[q + 17 * LANES], rows[q + 18 * LANES], rows[q + 19 * LANES]
                )  # fmt: skip
                vax, vay, wa = rows[3 * LANES + lane], rows[4 * LANES + lane], rows[5 * LANES + lane]
                vbx, vby, wb = rows[p], rows[p + LANES], rows[p + 2 * LANES]
                new = max(-MAX_IMPULSE, min(motor + -turning * (wb - wa - speed), MAX_IMPULSE))
                impulse = new - motor
                rows[q + 3 * LANES] = new
                wa -= inertia_a * impulse
                wb += inertia * impulse
                x, y, z = vbx + -wb * by - vax - -wa * ay, vby + wb * bx - vay - wa * ax, wb - wa
                # The limit takes part: three equations.
                x3 = -(inverse3 * (x * ux + y * uy + z * uz))
                tx, ty, tz = y * a33 - z * a23, z * a13 - x * a33, x * a23 - y * a13
                y3 = -(inverse3 * (a11 * tx + a12 * ty + a13 * tz))
                tx, ty, tz = a22 * z - a23 * y, a23 * x - a12 * z, a12 * y - a22 * x
                z3 = -(inverse3 * (a11 * tx + a12 * ty + a13 * tz))
                # It does not, and gives back its impulse: two.
                tx, ty = -x + iz * a13, -y + iz * a23
                x2, y2 = inverse2 * (a22 * tx - a12 * ty), inverse2 * (a11 * ty - a12 * tx)
                new = iz + z3
                undone = side * new < bound
                x = x2 if undone else x3
                y = y2 if undone else y3
                z = -iz if undone else z3
                rows[q] = ix + x
                rows[q + LANES] = iy + y
                rows[q + 2 * LANES] = ZERO if undone else new
                rows[3 * LANES + lane] = vax - mass_a * x
                rows[4 * LANES + lane] = vay - mass_a * y
                rows[5 * LANES + lane] = wa - inertia_a * ((ax * y - ay * x) + z)
                rows[p] = vbx + mass * x
                rows[p + LANES] = vby + mass * y
                rows[p + 2 * LANES] = wb + inertia * ((bx * y - by * x) + z)


@_compiled
def pull_joints(b: Any, lists: Any, fixed: Any) -> bool:
    """One position iteration over the joints; whether they hold."""
    mass_a, inertia_a = fixed[LANDER, MASS], fixed[LANDER, INERTIA]
    fine = True
    for at in range(2):
        i = 2 * at
        mass, inertia, limit = fixed[i, MASS], fixed[i, INERTIA], lists[LIMITS + at]
        angle_a, angle, off = b[LANDER, A], b[i, A], ZERO
        if limit:
            between = angle - angle_a - fixed[i, ZEROED]
            if limit == 1:
                d = between - fixed[i, LOWER]
                off = -d
                d = max(-MAX_TURN, min(d + ANGULAR_SLOP, ZERO))
            else:
                d = between - fixed[i, UPPER]
                off = d
                d = max(ZERO, min(d - ANGULAR_SLOP, MAX_TURN))
            impulse = -fixed[i, TURNING] * d
            angle_a -= inertia_a * impulse
            angle += inertia * impulse
        s, c = _sinf(angle_a), _cosf(angle_a)
        x, y = fixed[LANDER, ARMX], fixed[LANDER, ARMY]
        ax, ay = c * x - s * y, s * x + c * y
        s, c = _sinf(angle), _cosf(angle)
        x, y = fixed[i, ARMX], fixed[i, ARMY]
        bx, by = c * x - s * y, s * x + c * y
        dx, dy = b[i, CX] + bx - b[LANDER, CX] - ax, b[i, CY] + by - b[LANDER, CY] - ay
        a11 = mass_a + mass + inertia_a * ay * ay + inertia * by * by
        a12 = -inertia_a * ax * ay - inertia * bx * by
        a22 = mass_a + mass + inertia_a * ax * ax + inertia * bx * bx
        inverse = ONE / (a11 * a22 - a12 * a12)
        x, y = -(inverse * (a22 * dx - a12 * dy)), -(inverse * (a11 * dy - a12 * dx))
        b[LANDER, CX] -= mass_a * x
        b[LANDER, CY] -= mass_a * y
        b[LANDER, A] = angle_a - inertia_a * (ax * y - ay * x)
        b[i, CX] += mass * x
        b[i, CY] += mass * y
        b[i, A] = angle + inertia * (bx * y - by * x)
        fine = fine and np.sqrt(dx * dx + dy * dy) <= SLOP and off <= ANGULAR_SLOP
    return fine


# ------------------------------------------------------------------------------------- a step of the world


@_compiled
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


@_compiled
def begin_step(w: World, shapes: Shapes, gravity: float) -> None:
    """Contacts and forces (x, y, torque on the lander)."""
    b, lists, fixed, force = w.bodies, w.lists, shapes.bodies, w.force
    if lists[EXISTING] > 0:
        collide(w, shapes)
    for i in range(BODIES):
        for column in range(4):
            b[i, S0 + column] = b[i, S + column]
        b[i, C0X], b[i, C0Y], b[i, A0] = b[i, CX], b[i, CY], b[i, A]
        b[i, VY] += DT * (gravity + (fixed[i, MASS] * force[1] if i == LANDER else ZERO))
    b[LANDER, VX] += DT * (fixed[LANDER, MASS] * force[0])
    b[LANDER, W] += DT * fixed[LANDER, INERTIA] * force[2]
    lists[SOLVING] = 0
    for i in range(BODIES):
        for at in range(lists[EXISTING]):
            if lists[at] // EDGES == i and w.marks[lists[at], TOUCHING]:
                lists[SOLVED + lists[SOLVING]] = lists[at]
                lists[SOLVING] += 1


@_compiled
def begin_group(slots: Any, used: Any, group: int) -> None:
    """A group without contacts."""
    for i in range(BODIES):
        start = i * SLOTS * SLOT_ROWS * LANES
        for at in range(start, start + used[group, i] * SLOT_ROWS * LANES):
            slots[group, at] = ZERO
        used[group, i] = 0


@_compiled
def put_velocities(b: Any, rows: Any, lane: int) -> None:
    """Velocities of a lane to where they are solved."""
    for i in range(BODIES):
        for column in range(3):
            rows[(3 * i + column) * LANES + lane] = b[i, VX + column]


@_compiled
def get_velocities(b: Any, rows: Any, lane: int) -> None:
    """And back."""
    for i in range(BODIES):
        for column in range(3):
            b[i, VX + column] = rows[(3 * i + column) * LANES + lane]


@_compiled
def solve(w: World, seats: Any, count: int, shapes: Shapes) -> None:
    """The velocity iterations of some worlds side by side: first those on the ground, then those in the air.

    seats: int64[WORLDS, 3], in each row a world, then its group and its lane, which are filled in.
    """
    taken = 0
    for group in range((count + LANES - 1) // LANES):
        begin_group(w.slots, w.used, group)
    for air in range(2):
        for at in range(count):
            own = world_of(w, seats[at, 0])
            if (own.lists[SOLVING] == 0) == (air == 1):
                group, lane = taken // LANES, taken % LANES
                taken += 1
                if air == 0:
                    begin_contacts(own, group, lane, shapes)
                begin_joints(own, group, lane, shapes.bodies)
                put_velocities(own.bodies, own.rows[group], lane)
                seats[at, 1], seats[at, 2] = group, lane
    for group in range((count + LANES - 1) // LANES):
        rows, slots, used = w.rows[group], w.slots[group], w.used[group]
        apart = used[0] + used[1] + used[2] > 0  # joints and contacts by turns
        for _ in range(VELOCITY_ITERATIONS if apart else 1):
            solve_joints(rows, 1 if apart else VELOCITY_ITERATIONS, shapes.bodies)
            solve_contacts(rows, slots, used, shapes.bodies)


@_compiled
def end_step(w: World, group: int, lane: int, shapes: Shapes) -> bool:
    """From the velocity iterations on; whether the bodies fell asleep."""
    b, lists, fixed = w.bodies, w.lists, shapes.bodies
    get_velocities(b, w.rows[group], lane)
    for at in range(2):
        for row in range(4):
            w.joints[at, row] = w.rows[group, (JOINT + JOINT_ROWS * at + row) * LANES + lane]
    store_impulses(w, group, lane)
    for i in range(BODIES):
        move(b, i, DT)
    solved = False
    for _ in range(POSITION_ITERATIONS):
        least = push_contacts(w, shapes, BAUMGARTE)
        fine = pull_joints(b, lists, fixed)
        if least >= DEEPEST and fine:
            solved = True
            break
    rest = LARGEST
    for i in range(BODIES):
        place(b, i, fixed)
        moving = b[i, VX] * b[i, VX] + b[i, VY] * b[i, VY] > SLOW or b[i, W] * b[i, W] > SLOW_TURN
        b[i, REST] = ZERO if moving else b[i, REST] + DT
        rest = min(rest, b[i, REST])
    if rest >= SLEEP and solved:
        for i in range(BODIES):
            b[i, VX] = b[i, VY] = b[i, W] = ZERO
        return True
    moved = np.int64(0)
    for i in range(BODIES):
        if synchronize(b, i, shapes):
            moved |= 1 << i
    if moved:
        add_contacts(w, moved)
    if lists[EXISTING] > 0:
        continuous(w, shapes)
    return False


# ------------------------------------------------------------------------------------- time of impact
# Of an edge in the frame of the world, and the polygon of a body. A row of a simplex: a point of the edge, one of
# the polygon, their difference, its weight. pairs: their vertices (edge, polygon), and those of a round before.


@_compiled
def swept(b: Any, i: int, t: float, fixed: Any) -> tuple[float, float, float, float]:
    """Transform of a body at a time of its sweep: sine, cosine, origin."""
    rest = ONE - t
    x, y = rest * b[i, C0X] + t * b[i, CX], rest * b[i, C0Y] + t * b[i, CY]
    angle = rest * b[i, A0] + t * b[i, A]
    s, c = _sinf(angle), _cosf(angle)
    lx, ly = fixed[i, CENTREX], fixed[i, CENTREY]
    return s, c, x - (c * lx - s * ly), y - (s * lx + c * ly)


@_compiled
def support(polygon: Any, sides: int, x: float, y: float) -> int:
    """The vertex farthest along (x, y)."""
    best, value = 0, polygon[0, 0] * x + polygon[0, 1] * y
    for v in range(1, sides):
        d = polygon[v, 0] * x + polygon[v, 1] * y
        if d > value:
            best, value = v, d
    return best


@_compiled
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


@_compiled
def metric_of(simplex: Any, count: int) -> float:
    """Length or area of a simplex."""
    if count < 2:
        return ZERO
    x, y = simplex[1, 4] - simplex[0, 4], simplex[1, 5] - simplex[0, 5]
    if count == 2:
        return length_of(simplex[0, 4] - simplex[1, 4], simplex[0, 5] - simplex[1, 5])
    u, v = simplex[2, 4] - simplex[0, 4], simplex[2, 5] - simplex[0, 5]
    return x * v - y * u


@_compiled
def length_of(x: float, y: float) -> float:
    """Length of a vector."""
    return np.sqrt(x * x + y * y)


@_compiled
def copy_row(simplex: Any, pairs: Any, to: int, source: int) -> None:
    """Row `to` becomes another."""
    for column in range(7):
        simplex[to, column] = simplex[source, column]
    pairs[2 * to], pairs[2 * to + 1] = pairs[2 * source], pairs[2 * source + 1]


@_compiled
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


@_compiled
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


@_compiled
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


@_compiled
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


@_compiled
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


@_compiled
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


@_compiled
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


@_compiled
def advance(b: Any, i: int, alpha: float) -> None:
    """Let the sweep of a body begin at alpha."""
    beta = (alpha - b[i, ALPHA]) / (ONE - b[i, ALPHA])
    rest = ONE - beta
    b[i, C0X] = rest * b[i, C0X] + beta * b[i, CX]
    b[i, C0Y] = rest * b[i, C0Y] + beta * b[i, CY]
    b[i, A0] = rest * b[i, A0] + beta * b[i, A]
    b[i, ALPHA] = alpha


@_compiled
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


@_compiled
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
        group, lane = np.int64(GROUPS - 1), np.int64(0)
        begin_group(w.slots, w.used, group)
        begin_contacts(w, group, lane, shapes)
        put_velocities(b, w.rows[group], lane)
        for _ in range(VELOCITY_ITERATIONS):
            solve_contacts(w.rows[group], w.slots[group], w.used[group], fixed)
        get_velocities(b, w.rows[group], lane)
        move(b, i, (ONE - least) * DT)
        place(b, i, fixed)
        for at in range(lists[EXISTING]):
            if lists[at] // EDGES == i:
                marks[lists[at], KNOWN] = 0
        if synchronize(b, i, shapes):
            add_contacts(w, 1 << i)


# ------------------------------------------------------------------------------------- random numbers


@_compiled
def next_uniform(states: Any, n: int) -> float:
    """A number in [0, 1) by NumPy's PCG64; row n has its state and increment, uint64[4], high words first."""
    half, low32 = U(32), U(0xFFFFFFFF)
    mult_high, mult_low = U(0x2360ED051FC65DA4), U(0x4385DF649FCCF645)
    high, low = states[n, 0], states[n, 1]
    a0, a1, b0, b1 = low & low32, low >> half, mult_low & low32, mult_low >> half
    middle = a1 * b0 + ((a0 * b0) >> half)
    other = a0 * b1 + (middle & low32)
    carried = a1 * b1 + (middle >> half) + (other >> half)
    high = carried + high * mult_low + low * mult_high
    low = low * mult_low
    total = low + states[n, 3]
    high += states[n, 2] + (U(1) if total < low else U(0))
    states[n, 0], states[n, 1] = high, total
    word, turn = high ^ total, high >> U(58)
    word = (word >> turn) | (word << ((U(64) - turn) & U(63)))
    return np.float64(word >> U(11)) * (1.0 / 9007199254740992.0)


@_compiled
def gust(index: float, power: float) -> float:
    """Wind or turbulence at a time."""
    return math.tanh(math.sin(0.02 * index) + math.sin(math.pi * 0.01 * index)) * power


# ------------------------------------------------------------------------------------- the environment

START = 19  # numbers of a start: terrain, force, times of wind and turbulence, state of the generator


@_compiled
def set_up(w: World, start: Floats, shapes: Shapes) -> None:
    """A world as `reset` builds it: terrain, and bodies in the air."""
    b, fixed, e = w.bodies, shapes.bodies, w.edges
    w.marks[:] = 0
    w.lists[:] = 0
    for edge in range(EDGES):
        if edge == 0:
            e[0, 0], e[0, 1], e[0, 2], e[0, 3] = ZERO, ZERO, F(20.0), ZERO
        else:
            e[edge, 0], e[edge, 1] = F(2.0 * (edge - 1)), F(start[edge - 1])
            e[edge, 2], e[edge, 3] = F(2.0 * edge), F(start[edge])
        e[edge, 4], e[edge, 6] = e[edge, 0] - RADIUS - MARGIN, e[edge, 2] + RADIUS + MARGIN
        e[edge, 5] = min(e[edge, 1], e[edge, 3]) - RADIUS - MARGIN
        e[edge, 7] = max(e[edge, 1], e[edge, 3]) + RADIUS + MARGIN
    b[:] = ZERO
    w.joints[:] = ZERO
    for i in range(BODIES):
        side = 1 - i  # +1 for the leg that Gymnasium calls +1
        b[i, A] = b[i, A0] = F(side * 0.05)
        s, c = _sinf(b[i, A]), _cosf(b[i, A])
        px, py = F(10.0 - side * 20 / 30.0), F(400 / 30.0)
        x, y = fixed[i, CENTREX], fixed[i, CENTREY]
        b[i, S], b[i, C], b[i, PX], b[i, PY] = s, c, px, py
        b[i, CX], b[i, CY] = (c * x - s * y) + px, (s * x + c * y) + py
        lx, ly, hx, hy = box_of(s, c, px, py, shapes.polygons[i], SIDES[i])
        b[i, LOWX], b[i, LOWY], b[i, HIGHX], b[i, HIGHY] = lx - MARGIN, ly - MARGIN, hx + MARGIN, hy + MARGIN


@_compiled
def push(b: Any, fixed: Any, x: float, y: float, at_x: float, at_y: float) -> None:
    """An impulse on the lander at a place, all float64s as in Python."""
    fx, fy = F(x), F(y)
    b[LANDER, VX] += fixed[LANDER, MASS] * fx
    b[LANDER, VY] += fixed[LANDER, MASS] * fy
    rx, ry = F(at_x) - b[LANDER, CX], F(at_y) - b[LANDER, CY]
    b[LANDER, W] += fixed[LANDER, INERTIA] * (rx * fy - ry * fx)


@_compiled
def fire(b: Any, fixed: Any, main: float, side: float, direction: float, along: float, across: float) -> None:
    """The engines, with their powers; along and across: what their direction is off by."""
    angle = np.float64(b[LANDER, A])
    tip, rise = math.sin(angle), math.cos(angle)
    if main > 0.0:
        nozzle = 4 / 30.0 + 2 * along
        x, y = tip * nozzle + -rise * across, -rise * nozzle - tip * across
        at_x, at_y = np.float64(b[LANDER, PX]) + x, np.float64(b[LANDER, PY]) + y
        push(b, fixed, -x * 13.0 * main, -y * 13.0 * main, at_x, at_y)
    if side > 0.0:
        away = 3 * across + direction * 12 / 30.0
        x, y = tip * along + -rise * away, -rise * along - tip * away
        at_x = np.float64(b[LANDER, PX]) + x - tip * 17 / 30.0
        at_y = np.float64(b[LANDER, PY]) + y + rise * 14 / 30.0
        push(b, fixed, -x * 0.6 * side, -y * 0.6 * side, at_x, at_y)


@_compiled
def engines_of(
    columns: Columns, leaf: int, x: Floats, action: Floats, continuous: bool
) -> tuple[float, float, float]:
    """Powers of the main and the side engine, and the direction of the side engine, of a leaf."""
    if not continuous:
        choice = columns.jump[leaf]
        side = 1.0 if choice == 1 or choice == 3 else 0.0
        return (1.0 if choice == 2 else 0.0), side, float(choice - 2)
    fill_action(columns, leaf, x, (-1.0, -1.0), (1.0, 1.0), action)
    main, side = np.float64(F(action[0])), np.float64(F(action[1]))
    power = (main + 1.0) * 0.5 if main > 0.0 else 0.0
    return power, (abs(side) if abs(side) > 0.5 else 0.0), (1.0 if side > 0.0 else -1.0)


@_compiled
def observe(w: World, x: Floats) -> float:
    """Fill x float64[8], the observation; return the shaping of the reward."""
    b, lists = w.bodies, w.lists
    px = (np.float64(b[LANDER, PX]) - 10.0) / 10.0
    py = (np.float64(b[LANDER, PY]) - (400 / 30.0 / 4 + 18 / 30.0)) / (400 / 30.0 / 2)
    vx = np.float64(b[LANDER, VX]) * 10.0 / 50
    vy = np.float64(b[LANDER, VY]) * (400 / 30.0 / 2) / 50
    angle = np.float64(b[LANDER, A])
    left, right = np.float64(lists[GROUND + LEFT]), np.float64(lists[GROUND + RIGHT])
    x[0], x[1], x[2], x[3], x[4] = F(px), F(py), F(vx), F(vy), F(angle)
    x[5], x[6], x[7] = F(20.0 * np.float64(b[LANDER, W]) / 50), left, right
    shaping = -100 * math.sqrt(px * px + py * py) - 100 * math.sqrt(vx * vx + vy * vy) - 100 * abs(angle)
    return shaping + 10 * left + 10 * right


@_njit(cache=True, **_options)
def run_lander_episodes(
    columns: Columns,
    offset: Ints,
    starts: Floats,
    tree: Ints,
    start: Ints,
    max_steps: int,
    room: World,
    fixed: Shapes,
    settings: Settings,
    visits: Ints,
    returns: Floats,
) -> None:
    """Returns of episodes: episode e runs tree[e] from start[e]. Fills `returns` float[E].

    starts float[S, START]; room is from `new_world`. visits: int[N], whose leaves are counted up, or of length 0.
    A world takes the next episode as soon as it has finished one; the first step of each is that of `reset`.
    """
    worlds, count = uncounted_world(room), tree.shape[0]
    shapes = Shapes(uncounted(fixed.polygons), uncounted(fixed.bodies))
    nodes = Columns(
        uncounted(columns.feature),
        uncounted(columns.threshold),
        uncounted(columns.jump),
        uncounted(columns.first),
        uncounted(columns.count),
        uncounted(columns.term),
        uncounted(columns.weight),
    )
    words = starts.view(np.uint64)
    many = min(WORLDS, count)
    action = np.zeros(2)
    episode, done = np.full(many, -1), np.zeros(many, np.int64)
    noise, times = np.zeros((many, 4), np.uint64), np.zeros((many, 2))
    total, shaping, fuel = np.zeros(many), np.zeros(many), np.zeros((many, 2))
    seats = np.zeros((many, 3), np.int64)
    taken, seated = 0, np.int64(1)
    while seated > 0:
        seated = np.int64(0)
        for n in range(many):
            if episode[n] < 0:
                if taken == count:
                    continue
                row = start[taken]
                set_up(world_of(worlds, n), starts[row], shapes)
                worlds.force[n, 0], worlds.force[n, 1], worlds.force[n, 2] = (
                    starts[row, 11],
                    starts[row, 12],
                    ZERO,
                )
                times[n, 0], times[n, 1] = starts[row, 13], starts[row, 14]
                for word in range(4):
                    noise[n, word] = words[row, 15 + word]
                total[n], done[n], episode[n] = 0.0, 0, taken
                taken += 1
            w = world_of(worlds, n)
            seats[seated, 0] = n
            seated += 1
            if settings.windy and not (w.lists[GROUND + LEFT] or w.lists[GROUND + RIGHT]):
                worlds.force[n, 0] += F(gust(times[n, 0], settings.wind_power))
                worlds.force[n, 2] += F(gust(times[n, 1], settings.turbulence_power))
                times[n, 0] += 1.0
                times[n, 1] += 1.0
            along = (-1.0 + 2.0 * next_uniform(noise, n)) / 30.0
            across = (-1.0 + 2.0 * next_uniform(noise, n)) / 30.0
            if done[n] > 0:
                leaf = walk(nodes, offset[tree[episode[n]]], w.seen)
                if visits.shape[0] > 0:
                    visits[leaf] += 1
                main, side, direction = engines_of(nodes, leaf, w.seen, action, settings.continuous)
                fire(w.bodies, shapes.bodies, main, side, direction, along, across)
                fuel[n, 0], fuel[n, 1] = main * 0.30, side * 0.03
            begin_step(w, shapes, settings.gravity)
            worlds.force[n, 0] = worlds.force[n, 1] = worlds.force[n, 2] = ZERO
        solve(worlds, seats, seated, shapes)
        for at in range(seated):
            n = seats[at, 0]
            w = world_of(worlds, n)
            asleep = end_step(w, seats[at, 1], seats[at, 2], shapes)
            before = shaping[n]
            shaping[n] = observe(w, w.seen)
            away = abs((np.float64(w.bodies[LANDER, PX]) - 10.0) / 10.0) >= 1.0
            over = asleep or away or w.lists[GROUND + LANDER] > 0
            if done[n] > 0:
                if over:
                    total[n] += 100.0 if asleep else -100.0
                else:
                    total[n] += shaping[n] - before - fuel[n, 0] - fuel[n, 1]
            done[n] += 1
            if (over and done[n] > 1) or done[n] > max_steps:
                returns[episode[n]] = total[n]
                episode[n] = -1
