"""How far predictions are from a target: squared errors, plain or after the best line, and the paper's reward.

Each is defined here and nowhere else. The compiled kernels of the evaluator sum the same errors block by block;
tests hold them against these.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discodso.base.arrays import Floats
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.options import is_squared


def nmse_reward(errors: ArrayLike, variance: float) -> Floats:
    """The paper's reward 1 / (1 + NMSE) of mean squared errors, for a target of this variance.

    Errors that are infinite or NaN are failures, and get 0.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        nmse = np.asarray(errors, dtype=np.float64) / variance
        return np.asarray(1.0 / (1.0 + np.where(np.isnan(nmse), np.inf, nmse)))


def prediction_reward(predicted: ArrayLike, target: Floats) -> float:
    """The same of one model's predictions[n] of a target[n], all rows alike; 0 if one is not finite."""
    values = np.asarray(predicted, dtype=np.float64)
    if not np.isfinite(values).all():
        return 0.0
    with np.errstate(over="ignore"):
        error = np.mean(np.square(values - target))
    return float(nmse_reward(error, float(np.var(target)) or 1.0))


def weighted_variance(target: Floats, weights: Floats) -> float:
    """Variance of a target[n] by weights[n] that sum to 1; 1 for a constant target, so that it can divide."""
    mean = float(weights @ target)
    variance = float(weights @ np.square(target - mean))
    return variance if variance > 0 else 1.0


def squared_error(predicted: Floats, target: Floats, weights: Floats) -> float:
    """Mean squared error of predictions[n] by weights[n] that sum to 1, infinite if one is not finite."""
    if not np.isfinite(predicted).all():
        return math.inf
    with np.errstate(over="ignore"):
        return float(weights @ np.square(predicted - target))


def squared_loss(expression: Expression, X: Floats, y: Floats, weights: Floats) -> float:
    """The same of an expression on the rows of X[n, d]."""
    return squared_error(expression(X), y, weights)


def mean_loss(loss: Any, expression: Expression, X: Floats, y: Floats, weights: Floats) -> float:
    """Mean error, squared or absolute, or the loss of the user's own; infinite where that is not finite."""
    predicted = expression(X)
    if is_squared(loss):
        return squared_error(predicted, y, weights)
    if not np.isfinite(predicted).all():
        return math.inf
    if callable(loss):
        found = float(loss(y, predicted, weights))
        return found if math.isfinite(found) else math.inf
    return float(np.abs(predicted - y) @ weights)


def scaled_error(predicted: Floats, target: Floats, weights: Floats) -> float:
    """Mean squared error of the best a + b f for predictions f[n], infinite if one is not finite."""
    if not np.isfinite(predicted).all():
        return math.inf
    with np.errstate(all="ignore"):
        offset, slope = affine(predicted, target, weights)
        error = float(weights @ np.square(offset + slope * predicted - target))
    return error if math.isfinite(error) else math.inf


def affine(predicted: Floats, target: Floats, weights: Floats) -> tuple[float, float]:
    """a and b of the best a + b f in weighted least squares; b is 0 if f is constant. Weights sum to 1."""
    mean_f, mean_y = float(weights @ predicted), float(weights @ target)
    spread = float(weights @ np.square(predicted - mean_f))
    if not np.isfinite(spread) or spread <= 1e-14 * float(weights @ np.square(predicted)):
        return mean_y, 0.0
    slope = float(weights @ ((predicted - mean_f) * (target - mean_y))) / spread
    return mean_y - slope * mean_f, slope
