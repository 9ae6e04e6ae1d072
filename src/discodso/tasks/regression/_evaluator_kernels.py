"""The compiled stack machine: values of many expressions on many rows, block by block.

Expressions are read from the last token to the first, so that operands lie on the stack before their operator
comes. A stack entry is the number of a row of a buffer: the inputs of the block stand in its first rows and are
never copied. Every level of the stack has two rows of its own, and a result goes to the one that no operand
stands in, because loops whose input and output are surely apart become vector code.
"""

from __future__ import annotations

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.base.compiled import compiled
from discodso.tasks.regression import _vector_math
from discodso.tasks.regression._vector_math import OPTIONS, fill, take
from discodso.tasks.regression.operators import INPUT, VALUE

BLOCK = 128
# What kernels hand on are plain tuples: the files that numba keeps name the classes of named ones.
Programs = tuple[Ints, Floats, Ints, Ints, Floats]  # tokens, values [B, T], lengths [B], code, operand [K]
Data = tuple[Floats, Floats, Floats]  # columns [d, n], which is X transposed, target and weights [n]
Workspace = tuple[
    Floats, Floats, Ints
]  # buffer [inputs and stack, BLOCK], work [3, BLOCK] for functions, stack


@compiled(inner=True, apart=True, **OPTIONS)
def binary(code: int, a: Floats, b: Floats, out: Floats, count: int) -> None:
    if code == 0:
        for j in range(count):
            out[j] = a[j] + b[j]
    elif code == 1:
        for j in range(count):
            out[j] = a[j] - b[j]
    elif code == 2:
        for j in range(count):
            out[j] = a[j] * b[j]
    elif code == 3:
        for j in range(count):
            out[j] = a[j] / b[j]
    else:
        for j in range(count):
            out[j] = a[j] ** b[j]


@compiled(inner=True, apart=True, **OPTIONS)
def unary(code: int, a: Floats, out: Floats, work: Floats, count: int) -> None:
    if code <= 5:
        _vector_math.sine(a, out, work[0], code - 4, count)
    elif code == 6:
        _vector_math.tan(a, out, work[0], work[1], count)
    elif code == 7:
        _vector_math.tanh(a, out, work[0], work[1], work[2], count)
    elif code == 8:
        _vector_math.exp(a, out, work[0], work[1], count)
    elif code == 9:
        _vector_math.log(a, out, work[0], work[1], count)
    elif code == 10:
        for j in range(count):
            out[j] = np.sqrt(a[j])
    elif code == 11:
        for j in range(count):
            out[j] = a[j] * a[j]
    elif code == 12:
        for j in range(count):
            out[j] = a[j] * a[j] * a[j]
    elif code == 13:
        for j in range(count):
            out[j] = (a[j] * a[j]) * (a[j] * a[j])
    elif code == 15:
        for j in range(count):
            out[j] = -a[j]
    elif code == 16:
        for j in range(count):
            out[j] = 1.0 / a[j]
    elif code == 17:
        for j in range(count):
            out[j] = abs(a[j])
    elif code == 18:
        for j in range(count):
            out[j] = np.arcsin(a[j])
    elif code == 19:
        for j in range(count):
            out[j] = np.arccos(a[j])
    else:
        for j in range(count):
            out[j] = np.arctan(a[j])


@compiled(inner=True, **OPTIONS)
def workspace_for(columns: Floats, size: int) -> Workspace:
    """For expressions of up to `size` tokens."""
    buffer = np.empty((columns.shape[0] + 2 * size + 2, BLOCK))
    return buffer, np.empty((3, BLOCK)), np.empty(size + 1, np.int64)


@compiled(inner=True, apart=True, **OPTIONS)
def load(columns: Floats, start: int, buffer: Floats) -> int:
    """Put the block of rows from `start` on into the buffer; returns how many they are."""
    count: int = min(BLOCK, columns.shape[1] - start)
    for i in range(len(columns)):
        take(buffer[i], columns[i, start:], count)
    return count


@compiled(inner=True, apart=True, **OPTIONS)
def run(programs: Programs, b: int, inputs: int, workspace: Workspace, count: int) -> Floats:
    """Evaluate expression b on the block whose inputs stand in the buffer; returns the row of the result."""
    tokens, values, lengths, code, operand = programs
    buffer, work, stack = workspace
    top = 0
    for position in range(lengths[b] - 1, -1, -1):
        token = tokens[b, position]
        kind = code[token]
        if kind == INPUT:
            stack[top] = int(operand[token])
            top += 1
        elif kind >= VALUE:  # a value of its own, or a literal
            number = values[b, position] if kind == VALUE else operand[token]
            row = inputs + 2 * top
            target = buffer[row]
            for j in range(count):
                target[j] = number
            stack[top] = row
            top += 1
        elif kind <= 3 or kind == 14:
            top -= 1
            first, second = stack[top], stack[top - 1]
            row = inputs + 2 * (top - 1)
            row += second == row
            binary(kind, buffer[first], buffer[second], buffer[row], count)
            stack[top - 1] = row
        else:
            first = stack[top - 1]
            row = inputs + 2 * (top - 1)
            row += first == row
            unary(kind, buffer[first], buffer[row], work, count)
            stack[top - 1] = row
    result: Floats = buffer[stack[0]]
    return result


@compiled(**OPTIONS)
def predict(programs: Programs, columns: Floats, predictions: Floats) -> None:
    """predictions[B, n] of B expressions on n rows."""
    room = workspace_for(columns, programs[0].shape[1])
    for start in range(0, columns.shape[1], BLOCK):
        count = load(columns, start, room[0])
        for b in range(len(predictions)):
            take(predictions[b, start:], run(programs, b, len(columns), room, count), count)


@compiled(**OPTIONS)
def errors(programs: Programs, data: Data, absolute: bool, scaled: bool, result: Floats) -> None:
    """result[B]: weighted sums of squared or absolute errors, infinite where a prediction is not finite.

    If scaled it is the mean squared error of the best a + b f for each expression f; the target then has the
    weighted mean 0, and the weights sum to 1. Its sums are taken of f less its first value, so that a large offset
    does not eat the digits. An expression that has failed on one block is not evaluated on the next.
    """
    columns, target, weights = data
    room = workspace_for(columns, programs[0].shape[1])
    # For each expression its first value, and sums of g, g^2 and g times the target.
    sums = np.zeros((4, len(result) if scaled else 0))
    fill(result, 0.0, len(result))
    for start in range(0, len(target), BLOCK):
        count = load(columns, start, room[0])
        y, w = target[start : start + count], weights[start : start + count]
        for b in range(len(result)):
            if result[b] == np.inf:
                continue
            predicted = run(programs, b, len(columns), room, count)
            check = 0.0  # becomes NaN if any prediction is not finite, whatever its weight
            if scaled:
                if start == 0:
                    sums[0, b] = predicted[0]
                first, one, two, three = sums[0, b], 0.0, 0.0, 0.0
                for j in range(count):
                    g = predicted[j] - first
                    one += w[j] * g
                    two += w[j] * g * g
                    three += w[j] * g * y[j]
                    check += 0.0 * predicted[j]
                sums[1, b] += one
                sums[2, b] += two
                sums[3, b] += three
                if not abs(sums[2, b] + check) < np.inf:
                    result[b] = np.inf
            else:
                total = 0.0
                for j in range(count):
                    difference = predicted[j] - y[j]
                    size = abs(difference) if absolute else difference * difference
                    total += w[j] * size
                    check += 0.0 * predicted[j]
                total += check
                result[b] = result[b] + total if abs(total) < np.inf else np.inf
    if not scaled:
        return
    variance = 0.0
    for j in range(len(target)):
        variance += weights[j] * target[j] * target[j]
    for b in range(len(result)):
        if result[b] == 0.0:
            spread = sums[2, b] - sums[1, b] * sums[1, b]
            explained = sums[3, b] * sums[3, b] / spread if spread > 1e-14 * sums[2, b] else 0.0
            result[b] = max(variance - explained, 0.0) if abs(explained) < np.inf else variance
