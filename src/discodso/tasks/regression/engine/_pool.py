"""All distinct short expressions, by rising price: each is made of shorter ones and told apart by its values."""

from __future__ import annotations

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints, Words
from discodso.base.compiled import compiled
from discodso.tasks.regression._evaluator_kernels import binary, unary
from discodso.tasks.regression._vector_math import OPTIONS, fill, take
from discodso.tasks.regression.engine._trees import (
    ADD,
    CONSTANT,
    DIV,
    EXP,
    LOG,
    MUL,
    N2,
    NEG,
    POW,
    SQRT,
    SUB,
    add_to,
    hashed,
)
from discodso.tasks.regression.engine._units import binary_unit, is_pure, unary_unit

_PRICE_OF_PAIRS, _MOST_FOR_PAIRS = 7, 3000  # up to which there are sums of different units
TOKENS = 12  # of an expression of the pool, at most
# codes [N, TOKENS], lengths and prices [N], values on the probes [N, PROBES]
Pool = tuple[Ints, Ints, Ints, Floats]


@compiled(inner=True, **OPTIONS)
def _nested(outer: int, codes: Ints, length: int, nesting: Bools) -> bool:
    found = False
    for place in range(length):
        found = found or (codes[place] < CONSTANT and nesting[outer, codes[place]])
    return found


@compiled(inner=True, **OPTIONS)
def _undone(outer: int, inner: int) -> bool:
    """Whether an operator directly over another undoes it."""
    if (outer == EXP and inner == LOG) or (outer == LOG and inner == EXP):
        return True
    return (outer == N2 and inner == SQRT) or (outer == SQRT and inner == N2) or outer == inner == NEG


@compiled(inner=True, **OPTIONS)
def _constants(codes: Ints, length: int) -> int:
    count = 0
    for place in range(length):
        count += codes[place] == CONSTANT
    return count


@compiled(**OPTIONS)
def next_level(
    pool: Pool,
    first: Ints,
    price: int,
    operators: Ints,
    prices: Floats,
    nesting: Bools,
    known: Words,
    units: Floats,
    constant: float,
) -> int:
    """Add all distinct expressions of a price, made of those of lower prices; returns how many there are then.

    first[p] is where the expressions of price p begin, for all prices up to this one. -1 if the pool, which is as
    long as it may get, is full. With units[N, m] of the pool only those whose units agree; no units are an array
    without rows. `constant` stands for one that has a unit, 0 if there are none; an expression has one at most.
    """
    codes, lengths, costs, probes = pool
    count, most = first[price], len(codes)
    row, work = np.empty(probes.shape[1]), np.empty((3, probes.shape[1]))
    pairs = constant > 0.0 and price <= _PRICE_OF_PAIRS and count < _MOST_FOR_PAIRS
    with_units, unit = len(units) == most, np.zeros(units.shape[1])
    if constant > 0.0 and price > 3:  # what has a unit becomes a number by a constant
        for i in range(first[price - 3], first[price - 2]):
            if lengths[i] + 2 > TOKENS or is_pure(units[i]) or _constants(codes[i], lengths[i]):
                continue
            for j in range(len(row)):
                row[j] = constant * probes[i, j]
            code = hashed(row, False)
            if code == np.uint64(0) or not add_to(known, code):
                continue
            if count == most:
                return -1
            codes[count, 0], codes[count, 1] = MUL, CONSTANT
            take(codes[count, 2:], codes[i], lengths[i])
            lengths[count], costs[count] = lengths[i] + 2, price
            take(probes[count], row, len(row))
            count += 1
    for operator in operators:
        rest = price - int(prices[operator])
        if rest < 1:
            continue
        if not (operator <= DIV or operator == POW):
            for i in range(first[rest], first[rest + 1]):
                if lengths[i] + 1 > TOKENS or _nested(operator, codes[i], lengths[i], nesting):
                    continue
                if _undone(operator, codes[i, 0]):
                    continue
                if with_units and not unary_unit(operator, units[i], unit):
                    continue
                unary(operator, probes[i], row, work, len(row))
                code = hashed(row, False)
                if code == np.uint64(0) or not add_to(known, code):
                    continue
                if count == most:
                    return -1
                codes[count, 0] = operator
                take(codes[count, 1:], codes[i], lengths[i])
                lengths[count], costs[count] = lengths[i] + 1, price
                take(probes[count], row, len(row))
                if with_units:
                    take(units[count], unit, len(unit))
                count += 1
            continue
        for left in range(1, rest):
            right = rest - left
            ordered = operator in (SUB, DIV, POW)
            if not ordered and left > right:
                continue
            for i in range(first[left], first[left + 1]):
                for j in range(first[right], first[right + 1]):
                    if (not ordered and left == right and j < i) or lengths[i] + lengths[j] + 1 > TOKENS:
                        continue
                    if with_units and not binary_unit(operator, units[i], units[j], unit):
                        if operator != ADD or not pairs or np.isnan(units[i, 0] + units[j, 0]):
                            continue
                        fill(unit, np.nan, len(unit))
                    if (
                        constant > 0.0
                        and _constants(codes[i], lengths[i]) + _constants(codes[j], lengths[j]) > 1
                    ):
                        continue
                    binary(operator, probes[i], probes[j], row, len(row))
                    code = hashed(row, False)
                    if code == np.uint64(0) or not add_to(known, code):
                        continue
                    if count == most:
                        return -1
                    codes[count, 0] = operator
                    take(codes[count, 1:], codes[i], lengths[i])
                    take(codes[count, lengths[i] + 1 :], codes[j], lengths[j])
                    lengths[count], costs[count] = lengths[i] + lengths[j] + 1, price
                    take(probes[count], row, len(row))
                    if with_units:
                        take(units[count], unit, len(unit))
                    count += 1
    return count
