"""A known form with unknown parts: writing parts into it, fitting all constants at once, varying one part a time.

A row holds the parts one after the other, in prefix order. A part stands for c0 + c1 t1 + ... + cm tm over the
terms of its sum. The parameters of a row are the constants of the form, and then for each part c0 to cm and the
constants within its terms. Where a part or a constant stands several times in the form it is the same one.
"""

from __future__ import annotations

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints, Words
from discodso.base.compiled import compiled
from discodso.tasks.regression._vector_math import OPTIONS, fill, take
from discodso.tasks.regression.engine import _variation as variation
from discodso.tasks.regression.engine._evolution import Archive, a_parent, insert, place_for
from discodso.tasks.regression.engine._fitting import Fitting, _backward, _structure, damped_step, dot
from discodso.tasks.regression.engine._random import below, chosen, mixed, uniform
from discodso.tasks.regression.engine._trees import (
    ADD,
    COLUMN,
    CONSTANT,
    MOST_TERMS,
    MUL,
    add_to,
    end_of,
    forward,
    price_of,
    signature,
    terms_of,
    valid,
)

PART = 4000  # codes from here on are the parts, in a form
MOST_PARAMETERS = 24
_FIRST_CALLS, _NEARLY = 20, 1e-5
_FIRST_DAMPING, _SMALLEST_DAMPING, _LARGEST_DAMPING = 1e-6, 1e-12, 1e7
# Codes of the form with its parts, which constant stands at each place, how many constants there are, and for each
# part which inputs it may have [parts, inputs].
Form = tuple[Ints, Ints, int, Bools]
# target and roots of the weights [n], literals, prices, nesting, most constants of a part, generic constants
Data = tuple[Floats, Floats, Floats, Floats, Bools, int, Floats]
# Room for expressions on the data, tangents [parameters, n], residual [n], and for the probes
Work = tuple[Fitting, Floats, Floats, tuple[Floats, Ints, Ints, Floats]]


@compiled(**OPTIONS)
def layout(codes: Ints, parts: int, begins: Ints, bases: Ints, constants: int, starts: Ints) -> bool:
    """Where each part of a row begins, and where its parameters do; False if a part is no sum of terms."""
    place, base = 0, constants
    for part in range(parts):
        begins[part], bases[part] = place, base
        end = end_of(codes, place)
        count = terms_of(codes[place:end], end - place, starts)
        if count < 1:
            return False
        base += 1 + count
        for t in range(count):
            first = place + starts[t]
            for at in range(first, end_of(codes, first)):
                base += codes[at] == CONSTANT
        place = end
    begins[parts], bases[parts] = place, base
    return base <= MOST_PARAMETERS


@compiled(apart=True, **OPTIONS)
def written(form: Form, codes: Ints, begins: Ints, bases: Ints, out: Ints, owners: Ints, starts: Ints) -> int:
    """Write the parts of a row into the form; owners[length] are the parameters of constants. -1 if too long."""
    skeleton, ties, _, _ = form
    length, most = 0, len(out)
    for place in range(len(skeleton)):
        code = skeleton[place]
        if code < PART:
            if length == most:
                return -1
            out[length], owners[length] = code, ties[place]
            length += 1
            continue
        part = code - PART
        begin, end, base = begins[part], begins[part + 1], bases[part]
        count = terms_of(codes[begin:end], end - begin, starts)
        inner = base + 1 + count
        if length + 2 + 3 * count + end - begin > most:
            return -1
        out[length], out[length + 1], owners[length + 1] = ADD, CONSTANT, base
        length += 2
        for t in range(count):
            if t < count - 1:
                out[length] = ADD
                length += 1
            out[length], out[length + 1], owners[length + 1] = MUL, CONSTANT, base + 1 + t
            length += 2
            first = begin + starts[t]
            for at in range(first, end_of(codes, first)):
                out[length] = codes[at]
                if codes[at] == CONSTANT:
                    owners[length] = inner
                    inner += 1
                length += 1
    return length


@compiled(inner=True, apart=True, **OPTIONS)
def _residual(
    out: Ints, owners: Ints, length: int, values: Floats, parameters: Floats, data: Data, work: Work
) -> float:
    """Sum of squares; the residual stays in the room. Infinite where not finite."""
    target, roots, literals, _, _, _, _ = data
    room, _, residual, _ = work
    for at in range(length):
        if out[at] == CONSTANT:
            values[at] = parameters[owners[at]]
    row = room[0][0][forward(out, values, literals, 0, length, room[0])]
    for j in range(len(target)):
        residual[j] = (target[j] - row[j]) * roots[j]
    total = dot(residual, residual)
    return total if total < 1e300 else np.inf


@compiled(apart=True, **OPTIONS)
def fit_form(
    out: Ints,
    owners: Ints,
    length: int,
    parameters: Floats,
    free: Bools,
    count: int,
    data: Data,
    most_calls: int,
    least_gain: float,
    work: Work,
) -> tuple[float, int]:
    """Levenberg-Marquardt over the free ones of `count` parameters, which move; sum of squares, and calls."""
    roots = data[1]
    room, tangents, residual, _ = work
    n, slopes = len(roots), room[5]
    values = np.empty(length)
    error = _residual(out, owners, length, values, parameters, data, work)
    calls = 1
    matrix, system = np.empty((count, count)), np.empty((count, count))
    pull, step, before = np.empty(count), np.empty(count), np.empty(count)
    damping, going = _FIRST_DAMPING, error < np.inf
    while going and calls + 2 <= most_calls and error > 1e-30:
        calls += 1
        _structure(out, 0, length, room)
        _backward(out, 0, length, room)
        for i in range(count):
            fill(tangents[i], 0.0, n)
        for at in range(length):
            if out[at] == CONSTANT and free[owners[at]]:
                tangent, slope = tangents[owners[at]], slopes[at]
                for j in range(n):
                    tangent[j] += slope[j] * roots[j]
        for i in range(count):
            for k in range(i + 1):
                matrix[i, k] = dot(tangents[i], tangents[k])
            if not matrix[i, i] < 1e300:
                return error, calls
            pull[i] = dot(tangents[i], residual)
            before[i] = parameters[i]
        better = False
        while calls < most_calls and damping < _LARGEST_DAMPING:
            if not damped_step(matrix, pull, damping, step, system):
                damping *= 10.0
                continue
            moved = False
            for i in range(count):
                number = before[i] + step[i]
                if free[i] and abs(number) < 1e60:
                    parameters[i] = number
                    moved = moved or number != before[i]
            if not moved:
                going = False
                break
            calls += 1
            trial = _residual(out, owners, length, values, parameters, data, work)
            if trial < error:
                going = trial < (1.0 - least_gain) * error
                error, better = trial, True
                damping = max(damping * 0.1, _SMALLEST_DAMPING)
                break
            damping *= 8.0
        if not better:
            take(parameters, before, count)
            break
    return error, calls


@compiled(apart=True, **OPTIONS)
def rate_row(
    row: variation.Draft,
    parameters: Floats,
    form: Form,
    data: Data,
    archive: Archive,
    seen: Words,
    again: bool,
    most_calls: int,
    work: Work,
    out: Ints,
    owners: Ints,
    starts: Ints,
) -> tuple[int, float]:
    """Fit a row from its parameters, which move, and offer it to the archive; the calls and the error.

    No call: -1 for one that is not valid, -2 for a repeat.
    """
    codes, values, lengths = row
    _, _, constants, allowed = form
    _, _, literals, prices, nesting, most_constants, generic = data
    parts = len(allowed)
    begins, bases = np.empty(parts + 1, np.int64), np.empty(parts + 1, np.int64)
    if not layout(codes, parts, begins, bases, constants, starts):
        return -1, np.inf
    mark = np.uint64(7)
    for part in range(parts):
        begin, end = begins[part], begins[part + 1]
        own = codes[begin:end]
        if not valid(own, end - begin, nesting, most_constants):
            return -1, np.inf
        for code in own:
            if code >= COLUMN and not allowed[part, code - COLUMN]:
                return -1, np.inf
        count = terms_of(own, end - begin, starts)
        code = signature(own, literals, starts, count, generic, work[3])
        if code == np.uint64(0):
            return -1, np.inf
        mark = mixed(mark + code)
    price = int(price_of(codes, lengths[0], prices))
    if price >= len(archive[6]):
        return -1, np.inf
    if not add_to(seen, mark) and not again:
        return -2, np.inf
    length = written(form, codes, begins, bases, out, owners, starts)
    if length < 0:
        return -1, np.inf
    count = bases[parts]
    free = np.ones(count, np.bool_)
    first = min(most_calls, _FIRST_CALLS)
    error, calls = fit_form(out, owners, length, parameters, free, count, data, first, 1e-3, work)
    if 1e-26 < error < _NEARLY and calls < most_calls:  # all but exact: to the end
        left = most_calls - calls
        error, used = fit_form(out, owners, length, parameters, free, count, data, left, 1e-3, work)
        calls += used
    for part in range(parts):  # constants within terms are also in the row, where variations take them from
        own = codes[begins[part] : begins[part + 1]]
        terms = terms_of(own, len(own), starts)
        inner = bases[part] + 1 + terms
        for t in range(terms):
            first = begins[part] + starts[t]
            for at in range(first, end_of(codes, first)):
                if codes[at] == CONSTANT:
                    values[at] = parameters[inner]
                    inner += 1
    if error < np.inf and place_for(archive, price, codes, lengths[0], error, mark) >= 0:
        insert(archive, price, codes, values, lengths[0], error, mark, parameters)
    return calls, error


@compiled(inner=True, apart=True, **OPTIONS)
def joined(
    row: variation.Draft,
    parameters: Floats,
    mother: tuple[Ints, Floats, Floats],
    begins: Ints,
    bases: Ints,
    changed: int,
    part_codes: Ints,
    part_values: Floats,
    length: int,
    starts: Ints,
    state: Words,
    restless: float,
    scales: Floats,
    constants: int,
    level: float,
    slope: float,
) -> bool:
    """Write a row with another part in place of one, and the parameters to begin with; False if it is too long.

    The new part begins as level + slope (t1 + ... + tm).
    """
    codes, values, known = mother
    row[2][0] = 0
    parts = len(begins) - 1
    base = constants
    for k in range(constants):
        parameters[k] = known[k]
        if uniform(state) < restless:
            parameters[k] = variation.a_number(state) * scales[below(state, len(scales))]
    for part in range(parts):
        if part != changed:
            if not variation.copy(row, codes, values, begins[part], begins[part + 1]):
                return False
            count = bases[part + 1] - bases[part]
            if base + count > MOST_PARAMETERS:
                return False
            take(parameters[base:], known[bases[part] :], count)
            base += count
            continue
        if not variation.copy(row, part_codes, part_values, 0, length):
            return False
        terms = terms_of(part_codes[:length], length, starts)
        if terms < 1 or base + 1 + terms > MOST_PARAMETERS:
            return False
        parameters[base] = level
        for t in range(terms):
            parameters[base + 1 + t] = slope
        base += 1 + terms
        for t in range(terms):
            for at in range(starts[t], end_of(part_codes, starts[t])):
                if part_codes[at] == CONSTANT:
                    if base == MOST_PARAMETERS:
                        return False
                    parameters[base] = part_values[at]
                    base += 1
    return True


@compiled(inner=True, apart=True, **OPTIONS)
def level_of(
    codes: Ints,
    values: Floats,
    begin: int,
    end: int,
    block: Floats,
    literals: Floats,
    work: Work,
    starts: Ints,
) -> float:
    """The mean of a part on the data: where another part may begin without leaving what was found."""
    room = work[0][0]
    own, own_values = codes[begin:end], values[begin:end]
    level = block[0]
    for t in range(terms_of(own, end - begin, starts)):
        row = room[0][forward(own, own_values, literals, starts[t], end_of(own, starts[t]), room)]
        level += block[1 + t] * np.mean(row)
    return level if abs(level) < 1e60 else 0.0


@compiled(**OPTIONS)
def list_parts(
    part: int,
    first: int,
    pool: tuple[Ints, Ints, int],
    tries: int,
    form: Form,
    data: Data,
    archive: Archive,
    seen: Words,
    state: Words,
    calls_allowed: int,
    scales: Floats,
    work: Work,
    out: Ints,
    owners: Ints,
    counts: Ints,
) -> int:
    """Try the expressions of a pool from `first` on for a part of the best row; returns the next one.

    Each is tried from several starts, with other constants where it has some.
    """
    pool_codes, pool_lengths, pool_count = pool
    own, own_values, _, errors, _, own_parameters, _ = archive
    size, parts, constants = own.shape[1], len(form[3]), form[2]
    row = np.zeros(size, np.int64), np.zeros(size), np.zeros(1, np.int64)
    starts = np.zeros(MOST_TERMS, np.int64)
    begins, bases = np.empty(parts + 1, np.int64), np.empty(parts + 1, np.int64)
    parameters, numbers = np.zeros(MOST_PARAMETERS), np.full(pool_codes.shape[1], np.nan)
    best = int(np.argmin(errors))
    codes, values, known = own[best].copy(), own_values[best].copy(), own_parameters[best].copy()
    layout(codes, parts, begins, bases, constants, starts)
    mother = codes, values, known
    begin, end, base = begins[part], begins[part + 1], bases[part]
    level = level_of(codes, values, begin, end, known[base:], data[2], work, starts)
    for item in range(first, pool_count):
        if counts[0] + 3 > calls_allowed:
            return item
        for start in range(tries):
            for at in range(pool_lengths[item]):
                if pool_codes[item, at] == CONSTANT:
                    numbers[at] = variation.a_number(state)
            other = start % 2
            if not joined(
                row, parameters, mother, begins, bases, part, pool_codes[item], numbers, pool_lengths[item],
                starts, state, 0.8 * other, scales, constants, level * (1 - other), 1.0 * other,
            ):  # fmt: skip
                continue
            allowed = min(60, calls_allowed - counts[0])
            if allowed < 1:
                return item
            used, _ = rate_row(
                row, parameters, form, data, archive, seen, start > 0, allowed, work, out, owners, starts
            )
            counts[3] += 1
            if used > 0:
                counts[0] += used
            else:
                counts[1 if used == -2 else 2] += 1
                break
    return pool_count


@compiled(**OPTIONS)
def vary_parts(
    form: Form,
    pools: tuple[Ints, Ints, Ints],
    data: Data,
    archive: Archive,
    seen: Words,
    state: Words,
    moves: Floats,
    unary: Ints,
    binary: Ints,
    inputs: int,
    calls_allowed: int,
    scales: Floats,
    work: Work,
    out: Ints,
    owners: Ints,
    counts: Ints,
) -> None:
    """Vary a part of a good row and rate what comes of it, until the calls are spent."""
    own, own_values, _, _, _, own_parameters, _ = archive
    size, parts, constants = own.shape[1], len(form[3]), form[2]
    row = np.zeros(size, np.int64), np.zeros(size), np.zeros(1, np.int64)
    draft = np.zeros(size, np.int64), np.zeros(size), np.zeros(1, np.int64)
    starts = np.zeros(MOST_TERMS, np.int64)
    begins, bases = np.empty(parts + 1, np.int64), np.empty(parts + 1, np.int64)
    other_begins, other_bases = np.empty(parts + 1, np.int64), np.empty(parts + 1, np.int64)
    parameters, weights = np.zeros(MOST_PARAMETERS), np.zeros(MOST_TERMS + 1)
    fruitless = 0
    while counts[0] < calls_allowed and fruitless < 100_000:
        first, second = a_parent(archive, state, 0.5), a_parent(archive, state, 0.2)
        if first < 0:
            return
        fruitless += 1
        codes, values, known = own[first].copy(), own_values[first].copy(), own_parameters[first].copy()
        other, other_values = own[second].copy(), own_values[second].copy()
        layout(codes, parts, begins, bases, constants, starts)
        layout(other, parts, other_begins, other_bases, constants, starts)
        part = below(state, parts)
        begin, end = begins[part], begins[part + 1]
        begin_b, end_b = other_begins[part], other_begins[part + 1]
        count = terms_of(codes[begin:end], end - begin, starts)
        fill(weights, 0.0, len(weights))
        take(weights, known[bases[part] :], count + 1)
        mother = codes[begin:end], values[begin:end], end - begin, weights
        father = other[begin_b:end_b], other_values[begin_b:end_b], end_b - begin_b
        pool = pools[0][part], pools[1][part], pools[2][part]
        move = chosen(state, moves)
        if not variation.vary(
            draft, move, mother, father, pool, unary, binary, inputs, data[5] > 0, state, starts
        ):
            continue
        level, slope = 0.0, 1.0
        if uniform(state) < 0.8:
            level = level_of(codes, values, begin, end, known[bases[part] :], data[2], work, starts)
            slope = 0.0
        same = codes, values, known
        if not joined(
            row, parameters, same, begins, bases, part, draft[0], draft[1], draft[2][0],
            starts, state, 0.1, scales, constants, level, slope,
        ):  # fmt: skip
            continue
        counts[3] += 1
        allowed = min(60, calls_allowed - counts[0])
        used, _ = rate_row(
            row,
            parameters,
            form,
            data,
            archive,
            seen,
            move == variation.MOVE,
            allowed,
            work,
            out,
            owners,
            starts,
        )
        if used > 0:
            counts[0] += used
            fruitless = 0
        else:
            counts[1 if used == -2 else 2] += 1
