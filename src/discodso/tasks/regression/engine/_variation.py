"""New expressions from good ones: parts replaced, inserted, taken out or exchanged; terms added and dropped."""

from __future__ import annotations

import numpy as np

from discodso.base.arrays import Floats, Ints, Words
from discodso.base.compiled import compiled
from discodso.tasks.regression._vector_math import OPTIONS
from discodso.tasks.regression.engine._random import below, normal, uniform
from discodso.tasks.regression.engine._trees import (
    ADD,
    COLUMN,
    CONSTANT,
    DIV,
    MUL,
    SUB,
    end_of,
    is_binary,
    terms_of,
)

REPLACE, POINT, JOIN, WRAP, REMOVE, CROSS, ADD_TERM, DROP_TERM, SWAP_TERM, FACTOR, NUMBER, UNNUMBER, MOVE = (
    range(13)
)
MOVES = 13
# Codes, values and length of an expression that is being written; the length is an array of one.
Draft = tuple[Ints, Floats, Ints]


@compiled(**OPTIONS)
def put(draft: Draft, code: int, value: float) -> bool:
    codes, values, length = draft
    if length[0] == len(codes):
        return False
    codes[length[0]], values[length[0]] = code, value
    length[0] += 1
    return True


@compiled(**OPTIONS)
def copy(draft: Draft, codes: Ints, values: Floats, start: int, end: int) -> bool:
    own, own_values, length = draft
    if length[0] + end - start > len(own):
        return False
    for place in range(start, end):
        own[length[0]], own_values[length[0]] = codes[place], values[place]
        length[0] += 1
    return True


@compiled(inner=True, **OPTIONS)
def from_pool(draft: Draft, state: Words, pool_codes: Ints, pool_lengths: Ints, pool_count: int) -> bool:
    """Write a short expression; the shortest are the likeliest."""
    item = min(int(np.exp(uniform(state) * np.log(pool_count + 1.0))) - 1, pool_count - 1)
    item = max(item, 0)
    done = True
    for place in range(pool_lengths[item]):
        code = pool_codes[item, place]
        done = done and put(draft, code, 1.0 if code == CONSTANT else np.nan)
    return done


@compiled(**OPTIONS)
def a_number(state: Words) -> float:
    """A start for a new constant."""
    kind = uniform(state)
    if kind < 0.4:
        return 1.0 if uniform(state) < 0.7 else -1.0
    size = np.exp(1.5 * normal(state))
    return size if uniform(state) < 0.7 else -size


@compiled(apart=True, **OPTIONS)
def sum_with_numbers(
    draft: Draft,
    codes: Ints,
    values: Floats,
    length: int,
    coefficients: Floats,
    starts: Ints,
    unit: float,
) -> bool:
    """Write a sum with its coefficients as constants, where they are not 1: for use inside a function.

    With a unit of 0 these are the ratios to the largest one. Else they are coefficients times it, and the offset
    is left out: an exponential has it as a factor.
    """
    count = terms_of(codes, length, starts)
    if count < 1:
        return False
    written, lead = 0, 0.0
    for t in range(count):
        if abs(coefficients[t + 1]) > abs(lead):
            lead = coefficients[t + 1]
    if lead == 0.0:
        return False
    if unit != 0.0:
        lead = 1.0 / unit
    offset = coefficients[0] / lead
    with_offset = unit == 0.0 and abs(coefficients[0]) > 1e-10 and abs(offset) < 1e9
    active = 0
    for t in range(count):
        active += coefficients[t + 1] != 0.0
    for t in range(count):
        ratio = coefficients[t + 1] / lead
        if ratio == 0.0:
            continue
        written += 1
        ok = True
        if written < active + (1 if with_offset else 0):
            ok = put(draft, ADD, np.nan)
        minus = abs(ratio + 1.0) < 1e-7
        if abs(ratio - 1.0) >= 1e-7:
            ok = ok and put(draft, MUL, np.nan) and put(draft, CONSTANT, -1.0 if minus else ratio)
        if not (ok and copy(draft, codes, values, starts[t], end_of(codes, starts[t]))):
            return False
    return put(draft, CONSTANT, offset) if with_offset else True


@compiled(inner=True, **OPTIONS)
def a_term(
    draft: Draft,
    state: Words,
    father: tuple[Ints, Floats, int],
    pool: tuple[Ints, Ints, int],
    starts: Ints,
) -> bool:
    """Write a term for a sum: a short expression, or a term of another good one."""
    if uniform(state) < 0.5:
        return from_pool(draft, state, pool[0], pool[1], pool[2])
    codes, values, length = father
    count = terms_of(codes, length, starts)
    if count < 1:
        return False
    start = starts[below(state, count)]
    return copy(draft, codes, values, start, end_of(codes, start))


@compiled(inner=True, apart=True, **OPTIONS)
def vary(
    draft: Draft,
    move: int,
    mother: tuple[Ints, Floats, int, Floats],
    father: tuple[Ints, Floats, int],
    pool: tuple[Ints, Ints, int],
    unary: Ints,
    binary: Ints,
    inputs: int,
    constants: bool,
    state: Words,
    starts: Ints,
) -> bool:
    """Write a variation; False if the move cannot be made or the result is too long."""
    codes, values, length, coefficients = mother
    other, other_values, other_length = father
    pool_codes, pool_lengths, pool_count = pool
    draft[2][0] = 0
    place = below(state, length)
    end = end_of(codes, place)
    if move in (REPLACE, CROSS):
        if not copy(draft, codes, values, 0, place):
            return False
        if move == CROSS:
            start = below(state, other_length)
            done = copy(draft, other, other_values, start, end_of(other, start))
        else:
            done = from_pool(draft, state, pool_codes, pool_lengths, pool_count)
        return done and copy(draft, codes, values, end, length)
    if move == POINT:
        if not copy(draft, codes, values, 0, length):
            return False
        code = codes[place]
        if code >= COLUMN or code == CONSTANT:
            draft[0][place] = COLUMN + below(state, inputs)
            draft[1][place] = np.nan
        elif is_binary(code):
            draft[0][place] = binary[below(state, len(binary))]
        elif code < CONSTANT and len(unary):
            draft[0][place] = unary[below(state, len(unary))]
        return draft[0][place] != code
    if move == JOIN:
        operator = binary[below(state, len(binary))]
        if not (copy(draft, codes, values, 0, place) and put(draft, operator, np.nan)):
            return False
        if uniform(state) < 0.5:
            done = from_pool(draft, state, pool_codes, pool_lengths, pool_count)
            return done and copy(draft, codes, values, place, length)
        done = copy(draft, codes, values, place, end)
        done = done and from_pool(draft, state, pool_codes, pool_lengths, pool_count)
        return done and copy(draft, codes, values, end, length)
    if move == WRAP:
        if not len(unary):
            return False
        if uniform(state) < 0.3:
            place, end = 0, length
        operator = unary[below(state, len(unary))]
        if not (copy(draft, codes, values, 0, place) and put(draft, operator, np.nan)):
            return False
        if place == 0 and constants and uniform(state) < 0.7:
            return sum_with_numbers(draft, codes, values, length, coefficients, starts, 0.0)
        return copy(draft, codes, values, place, length)
    if move == REMOVE:
        code = codes[place]
        if code >= CONSTANT:
            return False
        start, stop = place + 1, end_of(codes, place + 1)
        if is_binary(code) and uniform(state) < 0.5:
            start, stop = stop, end
        done = copy(draft, codes, values, 0, place) and copy(draft, codes, values, start, stop)
        return done and copy(draft, codes, values, end, length)
    if move == ADD_TERM:
        if not (put(draft, ADD, np.nan) and copy(draft, codes, values, 0, length)):
            return False
        return a_term(draft, state, father, pool, starts)
    if move in (DROP_TERM, SWAP_TERM):
        count = terms_of(codes, length, starts)
        if count < 2:
            return False
        dropped, written = below(state, count), 0
        kept = count - 1
        for t in range(count):
            if t == dropped:
                continue
            written += 1
            if (written < kept or move == SWAP_TERM) and not put(draft, ADD, np.nan):
                return False
            if not copy(draft, codes, values, starts[t], end_of(codes, starts[t])):
                return False
        if move == SWAP_TERM:
            return a_term(draft, state, father, pool, starts)
        return True
    if move == FACTOR:
        # One term, or the whole sum, times or over a short expression.
        count = terms_of(codes, length, starts)
        if count < 1:
            return False
        operator = MUL if uniform(state) < 0.5 else DIV
        if count > 1 and constants and uniform(state) < 0.4:
            done = put(draft, operator, np.nan)
            done = done and sum_with_numbers(draft, codes, values, length, coefficients, starts, 0.0)
            return done and from_pool(draft, state, pool_codes, pool_lengths, pool_count)
        start = starts[below(state, count)]
        stop = end_of(codes, start)
        done = copy(draft, codes, values, 0, start) and put(draft, operator, np.nan)
        if operator == DIV and uniform(state) < 0.2:
            done = done and from_pool(draft, state, pool_codes, pool_lengths, pool_count)
            done = done and copy(draft, codes, values, start, stop)
        else:
            done = done and copy(draft, codes, values, start, stop)
            done = done and from_pool(draft, state, pool_codes, pool_lengths, pool_count)
        return done and copy(draft, codes, values, stop, length)
    if move == NUMBER:
        if not constants or codes[place] == CONSTANT:
            return False
        done = copy(draft, codes, values, 0, place)
        done = done and put(draft, MUL if uniform(state) < 0.5 else ADD, np.nan)
        return done and put(draft, CONSTANT, a_number(state)) and copy(draft, codes, values, place, length)
    if move == UNNUMBER:
        for _ in range(4):
            place = below(state, length)
            code = codes[place]
            if (code == MUL or code <= SUB) and place + 1 < length and codes[place + 1] == CONSTANT:
                return copy(draft, codes, values, 0, place) and copy(draft, codes, values, place + 2, length)
        return False
    # MOVE: the constants elsewhere.
    if not copy(draft, codes, values, 0, length):
        return False
    moved = False
    for place in range(length):
        if codes[place] == CONSTANT:
            moved = True
            if uniform(state) < 0.5:
                draft[1][place] = a_number(state)
            else:
                draft[1][place] *= np.exp(normal(state))
    return moved
