"""What the data say about the constants of an expression: how many digits, and which could be simple numbers.

A constant is replaced by a simple number where that shortens the description of the data: a constant that is known
to one part in a thousand takes ten bits to say, 1/2 takes a few, and a worse fit takes its bits too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from discodso.base.arrays import Floats
from discodso.space.design import Design
from discodso.tasks.regression.canonical import canonical
from discodso.tasks.regression.data import Rows
from discodso.tasks.regression.evaluator import jacobian
from discodso.tasks.regression.expression import Expression, Item
from discodso.tasks.regression.losses import squared_loss
from discodso.tasks.regression.options import REALS, Range
from discodso.tasks.regression.prune import fit_constants

_SHARE = 1e-3  # of the residual, by which rounded constants may change it
_ROUNDING = 1e-14  # errors below this share of the target are those of computing
_MOST_DIGITS = 17
_MOST_ERRORS = 3.5  # standard errors between a constant and what replaces it, at most
_EXTRA_BITS = 2.0  # of a constant beside its digits: its sign and size
_CALLS = 60  # of a fit
_LARGEST_BITS = 40.0
_ZERO_BITS = -6.0  # what a term that is gone saves beside its constant


def significant_digits(expression: Expression, X: Floats, y: Floats, weights: Floats) -> tuple[int, ...]:
    """For each constant the least number of digits with which the loss stays, to 0.1 % of itself.

    Where the fit is exact, the error may grow to what rounding makes of it anyway. Weights need not sum to 1.
    """
    rows = _rows(X, y, weights)
    constants = expression.constants
    before = squared_loss(expression, *rows)
    limit = (1 + _SHARE) * before + _floor(rows)
    if not math.isfinite(limit):
        return (_MOST_DIGITS,) * len(constants)

    def loss(digits: Sequence[int]) -> float:
        return squared_loss(rounded(expression, digits), *rows)

    full = [_MOST_DIGITS] * len(constants)
    found = [
        next(
            d
            for d in range(1, _MOST_DIGITS + 1)
            if d == _MOST_DIGITS or loss([*full[:place], d, *full[place + 1 :]]) <= limit
        )
        for place in range(len(constants))
    ]
    while any(d < _MOST_DIGITS for d in found) and loss(found) > limit:  # all of them rounded at once
        found = [min(d + 1, _MOST_DIGITS) for d in found]
    return tuple(found)


def rounded(expression: Expression, digits: int | Sequence[int]) -> Expression:
    """The expression with its constants rounded to some significant digits, the same or a number for each."""
    constants = expression.constants.tolist()
    each = [digits] * len(constants) if isinstance(digits, int) else digits
    return expression.with_constants([float(f"{c:.{d}g}") for c, d in zip(constants, each, strict=True)])


def snapped(
    expression: Expression,
    X: Floats,
    y: Floats,
    weights: Floats,
    const_range: Range = REALS,
    max_calls: int = 10_000,
) -> tuple[Expression, int]:
    """The canonical form with simple numbers in place of constants that the data cannot tell from them.

    Tried are small whole numbers and fractions, multiples of pi, and few digits; 0 removes a term. After each step
    the other constants are fitted again. Numbers that have been found are tokens of their own and no constants.

    Returns:
        The expression, and the objective calls made; no step begins that might need more than `max_calls`.
    """
    rows = _rows(X, y, weights)
    if max_calls < _CALLS + 1:
        return expression, 0
    expression, calls = fit_constants(canonical(expression), rows, const_range, _CALLS)
    start = squared_loss(expression, *rows)
    calls += 1
    if not math.isfinite(start):
        return expression, calls
    count = len(expression.constants)
    freedom = _effective_rows(rows[2]) - count
    # The error of one degree of freedom; with none left only what fits exactly is taken.
    limit = start * (1 + _MOST_ERRORS**2 / freedom) if freedom > 0 else start
    state = _Stage(expression, start, _bits_of_errors(start, start, freedom, rows))
    refused: set[tuple[str, ...]] = set()
    while True:
        least = max(limit, _floor(rows))
        step, used = _best_step(state, rows, const_range, freedom, least, start, refused, max_calls - calls)
        calls += used
        if step is None:
            return state.expression, calls
        state = step


@dataclass(frozen=True)
class _Stage:
    expression: Expression
    loss: float
    bits: float  # of the errors, beyond those of the start


def _best_step(
    state: _Stage,
    rows: Rows,
    const_range: Range,
    freedom: float,
    limit: float,
    start: float,
    refused: set[tuple[str, ...]],
    room: int,
) -> tuple[_Stage | None, int]:
    """The replacement that saves the most bits, tried from the most promising, or None; and the calls."""
    calls = 1  # of the slopes
    spread = _standard_errors(state.expression, rows, max(freedom, 1.0))
    options = []
    for place, (value, error) in enumerate(zip(state.expression.constants.tolist(), spread, strict=True)):
        own = min(math.log2(1 + abs(value) / error) if error > 0 else _LARGEST_BITS, _LARGEST_BITS)
        for number, bits in _simple_numbers(value):
            apart = abs(number - value) / error if error > 0 else math.inf * (number != value)
            near = abs(number - value) <= 1e-6 * abs(
                value
            )  # exact data: errors of fits are no standard errors
            gain = own + _EXTRA_BITS - bits - min(apart, 10.0) ** 2 / 2 / math.log(2) * (not near)
            if apart <= _MOST_ERRORS or near:
                options.append((-gain, place, number, bits - own - _EXTRA_BITS))
    for gain, place, number, saved in sorted(options):
        mark = (str(state.expression.design), str(place), repr(number))
        if gain >= 0 or mark in refused:
            continue
        if calls + _CALLS + 2 > room:
            break
        found, used = fit_constants(_replaced(state.expression, place, number), rows, const_range, _CALLS)
        loss = squared_loss(found, *rows)
        calls += used + 1
        bits = _bits_of_errors(loss, start, freedom, rows) if math.isfinite(loss) else math.inf
        if loss <= limit and saved + bits - state.bits < 0:
            short = canonical(found)
            again = squared_loss(short, *rows)
            calls += 1
            kept = len(short.constants) < len(state.expression.constants) and again <= limit
            return _Stage(short if kept else found, again if kept else loss, bits), calls
        refused.add(mark)
    return None, calls


def _bits_of_errors(loss: float, start: float, freedom: float, rows: Rows) -> float:
    """By how much the errors take more bits than at the start."""
    floor = _floor(rows)
    return max(freedom, 1.0) / 2 * math.log2(max(loss, floor) / max(start, floor))


def _replaced(expression: Expression, place: int, number: float) -> Expression:
    """The expression with one constant as a token of its own."""
    items: list[Item] = []
    seen = -1
    for name, value in expression.design:
        seen += value is not None
        if value is not None and seen == place:
            items.append(str(int(number)) if number.is_integer() else repr(number))
            place = -2
        else:
            items.append(name if value is None else (name, value))
    return replace(expression, design=Design.of(*items))


def _simple_numbers(value: float) -> Iterator[tuple[float, float]]:
    """Simple numbers around a value, and the bits that it takes to name each."""
    yield 0.0, _ZERO_BITS
    size, sign = abs(value), math.copysign(1.0, value)
    if not 1e-12 < size < 1e12:
        return
    for denominator, unit in ((d, u) for u in (1.0, math.pi, 1 / math.pi) for d in (1, 2, 3, 4, 6, 8)):
        above = round(size / unit * denominator)
        if 0 < above <= 12 and math.gcd(above, denominator) == 1:
            bits = 1.0 + 2 * math.log2(above) + 2 * math.log2(denominator) + 4 * (unit != 1.0)
            yield sign * above * unit / denominator, bits
    for digits in (1, 2, 3, 4):
        short = float(f"{size:.{digits}g}")
        yield sign * short, 3.0 + digits * math.log2(10) + abs(math.floor(math.log10(size)))


def _standard_errors(expression: Expression, rows: Rows, freedom: float) -> list[float]:
    """Of each constant, by the slopes at it; infinite where others can make up for it."""
    X, _, weights = rows
    if not len(expression.constants):
        return []
    slopes = np.sqrt(weights)[:, None] * _slopes(expression, X).T
    slopes = np.where(np.isfinite(slopes), slopes, 0.0)
    sizes = np.linalg.norm(slopes, axis=0)
    scale = np.where(sizes > 0, sizes, 1.0)
    _, values, right = np.linalg.svd(slopes / scale, full_matrices=False)
    with np.errstate(all="ignore"):
        inverse = (
            np.where(values > 1e-10 * values[0], 1 / values, np.inf) if values[0] > 0 else values + np.inf
        )
        wide = np.square(inverse[:, None] * right)
        wide = np.where(np.abs(right) > 1e-8, wide, 0.0).sum(axis=0)
        total = _effective_rows(weights)
        noise = squared_loss(expression, *rows) * total / freedom
        found = np.sqrt((noise + _floor(rows)) * wide / total) / scale
    return [float(e) if s > 0 else math.inf for e, s in zip(found, sizes, strict=True)]


def _slopes(expression: Expression, X: Floats) -> Floats:
    """float[k, n], by the compiled kernels, or by differences where there are operators of one's own."""
    if not expression.operators:
        return jacobian(expression, X)
    constants, found = expression.constants, []
    for place, value in enumerate(constants.tolist()):
        step = 1e-6 * max(abs(value), 1e-3)
        moved = [constants + by * step * (np.arange(len(constants)) == place) for by in (1, -1)]
        high, low = (expression.with_constants(other)(X) for other in moved)
        with np.errstate(all="ignore"):
            found.append((high - low) / (2 * step))
    return np.array(found)


def _rows(X: Floats, y: Floats, weights: Floats) -> Rows:
    share = np.asarray(weights, dtype=np.float64)
    return np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64), share / share.sum()


def _effective_rows(weights: Floats) -> float:
    """How many rows of equal weight say as much."""
    return float(weights.sum() ** 2 / np.square(weights).sum())


def _floor(rows: Rows) -> float:
    """The squared error that comes of computing."""
    _, y, weights = rows
    return _ROUNDING**2 * float(weights @ np.square(y)) + 1e-300
