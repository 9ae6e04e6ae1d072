"""CartPole, MountainCar and Acrobot compiled, with the tree inside the loop.

The arithmetic follows Gymnasium's operation by operation, so that every state has the same bits. Two things need
care for that. NumPy may compute sine and cosine by routines of its own (it does on machines with AVX-512), so a
caller passes the addresses of NumPy's own loops in that case, or None for the C library. And Gymnasium squares
velocities of Acrobot by `**`, which is the C library's pow and not always x * x.

Shapes: N nodes of all trees together, tree m has the nodes offset[m] to offset[m + 1]; S starts; E episodes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from discodso.base.arrays import Floats, Ints
from discodso.tasks.policies.splits import Columns, mark_used, walk

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
        kind = ir.FunctionType(
            ir.VoidType(), [pointer.as_pointer(), word.as_pointer(), word.as_pointer(), pointer]
        )
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

Loop = int | None  # None is decided while compiling


@njit(cache=True, nogil=True)
def cosine(x: float, loop: Loop) -> float:
    """cos(x) by the C library, or by NumPy's loop at an address."""
    if loop is None:
        return math.cos(x)
    return _run_loop(loop, x)


@njit(cache=True, nogil=True)
def sine(x: float, loop: Loop) -> float:
    """sin(x) likewise."""
    if loop is None:
        return math.sin(x)
    return _run_loop(loop, x)


@njit(cache=True, nogil=True)
def power_of_two(x: float, two: float) -> float:
    """pow(x, 2) of the C library, which is x * x unless the exact square lies close to the middle of two floats.

    `two` must be 2.0; as a constant the compiler would turn the call into x * x.
    """
    square = x * x
    rest = _fused_multiply_add(x, x, -square)
    if square + 1.1 * rest == square:  # |rest| below 0.45 units in the last place: pow errs by less than 0.05
        return square
    return _pow(x, two)


# ------------------------------------------------------------------------------------- the environments


@njit(cache=True, nogil=True)
def cartpole_step(s: Floats, x: Floats, action: int, cos_loop: Loop, sin_loop: Loop) -> bool:
    """One step of CartPole: state s float[4] and observation x float[4] in place; whether it is over."""
    force = 10.0 if action == 1 else -10.0
    total_mass = 0.1 + 1.0
    polemass_length = 0.1 * 0.5
    costheta, sintheta = cosine(s[2], cos_loop), sine(s[2], sin_loop)
    temp = (force + polemass_length * (s[3] * s[3]) * sintheta) / total_mass
    thetaacc = (9.8 * sintheta - costheta * temp) / (
        0.5 * (4.0 / 3.0 - 0.1 * (costheta * costheta) / total_mass)
    )
    xacc = temp - polemass_length * thetaacc * costheta / total_mass
    s[0] = s[0] + 0.02 * s[1]
    s[1] = s[1] + 0.02 * xacc
    s[2] = s[2] + 0.02 * s[3]
    s[3] = s[3] + 0.02 * thetaacc
    for i in range(4):
        x[i] = np.float64(np.float32(s[i]))
    angle = 12 * 2 * math.pi / 360
    return s[0] < -2.4 or s[0] > 2.4 or s[2] < -angle or s[2] > angle


@njit(cache=True, nogil=True)
def mountain_car_step(s: Floats, x: Floats, action: int) -> bool:
    """One step of MountainCar: state s float[2] and observation x float[2] in place; whether it is over."""
    velocity = s[1] + ((action - 1) * 0.001 + math.cos(3 * s[0]) * (-0.0025))
    velocity = min(max(velocity, -0.07), 0.07)
    position = min(max(s[0] + velocity, -1.2), 0.6)
    if position == -1.2 and velocity < 0:
        velocity = 0.0
    s[0], s[1] = position, velocity
    x[0], x[1] = np.float64(np.float32(position)), np.float64(np.float32(velocity))
    return position >= 0.5 and velocity >= 0


@njit(cache=True, nogil=True)
def _acrobot_slope(
    theta1: float,
    theta2: float,
    v1: float,
    v2: float,
    torque: float,
    cos_loop: Loop,
    sin_loop: Loop,
    two: float,
) -> tuple[float, float]:
    """Angular accelerations of Acrobot ("book" dynamics); masses, lengths and inertias are 1, centres at 1/2."""
    c2, s2 = cosine(theta2, cos_loop), sine(theta2, sin_loop)
    d1 = 0.25 + (1.0 + 0.25 + c2) + 1.0 + 1.0
    d2 = (0.25 + 0.5 * c2) + 1.0
    phi2 = 0.5 * 9.8 * cosine(theta1 + theta2 - math.pi / 2.0, cos_loop)
    phi1 = (
        -0.5 * power_of_two(v2, two) * s2
        - v2 * v1 * s2
        + 1.5 * 9.8 * cosine(theta1 - math.pi / 2, cos_loop)
        + phi2
    )
    a2 = (torque + d2 / d1 * phi1 - 0.5 * power_of_two(v1, two) * s2 - phi2) / (
        1.25 - power_of_two(d2, two) / d1
    )
    return -(d2 * a2 + phi1) / d1, a2


@njit(cache=True, nogil=True)
def _wrapped(x: float) -> float:
    """An angle in [-pi, pi], by repeated addition as in Gymnasium."""
    turn = math.pi - -math.pi
    while x > math.pi:
        x = x - turn
    while x < -math.pi:
        x = x + turn
    return x


@njit(cache=True, nogil=True)
def acrobot_step(
    s: Floats, x: Floats, action: int, seen: Ints, cos_loop: Loop, sin_loop: Loop, two: float
) -> bool:
    """One step of Acrobot: state s float[4] and observation x float[6] in place; whether it is over.

    `seen` int[6] is 0 for the features of the observation that nobody looks at; they are left as they are.
    """
    torque = float(action - 1)
    dt, half = 0.2, 0.2 / 2.0
    a, b, v, w = s[0], s[1], s[2], s[3]
    k1v, k1w = _acrobot_slope(a, b, v, w, torque, cos_loop, sin_loop, two)
    v2, w2 = v + half * k1v, w + half * k1w
    k2v, k2w = _acrobot_slope(a + half * v, b + half * w, v2, w2, torque, cos_loop, sin_loop, two)
    v3, w3 = v + half * k2v, w + half * k2w
    k3v, k3w = _acrobot_slope(a + half * v2, b + half * w2, v3, w3, torque, cos_loop, sin_loop, two)
    v4, w4 = v + dt * k3v, w + dt * k3w
    k4v, k4w = _acrobot_slope(a + dt * v3, b + dt * w3, v4, w4, torque, cos_loop, sin_loop, two)
    sixth = dt / 6.0
    s[0] = _wrapped(a + sixth * (v + 2 * v2 + 2 * v3 + v4))
    s[1] = _wrapped(b + sixth * (w + 2 * w2 + 2 * w3 + w4))
    s[2] = min(max(v + sixth * (k1v + 2 * k2v + 2 * k3v + k4v), -4 * math.pi), 4 * math.pi)
    s[3] = min(max(w + sixth * (k1w + 2 * k2w + 2 * k3w + k4w), -9 * math.pi), 9 * math.pi)
    if seen[0]:
        x[0] = np.float64(np.float32(cosine(s[0], cos_loop)))
    if seen[1]:
        x[1] = np.float64(np.float32(sine(s[0], sin_loop)))
    if seen[2]:
        x[2] = np.float64(np.float32(cosine(s[1], cos_loop)))
    if seen[3]:
        x[3] = np.float64(np.float32(sine(s[1], sin_loop)))
    x[4], x[5] = np.float64(np.float32(s[2])), np.float64(np.float32(s[3]))
    if abs(s[0]) < 1.57:  # below pi/2: its cosine is positive, and the sum cannot exceed 1
        return False
    return -cosine(s[0], cos_loop) - cosine(s[1] + s[0], cos_loop) > 1.0


# ------------------------------------------------------------------------------------- whole episodes


@njit(cache=True, nogil=True)
def run_episodes(
    kind: int,
    columns: Columns,
    offset: Ints,
    states: Floats,
    observations: Floats,
    tree: Ints,
    start: Ints,
    max_steps: int,
    cos_loop: Loop,
    sin_loop: Loop,
    two: float,
    visits: Ints,
    returns: Floats,
) -> None:
    """Returns of episodes: episode e runs tree[e] from start[e]. Fills `returns` float[E].

    kind: 0 CartPole, 1 MountainCar, 2 Acrobot. states float[S, 4 or 2], observations float[S, n]: what reset gave.
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
            if kind == 0:
                over = cartpole_step(s, x, action, cos_loop, sin_loop)
                total += 1.0
            elif kind == 1:
                over = mountain_car_step(s, x, action)
                total -= 1.0
            else:
                over = acrobot_step(s, x, action, seen, cos_loop, sin_loop, two)
                total -= 0.0 if over else 1.0
            if over:
                break
        returns[e] = total


@njit(cache=True, nogil=True)
def run_actions(
    kind: int,
    state: Floats,
    observation: Floats,
    actions: Ints,
    cos_loop: Loop,
    sin_loop: Loop,
    two: float,
    states: Floats,
    observations: Floats,
    over: Ints,
) -> None:
    """States float[T, .], observations float[T, .] and ends int[T] after each of T actions, past any end."""
    s, x = state.copy(), observation.copy()
    seen = np.ones(observation.shape[0], np.int64)
    for t in range(actions.shape[0]):
        if kind == 0:
            over[t] = cartpole_step(s, x, actions[t], cos_loop, sin_loop)
        elif kind == 1:
            over[t] = mountain_car_step(s, x, actions[t])
        else:
            over[t] = acrobot_step(s, x, actions[t], seen, cos_loop, sin_loop, two)
        states[t] = s
        observations[t] = x


@njit(cache=True, nogil=True)
def cosines(x: Floats, loop: Loop) -> Floats:
    """Cosines float[n] as the simulators compute them; for tests and checks."""
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = cosine(x[i], loop)
    return out


@njit(cache=True, nogil=True)
def sines(x: Floats, loop: Loop) -> Floats:
    """Sines float[n], likewise."""
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = sine(x[i], loop)
    return out
