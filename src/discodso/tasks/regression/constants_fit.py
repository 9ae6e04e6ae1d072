"""Least squares over the constants of one expression, after a search."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from scipy import optimize

from discodso.base.arrays import Floats
from discodso.tasks.regression.evaluator import compiled
from discodso.tasks.regression.expression import Expression


class _EnoughError(Exception):
    """No calls are left."""


def fit_constants(
    expression: Expression,
    X: Floats,
    y: Floats,
    weights: Floats,
    const_range: tuple[float, float] = (-np.inf, np.inf),
    max_calls: int = 200,
) -> tuple[Expression, int]:
    """Least squares from where the constants are; the result never fits worse. The weights sum to 1.

    Returns the expression and the calls made, at most `max_calls`; as in a search, a Jacobian counts as one.
    Operators of one's own have no derivative: there SciPy takes differences, and all that it evaluates counts.
    """
    if not len(expression.constants) or max_calls < 1:
        return expression, 0
    if expression.operators:
        return _by_differences(expression, X, y, weights, const_range, max_calls)
    program, batch = compiled(expression, const_range)
    columns = np.ascontiguousarray(np.asarray(X, dtype=np.float64).T)
    values, _, calls = program.refine(batch, columns, y, weights, np.array([max_calls]), least_gain=1e-9)
    return expression.with_constants(values[0][np.isfinite(values[0])]), int(calls[0])


def _by_differences(
    expression: Expression,
    X: Floats,
    y: Floats,
    weights: Floats,
    const_range: tuple[float, float],
    max_calls: int,
) -> tuple[Expression, int]:
    calls, root = 0, np.sqrt(weights)
    best, least = expression.constants, np.inf

    def residuals(constants: Floats) -> Floats:
        nonlocal calls, best, least
        if calls == max_calls:
            raise _EnoughError
        calls += 1
        predicted = expression.with_constants(constants)(X)
        if not np.isfinite(predicted).all():
            return np.full(len(y), 1e100)
        found = np.clip(root * (predicted - y), -1e100, 1e100)
        error = float(np.square(found).sum())
        if error < least:
            best, least = np.array(constants), error
        return found

    low, high = const_range
    inside = np.clip(expression.constants, np.nextafter(low, np.inf), np.nextafter(high, -np.inf))
    with np.errstate(all="ignore"), suppress(_EnoughError, ValueError, np.linalg.LinAlgError):
        residuals(expression.constants)
        optimize.least_squares(residuals, inside, bounds=(low, high), x_scale="jac")
    return expression.with_constants(best), calls
