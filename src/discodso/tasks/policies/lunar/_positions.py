"""Position correction of contacts and joints (b2ContactSolver, b2RevoluteJoint)."""

from __future__ import annotations

from typing import Any

import numpy as np

from discodso.tasks.policies.lunar._bodies import place
from discodso.tasks.policies.lunar._worlds import (
    ANGULAR_SLOP,
    ARMX,
    ARMY,
    COUNT,
    CX,
    CY,
    EDGES,
    FACE,
    INERTIA,
    LANDER,
    LIMIT,
    LOWER,
    MASS,
    MAX_PUSH,
    MAX_TURN,
    NORMAL,
    ONE,
    POINT,
    POINTS,
    PX,
    PY,
    RADIUS,
    SLOP,
    SOLVED,
    SOLVING,
    TURNING,
    UPPER,
    ZERO,
    ZEROED,
    A,
    C,
    S,
    Shapes,
    World,
    compiled,
    cosf,
    sinf,
)


@compiled
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


@compiled
def pull_joints(b: Any, joints: Any, fixed: Any) -> bool:
    """One position iteration over the joints; whether they hold."""
    mass_a, inertia_a = fixed[LANDER, MASS], fixed[LANDER, INERTIA]
    fine = True
    for at in range(2):
        i = 2 * at
        mass, inertia, limit = fixed[i, MASS], fixed[i, INERTIA], joints[at, LIMIT]
        angle_a, angle, off = b[LANDER, A], b[i, A], ZERO
        if limit != ZERO:
            between = angle - angle_a - fixed[i, ZEROED]
            if limit == ONE:
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
        s, c = sinf(angle_a), cosf(angle_a)
        x, y = fixed[LANDER, ARMX], fixed[LANDER, ARMY]
        ax, ay = c * x - s * y, s * x + c * y
        s, c = sinf(angle), cosf(angle)
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
