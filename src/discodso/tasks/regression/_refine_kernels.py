"""The compiled derivative of expressions with respect to their constants, and Levenberg-Marquardt with it.

The values of all nodes of an expression are kept on a block of rows. The sweep back goes from the first token to
the last: in prefix order every node comes after its parent, and has only that one, so that its slope is written
once. It costs about as much as two evaluations, however many constants there are.
"""

from __future__ import annotations

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.base.compiled import compiled
from discodso.tasks.regression import _evaluator_kernels as kernels
from discodso.tasks.regression import _vector_math
from discodso.tasks.regression._evaluator_kernels import BLOCK, Data, Programs, Workspace
from discodso.tasks.regression._vector_math import OPTIONS, fill, take
from discodso.tasks.regression.operators import INPUT, VALUE

_SMALLEST_DAMPING, _FIRST_DAMPING, _LARGEST_DAMPING = 1e-9, 1e-3, 1e6
_LESS, _MORE = 0.1, 8.0  # what damping becomes after a step that helped, and after one that did not
# The two operands of every node, whether a constant moves it, places of the constants, values of the nodes
# [T, BLOCK], and slopes [T + 1, BLOCK], whose last row is for operands that no constant moves.
Graph = tuple[Ints, Ints, Bools, Ints, Floats, Floats]


@compiled(inner=True, **OPTIONS)
def _graph(size: int) -> Graph:
    first, second, places = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64)
    varies, nodes, slopes = np.zeros(size, np.bool_), np.empty((size, BLOCK)), np.empty((size + 1, BLOCK))
    return first, second, varies, places, nodes, slopes


@compiled(inner=True, apart=True, **OPTIONS)
def _structure(programs: Programs, b: int, stack: Ints, graph: Graph) -> int:
    """Write down what depends on what in expression b; returns the number of its constants."""
    tokens, _, lengths, code, _ = programs
    first, second, varies, places, _, _ = graph
    top = 0
    for position in range(lengths[b] - 1, -1, -1):
        kind = code[tokens[b, position]]
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
    for position in range(lengths[b]):
        if code[tokens[b, position]] == VALUE:
            places[count] = position
            count += 1
    return count


@compiled(inner=True, apart=True, **OPTIONS)
def _forward(programs: Programs, b: int, graph: Graph, workspace: Workspace, count: int) -> None:
    """The values of all nodes on the block of rows whose inputs stand in the buffer."""
    tokens, values, lengths, code, operand = programs
    first, second, _, _, nodes, _ = graph
    buffer, work, _ = workspace
    for position in range(lengths[b] - 1, -1, -1):
        token = tokens[b, position]
        kind, out = code[token], nodes[position]
        if kind == INPUT:
            column = buffer[int(operand[token])]
            for j in range(count):
                out[j] = column[j]
        elif kind >= VALUE:
            number = values[b, position] if kind == VALUE else operand[token]
            for j in range(count):
                out[j] = number
        elif kind <= 3 or kind == 14:
            kernels.binary(kind, nodes[first[position]], nodes[second[position]], out, count)
        else:
            kernels.unary(kind, nodes[first[position]], out, work, count)


@compiled(inner=True, apart=True, **OPTIONS)
def _binary_slopes(
    kind: int, a: Floats, b: Floats, f: Floats, g: Floats, to_a: Floats, to_b: Floats, count: int
) -> None:
    if kind <= 1:
        for j in range(count):
            to_a[j] = g[j]
            to_b[j] = -g[j] if kind else g[j]
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


@compiled(inner=True, apart=True, **OPTIONS)
def _unary_slopes(kind: int, a: Floats, f: Floats, g: Floats, out: Floats, work: Floats, count: int) -> None:
    if kind <= 5:
        _vector_math.sine(a, out, work[0], 5 - kind, count)
        for j in range(count):
            out[j] *= g[j] if kind == 4 else -g[j]
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
    elif kind == 17:
        for j in range(count):
            out[j] = g[j] * np.sign(a[j])
    elif kind <= 19:
        for j in range(count):
            slope = g[j] / np.sqrt(1.0 - a[j] * a[j])
            out[j] = slope if kind == 18 else -slope
    else:
        for j in range(count):
            out[j] = g[j] / (1.0 + a[j] * a[j])


@compiled(inner=True, apart=True, **OPTIONS)
def _backward(programs: Programs, b: int, graph: Graph, work: Floats, count: int) -> None:
    """The slopes: the derivative of the expression by every node that a constant can move."""
    first, second, varies, _, nodes, slopes = graph
    tokens, _, lengths, code, _ = programs
    unused = len(slopes) - 1
    fill(slopes[0], 1.0, count)
    for position in range(lengths[b]):
        kind = code[tokens[b, position]]
        if kind >= INPUT or not varies[position]:
            continue
        left, right = first[position], second[position]
        f, g = nodes[position], slopes[position]
        if kind <= 3 or kind == 14:
            to_left = slopes[left if varies[left] else unused]
            to_right = slopes[right if varies[right] else unused]
            if kind == 14 and not varies[right]:  # without the logarithm, which costs most
                for j in range(count):
                    to_left[j] = g[j] * nodes[right, j] * nodes[left, j] ** (nodes[right, j] - 1.0)
            else:
                _binary_slopes(kind, nodes[left], nodes[right], f, g, to_left, to_right, count)
        else:
            _unary_slopes(kind, nodes[left], f, g, slopes[left], work, count)


@compiled(**OPTIONS)
def jacobian(programs: Programs, columns: Floats, result: Floats) -> None:
    """result[k, n]: the derivative of one expression by each of its k constants."""
    size = programs[0].shape[1]
    graph, room = _graph(size), kernels.workspace_for(columns, size)
    _, _, _, places, _, slopes = graph
    buffer, work, stack = room
    _structure(programs, 0, stack, graph)
    for start in range(0, columns.shape[1], BLOCK):
        count = kernels.load(columns, start, buffer)
        _forward(programs, 0, graph, room, count)
        _backward(programs, 0, graph, work, count)
        for k in range(len(result)):
            take(result[k, start:], slopes[places[k]], count)


@compiled(inner=True, apart=True, **OPTIONS)
def _error(programs: Programs, b: int, data: Data, scaled: bool, workspace: Workspace, line: Floats) -> float:
    """Mean squared error of f, or of the best a + b f; infinite where not finite. `line` becomes a and b."""
    columns, target, weights = data
    total, origin, one, two, three, variance = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for start in range(0, len(target), BLOCK):
        count = kernels.load(columns, start, workspace[0])
        y, w = target[start : start + count], weights[start : start + count]
        predicted = kernels.run(programs, b, len(columns), workspace, count)
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


@compiled(inner=True, apart=True, **OPTIONS)
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


@compiled(**OPTIONS)
def levenberg_marquardt(
    programs: Programs,
    data: Data,
    scaled: bool,
    bounds: tuple[float, float],
    allowed: Ints,
    least_gain: float,
    errors: Floats,
    calls: Ints,
) -> None:
    """Least squares over the constants of B expressions, whose values[B, T] move within bounds.

    With `scaled` the error is that of the best a + b f, and the target has mean 0. `allowed[B]` calls may be spent
    on each; calls[B] becomes those that were: one for every evaluation of the residuals, one for every Jacobian.
    errors[B] becomes the mean squared errors. A step that gains less than the share `least_gain` of the error is
    the last one.
    """
    columns, target, weights = data
    low, high = bounds
    size, lead = programs[0].shape[1], 2 if scaled else 0
    graph, room, table = _graph(size), kernels.workspace_for(columns, size), np.empty((size + 2, BLOCK))
    _, _, _, places, nodes, slopes = graph
    buffer, work, stack = room
    gram, system = np.empty((size + 2, size + 2)), np.empty((size + 2, size + 2))
    pull, step, scale = np.empty(size + 2), np.empty(size + 2), np.empty(size + 2)
    line, new_line, before, residual = np.empty(2), np.empty(2), np.empty(size), np.empty(BLOCK)
    for b in range(len(errors)):
        calls[b] = 0
        errors[b] = np.inf
        if allowed[b] < 3:  # also where an operator is the user's own, which has no code here
            continue
        constants = _structure(programs, b, stack, graph)
        if constants == 0:
            continue
        calls[b] = 1
        errors[b] = _error(programs, b, data, scaled, room, line)
        values, total = programs[1][b], lead + constants
        damping, going = _FIRST_DAMPING, errors[b] < np.inf
        while going and calls[b] + 2 <= allowed[b] and errors[b] > 1e-28:
            calls[b] += 1
            for i in range(total):
                fill(gram[i], 0.0, total)
            fill(pull, 0.0, total)
            for start in range(0, len(target), BLOCK):
                count = kernels.load(columns, start, buffer)
                y, w = target[start : start + count], weights[start : start + count]
                _forward(programs, b, graph, room, count)
                _backward(programs, b, graph, work, count)
                f = nodes[0]
                for j in range(count):
                    residual[j] = w[j] * (line[0] + line[1] * f[j] - y[j])
                if scaled:
                    fill(table[0], 1.0, count)
                    take(table[1], f, count)
                for k in range(constants):
                    column, slope = table[lead + k], slopes[places[k]]
                    for j in range(count):
                        column[j] = line[1] * slope[j]
                for i in range(total):
                    left, part = table[i], 0.0
                    for j in range(count):
                        part += left[j] * residual[j]
                    pull[i] += part
                    for k in range(i + 1):
                        right, part = table[k], 0.0
                        for j in range(count):
                            part += w[j] * left[j] * right[j]
                        gram[i, k] += part
            for i in range(total):
                scale[i] = np.sqrt(gram[i, i]) if gram[i, i] > 1e-300 else 1.0
                if not scale[i] < 1e150:
                    going = False
            take(before, values, size)
            while going and calls[b] < allowed[b]:
                for i in range(total):
                    step[i] = -pull[i] / scale[i]
                    for k in range(i + 1):
                        system[i, k] = gram[i, k] / (scale[i] * scale[k])
                    system[i, i] = (1.0 if system[i, i] > 0.0 else 0.0) + damping + 1e-12
                    if i >= lead:
                        value = before[places[i - lead]]
                        if (value <= low and step[i] < 0.0) or (value >= high and step[i] > 0.0):
                            # At a bound, and pulled beyond it: it stays.
                            step[i] = 0.0
                            fill(system[i], 0.0, i)
                            scale[i] = np.inf
                for i in range(total):
                    for k in range(i):
                        if scale[k] == np.inf:
                            system[i, k] = 0.0
                solved, moved = _solve(system, step, total), False
                for k in range(constants if solved else 0):
                    place = places[k]
                    number = before[place] + step[lead + k] / scale[lead + k]
                    values[place] = min(max(number, low), high)
                    moved = moved or values[place] != before[place]
                    solved = solved and abs(values[place]) < 1e100
                if solved and not moved:
                    going = False
                    break
                if solved:
                    calls[b] += 1
                    error = _error(programs, b, data, scaled, room, new_line)
                    if error < errors[b]:
                        going = error < (1.0 - least_gain) * errors[b]
                        errors[b] = error
                        take(line, new_line, 2)
                        damping = max(damping * _LESS, _SMALLEST_DAMPING)
                        break
                take(values, before, size)
                damping *= _MORE
                going = damping < _LARGEST_DAMPING
