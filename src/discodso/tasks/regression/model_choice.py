"""The choice of a model among those that a search has kept.

The shortest description of the data wins: so much for each token, half a logarithm of the rows for each
constant, and for each row that counts half a logarithm of the error. Where the best that was found is not the
law, rows are no independent evidence: the error may be that of a few, or nearly the same at rows that lie close.
Then what fits best tells little of what is outside the data, and a short equation is worth more. So the
residuals of what fits best say how many rows count.

- The error is that of leave-one-out cross-validation: from the slopes by the constants one knows how far each row
  pulls the curve to itself, and so the error at that row had it been left out. Given rows that a search has not
  seen, the error is that on them.
- A model that does not stay finite on data twice as wide pays for it.
- Without noise, what does not fit to the last digits is not the law; of the rest it is the shortest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.spatial import KDTree

from discodso.base.arrays import Floats
from discodso.tasks.regression.evaluator import evaluate, jacobian
from discodso.tasks.regression.front import FrontPoint, undominated
from discodso.tasks.regression.losses import weighted_variance

_TOKEN, _CONSTANT = (
    1.5,
    0.5,
)  # what they cost, as natural logarithms; a constant so many times that of the rows
_NOT_FINITE = 10.0  # on data twice as wide
_FEWEST_ROWS = 20  # that count, whatever the residuals look like
_GAUSSIAN = 3.0  # kurtosis of normal errors
_SURE, _MOST_ALIKE = 2.0, 0.98  # standard errors; correlations of neighbours
_EXACT, _ROUNDING = 1e-24, 1e3  # an error below the first is that of rounding, which may vary by the second


def choose_by_description_length(
    points: Sequence[FrontPoint], X: Floats, y: Floats, weights: Floats
) -> FrontPoint:
    """The expression with the shortest description of the data X[n, d], y[n]; weights sum to 1."""
    errors = np.array([p.expected_error for p in points]) / weighted_variance(y, weights)
    if errors.min() < _EXACT:
        exact = np.flatnonzero(errors <= max(_EXACT, _ROUNDING * errors.min()))
        # One row may be all that squared errors see: the others should be right, too.
        right = [right_rows(points[i], X, y) for i in exact]
        exact = exact[np.array(right) >= 0.95 * max(right)]
        return min((points[i] for i in exact), key=lambda p: (p.complexity, p.expected_error))
    best = points[int(errors.argmin())].expression
    rows = rows_that_count(X, np.sqrt(weights * len(y)) * (evaluate(best, X) - y))
    constants = _CONSTANT * math.log(len(y))
    lengths = [
        0.5 * rows * math.log(error)
        + _TOKEN * p.complexity
        + constants * len(p.expression.constants)
        + _NOT_FINITE * (not p.finite)
        if error < math.inf
        else math.inf
        for p, error in zip(points, errors.tolist(), strict=True)
    ]
    return points[int(np.argmin(lengths))]


def rows_that_count(X: Floats, residuals: Floats) -> float:
    """How many rows X[n, d] with independent normal errors would say as much as those with these residuals.

    Fewer if some residuals are far larger than others, and if those of rows that lie next to each other are alike.
    """
    count = len(residuals)
    if count <= _FEWEST_ROWS:
        return float(count)
    squares = np.square(residuals / (np.abs(residuals).max() + 1e-300))
    tails = min(_GAUSSIAN * squares.mean() ** 2 / (np.square(squares).mean() + 1e-300), 1.0)
    # By ranks, so that no input matters more than another.
    ranks = np.column_stack([np.unique(column, return_inverse=True)[1] / count for column in X.T])
    _, nearest = KDTree(ranks).query(ranks, 2)
    rest = residuals - residuals.mean()
    # With ties a row may be its own neighbour, in second place.
    other = np.where(nearest[:, 1] == np.arange(count), nearest[:, 0], nearest[:, 1])
    alike = float(rest @ rest[other]) / (float(rest @ rest) + 1e-300) - _SURE / math.sqrt(count)
    alike = min(max(alike, 0.0), _MOST_ALIKE)
    return max(count * tails * (1 - alike) / (1 + alike), float(_FEWEST_ROWS))


def right_rows(point: FrontPoint, X: Floats, y: Floats) -> float:
    """The share of the rows of which an equation gives the first nine digits."""
    with np.errstate(all="ignore"):
        gaps = np.abs(evaluate(point.expression, X) - y)
    return float(np.mean(gaps <= 1e-9 * np.abs(y)))


def choose_by_rule(front: Sequence[FrontPoint], selection: str, tolerance: float = 0.02) -> FrontPoint:
    """Pick one: "accuracy" the smallest loss; "validation" the simplest whose error on unseen rows is within the
    tolerance (a share) of the smallest; "complexity" the largest drop of the logarithm of the loss for one unit of
    complexity, among those within half again of the best loss.
    """
    pool = [point for point in front if point.finite] or list(front)
    errors = [p.unseen_error for p in pool if p.unseen_error is not None]
    if selection == "validation" and len(errors) == len(pool):
        limit = (1 + tolerance) * min(errors) + 1e-15
        good = [p for p, error in zip(pool, errors, strict=True) if error <= limit]
        return min(good, key=lambda p: p.complexity)
    if selection == "complexity":
        return _by_drop(undominated(pool))
    return min(pool, key=lambda p: (p.loss, p.complexity))


def _by_drop(ordered: Sequence[FrontPoint]) -> FrontPoint:
    limit = 1.5 * min(p.loss for p in ordered) + 1e-15
    logs = [math.log(max(p.loss, 1e-300)) for p in ordered]
    gains = [0.0, *(-np.diff(logs) / np.diff([p.complexity for p in ordered]))]
    good = [i for i, point in enumerate(ordered) if point.loss <= limit]
    return ordered[max(good, key=lambda i: gains[i])]


def box_outside(X: Floats) -> Floats:
    """float[2, d], the ends of a box twice as wide as data X[n, d], around their middle, or 0 where they reach it.

    Inputs that do not change their sign in the data keep it: the end that would cross 0 then goes to a quarter of
    itself, and the other one further.
    """
    low, high = ends = np.array([X.min(axis=0), X.max(axis=0)])
    middle, reach = (low + high) / 2, 0.1 * (high - low)
    middle = np.where(low > 0, np.minimum(middle, 1.75 * low), middle)
    middle = np.where(high < 0, np.maximum(middle, 1.75 * high), middle)
    middle = np.where((low <= reach) & (high >= -reach), 0.0, middle)
    box: Floats = middle + 2.0 * (ends - middle)
    return box


def marked_finite(point: FrontPoint, X: Floats) -> FrontPoint:
    """Whether the expression stays finite on a box twice as wide as the data, tried at random points."""
    box = box_outside(X)
    points = box[0] + np.random.default_rng(0).random((2000, X.shape[1])) * (box[1] - box[0])
    values = point.expression(np.concatenate((points, box, X)))
    return replace(point, finite=bool(np.isfinite(values).all()))


def with_leave_one_out_error(point: FrontPoint, X: Floats, y: Floats, weights: Floats) -> FrontPoint:
    """The point with its mean squared error of leave-one-out cross-validation, by the slopes at its constants.

    One Jacobian, so one objective call, if there are constants.
    """
    expression = point.expression
    residuals = evaluate(expression, X) - y
    own: Floats = np.zeros(len(y))
    if len(expression.constants) and not expression.operators:
        slopes = (np.sqrt(weights) * jacobian(expression, X)).T
        slopes = slopes[:, np.isfinite(slopes).all(axis=0)]
        # Else a norm may overflow.
        slopes = slopes / np.maximum(np.abs(slopes).max(axis=0, initial=0.0), 1e-300)
        slopes = slopes / np.maximum(np.linalg.norm(slopes, axis=0), 1e-300)
        if slopes.size:
            left, sizes, _ = np.linalg.svd(slopes, full_matrices=False)
            own = np.minimum(np.square(left[:, sizes > 1e-9 * sizes[0]]).sum(axis=1), 1 - 1e-6)
    error = float(weights @ np.square(residuals / (1 - own)))
    return replace(point, leave_one_out_error=error if np.isfinite(error) else np.inf)
