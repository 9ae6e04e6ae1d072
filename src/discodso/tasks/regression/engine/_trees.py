"""Expressions as arrays: walking them, reading them as sums of terms, evaluating them, telling them apart.

An expression is a row of codes in prefix order: below CONSTANT operators by their code, CONSTANT a number whose
value stands beside it, from LITERAL on fixed numbers, from COLUMN on inputs.

Linear coefficients are never written down. An expression stands for all c0 + c1 t1 + ... + cm tm, where t1 to tm
are the terms of the sum at its root; the fit finds the coefficients.
"""

from __future__ import annotations

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints, Words
from discodso.base.compiled import compiled
from discodso.tasks.regression._evaluator_kernels import binary, unary
from discodso.tasks.regression._vector_math import OPTIONS
from discodso.tasks.regression.engine._random import mixed

LOG_SIZE, CONSTANT, LITERAL, COLUMN = 31, 32, 33, 64  # the first is log|x|, of views that look at products
ADD, SUB, MUL, DIV, SIN, COS, TAN, TANH, EXP, LOG, SQRT, N2, N3, N4, POW, NEG, INV, ABS = range(18)
MOST_TERMS = 10
PROBES = 8  # rows on which expressions are told apart
_DIGITS = 1e9
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@compiled(**OPTIONS)
def is_binary(code: int) -> bool:
    return code <= DIV or code == POW


@compiled(inner=True, **OPTIONS)
def arity(code: int) -> int:
    if code >= CONSTANT:
        return 0
    return 2 if code <= DIV or code == POW else 1


@compiled(**OPTIONS)
def end_of(codes: Ints, start: int) -> int:
    """Where the subtree that begins at `start` ends."""
    open_slots, place = 1, start
    while open_slots > 0:
        open_slots += arity(codes[place]) - 1
        place += 1
    return place


@compiled(inner=True, **OPTIONS)
def price_of(codes: Ints, length: int, prices: Floats) -> float:
    total = 0.0
    for place in range(length):
        total += prices[codes[place]]
    return total


@compiled(**OPTIONS)
def terms_of(codes: Ints, length: int, starts: Ints) -> int:
    """Starts of the terms of the sum at the root, without signs, coefficients and constants; returns how many.

    -1 if there are more than MOST_TERMS.
    """
    waiting = np.empty(length + 1, np.int64)
    waiting[0], top, count = 0, 1, 0
    while top > 0:
        top -= 1
        place = waiting[top]
        code = codes[place]
        if code <= SUB:
            waiting[top] = end_of(codes, place + 1)
            waiting[top + 1] = place + 1
            top += 2
        elif code == NEG:
            waiting[top] = place + 1
            top += 1
        elif code == MUL and CONSTANT <= codes[place + 1] < COLUMN:
            waiting[top] = place + 2
            top += 1
        elif code in (MUL, DIV) and CONSTANT <= codes[end_of(codes, place + 1)] < COLUMN:
            waiting[top] = place + 1
            top += 1
        elif not CONSTANT <= code < COLUMN:
            if count == MOST_TERMS:
                return -1
            starts[count] = place
            count += 1
    return count


@compiled(inner=True, apart=True, **OPTIONS)
def valid(codes: Ints, length: int, nesting: Bools, most_constants: int) -> bool:
    """Whether no operator has numbers only below it, and none stands where `nesting[outer, inner]` forbids it."""
    inside = np.zeros(length, np.int64)  # where the subtree of each operator ends
    has_column = np.zeros(length, np.bool_)
    constants = 0
    for place in range(length - 1, -1, -1):
        code = codes[place]
        if code >= CONSTANT:
            has_column[place] = code >= COLUMN
            inside[place] = place + 1
            constants += code == CONSTANT
            continue
        first_end = inside[place + 1]
        has_column[place] = has_column[place + 1]
        inside[place] = first_end
        if is_binary(code):
            has_column[place] |= has_column[first_end]
            inside[place] = inside[first_end]
        if not has_column[place]:
            return False
        for inner in range(place + 1, inside[place]):
            other = codes[inner]
            if other < CONSTANT and nesting[code, other]:
                return False
        # Directly inside one another: pairs that undo each other, and numbers that fold.
        child = codes[place + 1]
        if (code == EXP and child == LOG) or (code == LOG and child == EXP):
            return False
        if (code == N2 and child == SQRT) or (code == SQRT and child == N2):
            return False
        if (code == NEG and child == NEG) or (code == INV and child == INV):
            return False
    return constants <= most_constants


# --------------------------------------------------------------------------------------------- evaluation


@compiled(apart=True, **OPTIONS)
def forward(
    codes: Ints,
    values: Floats,
    literals: Floats,
    start: int,
    end: int,
    room: tuple[Floats, Ints, Ints, Floats],
) -> int:
    """Evaluate the subtree from start to end; the value of node i stands in row places[i] of the buffer.

    The first rows of the buffer are the inputs. Returns the row of the result.
    """
    buffer, places, stack, work = room
    count, inputs = buffer.shape[1], len(buffer) - len(places)
    top = 0
    for place in range(end - 1, start - 1, -1):
        code = codes[place]
        if code >= COLUMN:
            places[place] = code - COLUMN
            stack[top] = place
            top += 1
            continue
        row = inputs + place
        out = buffer[row]
        places[place] = row
        if code >= CONSTANT:
            number = values[place] if code == CONSTANT else literals[code - LITERAL]
            for j in range(count):
                out[j] = number
            stack[top] = place
            top += 1
        elif is_binary(code):
            top -= 1
            binary(code, buffer[places[stack[top]]], buffer[places[stack[top - 1]]], out, count)
            stack[top - 1] = place
        elif code == LOG_SIZE:
            inner = buffer[places[stack[top - 1]]]
            for j in range(count):
                work[2, j] = abs(inner[j])
            unary(LOG, work[2], out, work, count)
            stack[top - 1] = place
        else:
            unary(code, buffer[places[stack[top - 1]]], out, work, count)
            stack[top - 1] = place
    return places[start]


def room_for(columns: Floats, size: int) -> tuple[Floats, Ints, Ints, Floats]:
    """Buffer with the inputs in its first rows, places, stack and work of `forward`, for expressions of `size`."""
    inputs, count = columns.shape
    buffer = np.empty((inputs + size, count))
    buffer[:inputs] = columns
    return buffer, np.zeros(size, np.int64), np.zeros(size + 1, np.int64), np.empty((3, count))


# --------------------------------------------------------------------------------------------- signatures


@compiled(**OPTIONS)
def hashed(row: Floats, scaled: bool) -> np.uint64:
    """uint64 of numbers[PROBES], of their ratios if scaled; 0 if one is not finite or all are equal."""
    largest, lowest, highest = 0.0, row[0], row[0]
    for j in range(len(row)):
        if not abs(row[j]) < 1e150:
            return np.uint64(0)
        if abs(row[j]) > abs(largest):
            largest = row[j]
        lowest, highest = min(lowest, row[j]), max(highest, row[j])
    if not abs(largest) > 1e-150 or highest - lowest <= 1e-11 * abs(largest):
        return np.uint64(0)
    # Without `scaled` the sign and the size count as well.
    code = np.uint64(17)
    if not scaled:
        exponent = np.floor(np.log10(abs(largest)))
        head = np.int64(np.round(largest / 10.0**exponent * _DIGITS))
        code = mixed(np.uint64(head) + GOLDEN * np.uint64(np.int64(exponent) + 1000))
    for j in range(len(row)):
        share = np.int64(np.round(row[j] / largest * _DIGITS))
        code = mixed(code + GOLDEN + np.uint64(share))
    return code


@compiled(apart=True, **OPTIONS)
def signature(
    codes: Ints,
    literals: Floats,
    starts: Ints,
    count: int,
    generic: Floats,
    room: tuple[Floats, Ints, Ints, Floats],
) -> np.uint64:
    """uint64 that is equal for expressions that are the same function, whatever their coefficients; 0 for none.

    Values on the probes decide; the constants within each term are given generic values for it.
    """
    total = np.uint64(1)
    numbers = np.empty(len(codes))
    for t in range(count):
        end = end_of(codes, starts[t])
        constants = 0
        for place in range(starts[t], end):
            if codes[place] == CONSTANT:
                numbers[place] = generic[constants % len(generic)]
                constants += 1
        row = forward(codes, numbers, literals, starts[t], end, room)
        code = hashed(room[0][row], True)
        if code == np.uint64(0):
            if constants == 0:
                return code
            # Generic constants may leave the domain where fitted ones do not: told apart by its tokens.
            code = np.uint64(99)
            for place in range(starts[t], end):
                code = mixed(code + GOLDEN + np.uint64(codes[place]))
        total += mixed(code)
    return total


# ------------------------------------------------------------------------------------------------- a set


@compiled(**OPTIONS)
def add_to(table: Words, code: np.uint64) -> bool:
    """Put a word into a set uint64[2^k] that is not full; False if it was there."""
    mask = np.uint64(len(table) - 1)
    place = mixed(code) & mask
    while table[place] != np.uint64(0):
        if table[place] == code:
            return False
        place = (place + np.uint64(1)) & mask
    table[place] = code
    return True


@compiled(**OPTIONS)
def add_all(table: Words, codes: Words) -> None:
    """Put words other than 0 into a set."""
    for code in codes:
        if code != np.uint64(0):
            add_to(table, code)


def grown(table: Words) -> Words:
    """The same set in a table of twice the size."""
    larger = np.zeros(2 * len(table), np.uint64)
    add_all(larger, table)
    return larger
