"""Units in the search: which unit each part of an expression has, and parts that fit where they are put.

A unit is a row of exponents, float[m], of the base units that occur. A constant within a term may have a unit,
which follows from where it stands; so may the coefficient of a term, whose unit is that of the target over that of
the term. What counts is how many of these units are independent of each other: the powers of one speed are one,
as in sqrt(1 - v^2 / c^2), and a law without any has pure numbers only. The offset has the unit of the target.
"""

from __future__ import annotations

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints, Words
from discodso.base.compiled import compiled
from discodso.tasks.regression._vector_math import OPTIONS, fill, take
from discodso.tasks.regression.engine import _variation as variation
from discodso.tasks.regression.engine._random import below, uniform
from discodso.tasks.regression.engine._trees import (
    ABS,
    ADD,
    COLUMN,
    CONSTANT,
    DIV,
    INV,
    LITERAL,
    LOG_SIZE,
    MUL,
    N2,
    N3,
    N4,
    NEG,
    POW,
    SQRT,
    SUB,
    end_of,
    is_binary,
    terms_of,
)

_SAME = 1e-9
_WEIGHTS = np.log(np.array([2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0]))  # no fractions of them add up to 0
_APART = 1e4  # keys of what has a constant and of what has none
_PURE, _OPEN = -1, -2  # of an unknown: it is known, or nothing is known of it
# Whether there are units; those of the inputs [d, m], of the target and of a constant that is there in any case
# [m]; how many independent ones constants may have, and how many they must have; what each more adds to the
# price; whether there is always an offset, and whether there is one where it needs a further unit; the target and
# the fixed columns without offset; and the pool by units: keys, where the items of each begin, items.
Units = tuple[bool, Floats, Floats, Floats, int, int, int, bool, bool, Floats, Floats, Floats, Ints, Ints]
# Of every node: unit [T, m], the unknown it is open by or -1, and its power [T]; of every unknown, which is the
# place of a constant: unit [T, m], factor and the other unknown [T] that it is said by; a stack [T].
Measured = tuple[Floats, Ints, Floats, Floats, Floats, Ints, Ints]


@compiled(inner=True, **OPTIONS)
def room_to_measure(size: int, bases: int) -> Measured:
    """Work space of `measure`."""
    return (
        np.zeros((size, bases)),
        np.zeros(size, np.int64),
        np.zeros(size),
        np.zeros((size, bases)),
        np.zeros(size),
        np.zeros(size, np.int64),
        np.zeros(size + 1, np.int64),
    )


@compiled(inner=True, **OPTIONS)
def same(one: Floats, other: Floats) -> bool:
    agrees = True
    for k in range(len(one)):
        agrees = agrees and abs(one[k] - other[k]) <= _SAME
    return agrees


@compiled(inner=True, **OPTIONS)
def is_pure(unit: Floats) -> bool:
    pure = True
    for k in range(len(unit)):
        pure = pure and abs(unit[k]) <= _SAME
    return pure


@compiled(inner=True, **OPTIONS)
def key_of(unit: Floats) -> float:
    """A number that tells units apart."""
    key = 0.0
    for k in range(len(unit)):
        key += unit[k] * _WEIGHTS[k]
    return key


@compiled(inner=True, **OPTIONS)
def power_of(code: int) -> float:
    """By which the exponents of an operand are multiplied; 0 for functions of numbers only."""
    if code == N2:
        return 2.0
    if code == N3:
        return 3.0
    if code == N4:
        return 4.0
    if code == SQRT:
        return 0.5
    if code == INV:
        return -1.0
    return 1.0 if code in (NEG, ABS) else 0.0


@compiled(inner=True, **OPTIONS)
def _settle(measured: Measured, place: int, unit: Floats, sign: float) -> bool:
    """Give a node the unit sign * unit[m], if it is open or has it."""
    own, unknowns, powers, known, _, others, _ = measured
    if unknowns[place] == _PURE:
        agrees = True
        for k in range(len(unit)):
            agrees = agrees and abs(own[place, k] - sign * unit[k]) <= _SAME
        return agrees
    r = unknowns[place]
    for k in range(len(unit)):
        known[r, k] = (sign * unit[k] - own[place, k]) / powers[place]
        own[place, k] = sign * unit[k]
    others[r] = _PURE
    unknowns[place] = _PURE
    return True


@compiled(inner=True, apart=True, **OPTIONS)
def measure(
    codes: Ints, literals: Floats, start: int, end: int, columns: Floats, measured: Measured, strict: bool
) -> bool:
    """Find the units of the nodes of a subtree; False where they do not agree, and `strict`.

    Else a sum has the unit of its first operand, and what stands in a function does not matter.
    """
    own, unknowns, powers, known, factors, others, stack = measured
    bases, top = columns.shape[1], 0
    for place in range(end - 1, start - 1, -1):
        code = codes[place]
        unknowns[place], powers[place] = _PURE, 0.0
        if code >= CONSTANT:
            for k in range(bases):
                own[place, k] = columns[code - COLUMN, k] if code >= COLUMN else 0.0
            if code == CONSTANT:
                unknowns[place], powers[place], others[place] = place, 1.0, _OPEN
            stack[top] = place
            top += 1
            continue
        agrees = True
        if not is_binary(code):
            a = stack[top - 1]
            power = power_of(code)
            if power == 0.0:
                if code != LOG_SIZE or unknowns[a] != _PURE:
                    agrees = _settle(measured, a, own[a], 0.0)
                for k in range(bases):
                    own[place, k] = 0.0
            else:
                for k in range(bases):
                    own[place, k] = power * own[a, k]
                unknowns[place], powers[place] = unknowns[a], power * powers[a]
        else:
            top -= 1
            a, b = stack[top], stack[top - 1]
            if code in (MUL, DIV):
                sign = 1.0 if code == MUL else -1.0
                if unknowns[a] != _PURE and unknowns[b] != _PURE:
                    others[unknowns[b]] = _PURE  # of two factors one is a pure number
                    for k in range(bases):
                        known[unknowns[b], k] = 0.0
                    unknowns[b] = _PURE
                for k in range(bases):
                    own[place, k] = own[a, k] + sign * own[b, k]
                if unknowns[a] != _PURE:
                    unknowns[place], powers[place] = unknowns[a], powers[a]
                elif unknowns[b] != _PURE:
                    unknowns[place], powers[place] = unknowns[b], sign * powers[b]
            elif code <= SUB:
                if unknowns[a] != _PURE and unknowns[b] != _PURE:
                    r = unknowns[a]
                    for k in range(bases):
                        known[r, k] = (own[b, k] - own[a, k]) / powers[a]
                    factors[r], others[r] = powers[b] / powers[a], unknowns[b]
                    unknowns[place], powers[place] = unknowns[b], powers[b]
                    take(own[place], own[b], bases)
                else:
                    closed, other = (a, b) if unknowns[a] == _PURE else (b, a)
                    agrees = _settle(measured, other, own[closed], 1.0)
                    take(own[place], own[closed], bases)
            else:  # a power: its exponent is a pure number, and what it is of, unless the exponent is fixed
                agrees = _settle(measured, b, own[b], 0.0)
                if LITERAL <= codes[b] < COLUMN:
                    exponent = literals[codes[b] - LITERAL]
                    for k in range(bases):
                        own[place, k] = exponent * own[a, k]
                    if exponent != 0.0:
                        unknowns[place], powers[place] = unknowns[a], exponent * powers[a]
                else:
                    agrees = _settle(measured, a, own[a], 0.0) and agrees
                    for k in range(bases):
                        own[place, k] = 0.0
        stack[top - 1] = place
        if strict and not agrees:
            return False
    return True


@compiled(inner=True, **OPTIONS)
def widened(basis: Floats, pivots: Ints, rank: int, unit: Floats) -> int:
    """Put a unit into a basis[m + 1, m] if it is independent of what is there; returns how many there are then."""
    bases = len(unit)
    if rank == bases:
        return rank
    row = basis[rank]
    for k in range(bases):
        row[k] = unit[k]
    for r in range(rank):
        part = row[pivots[r]]
        if part != 0.0:
            for k in range(bases):
                row[k] -= part * basis[r, k]
    largest = 0
    for k in range(bases):
        if abs(row[k]) > abs(row[largest]):
            largest = k
    size = row[largest]
    if not abs(size) > 1e-7:
        return rank
    for k in range(bases):
        row[k] /= size
    pivots[rank] = largest
    return rank + 1


@compiled(inner=True, **OPTIONS)
def _with_constants(
    codes: Ints, start: int, end: int, measured: Measured, basis: Floats, pivots: Ints, rank: int
) -> int:
    """Put the units of constants into a basis."""
    known, factors, others = measured[3], measured[4], measured[5]
    unit = np.zeros(basis.shape[1])
    for place in range(start, end):
        if codes[place] != CONSTANT:
            continue
        fill(unit, 0.0, len(unit))
        factor, r = 1.0, place
        while others[r] != _OPEN:
            for k in range(len(unit)):
                unit[k] += factor * known[r, k]
            if others[r] == _PURE:
                break
            factor *= factors[r]
            r = others[r]
        rank = widened(basis, pivots, rank, unit)
    return rank


@compiled(**OPTIONS)
def rank_of(codes: Ints, literals: Floats, columns: Floats, target: Floats) -> int:
    """How many independent units the constants of an expression have that is written in full, or -1."""
    bases = columns.shape[1]
    measured = room_to_measure(len(codes), bases)
    if not measure(codes, literals, 0, len(codes), columns, measured, True):
        return -1
    if not _settle(measured, 0, target, 1.0):
        return -1
    basis, pivots = np.zeros((bases + 1, bases)), np.zeros(bases + 1, np.int64)
    return _with_constants(codes, 0, len(codes), measured, basis, pivots, 0)


@compiled(apart=True, **OPTIONS)
def agreement(
    codes: Ints, literals: Floats, length: int, starts: Ints, count: int, units: Units
) -> tuple[int, bool]:
    """How many independent units the constants of an expression have, and whether it has an offset.

    -1 where units do not agree.
    """
    _, columns, target, given, most, _, _, always, wanted, _, _, _, _, _ = units
    bases = columns.shape[1]
    measured = room_to_measure(length, bases)
    own, unknowns = measured[0], measured[1]
    basis, pivots = np.zeros((bases + 1, bases)), np.zeros(bases + 1, np.int64)
    rank = widened(basis, pivots, 0, given)
    gap = np.zeros(bases)
    for t in range(count):
        start = starts[t]
        end = end_of(codes, start)
        if not measure(codes, literals, start, end, columns, measured, True):
            return -1, False
        if unknowns[start] != _PURE:
            _settle(measured, start, target, 1.0)
        else:
            for k in range(bases):
                gap[k] = target[k] - own[start, k]
            rank = widened(basis, pivots, rank, gap)
        rank = _with_constants(codes, start, end, measured, basis, pivots, rank)
    if always:
        return rank, True
    more = widened(basis, pivots, rank, target)
    if more == rank or (wanted and more <= most):
        return more, True
    return rank, False


# ---------------------------------------------------------------------------------------------- the pool


@compiled(inner=True, **OPTIONS)
def unary_unit(operator: int, inner: Floats, out: Floats) -> bool:
    """The unit of a function of something; False if it cannot be taken."""
    power = power_of(operator)
    if np.isnan(inner[0]) or (power == 0.0 and not is_pure(inner)):
        return False
    for k in range(len(inner)):
        out[k] = power * inner[k]
    return True


@compiled(inner=True, **OPTIONS)
def binary_unit(operator: int, left: Floats, right: Floats, out: Floats) -> bool:
    """The unit of an operation; False if units do not agree."""
    if np.isnan(left[0]) or np.isnan(right[0]):
        return False
    sign = 0.0
    if operator == MUL:
        sign = 1.0
    elif operator == DIV:
        sign = -1.0
    elif operator <= SUB:
        if not same(left, right):
            return False
    elif not (is_pure(left) and is_pure(right)):
        return False
    for k in range(len(left)):
        out[k] = left[k] + sign * right[k]
    return True


@compiled(inner=True, **OPTIONS)
def _group(units: Units, unit: Floats, constant: bool) -> tuple[int, int]:
    """Where the items of the pool with a unit begin and end, those with a constant or those without."""
    keys, starts = units[11], units[12]
    key = key_of(unit) + (_APART if constant else 0.0)
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < key - _SAME:
            low = middle + 1
        else:
            high = middle
    if low < len(keys) and abs(keys[low] - key) <= _SAME:
        return starts[low], starts[low + 1]
    return 0, 0


@compiled(inner=True, apart=True, **OPTIONS)
def from_pool(
    draft: variation.Draft, state: Words, unit: Floats, pool: tuple[Ints, Ints, int], units: Units
) -> bool:
    """Write a short expression that has a unit; the shortest are the likeliest."""
    start, end = 0, 0
    if units[4] > units[5] and uniform(state) < 0.3:
        start, end = _group(units, unit, True)
    if start == end:
        start, end = _group(units, unit, False)
    if start == end:
        return False
    pick = min(int(np.exp(uniform(state) * np.log(end - start + 1.0))) - 1, end - start - 1)
    item = units[13][start + max(pick, 0)]
    done = True
    for place in range(pool[1][item]):
        code = pool[0][item, place]
        done = done and variation.put(draft, code, variation.a_number(state) if code == CONSTANT else np.nan)
    return done


@compiled(inner=True, apart=True, **OPTIONS)
def twin(
    draft: variation.Draft,
    codes: Ints,
    values: Floats,
    length: int,
    binary: Ints,
    inputs: int,
    squared: bool,
    state: Words,
    columns: Floats,
) -> bool:
    """Join a part with itself for other inputs of the same units, as x^2 with y^2: components of a vector."""
    place = below(state, length)
    end = end_of(codes, place)
    others = np.full(inputs, -1, np.int64)
    taken = np.zeros(inputs, np.bool_)
    for at in range(length):
        if codes[at] >= COLUMN:
            taken[codes[at] - COLUMN] = True
    changed = False
    for at in range(place, end):
        own = codes[at] - COLUMN
        if own < 0 or others[own] >= 0:
            continue
        count, fresh = 0, 0
        for i in range(inputs):
            count += same(columns[i], columns[own])
            fresh += same(columns[i], columns[own]) and not taken[i]
        rather = fresh > 0 and uniform(state) < 0.8
        pick = below(state, fresh if rather else count)
        for i in range(inputs):
            if same(columns[i], columns[own]) and not (rather and taken[i]):
                if pick == 0:
                    others[own] = i
                    break
                pick -= 1
        taken[others[own]] = True
        changed = changed or others[own] != own
    if not changed:
        return False
    draft[2][0] = 0
    operator = ADD if uniform(state) < 0.6 else binary[below(state, len(binary))]
    squares = squared and operator == ADD and uniform(state) < 0.5  # as components of a vector are added
    done = variation.copy(draft, codes, values, 0, place) and variation.put(draft, operator, np.nan)
    if squares:
        done = done and variation.put(draft, N2, np.nan)
    done = done and variation.copy(draft, codes, values, place, end)
    if squares:
        done = done and variation.put(draft, N2, np.nan)
    for at in range(place, end):
        code = codes[at] if codes[at] < COLUMN else COLUMN + others[codes[at] - COLUMN]
        done = done and variation.put(draft, code, values[at])
    return done and variation.copy(draft, codes, values, end, length)


# ----------------------------------------------------------------------------------------------- variation


@compiled(inner=True, apart=True, **OPTIONS)
def opened(
    draft: variation.Draft,
    codes: Ints,
    values: Floats,
    length: int,
    coefficients: Floats,
    one: int,
    state: Words,
    starts: Ints,
) -> bool:
    """Write log|1 + c g| for a term c g, for views of products: (1 + c g)^p is much like exp(p c g)."""
    count = terms_of(codes, length, starts)
    if count < 1:
        return False
    pick = below(state, count)
    factor = coefficients[pick + 1]
    if codes[starts[pick]] == LOG_SIZE or not 1e-9 < abs(factor) < 1e9:
        return False
    draft[2][0] = 0
    done = True
    for t in range(count):
        if t < count - 1:
            done = done and variation.put(draft, ADD, np.nan)
        if t == pick:
            done = done and variation.put(draft, LOG_SIZE, np.nan) and variation.put(draft, ADD, np.nan)
            done = done and variation.put(draft, one, np.nan) and variation.put(draft, MUL, np.nan)
            sign = 1.0 if uniform(state) < 0.5 else -1.0
            done = done and variation.put(draft, CONSTANT, sign * factor)
        done = done and variation.copy(draft, codes, values, starts[t], end_of(codes, starts[t]))
    return done


@compiled(inner=True, **OPTIONS)
def renamed(
    draft: variation.Draft,
    codes: Ints,
    values: Floats,
    length: int,
    inputs: int,
    state: Words,
    columns: Floats,
) -> bool:
    """Write the expression with another input of the same unit in one place."""
    place, other = below(state, length), below(state, inputs)
    own = codes[place] - COLUMN
    if own < 0 or own == other or not same(columns[own], columns[other]):
        return False
    draft[2][0] = 0
    done = variation.copy(draft, codes, values, 0, length)
    draft[0][place] = COLUMN + other
    return done


@compiled(inner=True, apart=True, **OPTIONS)
def vary(
    draft: variation.Draft,
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
    about: tuple[Floats, Units],
) -> bool:
    """Write a variation with parts that have the unit of what they replace or join, or any, made to agree."""
    codes, values, length, coefficients = mother
    other, other_values, other_length = father
    literals, units = about
    columns = units[1]
    products = len(unary) > 0 and unary[-1] == LOG_SIZE
    kind = uniform(state)
    if kind < 0.15:
        squared = N2 in unary
        done = twin(draft, codes, values, length, binary, inputs, squared, state, columns)
        return done and agree(draft, pool, constants, state, about)
    if kind < 0.3 and products and constants:
        one = LITERAL + len(literals) - 1
        done = opened(draft, codes, values, length, coefficients, one, state, starts)
        return done and agree(draft, pool, constants, state, about)
    fits = uniform(state) < (0.4 if units[4] > units[5] else 0.75)
    if fits and move in (variation.REPLACE, variation.CROSS, variation.JOIN):
        measured = room_to_measure(length, columns.shape[1])
        measure(codes, literals, 0, length, columns, measured, False)
        draft[2][0] = 0
        place = below(state, length)
        end, unit = end_of(codes, place), measured[0][place]
        if not variation.copy(draft, codes, values, 0, place):
            return False
        if move == variation.JOIN:
            operator = binary[below(state, len(binary))]
            if operator > SUB:
                unit = np.zeros(columns.shape[1])
            done = variation.put(draft, operator, np.nan)
            done = done and variation.copy(draft, codes, values, place, end)
            done = done and from_pool(draft, state, unit, pool, units)
        elif move == variation.REPLACE:
            done = from_pool(draft, state, unit, pool, units)
        else:
            theirs = room_to_measure(other_length, columns.shape[1])
            measure(other, literals, 0, other_length, columns, theirs, False)
            first, found = below(state, other_length), -1
            for step in range(other_length):
                at = (first + step) % other_length
                if theirs[1][at] == _PURE and same(theirs[0][at], unit):
                    found = at
                    break
            if found < 0:
                return False
            done = variation.copy(draft, other, other_values, found, end_of(other, found))
        done = done and variation.copy(draft, codes, values, end, length)
    elif fits and move == variation.FACTOR:
        count = terms_of(codes, length, starts)
        if count < 1:
            return False
        draft[2][0] = 0
        operator, pure = MUL if uniform(state) < 0.5 else DIV, np.zeros(columns.shape[1])
        if count > 1 and constants and uniform(state) < 0.4:
            done = variation.put(draft, operator, np.nan)
            done = done and variation.sum_with_numbers(
                draft, codes, values, length, coefficients, starts, 0.0
            )
            done = done and from_pool(draft, state, pure, pool, units)
        else:
            start = starts[below(state, count)]
            stop = end_of(codes, start)
            done = variation.copy(draft, codes, values, 0, start) and variation.put(draft, operator, np.nan)
            done = done and variation.copy(draft, codes, values, start, stop)
            done = done and from_pool(draft, state, pure, pool, units)
            done = done and variation.copy(draft, codes, values, stop, length)
    elif fits and move == variation.POINT and uniform(state) < 0.5:
        done = renamed(draft, codes, values, length, inputs, state, columns)
    elif fits and move == variation.ADD_TERM and uniform(state) < 0.5:
        draft[2][0] = 0
        done = variation.put(draft, ADD, np.nan) and variation.copy(draft, codes, values, 0, length)
        unit = units[2]
        if products and uniform(state) < 0.5:
            done = done and variation.put(draft, LOG_SIZE, np.nan)
            done = done and variation.from_pool(draft, state, pool[0], pool[1], pool[2])
            return done and agree(draft, pool, constants, state, about)
        if units[5] > 0 and terms_of(codes, length, starts) > 0:  # any unit, if all terms have it
            measured = room_to_measure(length, columns.shape[1])
            measure(codes, literals, 0, length, columns, measured, False)
            unit = measured[0][starts[0]]
        done = done and from_pool(draft, state, unit, pool, units)
    else:
        done = variation.vary(
            draft, move, mother, father, pool, unary, binary, inputs, constants, state, starts
        )
    return done and agree(draft, pool, constants, state, about)


@compiled(apart=True, **OPTIONS)
def agree(
    draft: variation.Draft,
    pool: tuple[Ints, Ints, int],
    constants: bool,
    state: Words,
    about: tuple[Floats, Units],
) -> bool:
    """Multiply what has the wrong unit by what is missing: a short expression, or a constant if that may have one.

    Terms of the sum at the root may be left as they are if constants may have units: they have coefficients. They
    need the unit of the target, or any that is the same for all of them where the target's cannot be had.
    """
    literals, units = about
    codes, values, lengths = draft
    length = lengths[0]
    columns, target, given, most, least = units[1], units[2], units[3], units[4], units[5]
    bases = columns.shape[1]
    measured = room_to_measure(length, bases)
    own, unknowns, _, _, _, _, _ = measured
    anyway = least > 0 and is_pure(given)
    if measure(codes, literals, 0, length, columns, measured, True):
        if anyway or unknowns[0] != _PURE or same(own[0], target):
            return True
    else:
        measure(codes, literals, 0, length, columns, measured, False)
    free = most > least
    required, wanted = np.zeros((length, bases)), np.zeros(length, np.bool_)
    top = np.zeros(length, np.bool_)
    old, old_values = codes[:length].copy(), values[:length].copy()
    lengths[0] = 0
    for k in range(bases):
        required[0, k] = own[0, k] if anyway else target[k]
    wanted[0], top[0] = True, True
    gap = np.zeros(bases)
    for place in range(length):
        code = old[place]
        is_sum = code <= SUB
        left_to_terms = top[place] and (is_sum or code == NEG)
        looked_at = wanted[place] and not left_to_terms and unknowns[place] == _PURE
        if looked_at and not same(own[place], required[place]):
            kept = free and uniform(state) < (0.75 if top[place] else 0.5)
            if not (kept and top[place]):
                for k in range(bases):
                    gap[k] = required[place, k] - own[place, k]
                before = lengths[0]
                done = variation.put(draft, MUL, np.nan)
                done = done and not kept and from_pool(draft, state, gap, pool, units)
                if not done:
                    lengths[0] = before
                    if not free or (not top[place] and not constants):
                        return False
                    if not top[place]:
                        number = variation.a_number(state)
                        if not (variation.put(draft, MUL, np.nan) and variation.put(draft, CONSTANT, number)):
                            return False
        if not variation.put(draft, code, old_values[place]):
            return False
        if code >= CONSTANT:
            continue
        first = place + 1
        if is_sum:
            second = end_of(old, first)
            for child in (first, second):
                for k in range(bases):
                    required[child, k] = required[place, k] if top[place] else own[place, k]
                wanted[child], top[child] = top[place] or unknowns[place] == _PURE, top[place]
        elif code == POW:
            second = end_of(old, first)
            wanted[second] = True
            wanted[first] = not LITERAL <= old[second] < COLUMN
        elif not is_binary(code) and power_of(code) == 0.0:
            wanted[first] = code != LOG_SIZE
        elif code == NEG and top[place]:
            take(required[first], required[place], bases)
            wanted[first], top[first] = True, True
    return True


@compiled(**OPTIONS)
def ranks_of(columns: Floats, target: Floats) -> tuple[int, int]:
    """How many units of columns[d, m] are independent, and how many together with that of the target[m]."""
    bases = len(target)
    basis, pivots = np.zeros((bases + 1, bases)), np.zeros(bases + 1, np.int64)
    rank = 0
    for i in range(len(columns)):
        rank = widened(basis, pivots, rank, columns[i])
    return rank, widened(basis, pivots, rank, target)


def by_unit(units: Floats, constant: Bools, left_out: int) -> tuple[Floats, Ints, Ints]:
    """Items of units[N, m] by their units: sorted keys, where the items of each begin, and the items in order.

    Those with a constant[N] are apart.
    """
    keys = units @ _WEIGHTS[: units.shape[1]] + _APART * constant
    items = np.argsort(keys, kind="stable")
    items = items[(items != left_out) & ~np.isnan(keys[items])]
    ordered = keys[items]
    first = np.ones(len(ordered), np.bool_)
    first[1:] = np.diff(ordered) > _SAME
    starts = np.append(np.flatnonzero(first), len(items)).astype(np.int64)
    return ordered[first], starts, items.astype(np.int64)


NO_UNITS: Units = (
    False,
    np.zeros((1, 1)),
    np.zeros(1),
    np.zeros(1),
    0,
    0,
    0,
    True,
    False,
    np.zeros(1),
    np.zeros((0, 1)),
    np.zeros(0),
    np.zeros(1, np.int64),
    np.zeros(0, np.int64),
)
