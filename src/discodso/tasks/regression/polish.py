"""Polishing the constants of an expression with SciPy, after a search."""

from __future__ import annotations

import numpy as np
from scipy import optimize

from discodso.arrays import Floats
from discodso.tasks.regression.expression import Expression


def polish(
    expression: Expression,
    X: Floats,
    y: Floats,
    weights: Floats,
    const_range: tuple[float, float] = (-np.inf, np.inf),
    max_calls: int = 200,
) -> tuple[Expression, int]:
    """Least squares over the constants from where they are; the result never fits worse.

    Returns the expression and how often it was evaluated.
    """
    start = expression.constants
    if not len(start):
        return expression, 0
    calls = 0
    root = np.sqrt(weights)

    def residuals(constants: Floats) -> Floats:
        nonlocal calls
        calls += 1
        difference = root * (expression.with_constants(constants)(X) - y)
        return np.where(np.isfinite(difference), np.clip(difference, -1e100, 1e100), 1e100)

    low, high = const_range
    inside = np.clip(start, low, high)
    if np.isfinite(low):
        inside = np.maximum(inside, np.nextafter(low, np.inf))
    if np.isfinite(high):
        inside = np.minimum(inside, np.nextafter(high, -np.inf))
    before = float(np.square(residuals(start)).sum())
    if not np.isfinite(before):
        return expression, calls
    with np.errstate(all="ignore"):
        try:
            found = optimize.least_squares(
                residuals, inside, bounds=(low, high), x_scale="jac", max_nfev=max_calls
            )
        except (ValueError, np.linalg.LinAlgError):
            return expression, calls
    after = float(np.square(residuals(found.x)).sum())
    better = np.isfinite(found.x).all() and after < before
    return (expression.with_constants(found.x) if better else expression), calls
