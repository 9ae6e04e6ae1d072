"""The velocity iterations over joints and contacts, in lanes (b2ContactSolver, b2RevoluteJoint)."""

from __future__ import annotations

from typing import Any

import numpy as np

from discodso.tasks.policies.lunar._lanes import LANES, alike, least, load, most, store, where
from discodso.tasks.policies.lunar._worlds import (
    A11,
    A12,
    A13,
    A22,
    A23,
    ARMX,
    ARMY,
    AX,
    AY,
    BODIES,
    BOTTOM,
    BOUND,
    BX,
    BY,
    COUNT,
    CX,
    CY,
    DONE,
    DT_RATIO,
    DX,
    DY,
    EDGES,
    FACE,
    FEW,
    GRIP,
    GROUPS,
    HALF,
    IMPULSES,
    INERTIA,
    INVERSE2,
    INVERSE3,
    IX,
    IY,
    IZ,
    JOINT,
    JOINT_ROWS,
    K11,
    K12,
    K22,
    LANDER,
    LEFT,
    LIMIT,
    LOWER,
    M11,
    M12,
    M22,
    MASS,
    MAX_IMPULSE,
    MOTOR,
    MU,
    NI,
    NM,
    NORMAL,
    NX,
    NY,
    ONE,
    POINT,
    POINTS,
    POSE,
    PX,
    PY,
    RADIUS,
    RIGHT,
    RX,
    RY,
    SAVED,
    SECOND,
    SLOT_ROWS,
    SLOTS,
    SOLVED,
    SOLVED_AS,
    SOLVING,
    SPEED,
    TI,
    TM,
    TURNING,
    TWICE,
    UPPER,
    UX,
    UY,
    UZ,
    VELOCITY_ITERATIONS,
    VX,
    VY,
    WORST_CONDITION,
    ZERO,
    ZEROED,
    A,
    C,
    S,
    Shapes,
    W,
    World,
    compiled,
    inlined,
    world_of,
)


@compiled
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


@inlined
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


@inlined
def solve_contact(
    t: Any, p: int, vx: Any, vy: Any, w: Any, mass: float, inertia: float
) -> tuple[Any, Any, Any]:
    """One velocity iteration over a contact, whose rows begin at p; velocities of its body before and after."""
    nx, ny, mu = load(t, p + NX), load(t, p + NY), load(t, p + MU)
    r1x, r1y, n1, t1 = load(t, p + RX), load(t, p + RY), load(t, p + NI), load(t, p + TI)
    q = p + SECOND
    r2x, r2y, n2, t2 = load(t, q + RX), load(t, q + RY), load(t, q + NI), load(t, q + TI)
    # Friction, point by point.
    impulse = load(t, p + TM) * -((vx + -w * r1y) * ny + (vy + w * r1x) * -nx)
    bound = mu * n1
    new = most(-bound, least(t1 + impulse, bound))
    store(t, p + TI, new)
    impulse = new - t1
    x, y = impulse * ny, impulse * -nx
    vx, vy, w = vx + mass * x, vy + mass * y, w + inertia * (r1x * y - r1y * x)
    impulse = load(t, q + TM) * -((vx + -w * r2y) * ny + (vy + w * r2x) * -nx)
    bound = mu * n2
    new = most(-bound, least(t2 + impulse, bound))
    store(t, q + TI, new)
    impulse = new - t2
    x, y = impulse * ny, impulse * -nx
    vx, vy, w = vx + mass * x, vy + mass * y, w + inertia * (r2x * y - r2y * x)
    # Normal impulse of a single point.
    b1 = (vx + -w * r1y) * nx + (vy + w * r1x) * ny
    b2 = (vx + -w * r2y) * nx + (vy + w * r2x) * ny
    m1, m2 = load(t, p + NM), load(t, q + NM)
    single = most(n1 + -m1 * b1, ZERO)
    # Of two at once: four cases of which of them push.
    k12, twice = load(t, p + K12), load(t, p + TWICE) > ZERO
    b1 = b1 - (load(t, p + K11) * n1 + k12 * n2)
    b2 = b2 - (k12 * n1 + load(t, p + K22) * n2)
    m11, m12, m22 = load(t, p + M11), load(t, p + M12), load(t, p + M22)
    both1, both2 = -(m11 * b1 + m12 * b2), -(m12 * b1 + m22 * b2)
    first, second = -m1 * b1, -m2 * b2
    one = (first >= ZERO) & (k12 * first + b2 >= ZERO)
    other = (second >= ZERO) & (k12 * second + b1 >= ZERO)
    none = (b1 >= ZERO) & (b2 >= ZERO)
    both = (both1 >= ZERO) & (both2 >= ZERO)
    new1 = where(one, first, where(other | none, ZERO, n1))
    new2 = where(one, ZERO, where(other, second, where(none, ZERO, n2)))
    new1 = where(twice, where(both, both1, new1), single)
    new2 = where(twice, where(both, both2, new2), ZERO)
    store(t, p + NI, new1)
    store(t, q + NI, new2)
    x1, y1, x2, y2 = (new1 - n1) * nx, (new1 - n1) * ny, (new2 - n2) * nx, (new2 - n2) * ny
    turn = (r1x * y1 - r1y * x1) + (r2x * y2 - r2y * x2)
    return vx + mass * (x1 + x2), vy + mass * (y1 + y2), w + inertia * turn


@compiled
def begin_joints(rows: Any, fixed: Any) -> None:
    """Equations of the joints of a group, and their impulses of the step before."""
    mass_a, inertia_a = fixed[LANDER, MASS], fixed[LANDER, INERTIA]
    s, c, angle_a = load(rows, POSE + 3), load(rows, POSE + 4), load(rows, POSE + 5)
    x, y = fixed[LANDER, ARMX], fixed[LANDER, ARMY]
    ax, ay = c * x - s * y, s * x + c * y
    for at in range(2):
        i, q = 2 * at, JOINT + JOINT_ROWS * at
        mass, inertia = fixed[i, MASS], fixed[i, INERTIA]
        s, c, angle = load(rows, POSE + 3 * i), load(rows, POSE + 3 * i + 1), load(rows, POSE + 3 * i + 2)
        x, y = fixed[i, ARMX], fixed[i, ARMY]
        bx, by = c * x - s * y, s * x + c * y
        a11 = mass_a + mass + ay * ay * inertia_a + by * by * inertia
        a12 = -ay * ax * inertia_a - by * bx * inertia
        a13 = -ay * inertia_a - by * inertia
        a22 = mass_a + mass + ax * ax * inertia_a + bx * bx * inertia
        a23 = ax * inertia_a + bx * inertia
        a33 = inertia_a + inertia
        ux, uy, uz = a22 * a33 - a23 * a23, a23 * a13 - a12 * a33, a12 * a23 - a22 * a13
        angle = angle - angle_a - fixed[i, ZEROED]
        limit = where(angle >= fixed[i, UPPER], -ONE, ZERO)
        limit = where(angle <= fixed[i, LOWER], ONE, limit)
        stays = alike(limit, load(rows, q + LIMIT)) & ((limit > ZERO) | (limit < ZERO))
        x, y = load(rows, q + IX) * DT_RATIO, load(rows, q + IY) * DT_RATIO
        z = where(stays, load(rows, q + IZ), ZERO) * DT_RATIO
        motor = load(rows, q + MOTOR) * DT_RATIO
        store(rows, q + IX, x)
        store(rows, q + IY, y)
        store(rows, q + IZ, z)
        store(rows, q + MOTOR, motor)
        store(rows, q + LIMIT, limit)
        # The impulse of the limit is undone where limit * impulse < bound: always, if it is at none.
        store(rows, q + BOUND, where(limit == ZERO, ONE, ZERO))
        store(rows, q + AX, ax)
        store(rows, q + AY, ay)
        store(rows, q + BX, bx)
        store(rows, q + BY, by)
        store(rows, q + A11, a11)
        store(rows, q + A12, a12)
        store(rows, q + A22, a22)
        store(rows, q + A13, a13)
        store(rows, q + A23, a23)
        store(rows, q + INVERSE2, ONE / (a11 * a22 - a12 * a12))
        store(rows, q + UX, ux)
        store(rows, q + UY, uy)
        store(rows, q + UZ, uz)
        store(rows, q + INVERSE3, ONE / (a11 * ux + a12 * uy + a13 * uz))
        turn = (ax * y - ay * x) + motor + z
        store(rows, 3 * LANDER, load(rows, 3 * LANDER) - mass_a * x)
        store(rows, 3 * LANDER + 1, load(rows, 3 * LANDER + 1) - mass_a * y)
        store(rows, 3 * LANDER + 2, load(rows, 3 * LANDER + 2) - inertia_a * turn)
        turn = (bx * y - by * x) + motor + z
        store(rows, 3 * i, load(rows, 3 * i) + mass * x)
        store(rows, 3 * i + 1, load(rows, 3 * i + 1) + mass * y)
        store(rows, 3 * i + 2, load(rows, 3 * i + 2) + inertia * turn)


@inlined
def solve_joint(
    rows: Any, q: int, fixed: Any, i: int, vax: Any, vay: Any, wa: Any, vbx: Any, vby: Any, wb: Any, iz: Any,
    motor: Any,
) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any]:  # fmt: skip
    """One velocity iteration over the joint of body i, whose rows begin at q.

    Velocities of the lander (a) and the leg (b), impulses of the limit and the motor, before and after; and what
    the other impulses grow by.
    """
    mass_a, inertia_a = fixed[LANDER, MASS], fixed[LANDER, INERTIA]
    mass, inertia, turning, speed = (
        fixed[RIGHT, MASS], fixed[RIGHT, INERTIA], fixed[RIGHT, TURNING], fixed[i, SPEED]
    )  # fmt: skip
    a33 = inertia_a + inertia
    ax, ay, bx, by = load(rows, q + AX), load(rows, q + AY), load(rows, q + BX), load(rows, q + BY)
    a11, a12, a22 = load(rows, q + A11), load(rows, q + A12), load(rows, q + A22)
    a13, a23 = load(rows, q + A13), load(rows, q + A23)
    inverse2, inverse3 = load(rows, q + INVERSE2), load(rows, q + INVERSE3)
    new = most(-MAX_IMPULSE, least(motor + -turning * (wb - wa - speed), MAX_IMPULSE))
    impulse = new - motor
    motor, wa, wb = new, wa - inertia_a * impulse, wb + inertia * impulse
    x, y, z = vbx + -wb * by - vax - -wa * ay, vby + wb * bx - vay - wa * ax, wb - wa
    # The limit takes part: three equations.
    x3 = -(inverse3 * (x * load(rows, q + UX) + y * load(rows, q + UY) + z * load(rows, q + UZ)))
    tx, ty, tz = y * a33 - z * a23, z * a13 - x * a33, x * a23 - y * a13
    y3 = -(inverse3 * (a11 * tx + a12 * ty + a13 * tz))
    tx, ty, tz = a22 * z - a23 * y, a23 * x - a12 * z, a12 * y - a22 * x
    z3 = -(inverse3 * (a11 * tx + a12 * ty + a13 * tz))
    # It does not, and gives back its impulse: two.
    tx, ty = -x + iz * a13, -y + iz * a23
    x2, y2 = inverse2 * (a22 * tx - a12 * ty), inverse2 * (a11 * ty - a12 * tx)
    new = iz + z3
    undone = load(rows, q + LIMIT) * new < load(rows, q + BOUND)
    x, y, z = where(undone, x2, x3), where(undone, y2, y3), where(undone, -iz, z3)
    vax, vay, wa = vax - mass_a * x, vay - mass_a * y, wa - inertia_a * ((ax * y - ay * x) + z)
    vbx, vby, wb = vbx + mass * x, vby + mass * y, wb + inertia * ((bx * y - by * x) + z)
    return vax, vay, wa, vbx, vby, wb, where(undone, ZERO, new), motor, x, y


@compiled
def iterate(rows: Any, t: Any, legs: int, middle: int, iterations: int, fixed: Any) -> None:
    """Velocity iterations of a group: the joints, then the contacts, of which the legs have `legs` slots at most.

    Contacts of different bodies have nothing in common, so that those of both legs are solved side by side.
    """
    vrx, vry, wr = load(rows, 0), load(rows, 1), load(rows, 2)
    vx, vy, w = load(rows, 3), load(rows, 4), load(rows, 5)
    vlx, vly, wl = load(rows, 6), load(rows, 7), load(rows, 8)
    q = JOINT + JOINT_ROWS
    rx, ry, rz, right = load(rows, JOINT), load(rows, JOINT + 1), load(rows, JOINT + 2), load(rows, JOINT + 3)
    lx, ly, lz, left = load(rows, q), load(rows, q + 1), load(rows, q + 2), load(rows, q + 3)
    drx, dry, dlx, dly = rx, ry, lx, ly
    mass_a, inertia_a = fixed[LANDER, MASS], fixed[LANDER, INERTIA]
    mass, inertia = fixed[RIGHT, MASS], fixed[RIGHT, INERTIA]
    for _ in range(iterations):
        vx, vy, w, vrx, vry, wr, rz, right, drx, dry = solve_joint(
            rows, JOINT, fixed, RIGHT, vx, vy, w, vrx, vry, wr, rz, right
        )
        rx, ry = rx + drx, ry + dry
        vx, vy, w, vlx, vly, wl, lz, left, dlx, dly = solve_joint(
            rows, q, fixed, LEFT, vx, vy, w, vlx, vly, wl, lz, left
        )
        lx, ly = lx + dlx, ly + dly
        for slot in range(legs):
            vrx, vry, wr = solve_contact(t, slot * SLOT_ROWS, vrx, vry, wr, mass, inertia)
            vlx, vly, wl = solve_contact(t, (2 * SLOTS + slot) * SLOT_ROWS, vlx, vly, wl, mass, inertia)
        for slot in range(middle):
            vx, vy, w = solve_contact(t, (SLOTS + slot) * SLOT_ROWS, vx, vy, w, mass_a, inertia_a)
    store(rows, 0, vrx)
    store(rows, 1, vry)
    store(rows, 2, wr)
    store(rows, 3, vx)
    store(rows, 4, vy)
    store(rows, 5, w)
    store(rows, 6, vlx)
    store(rows, 7, vly)
    store(rows, 8, wl)
    store(rows, JOINT + IX, rx)
    store(rows, JOINT + IY, ry)
    store(rows, JOINT + IZ, rz)
    store(rows, JOINT + MOTOR, right)
    store(rows, q + IX, lx)
    store(rows, q + IY, ly)
    store(rows, q + IZ, lz)
    store(rows, q + MOTOR, left)
    store(rows, JOINT + DX, drx)
    store(rows, JOINT + DY, dry)
    store(rows, q + DX, dlx)
    store(rows, q + DY, dly)


@compiled
def try_short(rows: Any, t: Any, fixed: Any) -> None:
    """All velocity iterations of a group without contacts, where they come to repeat themselves within a few.

    An iteration depends on velocities and impulses of limits and motors. If two iterations leave these as they
    were, bit by bit, all others in pairs would as well; only the impulses that hold the bodies together still
    grow, by the same numbers. Row DONE is 1 where that is so, elsewhere 0.
    """
    iterate(rows, t, np.int64(0), np.int64(0), np.int64(FEW - 2), fixed)
    for row in range(9):
        store(rows, SAVED + row, load(rows, row))
    q = JOINT + JOINT_ROWS
    store(rows, SAVED + 9, load(rows, JOINT + IZ))
    store(rows, SAVED + 10, load(rows, JOINT + MOTOR))
    store(rows, SAVED + 11, load(rows, q + IZ))
    store(rows, SAVED + 12, load(rows, q + MOTOR))
    iterate(rows, t, np.int64(0), np.int64(0), np.int64(1), fixed)
    rx, ry, lx, ly = load(rows, JOINT + DX), load(rows, JOINT + DY), load(rows, q + DX), load(rows, q + DY)
    iterate(rows, t, np.int64(0), np.int64(0), np.int64(1), fixed)
    same = alike(load(rows, SAVED + 9), load(rows, JOINT + IZ))
    same = same & alike(load(rows, SAVED + 10), load(rows, JOINT + MOTOR))
    same = same & alike(load(rows, SAVED + 11), load(rows, q + IZ))
    same = same & alike(load(rows, SAVED + 12), load(rows, q + MOTOR))
    for row in range(9):
        same = same & alike(load(rows, SAVED + row), load(rows, row))
    store(rows, DONE, where(same, ONE, ZERO))
    r2x, r2y, l2x, l2y = (
        load(rows, JOINT + DX),
        load(rows, JOINT + DY),
        load(rows, q + DX),
        load(rows, q + DY),
    )
    x, y, u, v = load(rows, JOINT + IX), load(rows, JOINT + IY), load(rows, q + IX), load(rows, q + IY)
    for _ in range((VELOCITY_ITERATIONS - FEW) // 2):
        x, y, u, v = x + rx + r2x, y + ry + r2y, u + lx + l2x, v + ly + l2y
    store(rows, JOINT + IX, x)
    store(rows, JOINT + IY, y)
    store(rows, q + IX, u)
    store(rows, q + IY, v)


@compiled
def begin_group(slots: Any, used: Any, group: int) -> None:
    """A group without contacts."""
    for i in range(BODIES):
        start = i * SLOTS * SLOT_ROWS * LANES
        for at in range(start, start + used[group, i] * SLOT_ROWS * LANES):
            slots[group, at] = ZERO
        used[group, i] = 0


@compiled
def put_lane(w: World, group: int, lane: int) -> None:
    """What is solved to its lane."""
    b, rows = w.bodies, w.rows[group]
    for i in range(BODIES):
        for column in range(3):
            rows[(3 * i + column) * LANES + lane] = b[i, VX + column]
        rows[(POSE + 3 * i) * LANES + lane] = b[i, S]
        rows[(POSE + 3 * i + 1) * LANES + lane] = b[i, C]
        rows[(POSE + 3 * i + 2) * LANES + lane] = b[i, A]
    for at in range(2):
        for row in range(5):
            rows[(JOINT + JOINT_ROWS * at + row) * LANES + lane] = w.joints[at, row]


@compiled
def get_velocities(b: Any, rows: Any, lane: int) -> None:
    """Velocities of a lane back to the bodies."""
    for i in range(BODIES):
        for column in range(3):
            b[i, VX + column] = rows[(3 * i + column) * LANES + lane]


@inlined
def get_lane(w: World, group: int, lane: int) -> None:
    """What was solved."""
    rows = w.rows[group]
    get_velocities(w.bodies, rows, lane)
    for at in range(2):
        for row in range(5):
            w.joints[at, row] = rows[(JOINT + JOINT_ROWS * at + row) * LANES + lane]
    store_impulses(w, group, lane)


@inlined
def solve(w: World, seats: Any, count: int, shapes: Shapes) -> None:
    """The velocity iterations of some worlds side by side.

    seats: int64[WORLDS, 3], in each row a world, then its group and its lane, which are filled in. Worlds in the
    air are tried in the first groups; the others, and those that take long, are solved whole in the second.
    """
    fixed = shapes.bodies
    tried, whole = 0, 0
    for at in range(count):
        own = world_of(w, seats[at, 0])
        if own.lists[SOLVING] == 0:
            group, lane = tried // LANES, tried % LANES
            tried += 1
        else:
            group, lane = GROUPS // 2 + whole // LANES, whole % LANES
            whole += 1
            if lane == 0:
                begin_group(w.slots, w.used, group)
            begin_contacts(own, group, lane, shapes)
        put_lane(own, group, lane)
        seats[at, 1], seats[at, 2] = group, lane
    for group in range((tried + LANES - 1) // LANES):
        begin_joints(w.rows[group], fixed)
        try_short(w.rows[group], w.slots[group], fixed)
    for at in range(count):
        group, lane = seats[at, 1], seats[at, 2]
        if group < GROUPS // 2 and w.rows[group, DONE * LANES + lane] == ZERO:
            group, lane = GROUPS // 2 + whole // LANES, whole % LANES
            whole += 1
            if lane == 0:
                begin_group(w.slots, w.used, group)
            put_lane(world_of(w, seats[at, 0]), group, lane)
            seats[at, 1], seats[at, 2] = group, lane
    for group in range(GROUPS // 2, GROUPS // 2 + (whole + LANES - 1) // LANES):
        used = w.used[group]
        begin_joints(w.rows[group], fixed)
        legs = max(used[RIGHT], used[LEFT])
        iterate(w.rows[group], w.slots[group], legs, used[LANDER], np.int64(VELOCITY_ITERATIONS), fixed)


@compiled
def solve_impact(w: World, i: int, shapes: Shapes) -> None:
    """The velocity iterations after an impact of a body, over contacts alone."""
    group, lane = np.int64(GROUPS - 1), np.int64(0)
    rows, t = w.rows[group], w.slots[group]
    begin_group(w.slots, w.used, group)
    begin_contacts(w, group, lane, shapes)
    put_lane(w, group, lane)
    vx, vy, v = load(rows, 3 * i), load(rows, 3 * i + 1), load(rows, 3 * i + 2)
    mass, inertia = shapes.bodies[i, MASS], shapes.bodies[i, INERTIA]
    for _ in range(VELOCITY_ITERATIONS):
        for slot in range(w.used[group, i]):
            vx, vy, v = solve_contact(t, (i * SLOTS + slot) * SLOT_ROWS, vx, vy, v, mass, inertia)
    store(rows, 3 * i, vx)
    store(rows, 3 * i + 1, vy)
    store(rows, 3 * i + 2, v)
    get_velocities(w.bodies, rows, lane)
