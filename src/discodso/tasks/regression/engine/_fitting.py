"""Least squares of a sum of terms: coefficients are solved, the constants within terms are iterated.

This is variable projection. The terms are made orthonormal (Gram-Schmidt, twice), which gives the coefficients and
the residual at once; Levenberg-Marquardt then moves only the constants within terms, on derivatives without what
the coefficients can do (Kaufman's form).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.base.compiled import compiled
from discodso.tasks.regression._refine_kernels import _binary_slopes, _solve, _unary_slopes
from discodso.tasks.regression._vector_math import OPTIONS
from discodso.tasks.regression.engine._trees import (
    CONSTANT,
    LOG,
    LOG_SIZE,
    MOST_TERMS,
    POW,
    end_of,
    forward,
    is_binary,
    room_for,
)

MOST_CONSTANTS = 8
_CANCELLING = 1e8  # a term that is so many times as large as the target leaves too few digits of a sum
_DEPENDENT = 1e-9  # a term that keeps less than this of its length beside those before it adds nothing
_FIRST_DAMPING, _SMALLEST_DAMPING, _LARGEST_DAMPING = 1e-3, 1e-10, 1e7

_DIGIT_LOST = (
    0.01  # of its squared length: what keeps less beside others is made orthogonal to them once more
)

# Sums may be taken in any order, so that they are vector code.
SUMS: Any = {**OPTIONS, "fastmath": {"contract", "reassoc", "nsz"}}

# What is left of the target without the fixed columns, roots of the weights [n], these orthonormal columns [k, n],
# which take part in every fit, the first for the offset, and the offset without terms. The first is multiplied by
# the roots.
Target = tuple[Floats, Floats, Floats, float]
# buffer, places, stack, work; basis [terms + 1, n], triangle, coefficients, residual, slopes, tangents, varies
Fitting = tuple[
    tuple[Floats, Ints, Ints, Floats], Floats, Floats, Floats, Floats, Floats, Floats, Bools, Ints, Ints
]


def fitting_room(columns: Floats, size: int) -> Fitting:
    """Work space for expressions of up to `size` tokens on columns[d, n]."""
    count, terms = columns.shape[1], MOST_TERMS + 1
    return (
        room_for(columns, size),
        np.zeros((terms, count)),  # orthonormal terms
        np.zeros((terms, terms)),  # the triangle that makes the terms of them
        np.zeros(terms),  # coefficients
        np.zeros(count),  # residual
        np.zeros((size + 1, count)),  # slopes, the last row for what nothing depends on
        np.zeros((MOST_CONSTANTS, count)),  # tangents
        np.zeros(size, np.bool_),  # whether a constant moves the node
        np.zeros((size, 2), np.int64),  # operands of the nodes
        np.zeros(MOST_CONSTANTS, np.int64),  # places of the constants
    )


@compiled(inner=True, **SUMS)
def dot(a: Floats, b: Floats) -> float:
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@compiled(inner=True, **OPTIONS)
def _take_off(q: Floats, part: float, p: Floats) -> None:
    for j in range(len(q)):
        q[j] -= part * p[j]


@compiled(inner=True, **OPTIONS)
def _make_orthogonal(q: Floats, t: int, fixed: Floats, basis: Floats, triangle: Floats) -> None:
    """Take off q[n] what the fixed columns and the terms before t explain; shares are added to column t."""
    for s in range(len(fixed)):
        part = dot(fixed[s], q)
        if s == 0:
            triangle[0, t] += part
        _take_off(q, part, fixed[s])
    for s in range(1, t):
        part = dot(basis[s], q)
        triangle[s, t] += part
        _take_off(q, part, basis[s])


@compiled(apart=True, **OPTIONS)
def solve_terms(
    codes: Ints, values: Floats, literals: Floats, starts: Ints, count: int, data: Target, room: Fitting
) -> float:
    """Sum of squares of what the best coefficients of the terms leave of the target; infinite where not finite.

    The residual and the orthonormal basis stay in the room; a term that adds nothing to those before has a basis
    of 0 and the coefficient 0. coefficients[0] is the offset.
    """
    rest, roots, fixed, mean = data
    trees, basis, triangle, coefficients, residual, _, _, _, _, _ = room
    n = len(rest)
    for j in range(n):
        residual[j] = rest[j]
    for t in range(1, count + 1):
        q, start = basis[t], starts[t - 1]
        row = trees[0][forward(codes, values, literals, start, end_of(codes, start), trees)]
        for j in range(n):
            q[j] = row[j] * roots[j]
        before = dot(q, q)
        if not before < 1e300:
            return np.inf
        triangle[t, 0] = before  # below the diagonal there is room
        for s in range(t):
            triangle[s, t] = 0.0
        _make_orthogonal(q, t, fixed, basis, triangle)
        after = dot(q, q)
        if after < _DIGIT_LOST * before:
            _make_orthogonal(q, t, fixed, basis, triangle)
            after = dot(q, q)
        after, before = np.sqrt(after), np.sqrt(before)
        if not after > _DEPENDENT * before or after < 1e-280:
            triangle[t, t] = 0.0
            coefficients[t] = 0.0
            for j in range(n):
                q[j] = 0.0
            continue
        triangle[t, t] = after
        for j in range(n):
            q[j] /= after
        coefficients[t] = dot(q, residual)
        _take_off(residual, coefficients[t], q)
    total, size = dot(residual, residual), dot(rest, rest) + mean * mean
    for t in range(count + 1, len(coefficients)):
        coefficients[t] = 0.0
    coefficients[0] = mean
    for t in range(count, 0, -1):
        if triangle[t, t] == 0.0:
            coefficients[t] = 0.0
            continue
        part = coefficients[t]
        for s in range(t + 1, count + 1):
            part -= triangle[t, s] * coefficients[s]
        coefficients[t] = part / triangle[t, t]
        if not coefficients[t] * coefficients[t] * triangle[t, 0] < _CANCELLING * _CANCELLING * size:
            return np.inf
        coefficients[0] -= triangle[0, t] * coefficients[t]
    return total


@compiled(inner=True, apart=True, **OPTIONS)
def _structure(codes: Ints, start: int, end: int, room: Fitting) -> None:
    """Operands of the nodes of a term, and which of them a constant moves."""
    stack, varies, operands = room[0][2], room[7], room[8]
    top = 0
    for place in range(end - 1, start - 1, -1):
        code = codes[place]
        if code >= CONSTANT:
            varies[place] = code == CONSTANT
            stack[top] = place
            top += 1
        elif is_binary(code):
            top -= 1
            operands[place, 0], operands[place, 1] = stack[top], stack[top - 1]
            varies[place] = varies[stack[top]] or varies[stack[top - 1]]
            stack[top - 1] = place
        else:
            operands[place, 0] = stack[top - 1]
            varies[place] = varies[stack[top - 1]]
            stack[top - 1] = place


@compiled(inner=True, apart=True, **OPTIONS)
def _backward(codes: Ints, start: int, end: int, room: Fitting) -> None:
    """Slopes of a term by its nodes, as far as a constant moves them; its values stand in the buffer."""
    (buffer, places, _, work), slopes, varies, operands = room[0], room[5], room[7], room[8]
    unused, count = len(slopes) - 1, buffer.shape[1]
    for j in range(count):
        slopes[start, j] = 1.0
    for place in range(start, end):
        code = codes[place]
        if code >= CONSTANT or not varies[place]:
            continue
        left = operands[place, 0]
        f, g = buffer[places[place]], slopes[place]
        if is_binary(code):
            right = operands[place, 1]
            to_left = slopes[left if varies[left] else unused]
            to_right = slopes[right if varies[right] else unused]
            a, b = buffer[places[left]], buffer[places[right]]
            if code == POW and not varies[right]:
                for j in range(count):
                    to_left[j] = g[j] * b[j] * a[j] ** (b[j] - 1.0)
            else:
                _binary_slopes(code, a, b, f, g, to_left, to_right, count)
        else:
            kind = LOG if code == LOG_SIZE else code
            _unary_slopes(kind, buffer[places[left]], f, g, slopes[left], work, count)


@compiled(inner=True, apart=True, **OPTIONS)
def _tangents(
    codes: Ints,
    literals: Floats,
    starts: Ints,
    count: int,
    data: Target,
    constants: int,
    room: Fitting,
) -> bool:
    """What each constant does to the prediction, beyond what coefficients can do; False where not finite."""
    basis, coefficients, slopes, tangents, places = room[1], room[3], room[5], room[6], room[9]
    _, roots, fixed, _ = data
    n, k = len(roots), 0
    for t in range(count):
        start = starts[t]
        end = end_of(codes, start)
        if k == constants:
            break
        if not start <= places[k] < end:
            continue
        _structure(codes, start, end, room)
        _backward(codes, start, end, room)
        while k < constants and start <= places[k] < end:
            tangent, slope = tangents[k], slopes[places[k]]
            for j in range(n):
                tangent[j] = coefficients[t + 1] * slope[j] * roots[j]
            for s in range(len(fixed)):
                _take_off(tangent, dot(fixed[s], tangent), fixed[s])
            for s in range(1, count + 1):
                _take_off(tangent, dot(basis[s], tangent), basis[s])
            if not dot(tangent, tangent) < 1e300:
                return False
            k += 1
    return True


@compiled(inner=True, apart=True, **OPTIONS)
def damped_step(matrix: Floats, pull: Floats, damping: float, step: Floats, system: Floats) -> bool:
    """The step[k] of Levenberg-Marquardt from what tangents have in common, matrix[k, k], and their pull[k] on the
    residual; False if there is none."""
    for i in range(len(step)):
        size = np.sqrt(matrix[i, i]) if matrix[i, i] > 1e-300 else 1.0
        step[i] = pull[i] / size
        for k in range(i):
            other = np.sqrt(matrix[k, k]) if matrix[k, k] > 1e-300 else 1.0
            system[i, k] = matrix[i, k] / (size * other)
        system[i, i] = 1.0 + damping
    if not _solve(system, step, len(step)):
        return False
    for i in range(len(step)):
        step[i] /= np.sqrt(matrix[i, i]) if matrix[i, i] > 1e-300 else 1.0
    return True


@compiled(apart=True, **OPTIONS)
def fit(
    codes: Ints,
    values: Floats,
    literals: Floats,
    starts: Ints,
    count: int,
    data: Target,
    limits: tuple[float, float],
    most_calls: int,
    least_gain: float,
    room: Fitting,
) -> tuple[float, int]:
    """Fit an expression, whose values move; gives the sum of squares and the calls that it took.

    One call is an evaluation of the residuals with their coefficients, or the derivatives by all constants. A step
    that gains less than the share `least_gain` is the last one. Terms must stand in the order of their places.
    """
    places, tangents, residual = room[9], room[6], room[4]
    constants = 0
    for t in range(count):
        for place in range(starts[t], end_of(codes, starts[t])):
            if codes[place] == CONSTANT:
                if constants == MOST_CONSTANTS:
                    return np.inf, 0
                places[constants] = place
                constants += 1
    error = solve_terms(codes, values, literals, starts, count, data, room)
    calls = 1
    if constants == 0 or not error < np.inf:
        return error, calls
    matrix, system = np.empty((constants, constants)), np.empty((constants, constants))
    pull, step, before = np.empty(constants), np.empty(constants), np.empty(constants)
    damping = _FIRST_DAMPING
    going, floor = True, 1e-30
    while going and calls + 2 <= most_calls and error > floor:
        calls += 1
        if not _tangents(codes, literals, starts, count, data, constants, room):
            break
        for i in range(constants):
            pull[i] = dot(tangents[i], residual)
            for k in range(i + 1):
                matrix[i, k] = dot(tangents[i], tangents[k])
            before[i] = values[places[i]]
        better = False
        while calls < most_calls and damping < _LARGEST_DAMPING:
            if not damped_step(matrix, pull, damping, step, system):
                damping *= 10.0
                continue
            moved = False
            for i in range(constants):
                number = min(max(before[i] + step[i], limits[0]), limits[1])
                if not abs(number) < 1e60:
                    number = before[i]
                values[places[i]] = number
                moved = moved or number != before[i]
            if not moved:
                going = False
                break
            calls += 1
            trial = solve_terms(codes, values, literals, starts, count, data, room)
            if trial < error:
                going = trial < (1.0 - least_gain) * error
                error, better = trial, True
                damping = max(damping * 0.1, _SMALLEST_DAMPING)
                break
            damping *= 8.0
        if not better:
            for i in range(constants):
                values[places[i]] = before[i]
            break
    return error, calls
