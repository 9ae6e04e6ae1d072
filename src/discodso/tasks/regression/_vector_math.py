"""exp, log, sin, cos, tan and tanh of blocks of float64, in loops that the compiler turns into vector code.

Called one number at a time, the functions of the C library are what an evaluator of expressions spends its time
on. The loops below have no branches, so LLVM works on four or eight numbers at once. They are
accurate to a few units in the last place, and treat zeros, infinities and NaN as NumPy does; sine and cosine of
numbers too large for the reduction fall back to the C library.

Integers are made without conversions, which AVX2 lacks: adding 1.5 * 2^52 to a float leaves the nearest integer
in its low bits, where the integer view of the same memory finds it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.compiled import compiled

# "contract" lets the compiler fuse multiply and add; the stronger liberties would break NaN and infinity.
OPTIONS: Any = {"error_model": "numpy", "fastmath": {"contract"}, "nogil": True}

_MAGIC = 6755399441055744.0  # 1.5 * 2^52
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01  # the upper 32 bits of log 2, and the rest
_LN2_LOW = 1.90821492927058770002e-10
_EXP_OVERFLOW, _EXP_UNDERFLOW = 709.782712893384, -745.1332191019412
_MANTISSA, _ONE = (1 << 52) - 1, 1023 << 52
_TWO_OVER_PI = 0.6366197723675814
_PIO2_1 = 1.57079632673412561417e00  # pi / 2 in three parts of 33 bits
_PIO2_2 = 6.07710050630396597660e-11
_PIO2_3 = 2.02226624879595063154e-21
_REDUCTION_LIMIT = 1e5
# Coefficients of polynomials, of the highest power first.
_EXP = tuple(1 / math.factorial(k) for k in range(13, 1, -1))
_LOG = tuple(2 / k for k in range(25, 1, -2))


@compiled(inner=True, **OPTIONS)
def take(out: Any, row: Any, count: int) -> None:
    """out[:count] = row[:count], in a tenth of the code that numba makes of slices, which checks their shapes."""
    for j in range(count):
        out[j] = row[j]


@compiled(inner=True, **OPTIONS)
def fill(out: Floats, number: float, count: int) -> None:
    """out[:count] = number."""
    for j in range(count):
        out[j] = number


@compiled(**OPTIONS)
def exp(x: Floats, out: Floats, work: Floats, more: Floats, count: int) -> None:
    """out = e^x: reduced by multiples of log 2, a polynomial of degree 13, and 2^k put into the exponent."""
    bits, more_bits = work.view(np.int64), more.view(np.int64)
    for j in range(count):
        clipped = min(max(x[j], -746.0), 710.0)
        work[j] = clipped * _LOG2_E + _MAGIC
        k = work[j] - _MAGIC
        r = (clipped - k * _LN2_HIGH) - k * _LN2_LOW
        p = _EXP[0]
        for coefficient in _EXP[1:]:
            p = p * r + coefficient
        out[j] = 1.0 + (r + p * r * r)
    for j in range(count):
        # 2^k = 2^half * 2^rest, because 2^1024 and 2^-1075 are not normal numbers. `more` cannot be read as
        # float before all of its bits are set, nor `work` after.
        half = bits[j] >> 1
        more_bits[j] = (half << 52) + _ONE
        bits[j] = ((bits[j] - half) << 52) + _ONE
    for j in range(count):
        value = out[j] * more[j] * work[j]
        value = np.inf if x[j] > _EXP_OVERFLOW else value
        value = 0.0 if x[j] < _EXP_UNDERFLOW else value
        out[j] = x[j] if x[j] != x[j] else value


@compiled(**OPTIONS)
def log(x: Floats, out: Floats, work: Floats, more: Floats, count: int) -> None:
    """out = log x: exponent times log 2, and the series of 2 artanh((m - 1) / (m + 1)) for the mantissa m."""
    bits, more_bits = work.view(np.int64), more.view(np.int64)
    magic = 0x4338000000000000  # the bits of _MAGIC
    for j in range(count):
        work[j] = x[j] * 18014398509481984.0 if x[j] < 2.2250738585072014e-308 else x[j]
    for j in range(count):
        # Shift so that the mantissa lies between sqrt(1/2) and sqrt(2).
        shifted = bits[j] - 0x3FE6A09E667F3BCD
        more_bits[j] = (shifted >> 52) + magic
        bits[j] = (shifted & _MANTISSA) + 0x3FE6A09E667F3BCD
    for j in range(count):
        k = more[j] - _MAGIC
        k = k - 54.0 if x[j] < 2.2250738585072014e-308 else k
        f = work[j] - 1.0
        s = f / (2.0 + f)
        z = s * s
        p = _LOG[0]
        for coefficient in _LOG[1:]:
            p = p * z + coefficient
        # log(1 + f) = f - s (f - z p), so that the leading term f is exact
        value = k * _LN2_HIGH - ((s * (f - z * p) - k * _LN2_LOW) - f)
        value = x[j] if x[j] == np.inf else value
        value = -np.inf if x[j] == 0.0 else value
        out[j] = np.nan if not x[j] >= 0.0 else value


@compiled(inner=True, **OPTIONS)
def _sine_of_quadrant(x: Floats, out: Floats, work: Floats, shift: int, count: int) -> None:
    """out = sin(x + shift pi / 2), for abs(x) below the limit of the reduction."""
    bits = work.view(np.int64)
    for j in range(count):
        work[j] = x[j] * _TWO_OVER_PI + _MAGIC
        k = work[j] - _MAGIC
        r = ((x[j] - k * _PIO2_1) - k * _PIO2_2) - k * _PIO2_3
        out[j] = r
    for j in range(count):
        r = out[j]
        z = r * r
        s = 1.58969099521155010221e-10
        s = s * z - 2.50507602534068634195e-08
        s = s * z + 2.75573137070700676789e-06
        s = s * z - 1.98412698298579493134e-04
        s = s * z + 8.33333333332248946124e-03
        s = s * z - 1.66666666666666324348e-01
        sine = r + r * z * s
        c = -1.13596475577881948265e-11
        c = c * z + 2.08757232129817482790e-09
        c = c * z - 2.75573143513906633035e-07
        c = c * z + 2.48015872894767294178e-05
        c = c * z - 1.38888888888741095749e-03
        c = c * z + 4.16666666666666019037e-02
        half = 0.5 * z
        top = 1.0 - half
        cosine = top + (((1.0 - top) - half) + z * z * c)
        quadrant = bits[j] + shift
        value = cosine if quadrant & 1 else sine
        out[j] = -value if quadrant & 2 else value


@compiled(inner=True, **OPTIONS)
def _all_small(x: Floats, count: int) -> bool:
    largest = 0.0
    for j in range(count):
        size = abs(x[j])
        # False for NaN as well, which the loop then carries through.
        largest = size if size > largest else largest
    return largest < _REDUCTION_LIMIT


@compiled(**OPTIONS)
def sine(x: Floats, out: Floats, work: Floats, shift: int, count: int) -> None:
    """out = sin(x + shift pi / 2): the sine for a shift of 0, the cosine for 1."""
    if _all_small(x, count):
        _sine_of_quadrant(x, out, work, shift, count)
    else:
        for j in range(count):
            value = math.cos(x[j]) if shift else math.sin(x[j])
            out[j] = value if abs(x[j]) < np.inf else np.nan


@compiled(**OPTIONS)
def tan(x: Floats, out: Floats, work: Floats, more: Floats, count: int) -> None:
    """out = tan x."""
    if _all_small(x, count):
        _sine_of_quadrant(x, more, work, 1, count)
        _sine_of_quadrant(x, out, work, 0, count)
        for j in range(count):
            out[j] = out[j] / more[j]
    else:
        for j in range(count):
            out[j] = math.tan(x[j]) if abs(x[j]) < np.inf else np.nan


@compiled(**OPTIONS)
def tanh(x: Floats, out: Floats, work: Floats, more: Floats, twice: Floats, count: int) -> None:
    """out = tanh x: a rational function near 0 (of the Cephes library), 1 - 2 / (e^2x + 1) farther out."""
    for j in range(count):
        twice[j] = 2.0 * min(abs(x[j]), 30.0)
    exp(twice, out, work, more, count)
    for j in range(count):
        far = 1.0 - 2.0 / (out[j] + 1.0)
        far = far if x[j] > 0.0 else -far
        z = x[j] * x[j]
        p = (-9.64399179425052238628e-1 * z - 9.92877231001918586564e1) * z - 1.61468768441708447952e3
        q = ((z + 1.12811678491632931402e2) * z + 2.23548839060100448583e3) * z + 4.84406305325125486048e3
        near = x[j] + x[j] * z * (p / q)
        value = near if abs(x[j]) < 0.625 else far
        out[j] = x[j] if x[j] != x[j] else value
