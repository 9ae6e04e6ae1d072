"""Products of powers, written as expressions, and the powers themselves by least squares of logarithms."""

from __future__ import annotations

import math

import numpy as np

from discodso.base.arrays import Floats
from discodso.tasks.regression.engine._trees import ADD, CONSTANT, DIV, INV, MUL, N2, SQRT, SUB

Part = tuple[list[int], list[float]]  # codes and values of an expression


def exponents(columns: list[Floats], target: Floats, roots: Floats) -> Floats:
    """Of the best product of powers, by least squares of logarithms."""
    table = np.column_stack([np.ones(len(target)), *columns]) * roots[:, None]
    if not (np.isfinite(table).all() and np.isfinite(target).all()):
        return np.full(len(columns), math.nan)
    scale = np.sqrt(np.square(table).sum(axis=0))
    scale[scale == 0] = 1.0
    solved: Floats = np.linalg.lstsq(table / scale, target * roots, rcond=1e-12)[0] / scale
    return solved[1:]


def rounded(power: float) -> float:
    """The nearest half."""
    return round(2 * power) / 2 if math.isfinite(power) else math.inf


def product(powers: list[tuple[list[int], list[float], float]], operators: tuple[int, ...]) -> Part | None:
    """A product of powers; None if operators are missing, nothing for an empty one."""
    above: list[Part] = []
    below: list[Part] = []
    root_above: list[Part] = []
    root_below: list[Part] = []
    for codes, values, power in powers:
        part, twice = (codes, values), round(2 * power)
        if twice % 2:
            (root_above if twice > 0 else root_below).append(part)
            twice -= 1 if twice > 0 else -1
        count, side = abs(twice) // 2, above if twice > 0 else below
        while count:
            if count >= 2 and N2 in operators:
                side.append(([N2, *codes], [math.nan, *values]))
                count -= 2
            else:
                side.append(part)
                count -= 1
    if root_above or root_below:
        if SQRT not in operators:
            return None
        if root_above:
            inner = quotient(root_above, root_below, operators)
            if inner is None:
                return None
            above.append(([SQRT, *inner[0]], [math.nan, *inner[1]]))
        else:
            inner = times(root_below)
            below.append(([SQRT, *inner[0]], [math.nan, *inner[1]]))
    return quotient(above, below, operators)


def times(parts: list[Part]) -> Part:
    """The product of some parts."""
    codes, values = parts[-1]
    for more, more_values in reversed(parts[:-1]):
        codes, values = [MUL, *more, *codes], [math.nan, *more_values, *values]
    return codes, values


def added(parts: list[Part]) -> Part:
    """The sum of some parts."""
    codes, values = parts[-1]
    for more, more_values in reversed(parts[:-1]):
        codes, values = [ADD, *more, *codes], [math.nan, *more_values, *values]
    return codes, values


def plain(codes: list[int]) -> Part:
    """An expression without constants."""
    return codes, [math.nan] * len(codes)


def power_of(part: Part, power: int, operators: tuple[int, ...]) -> Part:
    """A whole power from 1 on, in squares where there are any."""
    if power == 1:
        return part
    if power % 2 or N2 not in operators:
        return times([part, power_of(part, power - 1, operators)])
    codes, values = power_of(part, power // 2, operators)
    return [N2, *codes], [math.nan, *values]


def summed(factors: list[float], parts: list[Part]) -> Part:
    """The sum of factors times expressions, an empty one for 1; factors of 1 and -1 are not written."""
    kept = list(zip(factors, parts, strict=True))
    less = [part for factor, part in kept if factor == -1.0 and part[0]]
    more = [_scaled(factor, part) for factor, part in kept if factor != -1.0 or not part[0]]
    codes, values = added(more) if more else _scaled(-1.0, less.pop())
    for own, own_values in less:
        codes, values = [SUB, *codes, *own], [math.nan, *values, *own_values]
    return codes, values


def _scaled(factor: float, part: Part) -> Part:
    if not part[0]:
        return [CONSTANT], [factor]
    return part if factor == 1.0 else ([MUL, CONSTANT, *part[0]], [math.nan, factor, *part[1]])


def quotient(above: list[Part], below: list[Part], operators: tuple[int, ...]) -> Part | None:
    """One product over another; None if an operator is missing."""
    if not below:
        return times(above) if above else ([], [])
    under = times(below)
    if not above:
        return ([INV, *under[0]], [math.nan, *under[1]]) if INV in operators else None
    over = times(above)
    return ([DIV, *over[0], *under[0]], [math.nan, *over[1], *under[1]]) if DIV in operators else None
