"""Drawing from the truncated Normal by inversion, without torch."""

from __future__ import annotations

import numpy as np
from scipy import special

from discodso.base.arrays import Floats


def draw_truncated(mean: Floats, scale: Floats, low: Floats, high: Floats, uniform: Floats) -> Floats:
    """Draw one value for each entry of the normal distribution conditioned on [low, high], from uniform numbers in
    [0, 1); ends may be infinite, and all arguments broadcast."""
    a, b = (low - mean) / scale, (high - mean) / scale
    # Work in the lower tail, where log Phi keeps its digits; u is mirrored with the interval.
    mirrored = a > -b
    a, b = np.where(mirrored, -b, a), np.where(mirrored, -a, b)
    u = open_interval(np.where(mirrored, 1 - uniform, uniform))
    log_a, log_b = special.log_ndtr(a), special.log_ndtr(b)
    # log(Phi(a) + u (Phi(b) - Phi(a))), with Phi(b) factored out
    share = np.exp(log_a - log_b)
    standard = special.ndtri_exp(np.minimum(log_b + np.log(share + u * (1 - share)), 0.0))
    standard = np.where(mirrored, -standard, standard)
    drawn: Floats = np.clip(mean + scale * standard, low, high)
    return drawn


def open_interval(uniform: Floats) -> Floats:
    """Uniform numbers kept away from 0 and 1, where the inverse CDF of the normal is infinite."""
    return np.clip(uniform, 2.0**-54, 1 - 2.0**-53)
