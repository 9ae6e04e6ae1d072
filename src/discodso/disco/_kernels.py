"""Compiled loops over values: drawing each given those before it, and scoring. Arguments are not checked."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints, Singles
from discodso.base.compiled import compiled
from discodso.space.tokens import Coordinates

_ROOT_HALF, _HALF_LOG_2PI = math.sqrt(0.5), 0.5 * math.log(2 * math.pi)
_LEAST_LOG, _MOST_LOG = math.log(np.finfo(np.float64).tiny), math.log(np.finfo(np.float64).max)
_MILLS_FROM = -25.0  # where the asymptotic series of the Mills ratio has all digits that count
FAR = 1e8  # stands for infinity in standardised bounds; exp(-FAR**2 / 2) is 0 in float64
# Where the closed forms cancel, integrals are taken by quadrature: below this product of width and steepness, and
# beyond this many scales from the mean.
NARROW, TAIL = 2.0, 3.0


class Layout(NamedTuple):
    """What a `ValueHead` knows of the values of K tokens, at most V of each and P in all.

    Attributes:
        columns, numbers, features: int[K, V], which of the P values it is, which of the numbers, and where it
            stands in what is seen of values; -1 for none.
        first: int[P], first logit of a value with options.
        options: int[K, V], how many it has, 0 for a number.
        integer: bool[K, V].
        coordinates: of numbers.
        limit: of coordinates that are seen.
    """

    columns: Ints
    numbers: Ints
    features: Ints
    first: Ints
    options: Ints
    integer: Bools
    coordinates: Coordinates
    limit: float


class Allowed(NamedTuple):
    """Where the next values of B prefixes may lie.

    Attributes:
        low, high: float[B, K, V], in the units of the values.
        barred, barred_at: bool[C, B, n], options that may not be taken, and which of them each column has, or -1.
    """

    low: Floats
    high: Floats
    barred: Bools
    barred_at: Ints


class Normals(NamedTuple):
    """From the outputs of a network to means and scales.

    Attributes:
        shift, unit: mean of an output 0, and unit of means.
        scale, least, most: scale of an output 0, and limits of scales.
        log_scales: where log scales begin among the outputs, 0 if they are not learned.
        zero, one: float[K, V], what the coordinates 0 and 1 of a value are in the network's own, less the former.
    """

    shift: float
    unit: float
    scale: float
    least: float
    most: float
    log_scales: int
    zero: Floats
    one: Floats


@compiled()
def draw_values(
    phi: Singles,
    weight: Singles,
    chosen: Ints,
    uniform: Floats,
    allowed: Allowed,
    layout: Layout,
    normals: Normals,
    values: Floats,
) -> None:
    """Fill values[B, V], which must be NaN, for the chosen tokens int[B].

    Args:
        phi: float32[B, O].
        weight: float32[O, F], how phi depends on what is seen of values.
        uniform: float[V, B].
    """
    log, offset, width = layout.coordinates
    slots, limit = values.shape[1], layout.limit
    place, amount, share = np.empty(slots, np.int64), np.empty(slots), np.empty(layout.options.max() + 1)
    for i in range(chosen.shape[0]):
        token, seen = chosen[i], 0
        for j in range(slots):
            column = layout.columns[token, j]
            if column < 0:
                continue
            at, u, count = layout.features[token, j], uniform[j, i], layout.options[token, j]
            if count > 0:
                own, start, top = allowed.barred_at[column], layout.first[column], -np.inf
                for k in range(count):
                    logit = _raw(phi[i], weight, start + k, place, amount, seen)
                    share[k] = -np.inf if own >= 0 and allowed.barred[own, i, k] else logit
                    top = max(top, share[k])
                total = 0.0
                for k in range(count):
                    share[k] = math.exp(share[k] - top) if share[k] > -np.inf else 0.0
                    total += share[k]
                running, option = 0.0, 0
                for k in range(count):
                    if share[k] > 0.0:
                        option = k  # the last one stands if rounding leaves the target above the sum
                        running += share[k]
                        if running > u * total:
                            break
                values[i, j] = option
                place[seen], amount[seen] = at + option, 1.0
            else:
                o = layout.numbers[token, j]
                mean = normals.shift + normals.unit * _raw(phi[i], weight, o, place, amount, seen)
                scale = normals.scale
                if normals.log_scales:
                    raw = _raw(phi[i], weight, normals.log_scales + o, place, amount, seen)
                    scale = min(
                        max(scale * math.exp(min(max(raw, -20.0), 20.0)), normals.least), normals.most
                    )
                below, above = allowed.low[i, token, j], allowed.high[i, token, j]
                half = 0.5 if layout.integer[token, j] else 0.0
                mean = (mean - normals.zero[token, j]) / normals.one[token, j]
                scale = scale / normals.one[token, j]
                is_log, zero, one = log[token, j], offset[token, j], width[token, j]
                z_low, z_high = _to_z(below - half, is_log, zero, one), _to_z(above + half, is_log, zero, one)
                z = _truncated_normal(mean, scale, z_low, z_high, u)
                value = z * one + zero
                if is_log:
                    value = math.exp(min(max(value, _LEAST_LOG), _MOST_LOG))
                if layout.integer[token, j]:
                    value = np.round(value)
                value = min(max(value, below), above)
                if layout.integer[token, j]:
                    z = _to_z(value, is_log, zero, one)
                values[i, j] = value
                z = z * normals.one[token, j] + normals.zero[token, j]
                place[seen], amount[seen] = at, min(max(z, -limit), limit)
            seen += 1


@compiled()
def fill_seen(
    tokens: Ints, slot: Ints, z: Floats, feature: Ints, options: Ints, limit: float, seen: Singles
) -> None:
    """Write the values before slot[N] of tokens[N], at coordinates z[N, V], into a zero seen[N, F]."""
    for n in range(tokens.shape[0]):
        token = tokens[n]
        for j in range(slot[n]):
            at = feature[token, j]
            if at >= 0 and options[token, j] == 0:
                seen[n, at] = min(max(z[n, j], -limit), limit)
            elif at >= 0 and z[n, j] >= 0:
                seen[n, at + int(z[n, j])] = 1.0


@compiled()
def score_normals(
    z: Floats,
    mean: Floats,
    scale: Floats,
    low: Floats,
    high: Floats,
    found: Floats,
    slopes: Floats,
    left: Bools,
) -> None:
    """Log densities at z[N] and entropies of truncated Normals into found[2, N], and their derivatives by mean and
    scale into slopes[2, 2, N]. Where closed forms cancel (see `distributions`) it marks left[N] and writes 0."""
    for n in range(z.shape[0]):
        s = scale[n]
        a, b = min(max((low[n] - mean[n]) / s, -FAR), FAR), min(max((high[n] - mean[n]) / s, -FAR), FAR)
        nearest = min(max(a, 0.0), b)
        left[n] = not ((b - a) * max(abs(0.5 * (a + b)), 1.0) >= NARROW and abs(nearest) <= TAIL)
        if left[n]:
            found[:, n] = 0.0
            slopes[:, :, n] = 0.0
            continue
        lower, upper = (-b, -a) if a + b < 0 else (a, b)
        outside = 0.5 * math.erfc(upper * _ROOT_HALF)
        if lower < 0:
            log_mass = math.log1p(-(outside + 0.5 * math.erfc(-lower * _ROOT_HALF)))
        else:
            log_mass = math.log(0.5 * math.erfc(lower * _ROOT_HALF) - outside)
        # Densities at the ends over the mass; d log mass = at_b db - at_a da.
        at_a = math.exp(-0.5 * a * a - _HALF_LOG_2PI - log_mass)
        at_b = math.exp(-0.5 * b * b - _HALF_LOG_2PI - log_mass)
        x, by_ends = (z[n] - mean[n]) / s, a * at_a - b * at_b
        found[0, n] = -0.5 * x * x - math.log(s) - _HALF_LOG_2PI - log_mass
        slopes[0, 0, n] = (x - at_a + at_b) / s
        slopes[0, 1, n] = (x * x - 1 - by_ends) / s
        found[1, n] = math.log(s) + log_mass + _HALF_LOG_2PI + 0.5 + 0.5 * by_ends
        by_a = 0.5 * at_a * (by_ends - 1 - a * a)
        by_b = 0.5 * at_b * (1 + b * b - by_ends)
        slopes[1, 0, n] = -(by_a + by_b) / s
        slopes[1, 1, n] = (1 - a * by_a - b * by_b) / s


@compiled()
def _raw(phi: Singles, weight: Singles, output: int, place: Ints, amount: Floats, seen: int) -> float:
    """One output of the network, given the values before."""
    total = np.float64(phi[output])
    for s in range(seen):
        total += weight[output, place[s]] * amount[s]
    return total


@compiled()
def _to_z(value: float, log: bool, offset: float, width: float) -> float:
    return ((np.log(value) if log else value) - offset) / width


@compiled()
def _truncated_normal(mean: float, scale: float, low: float, high: float, uniform: float) -> float:
    """`TruncatedNormal.sample` of one number."""
    a, b, u = (low - mean) / scale, (high - mean) / scale, uniform
    mirrored = a > -b  # into the lower tail, where small masses keep their digits
    if mirrored:
        a, b, u = -b, -a, 1 - u
    u = min(max(u, 2.0**-54), 1 - 2.0**-53)
    if b > _MILLS_FROM:
        below, above = math.erfc(-a * _ROOT_HALF), math.erfc(-b * _ROOT_HALF)
        x = _normal_quantile(min(0.5 * (below + u * (above - below)), 1 - 2.0**-53))
        z = mean - scale * x if mirrored else mean + scale * x
    else:
        # The way d from the nearer end, at -b scales: Q(d - b) = [s + u (1 - s)] Q(-b), s the share behind -a.
        end, start = -b, _mills(-b)
        behind = math.exp(-0.5 * (b - a) * (-a - b)) * _mills(-a) / start
        share, d = math.log(behind + u * (1 - behind)), 0.0
        for _ in range(6):
            c = share - math.log(_mills(end + d) / start)
            d = -2 * c / (end + math.sqrt(end * end - 2 * c))
        z = low + scale * d if mirrored else high - scale * d
    held: float = min(max(z, low), high)
    return held


@compiled()
def _mills(x: float) -> float:
    """Upper tail of the standard normal over its density, for x above 25."""
    y = 1 / (x * x)
    return (1 - y * (1 - y * (3 - y * (15 - y * 105)))) / x


@compiled()
def _normal_quantile(p: float) -> float:
    """Wichura's algorithm AS 241, to 16 digits."""
    q = p - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        above = 2509.0809287301226727 * r + 33430.575583588128105
        above = ((above * r + 67265.770927008700853) * r + 45921.953931549871457) * r + 13731.693765509461125
        above = ((above * r + 1971.5909503065514427) * r + 133.14166789178437745) * r + 3.387132872796366608
        below = 5226.495278852854561 * r + 28729.085735721942674
        below = ((below * r + 39307.89580009271061) * r + 21213.794301586595867) * r + 5394.1960214247511077
        below = ((below * r + 687.1870074920579083) * r + 42.313330701600911252) * r + 1.0
        return q * above / below
    r = math.sqrt(-math.log(p if q < 0 else 1 - p))
    if r <= 5:
        r -= 1.6
        above = 7.7454501427834140764e-4 * r + 0.0227238449892691845833
        above = ((above * r + 0.24178072517745061177) * r + 1.27045825245236838258) * r
        above = ((above + 3.64784832476320460504) * r + 5.7694972214606914055) * r
        above = (above + 4.6303378461565452959) * r + 1.42343711074968357734
        below = 1.05075007164441684324e-9 * r + 5.475938084995344946e-4
        below = ((below * r + 0.0151986665636164571966) * r + 0.14810397642748007459) * r
        below = ((below + 0.68976733498510000455) * r + 1.6763848301838038494) * r
        below = (below + 2.05319162663775882187) * r + 1.0
    else:
        r -= 5
        above = 2.01033439929228813265e-7 * r + 2.71155556874348757815e-5
        above = ((above * r + 0.0012426609473880784386) * r + 0.026532189526576123093) * r
        above = ((above + 0.29656057182850489123) * r + 1.7848265399172913358) * r
        above = (above + 5.4637849111641143699) * r + 6.6579046435011037772
        below = 2.04426310338993978564e-15 * r + 1.4215117583164458887e-7
        below = ((below * r + 1.8463183175100546818e-5) * r + 7.868691311456132591e-4) * r
        below = ((below + 0.0148753612908506148525) * r + 0.13692988092273580531) * r
        below = (below + 0.59983220655588793769) * r + 1.0
    return above / below if q >= 0 else -above / below
