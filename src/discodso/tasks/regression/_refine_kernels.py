"""The compiled derivative of expressions with respect to their constants, and Levenberg-Marquardt with it.

The values of all nodes of an expression are kept on a block of rows. The sweep back goes from the first token to
the last: in prefix order every node comes after its parent, and has only that one, so that its slope is written
once. It costs about as much as two evaluations, however many constants there are.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from discodso.base.arrays import Bools, Floats, Ints
from discodso.tasks.regression import _vector_math
from discodso.tasks.regression._evaluator_kernels import BLOCK, binary, memory, run, unary
from discodso.tasks.regression._vector_math import OPTIONS
from discodso.tasks.regression.operators import INPUT, VALUE

_SMALLEST_DAMPING, _FIRST_DAMPING, _LARGEST_DAMPING = 1e-9, 1e-3, 1e6
_LESS, _MORE = 0.1, 8.0  # what damping becomes after a step that helped, and after one that did not


@njit(**OPTIONS)
def _structure(
    tokens: Ints, length: int, code: Ints, stack: Ints, first: Ints, second: Ints, varies: Bools, places: Ints
) -> int:
    """Operands of every node, whether it depends on a constant, and where the constants stand; their number."""
    top = 0
    for position in range(length - 1, -1, -1):
        kind = code[tokens[position]]
        if kind >= INPUT:
            varies[position] = kind == VALUE
            stack[top] = position
            top += 1
        elif kind <= 3 or kind == 14:
            top -= 1
            first[position], second[position] = stack[top], stack[top - 1]
            varies[position] = varies[stack[top]] or varies[stack[top - 1]]
            stack[top - 1] = position
        else:
            first[position] = stack[top - 1]
            varies[position] = varies[stack[top - 1]]
            stack[top - 1] = position
    count = 0
    for position in range(length):
        if code[tokens[position]] == VALUE:
            places[count] = position
            count += 1
    return count


@njit(**OPTIONS)
def _forward(
    tokens: Ints,
    values: Floats,
    length: int,
    code: Ints,
    operand: Floats,
    buffer: Floats,
    first: Ints,
    second: Ints,
    nodes: Floats,
    work: Floats,
    count: int,
) -> None:
    """nodes[T, count]: the values of all nodes on a block of rows, whose inputs stand in the buffer."""
    for position in range(length - 1, -1, -1):
        token = tokens[position]
        kind = code[token]
        out = nodes[position]
        if kind == INPUT:
            column = buffer[int(operand[token])]
            for j in range(count):
                out[j] = column[j]
        elif kind >= VALUE:
            number = values[position] if kind == VALUE else operand[token]
            for j in range(count):
                out[j] = number
        elif kind <= 3 or kind == 14:
            binary(kind, nodes[first[position]], nodes[second[position]], out, count)
        else:
            unary(kind, nodes[first[position]], out, work, count)


@njit(**OPTIONS)
def _binary_slopes(
    kind: int, a: Floats, b: Floats, f: Floats, g: Floats, to_a: Floats, to_b: Floats, count: int
) -> None:
    if kind == 0:
        for j in range(count):
            to_a[j] = g[j]
            to_b[j] = g[j]
    elif kind == 1:
        for j in range(count):
            to_a[j] = g[j]
            to_b[j] = -g[j]
    elif kind == 2:
        for j in range(count):
            to_a[j] = g[j] * b[j]
            to_b[j] = g[j] * a[j]
    elif kind == 3:
        for j in range(count):
            to_a[j] = g[j] / b[j]
            to_b[j] = -g[j] * f[j] / b[j]
    else:
        for j in range(count):
            to_a[j] = g[j] * b[j] * a[j] ** (b[j] - 1.0)
            to_b[j] = g[j] * f[j] * np.log(a[j])


@njit(**OPTIONS)
def _unary_slopes(kind: int, a: Floats, f: Floats, g: Floats, out: Floats, work: Floats, count: int) -> None:
    if kind == 4:
        _vector_math.cos(a, out, work[0], work[1], count)
        for j in range(count):
            out[j] *= g[j]
    elif kind == 5:
        _vector_math.sin(a, out, work[0], work[1], count)
        for j in range(count):
            out[j] *= -g[j]
    elif kind == 6:
        for j in range(count):
            out[j] = g[j] * (1.0 + f[j] * f[j])
    elif kind == 7:
        for j in range(count):
            out[j] = g[j] * (1.0 - f[j] * f[j])
    elif kind == 8:
        for j in range(count):
            out[j] = g[j] * f[j]
    elif kind == 9:
        for j in range(count):
            out[j] = g[j] / a[j]
    elif kind == 10:
        for j in range(count):
            out[j] = 0.5 * g[j] / f[j]
    elif kind == 11:
        for j in range(count):
            out[j] = 2.0 * g[j] * a[j]
    elif kind == 12:
        for j in range(count):
            out[j] = 3.0 * g[j] * a[j] * a[j]
    elif kind == 13:
        for j in range(count):
            out[j] = 4.0 * g[j] * a[j] * a[j] * a[j]
    elif kind == 15:
        for j in range(count):
            out[j] = -g[j]
    elif kind == 16:
        for j in range(count):
            out[j] = -g[j] * f[j] * f[j]
    else:
        for j in range(count):
            out[j] = g[j] * np.sign(a[j])


@njit(**OPTIONS)
def _backward(
    tokens: Ints,
    length: int,
    code: Ints,
    first: Ints,
    second: Ints,
    varies: Bools,
    nodes: Floats,
    slopes: Floats,
    work: Floats,
    count: int,
) -> None:
    """slopes[T, count]: the derivative of the expression by every node that a constant can move.

    Row T of the slopes is for operands that no constant moves.
    """
    unused = slopes.shape[0] - 1
    slopes[0, :count] = 1.0
    for position in range(length):
        kind = code[tokens[position]]
        if kind >= INPUT or not varies[position]:
            continue
        a = first[position]
        f, g = nodes[position], slopes[position]
        if kind <= 3 or kind == 14:
            b = second[position]
            to_a, to_b = slopes[a if varies[a] else unused], slopes[b if varies[b] else unused]
            if kind == 14 and not varies[b]:  # without the logarithm, which costs most
                for j in range(count):
                    to_a[j] = g[j] * nodes[b, j] * nodes[a, j] ** (nodes[b, j] - 1.0)
            else:
                _binary_slopes(kind, nodes[a], nodes[b], f, g, to_a, to_b, count)
        else:
            _unary_slopes(kind, nodes[a], f, g, slopes[a], work, count)


@njit(**OPTIONS)
def jacobian(
    tokens: Ints, values: Floats, length: int, code: Ints, operand: Floats, columns: Floats, result: Floats
) -> None:
    """result[k, n]: the derivative of one expression by each of its k constants."""
    inputs, rows = columns.shape
    size = tokens.shape[0]
    first, second, places = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64)
    varies, nodes, slopes = np.zeros(size, np.bool_), np.empty((size, BLOCK)), np.empty((size + 1, BLOCK))
    buffer, work, stack = memory(columns, size)
    constants = _structure(tokens, length, code, stack, first, second, varies, places)
    for start in range(0, rows, BLOCK):
        count = min(BLOCK, rows - start)
        buffer[:inputs, :count] = columns[:, start : start + count]
        _forward(tokens, values, length, code, operand, buffer, first, second, nodes, work, count)
        _backward(tokens, length, code, first, second, varies, nodes, slopes, work, count)
        for k in range(constants):
            result[k, start : start + count] = slopes[places[k], :count]


@njit(**OPTIONS)
def _error(
    tokens: Ints,
    values: Floats,
    length: int,
    code: Ints,
    operand: Floats,
    columns: Floats,
    target: Floats,
    weights: Floats,
    scaled: bool,
    buffer: Floats,
    work: Floats,
    stack: Ints,
    line: Floats,
) -> float:
    """Mean squared error of f, or of the best a + b f; infinite where not finite. `line` becomes a and b."""
    inputs, rows = columns.shape
    total, origin, one, two, three, variance = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for start in range(0, rows, BLOCK):
        count = min(BLOCK, rows - start)
        buffer[:inputs, :count] = columns[:, start : start + count]
        row = run(tokens, values, length, code, operand, inputs, buffer, work, stack, count)
        predicted, y, w = buffer[row], target[start : start + count], weights[start : start + count]
        check = 0.0
        if scaled:
            if start == 0:
                origin = predicted[0]
            for j in range(count):
                g = predicted[j] - origin
                one += w[j] * g
                two += w[j] * g * g
                three += w[j] * g * y[j]
                variance += w[j] * y[j] * y[j]
                check += 0.0 * predicted[j]
            if not abs(two + check) < np.inf:
                return np.inf
        else:
            for j in range(count):
                difference = predicted[j] - y[j]
                total += w[j] * difference * difference
                check += 0.0 * predicted[j]
            if not abs(total + check) < np.inf:
                return np.inf
    line[0], line[1] = 0.0, 1.0
    if not scaled:
        return total
    spread = two - one * one
    line[1] = three / spread if spread > 1e-14 * two else 0.0
    line[0] = -line[1] * (origin + one)
    explained = line[1] * three
    return max(variance - explained, 0.0) if abs(explained) < np.inf else variance


@njit(**OPTIONS)
def _solve(matrix: Floats, right: Floats, size: int) -> bool:
    """Cholesky in place; `right` becomes the solution. False if the matrix is not positive definite."""
    for i in range(size):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            if i == j:
                if not total > 1e-14:
                    return False
                matrix[i, i] = np.sqrt(total)
            else:
                matrix[i, j] = total / matrix[j, j]
    for i in range(size):
        for k in range(i):
            right[i] -= matrix[i, k] * right[k]
        right[i] /= matrix[i, i]
    for i in range(size - 1, -1, -1):
        for k in range(i + 1, size):
            right[i] -= matrix[k, i] * right[k]
        right[i] /= matrix[i, i]
    return True


@njit(**OPTIONS)
def levenberg_marquardt(
    tokens: Ints,
    values: Floats,
    lengths: Ints,
    code: Ints,
    operand: Floats,
    columns: Floats,
    target: Floats,
    weights: Floats,
    scaled: bool,
    low: float,
    high: float,
    allowed: Ints,
    least_gain: float,
    errors: Floats,
    calls: Ints,
) -> None:
    """Least squares over the constants of B expressions, which move in values[B, T].

    With `scaled` the error is that of the best a + b f, and the target has mean 0. `allowed[B]` calls may be spent
    on each; calls[B] becomes those that were: one for every evaluation of the residuals, one for every Jacobian.
    errors[B] becomes the mean squared errors. A step that gains less than the share `least_gain` of the error is
    the last one.
    """
    inputs, rows = columns.shape
    size = tokens.shape[1]
    lead = 2 if scaled else 0
    first, second, places = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64)
    varies = np.zeros(size, np.bool_)
    nodes, slopes, table = np.empty((size, BLOCK)), np.empty((size + 1, BLOCK)), np.empty((size + 2, BLOCK))
    buffer, work, stack = memory(columns, size)
    gram, system = np.empty((size + 2, size + 2)), np.empty((size + 2, size + 2))
    pull, step, scale = np.empty(size + 2), np.empty(size + 2), np.empty(size + 2)
    line, new_line, trial, residual = np.empty(2), np.empty(2), np.empty(size), np.empty(BLOCK)
    for b in range(tokens.shape[0]):
        calls[b] = 0
        errors[b] = np.inf
        own, length = tokens[b], lengths[b]
        if allowed[b] < 3:  # also where an operator is the user's own, which has no code here
            continue
        constants = _structure(own, length, code, stack, first, second, varies, places)
        if constants == 0:
            continue
        calls[b] += 1
        error = _error(
            own, values[b], length, code, operand, columns, target, weights, scaled, buffer, work, stack, line
        )
        errors[b] = error
        if not error < np.inf:
            continue
        total, damping, going = lead + constants, _FIRST_DAMPING, True
        while going and calls[b] + 2 <= allowed[b] and error > 1e-28:
            calls[b] += 1
            gram[:total, :total] = 0.0
            pull[:total] = 0.0
            for start in range(0, rows, BLOCK):
                count = min(BLOCK, rows - start)
                buffer[:inputs, :count] = columns[:, start : start + count]
                y, w = target[start : start + count], weights[start : start + count]
                _forward(own, values[b], length, code, operand, buffer, first, second, nodes, work, count)
                _backward(own, length, code, first, second, varies, nodes, slopes, work, count)
                f = nodes[0]
                for j in range(count):
                    residual[j] = w[j] * (line[0] + line[1] * f[j] - y[j])
                if scaled:
                    table[0, :count] = 1.0
                    table[1, :count] = f[:count]
                for k in range(constants):
                    column, slope = table[lead + k], slopes[places[k]]
                    for j in range(count):
                        column[j] = line[1] * slope[j]
                for i in range(total):
                    left = table[i]
                    part = 0.0
                    for j in range(count):
                        part += left[j] * residual[j]
                    pull[i] += part
                    for k in range(i + 1):
                        right = table[k]
                        part = 0.0
                        for j in range(count):
                            part += w[j] * left[j] * right[j]
                        gram[i, k] += part
            for i in range(total):
                scale[i] = np.sqrt(gram[i, i]) if gram[i, i] > 1e-300 else 1.0
                if not scale[i] < 1e150:
                    going = False
            while going and calls[b] < allowed[b]:
                for i in range(total):
                    step[i] = -pull[i] / scale[i]
                    for k in range(i + 1):
                        system[i, k] = gram[i, k] / (scale[i] * scale[k])
                    system[i, i] = (1.0 if system[i, i] > 0.0 else 0.0) + damping + 1e-12
                    place = places[i - lead] if i >= lead else 0
                    if i >= lead and (
                        (values[b, place] <= low and step[i] < 0.0)
                        or (values[b, place] >= high and step[i] > 0.0)
                    ):  # at a bound, and pulled beyond it: it stays
                        step[i] = 0.0
                        system[i, :i] = 0.0
                        scale[i] = np.inf
                for i in range(total):
                    for k in range(i):
                        if scale[k] == np.inf:
                            system[i, k] = 0.0
                solved = _solve(system, step, total)
                moved = False
                if solved:
                    trial[:length] = values[b, :length]
                    for k in range(constants):
                        place = places[k]
                        number = values[b, place] + step[lead + k] / scale[lead + k]
                        trial[place] = min(max(number, low), high)
                        moved = moved or trial[place] != values[b, place]
                        solved = solved and abs(trial[place]) < 1e100
                if solved and not moved:
                    going = False
                    break
                better = np.inf
                if solved:
                    calls[b] += 1
                    better = _error(
                        own,
                        trial,
                        length,
                        code,
                        operand,
                        columns,
                        target,
                        weights,
                        scaled,
                        buffer,
                        work,
                        stack,
                        new_line,
                    )
                if better < error:
                    going = better < (1.0 - least_gain) * error
                    error = better
                    values[b, :length] = trial[:length]
                    line[0], line[1] = new_line[0], new_line[1]
                    damping = max(damping * _LESS, _SMALLEST_DAMPING)
                    break
                damping *= _MORE
                going = damping < _LARGEST_DAMPING
        errors[b] = error
