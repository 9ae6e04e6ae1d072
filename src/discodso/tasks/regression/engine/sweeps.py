"""Terms with constants, looked for in order: functions of one input, exponentials of two, and waves.

Waves are those of one input, alone, times an input or dying away, fast ones, and waves of two inputs. A spectrum
says how much a wave of each frequency explains of what is left of the target. Each frequency that is tried on all
rows is a call; on some rows it is that share of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.tasks.regression.engine._trees import (
    ADD,
    COLUMN,
    CONSTANT,
    COS,
    DIV,
    EXP,
    INV,
    LOG,
    LOG_SIZE,
    MUL,
    N2,
    SIN,
    SQRT,
    SUB,
)
from discodso.tasks.regression.engine._waves import best_wave
from discodso.tasks.regression.engine.products import Part, power_of, times

CYCLES, TO_A_CYCLE = 24, 2.5  # of a spectrum over the range of an input, and frequencies to a cycle
_DECAYS = (0.0, 1.5, 5.0)  # exponents at which a wave has died away at the far end of the data
_WINDOW, _FEWEST, _CYCLES_IN_WINDOW = 64, 200, 100  # rows that fast waves are first looked for in, of so many
_ROWS, _RATES = 64, (0.5, 1.5, 4.0, 10.0)  # for exponentials; and exponents at the far end of the data
_HARMONICS = 6  # of a base frequency
_BASES = (1.0, math.pi, 2 * math.pi, math.pi / 2)
_PLANE_STEPS = 15  # of each of the two frequencies, on both sides of 0


@dataclass(frozen=True)
class StartTerm:
    """A term to begin a fit from.

    Attributes:
        share: of the squared residual, that it explains.
        calls: that were spent on it, or on its spectrum.
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


def peaks(column: Floats, place: int, shape: Floats) -> Iterator[Part]:
    """A bell and 1 / (c + (x + d)^2) where shape[n] is farthest from its median, and as wide."""
    order = np.argsort(column, kind="stable")
    window = min(max(len(order) // 50, 1), 9)
    smooth = np.convolve(shape[order], np.ones(window) / window, mode="same")
    smooth = np.abs(smooth - np.median(smooth))
    top = int(smooth.argmax())
    first, last = top, top
    while first > 0 and smooth[first - 1] > 0.5 * smooth[top]:
        first -= 1
    while last < len(order) - 1 and smooth[last + 1] > 0.5 * smooth[top]:
        last += 1
    middle = float(column[order[top]])
    width = float(column[order[min(last + 1, len(order) - 1)]] - column[order[max(first - 1, 0)]]) / 2.4
    if not 0 < width < 1e100:
        return
    x, nan = COLUMN + place, math.nan
    yield [EXP, MUL, CONSTANT, N2, ADD, CONSTANT, x], [nan, nan, -0.5 / width**2, nan, nan, -middle, nan]
    yield [INV, ADD, CONSTANT, N2, ADD, CONSTANT, x], [nan, nan, width**2, nan, nan, -middle, nan]


def halves(bell: Part) -> list[Part]:
    """Two bells side by side in place of one."""
    codes, values = bell
    width = math.sqrt(-0.5 / values[2])
    shifts = (values[5] + 0.8 * width, values[5] - 0.8 * width)
    return [(codes, [*values[:2], 2 * values[2], *values[3:5], shift, *values[6:]]) for shift in shifts]


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
    low, high = float(values[0]), float(values[-1])
    for share in (0.03, 0.3, 3.0):  # powers of inputs that are shifted beyond the data
        for shift in (share * (high - low) - low, -share * (high - low) - high):
            yield [LOG_SIZE, ADD, CONSTANT, x], [nan, nan, shift, nan]
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        at = min(int(share * (len(values) - 1)), len(values) - 2)
        middle = float(values[at] + values[at + 1]) / 2
        yield [LOG_SIZE, ADD, CONSTANT, x], [nan, nan, -middle, nan]


def _arguments(columns: Floats, rows: Ints) -> Iterator[tuple[Part, Floats]]:
    """Inputs, products and quotients of two and three, some with a difference: as written, and their values."""
    own, x, nan = columns[:, rows], [COLUMN + i for i in range(len(columns))], math.nan
    with np.errstate(all="ignore"):
        found: list[tuple[Part, Floats]] = [(([x[i]], [nan]), own[i]) for i in range(len(x))]
        found += [(([INV, x[i]], [nan, nan]), 1.0 / own[i]) for i in range(len(x))]
        for i, j in combinations(range(len(x)), 2):
            found.append((([MUL, x[i], x[j]], [nan] * 3), own[i] * own[j]))
        for i, j in permutations(range(len(x)), 2):
            found.append((([DIV, x[i], x[j]], [nan] * 3), own[i] / own[j]))
        for i, j in permutations(range(len(x)), 2):
            middle = float(np.median(own[j]))
            written = [MUL, x[i], ADD, CONSTANT, x[j]], [nan, nan, nan, -middle, nan]
            found.append((written, own[i] * (own[j] - middle)))
        for k, (i, j) in product(range(len(x)), combinations(range(len(x)), 2)):
            if k not in (i, j):
                found.append((([MUL, x[k], SUB, x[i], x[j]], [nan] * 5), own[k] * (own[i] - own[j])))
                found.append((([DIV, SUB, x[i], x[j], x[k]], [nan] * 5), (own[i] - own[j]) / own[k]))
                found.append((([DIV, MUL, x[i], x[j], x[k]], [nan] * 5), own[i] * own[j] / own[k]))
                found.append((([DIV, x[k], MUL, x[i], x[j]], [nan] * 5), own[k] / (own[i] * own[j])))
    for written, values in found:
        if np.isfinite(values).all() and 0 < float(np.ptp(values)) < 1e100:
            yield written, values


def _some_rows(residual: Floats, roots: Floats, fixed: Floats) -> tuple[Ints, Floats, Floats]:
    """Rows for exponentials, the residual there, and the orthonormal columns that take part in every fit."""
    count = len(residual)
    rows = np.unique(np.linspace(0, count - 1, min(count, _ROWS)).astype(np.int64))
    kept = np.linalg.qr(fixed[:, rows].T)[0].T
    rest = residual[rows]
    return rows, rest - (kept @ rest) @ kept, kept


def _shares(table: Floats, rest: Floats, kept: Floats) -> Floats:
    """How much of a residual each row of a table explains, beside the columns that take part in every fit."""
    with np.errstate(all="ignore"):
        before = np.square(table).sum(axis=1)
        table = table - (table @ kept.T) @ kept
        sizes = np.square(table).sum(axis=1)
        gains: Floats = np.square(table @ rest) / (sizes * float(rest @ rest))
    return np.where(np.isfinite(gains) & (sizes > 1e-12 * before), gains, 0.0)


def growths(columns: Floats, residual: Floats, roots: Floats, fixed: Floats) -> Iterator[StartTerm]:
    """Exponentials of inputs, products and quotients, alone, times an input or divided by one."""
    rows, rest, kept = _some_rows(residual, roots, fixed)
    whole = float(rest @ rest)
    factors: list[tuple[list[int], Floats]] = [([], np.ones(len(rows)))]
    for i, column in enumerate(columns[:, rows]):
        factors.append(([MUL, COLUMN + i], column))
        if (column != 0).all():
            factors.append(([DIV, COLUMN + i], 1.0 / column))
    sizes = np.array([values for _, values in factors]) * roots[rows]
    for inner, values in _arguments(columns, rows):
        best: tuple[float, Part | None] = (0.0, None)
        for rate in (sign * rate / float(np.ptp(values)) for rate in _RATES for sign in (1.0, -1.0)):
            grown = np.exp(rate * (values - float(values.max() if rate > 0 else values.min())))
            shares = _shares(sizes * grown, rest, kept) if whole > 0 else np.zeros(len(sizes))
            place = int(shares.argmax())
            if shares[place] > best[0]:
                exponential: Part = [EXP, MUL, CONSTANT, *inner[0]], [*[math.nan] * 2, rate, *inner[1]]
                best = float(shares[place]), _with_factor(exponential, factors[place][0])
        spent = 2 * len(_RATES) * len(sizes) * len(rows) / len(residual)
        yield StartTerm(best[0], math.ceil(spent), best[1])


def _with_factor(part: Part, factor: list[int]) -> Part:
    if not factor:
        return part
    operator, column = factor
    if operator == MUL:
        return [MUL, column, *part[0]], [math.nan, math.nan, *part[1]]
    return [DIV, *part[0], column], [math.nan, *part[1], math.nan]


def saturations(columns: Floats, residual: Floats, roots: Floats, fixed: Floats) -> Iterator[StartTerm]:
    """Factors log|s + exp(c g)|, where g is an input, a product or a quotient."""
    rows, rest, kept = _some_rows(residual, roots, fixed)
    whole = float(rest @ rest)
    for inner, values in _arguments(columns, rows):
        best: tuple[float, Part | None] = (0.0, None)
        tried = 0
        for rate in (sign * rate / float(np.ptp(values)) for rate in _RATES for sign in (1.0, -1.0)):
            levels = [math.exp(min(rate * float(at), 300.0)) for at in np.quantile(values, [0.2, 0.7])]
            if values.min() > 0 or values.max() < 0 or CONSTANT in inner[0]:
                levels.append(-1.0)  # exp(0) is outside of the data, or a shift moves
            with np.errstate(all="ignore"):
                table = np.log(np.abs(np.array(levels)[:, None] + np.exp(rate * values))) * roots[rows]
            shares = _shares(table, rest, kept) if whole > 0 else np.zeros(len(table))
            tried += len(table)
            place = int(shares.argmax())
            if shares[place] > best[0]:
                codes = [LOG_SIZE, ADD, CONSTANT, EXP, MUL, CONSTANT, *inner[0]]
                numbers = [math.nan] * 2 + [levels[place]] + [math.nan] * 2 + [rate] + inner[1]
                best = float(shares[place]), (codes, numbers)
        yield StartTerm(best[0], math.ceil(tried * len(rows) / len(residual)), best[1])


@dataclass(frozen=True)
class Harmonics:
    """Waves of multiples of one frequency with one envelope, x^power exp(-x) of an input, perhaps times another.

    Attributes:
        share: of the squared residual, that all of them explain.
        calls: that were spent.
        place, other: of the inputs; the second is -1 for none.
        power, decays: of the envelope.
        base: frequency.
        table: float[waves, n], first the sines of rising frequency and then the cosines; then all times the other.
    """

    share: float
    calls: int
    place: int
    other: int
    power: int
    decays: bool
    base: float
    table: Floats

    def envelope(self, operators: Sequence[int]) -> tuple[list[Part], list[Part]]:
        """Factors above and below a line."""
        x: Part = [COLUMN + self.place], [math.nan]
        above = [power_of(x, self.power, tuple(operators))] if self.power else []
        return above, [([EXP, *x[0]], [math.nan, math.nan])] if self.decays else []

    def wave(self, number: int) -> Part:
        """One of the waves, without envelope."""
        x, multiple = COLUMN + self.place, number % _HARMONICS + 1
        frequency = multiple * self.base
        inner: Part = [MUL, CONSTANT, x], [math.nan, frequency, math.nan]
        if frequency == 1.0:
            inner = [x], [math.nan]
        elif frequency == 2.0:
            inner = [ADD, x, x], [math.nan] * 3
        code = SIN if number % (2 * _HARMONICS) < _HARMONICS else COS
        return [code, *inner[0]], [math.nan, *inner[1]]


def harmonics(
    columns: Floats, residual: Floats, roots: Floats, fixed: Floats, decays: bool
) -> Iterator[Harmonics]:
    """Sums of waves with one envelope, of natural frequencies; the caller leaves out what is not missed."""
    count, whole = len(residual), float(residual @ residual)
    multiples = np.arange(1, _HARMONICS + 1)[:, None]
    for place, column in enumerate(columns):
        spread = float(np.ptp(column))
        for decay, power, base in product((False, True)[: 1 + decays], range(4), _BASES):
            # Half a cycle at least, and two rows to a cycle of the fastest.
            if not math.pi <= base * spread <= math.pi * count / _HARMONICS or (
                decay and np.abs(column).max() > 100
            ):
                continue
            envelope = column**power * (np.exp(-column) if decay else 1.0) * roots
            own = (
                np.concatenate((np.sin(multiples * base * column), np.cos(multiples * base * column)))
                * envelope
            )
            for other in (-1, *(j for j in range(len(columns)) if j != place)):
                table = own if other < 0 else np.concatenate((own, own * columns[other]))
                if 4 * len(table) > count:
                    continue
                table = table - (table @ fixed.T) @ fixed
                basis = np.linalg.qr(table.T)[0]
                share = float(np.square(residual @ basis).sum()) / whole if whole > 0 else 0.0
                yield Harmonics(share, 1, place, other, power, decay, base, table)


def single_waves(columns: Floats, residual: Floats, roots: Floats, decays: bool) -> Iterator[StartTerm]:
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


def fast_waves(columns: Floats, residual: Floats, roots: Floats) -> Iterator[StartTerm]:
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
                yield StartTerm(found.share, math.ceil(spent), found.part)
                spent = 0.0
                break
            size *= 2
        if spent:
            yield StartTerm(0.0, math.ceil(spent), None)


def plane_waves(columns: Floats, residual: Floats, roots: Floats) -> Iterator[StartTerm]:
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
) -> StartTerm:
    if not (np.isfinite(size).all() and np.isfinite(base).all() and 0 < step < math.inf):
        return StartTerm(0.0, 0, None)
    frequency, phase, gain = best_wave(residual, roots, size, argument, base, first, step, tried)
    whole = float(residual @ residual)
    if not gain > 0 or not whole > 0:
        return StartTerm(0.0, tried, None)
    wave = written_wave(inner, frequency, phase, added)
    return StartTerm(min(gain / whole, 1.0), tried, times([*factors, wave]))


def written_wave(inner: list[int], frequency: float, phase: float, added: Sequence[Part] = ()) -> Part:
    """sin(phase + added + frequency * inner), without a phase that is next to nothing."""
    codes, values = [MUL, CONSTANT, *inner], [math.nan, frequency, *[math.nan] * len(inner)]
    for more, numbers in added:
        codes, values = [ADD, *more, *codes], [math.nan, *numbers, *values]
    if abs(math.sin(phase)) > 0.02:
        codes, values = [ADD, CONSTANT, *codes], [math.nan, phase, *values]
    return [SIN, *codes], [math.nan, *values]
