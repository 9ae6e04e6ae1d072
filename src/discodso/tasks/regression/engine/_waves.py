"""Where in the frequencies a wave would explain what is left: starts for constants inside sines.

The error of sin(w g) has many local minima in w, so that Levenberg-Marquardt from anywhere else does not find it.
"""

from __future__ import annotations

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.compiled import compiled
from discodso.tasks.regression.engine._fitting import SUMS


@compiled(**SUMS)
def best_wave(
    residual: Floats,
    roots: Floats,
    factor: Floats,
    argument: Floats,
    base: Floats,
    first: float,
    step: float,
    count: int,
) -> tuple[float, float, float]:
    """Frequency and phase of the wave times factor[n] that explains most of residual[n], and how much that is.

    Frequencies w are `first`, `first` + `step`, ..., `count` of them, of sin(base + w argument + phase). The
    residual is multiplied by the roots of the weights, whose squares sum to 1, and has no offset. All are 0 if no
    wave explains anything.
    """
    n = len(residual)
    turn_sine, turn_cosine = np.sin(step * argument), np.cos(step * argument)
    # One step before the first: each turn comes before its use.
    sine, cosine = np.sin(base + (first - step) * argument), np.cos(base + (first - step) * argument)
    best, frequency, phase = 0.0, 0.0, 0.0
    for k in range(count):
        ss = sc = cc = rs = rc = offset_s = offset_c = 0.0
        for j in range(n):
            s = sine[j] * turn_cosine[j] + cosine[j] * turn_sine[j]
            c = cosine[j] * turn_cosine[j] - sine[j] * turn_sine[j]
            sine[j], cosine[j] = s, c
            s, c = s * factor[j] * roots[j], c * factor[j] * roots[j]
            ss += s * s
            sc += s * c
            cc += c * c
            rs += residual[j] * s
            rc += residual[j] * c
            offset_s += roots[j] * s
            offset_c += roots[j] * c
        ss, sc, cc = ss - offset_s * offset_s, sc - offset_s * offset_c, cc - offset_c * offset_c
        determinant = ss * cc - sc * sc
        if not determinant > 1e-8 * ss * cc:
            continue
        a, b = (cc * rs - sc * rc) / determinant, (ss * rc - sc * rs) / determinant
        gain = a * rs + b * rc
        if gain > best:
            best, frequency, phase = gain, first + k * step, np.arctan2(b, a)
    return frequency, phase, best
