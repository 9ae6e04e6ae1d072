"""A step of the world before and after its velocity iterations (b2World::Step, b2Island::Solve)."""

from __future__ import annotations

import numpy as np

from discodso.tasks.policies.lunar._bodies import move, place, synchronize
from discodso.tasks.policies.lunar._contacts import add_contacts, collide
from discodso.tasks.policies.lunar._impacts import continuous
from discodso.tasks.policies.lunar._positions import pull_joints, push_contacts
from discodso.tasks.policies.lunar._velocities import get_lane
from discodso.tasks.policies.lunar._worlds import (
    A0,
    BAUMGARTE,
    BODIES,
    C0X,
    C0Y,
    CX,
    CY,
    DEEPEST,
    DT,
    EDGES,
    EXISTING,
    INERTIA,
    LANDER,
    LARGEST,
    MASS,
    POSITION_ITERATIONS,
    REST,
    S0,
    SLEEP,
    SLOW,
    SLOW_TURN,
    SOLVED,
    SOLVING,
    TOUCHING,
    VX,
    VY,
    ZERO,
    A,
    S,
    Shapes,
    W,
    World,
    inlined,
)


@inlined
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


@inlined
def end_step(w: World, group: int, lane: int, shapes: Shapes) -> bool:
    """From the velocity iterations on; whether the bodies fell asleep."""
    b, lists, fixed = w.bodies, w.lists, shapes.bodies
    get_lane(w, group, lane)
    for i in range(BODIES):
        move(b, i, DT)
    solved = False
    for _ in range(POSITION_ITERATIONS):
        least = push_contacts(w, shapes, BAUMGARTE) if lists[SOLVING] > 0 else ZERO
        fine = pull_joints(b, w.joints, fixed)
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
