"""LunarLander as Gymnasium has it, and the loop over episodes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.tasks.policies.columns import Columns, fill_action, walk
from discodso.tasks.policies.lunar._bodies import box_of
from discodso.tasks.policies.lunar._steps import begin_step, end_step
from discodso.tasks.policies.lunar._velocities import solve
from discodso.tasks.policies.lunar._worlds import (
    A0,
    BODIES,
    CENTREX,
    CENTREY,
    CX,
    CY,
    DT,
    EDGES,
    GROUND,
    HIGHX,
    HIGHY,
    INERTIA,
    LANDER,
    LEFT,
    LOWX,
    LOWY,
    MARGIN,
    MASS,
    NORMALX,
    NORMALY,
    ONE,
    PX,
    PY,
    RADIUS,
    REST,
    RIGHT,
    SIDES,
    SLEEP,
    VX,
    VY,
    WORLDS,
    ZERO,
    A,
    C,
    F,
    S,
    Settings,
    Shapes,
    U,
    W,
    World,
    compile_function,
    compiled,
    cosf,
    inlined,
    options,
    sinf,
    uncounted,
    uncounted_world,
    world_of,
)

START = 19  # numbers of a start: terrain, force, times of wind and turbulence, state of the generator


@compiled
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


@compiled
def gust(index: float, power: float) -> float:
    """Wind or turbulence at a time."""
    return math.tanh(math.sin(0.02 * index) + math.sin(math.pi * 0.01 * index)) * power


@inlined
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
        dx, dy = e[edge, 2] - e[edge, 0], e[edge, 3] - e[edge, 1]
        inverse = ONE / np.sqrt(dx * dx + dy * dy)
        e[edge, NORMALX], e[edge, NORMALY] = dy * inverse, -(dx * inverse)
    b[:] = ZERO
    w.joints[:] = ZERO
    for i in range(BODIES):
        side = 1 - i  # +1 for the leg that Gymnasium calls +1
        b[i, A] = b[i, A0] = F(side * 0.05)
        s, c = sinf(b[i, A]), cosf(b[i, A])
        px, py = F(10.0 - side * 20 / 30.0), F(400 / 30.0)
        x, y = fixed[i, CENTREX], fixed[i, CENTREY]
        b[i, S], b[i, C], b[i, PX], b[i, PY] = s, c, px, py
        b[i, CX], b[i, CY] = (c * x - s * y) + px, (s * x + c * y) + py
        lx, ly, hx, hy = box_of(s, c, px, py, shapes.polygons[i], SIDES[i])
        b[i, LOWX], b[i, LOWY], b[i, HIGHX], b[i, HIGHY] = lx - MARGIN, ly - MARGIN, hx + MARGIN, hy + MARGIN


@compiled
def push(b: Any, fixed: Any, x: float, y: float, at_x: float, at_y: float) -> None:
    """An impulse on the lander at a place, all float64s as in Python."""
    fx, fy = F(x), F(y)
    b[LANDER, VX] += fixed[LANDER, MASS] * fx
    b[LANDER, VY] += fixed[LANDER, MASS] * fy
    rx, ry = F(at_x) - b[LANDER, CX], F(at_y) - b[LANDER, CY]
    b[LANDER, W] += fixed[LANDER, INERTIA] * (rx * fy - ry * fx)


@inlined
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


@inlined
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


@inlined
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


@compiled
def is_awake(b: Any) -> bool:
    """Whether the bodies cannot fall asleep in a step."""
    return min(b[0, REST], b[1, REST], b[2, REST]) + DT < SLEEP


@compile_function(cache=True, **options)
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
            if w.lists[GROUND + LANDER] > 0 and done[n] > 0 and is_awake(w.bodies):
                returns[episode[n]] = total[n] - 100.0  # crashed, whatever else happens in this step
                episode[n] = -1
                seated -= 1
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
