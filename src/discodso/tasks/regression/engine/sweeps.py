"""Terms with constants, looked for in order: functions of one input, and waves.

Waves are those of one input, alone, times an input or dying away, fast ones, and waves of two inputs. A spectrum
says how much a wave of each frequency explains of what is left of the target. Each frequency that is tried on all
rows is a call; on some rows it is that share of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from discodso.base.arrays import Floats
from discodso.tasks.regression.engine._trees import (
    ADD,
    COLUMN,
    CONSTANT,
    COS,
    EXP,
    INV,
    LOG,
    LOG_SIZE,
    MUL,
    N2,
    SIN,
    SQRT,
)
from discodso.tasks.regression.engine._waves import best_wave
from discodso.tasks.regression.engine.products import Part, times

CYCLES, TO_A_CYCLE = 24, 2.5  # of a spectrum over the range of an input, and frequencies to a cycle
_DECAYS = (0.0, 1.5, 5.0)  # exponents at which a wave has died away at the far end of the data
_WINDOW, _FEWEST, _CYCLES_IN_WINDOW = 64, 200, 100  # rows that fast waves are first looked for in, of so many
_PLANE_STEPS = 15  # of each of the two frequencies, on both sides of 0


@dataclass(frozen=True)
class Wave:
    """A wave to begin a fit from.

    Attributes:
        share: of the squared residual, that it explains.
        calls: that were spent on its spectrum.
        part: how it is written, None if there is none.
    """

    share: float
    calls: int
    part: Part | None


def shifted(column: Floats, place: int, unary: Sequence[int]) -> Iterator[Part]:
    """Functions of one input, shifted and scaled, with constants to begin from."""
    low, spread = float(column.min()), float(np.ptp(column))
    if not 0 < spread < 1e100:
        return
    x, nan = COLUMN + place, math.nan
    if N2 in unary:
        middle, width = float(np.median(column)), spread / 4
        for code in unary:
            if code in (LOG, SQRT, INV):
                yield (
                    [code, ADD, CONSTANT, N2, ADD, CONSTANT, x],
                    [nan, nan, width**2, nan, nan, -middle, nan],
                )
                yield [code, ADD, CONSTANT, N2, x], [nan, nan, (spread / 100) ** 2, nan, nan]
            elif code == EXP:
                values = [nan, nan, -0.5 / width**2, nan, nan, -middle, nan]
                yield [code, MUL, CONSTANT, N2, ADD, CONSTANT, x], values
    for code in unary:
        if code in (LOG, SQRT, INV):
            yield [code, ADD, CONSTANT, x], [nan, nan, 0.1 * spread - low, nan]
        elif code == EXP:
            for rate in (3 / spread, -3 / spread):
                yield [code, MUL, CONSTANT, x], [nan, nan, rate, nan]


def sizes(column: Floats, place: int, unary: Sequence[int]) -> Iterator[Part]:
    """Factors of one input as log|...|: shifted inputs, 0 between two rows, and waves of half and twice it."""
    x, nan = COLUMN + place, math.nan
    values = np.unique(column)
    if len(values) < 2:
        return
    for code in unary:
        if code in (SIN, COS):
            for factor in (0.5, 2.0):
                yield [LOG_SIZE, code, MUL, CONSTANT, x], [nan, nan, nan, factor, nan]
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        at = min(int(share * (len(values) - 1)), len(values) - 2)
        middle = float(values[at] + values[at + 1]) / 2
        yield [LOG_SIZE, ADD, CONSTANT, x], [nan, nan, -middle, nan]


def single_waves(columns: Floats, residual: Floats, roots: Floats, decays: bool) -> Iterator[Wave]:
    """Waves of one input: alone and times an input, first as they are and then dying away, if `decays`."""
    inputs, count = columns.shape
    tried = min(int(CYCLES * TO_A_CYCLE), count // 2)
    for decay, factor, i in product(_DECAYS if decays else (0.0,), range(-1, inputs), range(inputs)):
        spread = float(np.ptp(columns[i]))
        size = np.ones(count) if factor < 0 else columns[factor]
        lead: list[Part] = [] if factor < 0 else [([COLUMN + factor], [math.nan])]
        if not 0 < spread < 1e100:
            continue
        if decay:
            rate = -decay / spread
            size = size * np.exp(rate * (columns[i] - columns[i].min()))
            lead.append(([EXP, MUL, CONSTANT, COLUMN + i], [math.nan, math.nan, rate, math.nan]))
        step = 2 * math.pi / (TO_A_CYCLE * spread)
        zeros = np.zeros(count)
        yield _wave(residual, roots, size, columns[i], zeros, step, step, tried, lead, [COLUMN + i])


def fast_waves(columns: Floats, residual: Floats, roots: Floats) -> Iterator[Wave]:
    """Waves of an input, its square and its cube with hundreds of cycles or more.

    A frequency is found in the rows that lie closest together; from there more and more rows make it exact.
    """
    count = len(residual)
    if count < _FEWEST:
        return
    for column, power in product(range(len(columns)), (1, 2, 3)):
        inner = [[], [COLUMN + column], [N2, COLUMN + column], [MUL, COLUMN + column, N2, COLUMN + column]][
            power
        ]
        argument = columns[column] ** power
        if not 0 < float(np.ptp(argument)) < 1e100:
            continue
        order = np.argsort(argument, kind="stable")
        ordered = argument[order]
        size, frequency, before, spent = _WINDOW, 0.0, 0.0, 0.0
        while True:
            size = min(size, count)
            spans = ordered[size - 1 :] - ordered[: count - size + 1]
            start = int(spans.argmin())
            span, rows = float(spans[start]), np.sort(order[start : start + size])
            if not span > 0:
                break
            if before:
                step = 2 * math.pi / (4 * span)
                side = min(math.ceil(1.2 * span / before) + 1, 100)
                first, tried = frequency - side * step, 2 * side + 1
                if first <= 0:
                    tried -= math.ceil((step / 2 - first) / step)
                    first += math.ceil((step / 2 - first) / step) * step
            else:
                first = step = 2 * math.pi / (TO_A_CYCLE * span)
                tried = int(TO_A_CYCLE * _CYCLES_IN_WINDOW)
            own = roots[rows] / math.sqrt(float(roots[rows] @ roots[rows]))
            rest = residual[rows] / roots[rows] * own
            rest = rest - (own @ rest) * own
            spent += tried * size / count
            found = _wave(
                rest, own, np.ones(size), argument[rows], np.zeros(size), first, step, tried, [], inner
            )
            if found.part is None:
                break
            frequency = found.part[1][found.part[0].index(CONSTANT, 3) if found.part[0][1] == ADD else 2]
            before = span
            if size == count:
                yield Wave(found.share, math.ceil(spent), found.part)
                spent = 0.0
                break
            size *= 2
        if spent:
            yield Wave(0.0, math.ceil(spent), None)


def plane_waves(columns: Floats, residual: Floats, roots: Floats) -> Iterator[Wave]:
    """Waves of two inputs, sin(a x + b y + c), and then sin(x y + a x + b y + c)."""
    zeros = np.zeros(len(residual))
    steps = [2 * math.pi / (TO_A_CYCLE * (float(np.ptp(column)) or math.inf)) for column in columns]
    for with_product, (i, j) in product((False, True), combinations(range(len(columns)), 2)):
        base = columns[i] * columns[j] if with_product else zeros
        inner: list[Part] = [([MUL, COLUMN + i, COLUMN + j], [math.nan] * 3)] if with_product else []
        for k in range(-_PLANE_STEPS if with_product else 1, _PLANE_STEPS + 1):
            frequency = k * steps[i]
            lead = ([MUL, CONSTANT, COLUMN + i], [math.nan, frequency, math.nan])
            yield _wave(
                residual,
                roots,
                zeros + 1.0,
                columns[j],
                base + frequency * columns[i],
                -_PLANE_STEPS * steps[j],
                steps[j],
                2 * _PLANE_STEPS + 1,
                [],
                [COLUMN + j],
                [*inner, lead],
            )


def _wave(
    residual: Floats,
    roots: Floats,
    size: Floats,
    argument: Floats,
    base: Floats,
    first: float,
    step: float,
    tried: int,
    factors: Sequence[Part],
    inner: list[int],
    added: Sequence[Part] = (),
) -> Wave:
    if not (np.isfinite(size).all() and np.isfinite(base).all() and 0 < step < math.inf):
        return Wave(0.0, 0, None)
    frequency, phase, gain = best_wave(residual, roots, size, argument, base, first, step, tried)
    whole = float(residual @ residual)
    if not gain > 0 or not whole > 0:
        return Wave(0.0, tried, None)
    wave = written_wave(inner, frequency, phase, added)
    return Wave(min(gain / whole, 1.0), tried, times([*factors, wave]))


def written_wave(inner: list[int], frequency: float, phase: float, added: Sequence[Part] = ()) -> Part:
    """sin(phase + added + frequency * inner), without a phase that is next to nothing."""
    codes, values = [MUL, CONSTANT, *inner], [math.nan, frequency, *[math.nan] * len(inner)]
    for more, numbers in added:
        codes, values = [ADD, *more, *codes], [math.nan, *numbers, *values]
    if abs(math.sin(phase)) > 0.02:
        codes, values = [ADD, CONSTANT, *codes], [math.nan, phase, *values]
    return [SIN, *codes], [math.nan, *values]
