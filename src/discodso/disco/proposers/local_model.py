"""A model of the rewards of one skeleton near the place where it is searched: a Gaussian process over its numbers.

Points come whitened, so that all directions are alike to the search. Targets are normal scores of ranks. The prior
variance, the length of the kernel and the noise have the highest marginal likelihood; long lengths let the process
be a parabola.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from discodso.base.arrays import Floats
from discodso.disco.screen import normal_scores, squared_distances, squared_norms

_LENGTHS = (1.0, 2.0, 4.0, 8.0)  # in steps of the search
_NOISES = (1e-6, 1e-3, 1e-1)  # as shares of the prior variance

Model = Callable[[Floats], Floats]  # points float[M, N] to expected scores float[M]


def local_model(points: Floats, rewards: Floats) -> Model | None:
    """Fit points[M, N] with their rewards[M]; None if no process fits."""
    size = math.sqrt(points.shape[1])
    own, targets = points / size, normal_scores(rewards)
    distances = squared_distances(own, own)
    best, chosen = -np.inf, None
    for length in _LENGTHS:
        kernel = np.asfortranarray(np.exp(-distances / (2 * length**2)))
        for noise in _NOISES:  # thousands of times: without wrappers and copies
            noisy = kernel.copy(order="F")
            noisy.flat[:: len(own) + 1] += noise + 1e-8
            factor, broken = dpotrf(noisy, lower=True, clean=False, overwrite_a=True)
            if broken:
                continue
            weights = dpotrs(factor, targets, lower=True)[0]
            variance = max(float(targets @ weights) / len(own), 1e-300)
            likelihood = -0.5 * len(own) * math.log(variance) - float(np.log(factor.diagonal()).sum())
            if likelihood > best:
                best, chosen = likelihood, (length, weights)
    if chosen is None:
        return None
    length, weights = chosen

    norms = squared_norms(own)

    def expected(others: Floats) -> Floats:
        squares = squared_distances(others / size, own, norms)
        squares /= -2 * length**2
        found: Floats = np.exp(squares, out=squares) @ weights
        return found

    return expected
