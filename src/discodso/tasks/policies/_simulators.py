"""CartPole, MountainCar, Acrobot, Pendulum and MountainCarContinuous compiled, with the tree inside the loop.

The arithmetic follows Gymnasium's operation by operation, so that every state has the same bits. Three things need
care for that. NumPy may compute sine and cosine by routines of its own (it does on machines with AVX-512).
Gymnasium squares velocities by `**`, which is the C library's pow and not always x * x. And an action that is a
number is a float32, which makes a float32 of its product with Python's floats, but not of sums with float64s.

Shapes: N nodes of all trees together, tree m has the nodes offset[m] to offset[m + 1]; S starts; E episodes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from discodso.base.arrays import Floats, Ints
from discodso.base.compiled import compiled
from discodso.tasks.policies.columns import Columns, fill_action, mark_used, walk

_compiled = compiled(nogil=True)


class Maths(NamedTuple):
    """How Gymnasium computes here.

    cos, sin: addresses of NumPy's loops, or None for the C library, which is decided while compiling.
    two: 2.0. As a constant the compiler would turn pow(x, two) into x * x.
    """

    cos: int | None
    sin: int | None
    two: float = 2.0


# ------------------------------------------------------------------------------------- elementary functions


@intrinsic
def _run_loop(typing_context: Any, address: Any, x: Any) -> Any:
    """y = f(x) by a loop of a NumPy ufunc: void loop(char **args, intp *dimensions, intp *steps, void *data)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, word = ir.IntType(8).as_pointer(), ir.IntType(64)
        source = cgutils.alloca_once_value(builder, arguments[1])
        target = cgutils.alloca_once(builder, ir.DoubleType())
        operands = cgutils.alloca_once(builder, pointer, size=2)
        for index, slot in enumerate((source, target)):
            place = builder.gep(operands, [ir.Constant(word, index)])
            builder.store(builder.bitcast(slot, pointer), place)
        count = cgutils.alloca_once_value(builder, ir.Constant(word, 1))
        steps = cgutils.alloca_once(builder, word, size=2)
        for index in range(2):
            builder.store(ir.Constant(word, 8), builder.gep(steps, [ir.Constant(word, index)]))
        operand_types = [pointer.as_pointer(), word.as_pointer(), word.as_pointer(), pointer]
        kind = ir.FunctionType(ir.VoidType(), operand_types)
        function = builder.inttoptr(arguments[0], kind.as_pointer())
        builder.call(function, [operands, count, steps, ir.Constant(pointer, None)])
        return builder.load(target)

    return types.float64(types.int64, types.float64), generate


@intrinsic
def _fused_multiply_add(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c with one rounding."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


# The C library's pow as a function. math.pow is an intrinsic that the compiler may call ahead of a condition.
_pow = types.ExternalFunction("pow", types.float64(types.float64, types.float64))
_powf: Any = types.ExternalFunction("powf", types.float32(types.float32, types.float32))


@_compiled
def cosine(x: float, loop: int | None) -> float:
    """cos(x) by the C library, or by NumPy's loop at an address."""
    if loop is None:
        return math.cos(x)
    return _run_loop(loop, x)


@_compiled
def sine(x: float, loop: int | None) -> float:
    """sin(x) likewise."""
    if loop is None:
        return math.sin(x)
    return _run_loop(loop, x)


@_compiled
def power_of_two(x: float, two: float) -> float:
    """pow(x, 2) of the C library: x * x unless the exact square lies close to the middle of two floats."""
    square = x * x
    rest = _fused_multiply_add(x, x, -square)
    if square + 1.1 * rest == square:  # |rest| below 0.45 units in the last place: pow errs by less than 0.05
        return square
    return _pow(x, two)


# ------------------------------------------------------------------------------------- the environments


@_compiled
def _cartpole_step(s: Floats, x: Floats, action: int, maths: Maths) -> bool:
    force = 10.0 if action == 1 else -10.0
    total_mass = 0.1 + 1.0
    polemass_length = 0.1 * 0.5
    costheta, sintheta = cosine(s[2], maths.cos), sine(s[2], maths.sin)
    temp = (force + polemass_length * (s[3] * s[3]) * sintheta) / total_mass
    inertia = 0.5 * (4.0 / 3.0 - 0.1 * (costheta * costheta) / total_mass)
    thetaacc = (9.8 * sintheta - costheta * temp) / inertia
    xacc = temp - polemass_length * thetaacc * costheta / total_mass
    s[0] = s[0] + 0.02 * s[1]
    s[1] = s[1] + 0.02 * xacc
    s[2] = s[2] + 0.02 * s[3]
    s[3] = s[3] + 0.02 * thetaacc
    for i in range(4):
        x[i] = np.float32(s[i])
    angle = 12 * 2 * math.pi / 360
    return s[0] < -2.4 or s[0] > 2.4 or s[2] < -angle or s[2] > angle


@_compiled
def _mountain_car_step(s: Floats, x: Floats, action: int) -> bool:
    velocity = s[1] + ((action - 1) * 0.001 + math.cos(3 * s[0]) * (-0.0025))
    velocity = min(max(velocity, -0.07), 0.07)
    position = min(max(s[0] + velocity, -1.2), 0.6)
    if position == -1.2 and velocity < 0:
        velocity = 0.0
    s[0], s[1] = position, velocity
    x[0], x[1] = np.float32(position), np.float32(velocity)
    return position >= 0.5 and velocity >= 0


@_compiled
def _acrobot_slope(
    theta1: float, theta2: float, v1: float, v2: float, torque: float, maths: Maths
) -> tuple[float, float]:
    """Angular accelerations of Acrobot ("book" dynamics); masses, lengths and inertias are 1, centres at 1/2."""
    c2, s2 = cosine(theta2, maths.cos), sine(theta2, maths.sin)
    d1 = 0.25 + (1.0 + 0.25 + c2) + 1.0 + 1.0
    d2 = (0.25 + 0.5 * c2) + 1.0
    phi2 = 0.5 * 9.8 * cosine(theta1 + theta2 - math.pi / 2.0, maths.cos)
    gravity = 1.5 * 9.8 * cosine(theta1 - math.pi / 2, maths.cos)
    phi1 = -0.5 * power_of_two(v2, maths.two) * s2 - v2 * v1 * s2 + gravity + phi2
    pull = torque + d2 / d1 * phi1 - 0.5 * power_of_two(v1, maths.two) * s2 - phi2
    a2 = pull / (1.25 - power_of_two(d2, maths.two) / d1)
    return -(d2 * a2 + phi1) / d1, a2


@_compiled
def _wrapped(x: float) -> float:
    """An angle in [-pi, pi], by repeated addition as in Gymnasium."""
    turn = math.pi - -math.pi
    while x > math.pi:
        x = x - turn
    while x < -math.pi:
        x = x + turn
    return x


@_compiled
def _acrobot_step(s: Floats, x: Floats, action: int, seen: Ints, maths: Maths) -> bool:
    torque = float(action - 1)
    dt, half = 0.2, 0.2 / 2.0
    a, b, v, w = s[0], s[1], s[2], s[3]
    k1v, k1w = _acrobot_slope(a, b, v, w, torque, maths)
    v2, w2 = v + half * k1v, w + half * k1w
    k2v, k2w = _acrobot_slope(a + half * v, b + half * w, v2, w2, torque, maths)
    v3, w3 = v + half * k2v, w + half * k2w
    k3v, k3w = _acrobot_slope(a + half * v2, b + half * w2, v3, w3, torque, maths)
    v4, w4 = v + dt * k3v, w + dt * k3w
    k4v, k4w = _acrobot_slope(a + dt * v3, b + dt * w3, v4, w4, torque, maths)
    sixth = dt / 6.0
    s[0] = _wrapped(a + sixth * (v + 2 * v2 + 2 * v3 + v4))
    s[1] = _wrapped(b + sixth * (w + 2 * w2 + 2 * w3 + w4))
    s[2] = min(max(v + sixth * (k1v + 2 * k2v + 2 * k3v + k4v), -4 * math.pi), 4 * math.pi)
    s[3] = min(max(w + sixth * (k1w + 2 * k2w + 2 * k3w + k4w), -9 * math.pi), 9 * math.pi)
    for link in range(2):
        if seen[2 * link]:
            x[2 * link] = np.float32(cosine(s[link], maths.cos))
        if seen[2 * link + 1]:
            x[2 * link + 1] = np.float32(sine(s[link], maths.sin))
    x[4], x[5] = np.float32(s[2]), np.float32(s[3])
    if abs(s[0]) < 1.57:  # below pi/2: its cosine is positive, and the sum cannot exceed 1
        return False
    return -cosine(s[0], maths.cos) - cosine(s[1] + s[0], maths.cos) > 1.0


@_compiled
def _pendulum_step(s: Floats, x: Floats, torque: float, seen: Ints, maths: Maths) -> float:
    """Its reward; it never ends."""
    u, dt = np.float32(torque), 0.05
    angle = (s[0] + math.pi) % (2 * math.pi) - math.pi
    cost = power_of_two(angle, maths.two) + 0.1 * power_of_two(s[1], maths.two)
    cost = cost + np.float32(0.001) * _powf(u, np.float32(maths.two))
    velocity = s[1] + (15.0 * sine(s[0], maths.sin) + np.float32(3.0) * u) * dt
    velocity = min(max(velocity, -8.0), 8.0)
    s[0], s[1] = s[0] + velocity * dt, velocity
    if seen[0]:
        x[0] = np.float32(cosine(s[0], maths.cos))
    if seen[1]:
        x[1] = np.float32(sine(s[0], maths.sin))
    x[2] = np.float32(velocity)
    return -cost


@_compiled
def _continuous_car_step(s: Floats, x: Floats, force: float, first: bool, maths: Maths) -> tuple[float, bool]:
    """Its reward, and whether it is over. The state is of float64s before the first step, then of float32s."""
    push = np.float32(force) * np.float32(0.0015)
    reward = -(power_of_two(np.float64(np.float32(force)), maths.two) * 0.1)
    if first:  # it begins far from all limits
        exact = s[1] + (push - np.float32(0.0025 * math.cos(3 * s[0])))
        velocity, position = np.float32(exact), np.float32(s[0] + exact)
    else:
        slope = np.float32(0.0025 * math.cos(np.float64(np.float32(3.0) * np.float32(s[0]))))
        velocity = np.float32(s[1]) + (push - slope)
        velocity = min(max(velocity, np.float32(-0.07)), np.float32(0.07))
        position = np.float32(s[0]) + velocity
        position = min(max(position, np.float32(-1.2)), np.float32(0.6))
        if position == np.float32(-1.2) and velocity < 0:
            velocity = np.float32(0.0)
    s[0], s[1] = position, velocity
    x[0], x[1] = position, velocity
    over = bool(position >= np.float32(0.45)) and bool(velocity >= 0)
    return (100.0 + reward if over else reward), over


@_compiled
def step(
    kind: int, s: Floats, x: Floats, action: float, first: bool, seen: Ints, maths: Maths
) -> tuple[float, bool]:
    """One step: state s float[4 or 2] and observation x float[n] in place; the reward, and whether it is over.

    kind: 0 CartPole, 1 MountainCar, 2 Acrobot, 3 Pendulum, 4 MountainCarContinuous; for the last two the action is
    a number. seen: int[n], 0 for features that nobody looks at; those that take long may be left as they are.
    """
    if kind == 0:
        return 1.0, _cartpole_step(s, x, int(action), maths)
    if kind == 1:
        return -1.0, _mountain_car_step(s, x, int(action))
    if kind == 2:
        over = _acrobot_step(s, x, int(action), seen, maths)
        return (0.0 if over else -1.0), over
    if kind == 3:
        return _pendulum_step(s, x, action, seen, maths), False
    return _continuous_car_step(s, x, action, first, maths)


# ------------------------------------------------------------------------------------- whole episodes


@_compiled
def run_episodes(
    kind: int,
    columns: Columns,
    offset: Ints,
    states: Floats,
    observations: Floats,
    tree: Ints,
    start: Ints,
    max_steps: int,
    maths: Maths,
    visits: Ints,
    returns: Floats,
) -> None:
    """Returns of episodes: episode e runs tree[e] from start[e]. Fills `returns` float[E].

    states float[S, 4 or 2], observations float[S, n]: what reset gave.
    visits: int[N], whose leaves are counted up, or of length 0.
    """
    s = np.empty(states.shape[1])
    x = np.empty(observations.shape[1])
    seen = np.zeros(observations.shape[1], np.int64)
    last = -1
    for e in range(tree.shape[0]):
        root = offset[tree[e]]
        if tree[e] != last:
            last = tree[e]
            seen[:] = 0
            mark_used(columns, root, offset[last + 1], seen)
        s[:] = states[start[e]]
        x[:] = observations[start[e]]
        total = 0.0
        for _ in range(max_steps):
            leaf = walk(columns, root, x)
            if visits.shape[0] > 0:
                visits[leaf] += 1
            action = columns.jump[leaf]
            if kind == 0:  # not by `step`: the compiler then takes the question out of the loop
                over = _cartpole_step(s, x, action, maths)
                total += 1.0
            elif kind == 1:
                over = _mountain_car_step(s, x, action)
                total -= 1.0
            else:
                over = _acrobot_step(s, x, action, seen, maths)
                total -= 0.0 if over else 1.0
            if over:
                break
        returns[e] = total


@_compiled
def run_number_episodes(
    kind: int,
    columns: Columns,
    offset: Ints,
    states: Floats,
    observations: Floats,
    tree: Ints,
    start: Ints,
    max_steps: int,
    maths: Maths,
    visits: Ints,
    returns: Floats,
) -> None:
    """As `run_episodes`, where an action is a number: Pendulum and MountainCarContinuous."""
    s = np.empty(states.shape[1])
    x = np.empty(observations.shape[1])
    seen = np.zeros(observations.shape[1], np.int64)
    action = np.empty(1)
    high = np.full(1, 2.0 if kind == 3 else 1.0)
    low = -high
    last = -1
    for e in range(tree.shape[0]):
        root = offset[tree[e]]
        if tree[e] != last:
            last = tree[e]
            seen[:] = 0
            mark_used(columns, root, offset[last + 1], seen)
        s[:] = states[start[e]]
        x[:] = observations[start[e]]
        total, over = 0.0, False
        for at in range(max_steps):
            leaf = walk(columns, root, x)
            if visits.shape[0] > 0:
                visits[leaf] += 1
            fill_action(columns, leaf, x, low, high, action)
            if kind == 3:
                reward = _pendulum_step(s, x, action[0], seen, maths)
            else:
                reward, over = _continuous_car_step(s, x, action[0], at == 0, maths)
            total += reward
            if over:
                break
        returns[e] = total
