"""The archive by price, the rating of expressions, and the loop of variation and rating."""

from __future__ import annotations

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints, Words
from discodso.base.compiled import compiled
from discodso.tasks.regression._vector_math import OPTIONS, take
from discodso.tasks.regression.engine import _units
from discodso.tasks.regression.engine import _variation as variation
from discodso.tasks.regression.engine._fitting import Fitting, Target, fit, solve_terms
from discodso.tasks.regression.engine._random import below, chosen, uniform
from discodso.tasks.regression.engine._trees import (
    ADD,
    COLUMN,
    CONSTANT,
    DIV,
    GOLDEN,
    LOG_SIZE,
    MOST_TERMS,
    add_to,
    price_of,
    signature,
    terms_of,
    valid,
)

ALIKE = 3  # expressions of a cell that use the same functions
# A cell for every price, with `slots` expressions each, best first:
# codes and values [P * slots, T], lengths, errors and marks [P * slots], coefficients [P * slots, terms + 1],
# counts [P]
Archive = tuple[Ints, Floats, Ints, Floats, Words, Floats, Ints]
# target, literals, prices, nesting, most constants, limits of constants, generic constants, units
Problem = tuple[Target, Floats, Floats, Bools, int, tuple[float, float], Floats, _units.Units]


@compiled(inner=True, **OPTIONS)
def functions_of(codes: Ints, length: int) -> int:
    """Which functions an expression uses, as bits."""
    bits = 0
    for place in range(length):
        if DIV < codes[place] < CONSTANT:
            bits |= 1 << codes[place]
    return bits


@compiled(inner=True, **OPTIONS)
def place_for(archive: Archive, price: int, codes: Ints, length: int, error: float, mark: np.uint64) -> int:
    """The slot of a cell that an expression would take, -1 for none.

    A cell has one expression of each mark, and only so many that use the same functions: else variants of one
    approximation would fill it.
    """
    own, _, lengths, errors, marks, _, counts = archive
    if not 0 <= price < len(counts):
        return -1
    slots = len(lengths) // len(counts)
    start, count = price * slots, counts[price]
    functions, alike, worst = functions_of(codes, length), 0, -1
    for slot in range(count):
        at = start + slot
        if marks[at] == mark:
            return slot if error < errors[at] else -1
        if functions_of(own[at], lengths[at]) == functions:
            alike += 1
            worst = slot  # they stand in order
    if alike >= ALIKE:
        return worst if error < errors[start + worst] else -1
    if count < slots:
        return count
    return slots - 1 if error < errors[start + slots - 1] else -1


@compiled(inner=True, apart=True, **OPTIONS)
def insert(
    archive: Archive,
    price: int,
    codes: Ints,
    values: Floats,
    length: int,
    error: float,
    mark: np.uint64,
    coefficients: Floats,
) -> bool:
    """Put an expression into the cell of its price if there is a place for it."""
    own, own_values, lengths, errors, marks, own_coefficients, counts = archive
    place = place_for(archive, price, codes, length, error, mark)
    if place < 0:
        return False
    slots = len(lengths) // len(counts)
    start = price * slots
    if place == counts[price]:
        counts[price] += 1
    while place > 0 and error < errors[start + place - 1]:
        a, b = start + place, start + place - 1
        take(own[a], own[b], lengths[b])
        take(own_values[a], own_values[b], lengths[b])
        take(own_coefficients[a], own_coefficients[b], len(coefficients))
        lengths[a], errors[a], marks[a] = lengths[b], errors[b], marks[b]
        place -= 1
    at = start + place
    take(own[at], codes, length)
    take(own_values[at], values, length)
    take(own_coefficients[at], coefficients, len(coefficients))
    lengths[at], errors[at], marks[at] = length, error, mark
    return True


@compiled(inner=True, apart=True, **OPTIONS)
def only_form(archive: Archive, price: int, mark: np.uint64) -> bool:
    """Whether no cheaper form of a function is kept; dearer ones are taken out."""
    own, own_values, lengths, errors, marks, own_coefficients, counts = archive
    slots = len(lengths) // len(counts)
    for cell in range(len(counts)):
        if cell == price:
            continue
        for place in range(cell * slots, cell * slots + counts[cell]):
            if marks[place] != mark:
                continue
            if cell < price:
                return False
            for a in range(place, cell * slots + counts[cell] - 1):
                b = a + 1
                take(own[a], own[b], lengths[b])
                take(own_values[a], own_values[b], lengths[b])
                take(own_coefficients[a], own_coefficients[b], own_coefficients.shape[1])
                lengths[a], errors[a], marks[a] = lengths[b], errors[b], marks[b]
            counts[cell] -= 1
            last = cell * slots + counts[cell]
            errors[last], marks[last] = np.inf, np.uint64(0)
            break
    return True


@compiled(inner=True, **OPTIONS)
def too_many(codes: Ints, length: int, coefficients: int, rows: int) -> bool:
    """Whether there is less than one more row for each coefficient and constant, to tell a law from a curve."""
    free = coefficients
    for place in range(length):
        free += codes[place] == CONSTANT
    return free > max(rows // 2, 2)


@compiled(inner=True, **OPTIONS)
def begin_at_data(draft: variation.Draft, columns: Floats, state: Words) -> None:
    """Let new shifts of inputs, C + x with C = 1 or -1, begin at minus the mean of x in two rows."""
    codes, values, length = draft
    for place in range(length[0] - 2):
        shift = codes[place] == ADD and codes[place + 1] == CONSTANT and codes[place + 2] >= COLUMN
        if shift and abs(values[place + 1]) == 1.0 and uniform(state) < 0.7:
            column = columns[codes[place + 2] - COLUMN]
            one, other = below(state, len(column)), below(state, len(column))
            values[place + 1] = -0.5 * (column[one] + column[other])


@compiled(apart=True, **OPTIONS)
def rate(
    draft: variation.Draft,
    problem: Problem,
    archive: Archive,
    seen: Words,
    again: bool,
    most_calls: int,
    probes: tuple[Floats, Ints, Ints, Floats],
    room: Fitting,
    starts: Ints,
) -> tuple[int, float]:
    """Rate an expression that was not rated before, fit its constants and offer it to the archive.

    Returns the calls that it took, and its error. No call: -1 for one that is not valid, -2 for a repeat.
    """
    data, literals, prices, nesting, most_constants, limits, generic, units = problem
    codes, values, lengths = draft
    length = lengths[0]
    if not valid(codes, length, nesting, most_constants):
        return -1, np.inf
    count = terms_of(codes, length, starts)
    if count < 1 or too_many(codes, length, count + len(data[2]), len(data[0])):
        return -1, np.inf
    price = int(price_of(codes, length, prices))
    with_offset = True
    if units[0]:
        rank, with_offset = _units.agreement(codes, literals, length, starts, count, units)
        if not 0 <= rank <= units[4]:
            return -1, np.inf
        price += units[6] * max(rank - units[5], 0)
    if price >= len(archive[6]):
        return -1, np.inf
    mark = signature(codes, literals, starts, count, generic, probes)
    if mark == np.uint64(0):
        return -1, np.inf
    if not with_offset:
        data = units[9], data[1], units[10], 0.0
        mark = (mark ^ GOLDEN) | np.uint64(1)
    new = add_to(seen, mark)
    if not new and not again:
        return -2, np.inf
    error, calls = fit(codes, values, literals, starts, count, data, limits, most_calls, 1e-3, room)
    if calls == 0:
        return -1, np.inf
    if error < np.inf and place_for(archive, price, codes, length, error, mark) >= 0:
        if calls > 1:
            # The last step of a fit may have been refused; the coefficients are those of the values.
            error = solve_terms(codes, values, literals, starts, count, data, room)
        for t in range(count):
            if room[3][t + 1] == 0.0:  # a term that adds nothing: a longer form of another expression
                return calls, error
        if new or only_form(archive, price, mark):
            insert(archive, price, codes, values, length, error, mark, room[3])
    return calls, error


@compiled(inner=True, **OPTIONS)
def a_parent(archive: Archive, state: Words, greed: float) -> int:
    """A place in the archive: a cell by chance, and its better members with preference."""
    counts, errors = archive[6], archive[3]
    slots = len(archive[2]) // len(counts)
    filled = 0
    for price in range(len(counts)):
        filled += counts[price] > 0
    if filled == 0:
        return -1
    for _ in range(20):
        pick = below(state, filled)
        cell = 0
        for price in range(len(counts)):
            if counts[price] > 0:
                if pick == 0:
                    cell = price
                    break
                pick -= 1
        # With some greed only cells that are better than all cheaper ones.
        if uniform(state) < greed:
            best = np.inf
            for price in range(cell):
                if counts[price] > 0:
                    best = min(best, errors[price * slots])
            if not errors[cell * slots] < best:
                continue
        first, second = below(state, counts[cell]), below(state, counts[cell])
        return cell * slots + min(first, second)
    return cell * slots


@compiled(**OPTIONS)
def evolve(
    archive: Archive,
    pool: tuple[Ints, Ints, int],
    problem: Problem,
    seen: Words,
    state: Words,
    moves: Floats,
    unary: Ints,
    binary: Ints,
    inputs: int,
    most_calls: int,
    calls_allowed: int,
    probes: tuple[Floats, Ints, Ints, Floats],
    room: Fitting,
    counts: Ints,
) -> None:
    """Vary and rate until the calls are spent; counts become calls, repeats, invalid drafts, and proposals."""
    size = archive[0].shape[1]
    draft = np.zeros(size, np.int64), np.zeros(size), np.zeros(1, np.int64)
    starts = np.zeros(MOST_TERMS, np.int64)
    constants, units = problem[4] > 0, problem[7]
    about = problem[1], units
    own, own_values, lengths, _, _, coefficients, _ = archive
    codes_a, values_a, weights_a = np.empty(size, np.int64), np.empty(size), np.empty(coefficients.shape[1])
    codes_b, values_b = np.empty(size, np.int64), np.empty(size)
    fruitless, most_fruitless = 0, 5_000 if units[0] else 100_000
    while counts[0] < calls_allowed and fruitless < most_fruitless:
        first, second = a_parent(archive, state, 0.5), a_parent(archive, state, 0.2)
        if first < 0:
            return
        take(codes_a, own[first], size)
        take(values_a, own_values[first], size)
        take(weights_a, coefficients[first], len(weights_a))
        take(codes_b, own[second], size)
        take(values_b, own_values[second], size)
        move = chosen(state, moves)
        mother = codes_a, values_a, lengths[first], weights_a
        father = codes_b, values_b, lengths[second]
        fruitless += 1
        if units[0]:
            if not _units.vary(
                draft, move, mother, father, pool, unary, binary, inputs, constants, state, starts, about
            ):
                continue
        elif not variation.vary(
            draft, move, mother, father, pool, unary, binary, inputs, constants, state, starts
        ):
            continue
        if uniform(state) < 0.2:  # two changes at once
            other = chosen(state, moves)
            if other < variation.MOVE and draft[2][0] > 0:
                take(codes_a, draft[0], size)
                take(values_a, draft[1], size)
                mother = codes_a, values_a, draft[2][0], weights_a
                again = other not in (variation.WRAP, variation.FACTOR)
                if again and not variation.vary(
                    draft, other, mother, father, pool, unary, binary, inputs, constants, state, starts
                ):
                    continue
                if again and units[0] and not _units.agree(draft, pool, constants, state, about):
                    continue
        if move == variation.NUMBER:
            begin_at_data(draft, room[0][0], state)
        counts[3] += 1
        allowed = min(most_calls, calls_allowed - counts[0])
        used, _ = rate(draft, problem, archive, seen, move == variation.MOVE, allowed, probes, room, starts)
        if used > 0:
            counts[0] += used
            fruitless = 0
        elif used == -2:
            counts[1] += 1
        else:
            counts[2] += 1


@compiled(**OPTIONS)
def rate_pool(
    pool: tuple[Ints, Ints, int],
    first: int,
    problem: Problem,
    archive: Archive,
    seen: Words,
    calls_allowed: int,
    logarithms: bool,
    probes: tuple[Floats, Ints, Ints, Floats],
    room: Fitting,
    counts: Ints,
) -> int:
    """Rate the expressions of the pool from `first` on until the calls are spent; returns the next one.

    With `logarithms` each is rated as it is and as log|g|.
    """
    codes, lengths, count = pool
    size = archive[0].shape[1]
    draft = np.zeros(size, np.int64), np.zeros(size), np.zeros(1, np.int64)
    starts = np.zeros(MOST_TERMS, np.int64)
    for item in range(first, count):
        if counts[0] + 1 + logarithms > calls_allowed:
            return item
        length = lengths[item]
        if length + 1 > size:
            continue
        for lead in range(1 + logarithms):
            if lead == 1:
                draft[0][0] = LOG_SIZE
            take(draft[0][lead:], codes[item], length)
            draft[2][0] = lead + length
            allowed = 1
            for place in range(lead, lead + length):
                if draft[0][place] == CONSTANT:
                    draft[1][place], allowed = 1.0, min(8, calls_allowed - counts[0])
            used, _ = rate(draft, problem, archive, seen, False, allowed, probes, room, starts)
            counts[3] += 1
            if used > 0:
                counts[0] += used
            elif used == -2:
                counts[1] += 1
            else:
                counts[2] += 1
    return count


@compiled(**OPTIONS)
def merge(archive: Archive, other: Archive) -> None:
    """Offer all that another archive has kept to an archive of the same view."""
    codes, values, lengths, errors, marks, coefficients, counts = other
    slots = len(lengths) // len(counts)
    for price in range(len(counts)):
        for slot in range(counts[price]):
            at = price * slots + slot
            insert(
                archive, price, codes[at], values[at], lengths[at], errors[at], marks[at], coefficients[at]
            )
