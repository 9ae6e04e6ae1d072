""""""

from __future__ import annotations

from typing import Any

from discodso.tasks.policies.lunar._worlds import (
    ARMX,
    ARMY,
    BODIES,
    BOTTOM,
    COUNT,
    CX,
    CY,
    DT_RATIO,
    EDGES,
    FACE,
    GRIP,
    GROUPS,
    HALF,
    IMPULSES,
    INERTIA,
    IX,
    IY,
    IZ,
    JOINT,
    JOINT_ROWS,
    K11,
    K12,
    K22,
    LANDER,
    LANES,
    LIMITS,
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
    PX,
    PY,
    RADIUS,
    RIGHT,
    RX,
    RY,
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


@compiled
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


@compiled
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


@compiled
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


@compiled
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


@compiled
def begin_group(slots: Any, used: Any, group: int) -> None:
    """A group without contacts."""
    for i in range(BODIES):
        start = i * SLOTS * SLOT_ROWS * LANES
        for at in range(start, start + used[group, i] * SLOT_ROWS * LANES):
            slots[group, at] = ZERO
        used[group, i] = 0


@compiled
def put_velocities(b: Any, rows: Any, lane: int) -> None:
    """Velocities of a lane to where they are solved."""
    for i in range(BODIES):
        for column in range(3):
            rows[(3 * i + column) * LANES + lane] = b[i, VX + column]


@compiled
def get_velocities(b: Any, rows: Any, lane: int) -> None:
    """And back."""
    for i in range(BODIES):
        for column in range(3):
            b[i, VX + column] = rows[(3 * i + column) * LANES + lane]


@compiled
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
