"""The choice of a model among those that a search has kept.

Fit alone does not choose well. Where what fits best leaves nothing but noise, the shortest description of the data
is taken: so much for each token, half the logarithm of the rows for each constant, and for each row half the
logarithm of the error. It must be well below the longest equations in length, or noise was not reached.

Where the law is not among the candidates, rows are no independent evidence: what is left is that of a few of them,
or nearly the same at rows that lie close. Many expressions then fit all but perfectly, and most explode, or are
not defined, a little outside of the data. There the rule is that of decision theory. Every candidate may be the
truth, with a weight that falls with its error and its length; those of one length share it, since they are mostly
variants of one another. The one is chosen whose mean reward, over all these truths and on data twice as wide as
those given, is highest. A model that runs away is thus passed over unless no other one fits nearly as well, models
that agree with other good models are favoured, and of two that cannot be told apart the shorter one is taken. What
fits the data themselves much worse than the best is not chosen, whatever it promises outside.

- The error is that of leave-one-out cross-validation: from the slopes by the constants one knows how far each row
  pulls the curve to itself, and so the error at that row had it been left out. Given rows that a search has not
  seen, the error is that on them.
- The rows outside are those of the data, moved away from the middle, or from 0 if the data reach it; inputs that
  are never negative, or never positive, stay so. No target is known there, and none is needed. Rows where a
  candidate that plays the truth is not defined are left out, as they cannot be data.
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
from discodso.tasks.regression.losses import nmse_reward, weighted_variance

_POWER = 1.0  # a model with twice the error is half as likely to be the truth, raised to this power
_LENGTH = 0.1  # and one token more lowers its logarithm by this
# Errors below this share of the variance, or so many times the smallest one if that is less, are no evidence.
_SMALLEST, _TIMES_SMALLEST = 1e-6, 100.0
_TOKEN, _CONSTANT = (
    1.5,
    0.5,
)  # in a description, as natural logarithms; a constant so many times that of the rows
_NOT_FINITE = 10.0  # the same, of a model that does not stay finite on data twice as wide
_LONGEST_LAW = 0.6  # times the longest that was found
_LARGEST_KURTOSIS = 6.0  # of noise; that of normal errors is 3
_ALIKE = 3.0  # standard errors, at most, of the correlation of the errors of rows that lie next to each other
_EXACT, _ROUNDING = 1e-24, 1e3  # an error below the first is that of rounding, which may vary by the second
_ROWS = 1000  # outside the data, at most
_FEWEST = 400
_STRETCH = 2.0
_SHARE_DEFINED = 0.5  # of these rows, at least, for a candidate that may be the truth
_COMPARED = 200  # candidates, those with the smallest errors, and the best of every length
# Models cannot be told apart if their mean rewards are this close, and one error at most so many times the other.
_EQUAL_REWARD, _EQUAL_ERROR = 1e-2, 1.1
# The error of the chosen one is at most so many times the smallest, and so much of the variance more.
_TIMES, _MORE = 2.0, 0.01


def choose(
    points: Sequence[FrontPoint], X: Floats, y: Floats, weights: Floats, widen: bool = True
) -> FrontPoint:
    """The model of data X[n, d], y[n] as the head of this file says; weights sum to 1.

    `widen` says whether it is data outside that matter; without it expectations are over the rows themselves.
    """
    errors = np.array([p.expected_error for p in points]) / weighted_variance(y, weights)
    if errors.min() < _EXACT:
        # Without noise, what does not fit to the last digits is not the law; of the rest it is the shortest.
        exact = [points[i] for i in np.flatnonzero(errors <= max(_EXACT, _ROUNDING * errors.min())).tolist()]
        # One row may be all that squared errors see: the others should be right, too.
        right = [right_rows(point, X, y) for point in exact]
        found = [point for point, share in zip(exact, right, strict=True) if share >= 0.95 * max(right)]
        return min(found, key=lambda p: (p.complexity, p.expected_error))
    best = points[int(errors.argmin())].expression
    if is_noise(X, np.sqrt(weights) * (evaluate(best, X) - y)):
        shortest = points[int(descriptions(points, errors, len(y)).argmin())]
        # Longer ones are there, and bring nothing.
        if shortest.complexity <= _LONGEST_LAW * max(p.complexity for p in points):
            return shortest
    return _by_expected_reward(_compared(points), X, y, weights, widen)


def is_noise(X: Floats, residuals: Floats) -> bool:
    """Whether residuals at rows X[n, d] have no long tails, and those of rows next to each other are not alike."""
    count = len(residuals)
    squares = np.square(residuals / (np.abs(residuals).max() + 1e-300))
    if not np.square(squares).mean() <= _LARGEST_KURTOSIS * squares.mean() ** 2:
        return False
    # Next to each other by ranks, so that no input matters more than another.
    ranks = np.column_stack([np.unique(column, return_inverse=True)[1] / count for column in X.T])
    _, nearest = KDTree(ranks).query(ranks, min(2, count))
    # Where rows are the same, one may be its own neighbour, in second place.
    nearest = nearest.reshape(count, -1)
    other = np.where(nearest[:, -1] == np.arange(count), nearest[:, 0], nearest[:, -1])
    rest = residuals - residuals.mean()
    return bool(rest @ rest[other] <= _ALIKE / math.sqrt(count) * (rest @ rest))


def descriptions(points: Sequence[FrontPoint], errors: Floats, rows: int) -> Floats:
    """float[M], how long a description of so many rows is by each model with errors[M], as a natural logarithm."""
    tokens = np.array([p.complexity for p in points])
    constants = np.array([len(p.expression.constants) for p in points])
    wild = np.array([not p.finite for p in points])
    whole = _TOKEN * tokens + _CONSTANT * math.log(rows) * constants + _NOT_FINITE * wild
    found: Floats = whole + 0.5 * rows * np.log(errors)
    return found


def _by_expected_reward(
    pool: Sequence[FrontPoint], X: Floats, y: Floats, weights: Floats, widen: bool
) -> FrontPoint:
    rows = widened(X) if widen else X
    predictions = np.array([evaluate(p.expression, rows) for p in pool])
    errors = np.array([p.expected_error for p in pool]) / weighted_variance(y, weights)
    expected = expected_rewards(predictions, errors, np.array([p.complexity for p in pool]))
    expected = np.where(errors <= _TIMES * errors.min() + _MORE, expected, -np.inf)
    best = int(expected.argmax())
    close = (expected >= expected[best] - _EQUAL_REWARD) & (errors <= _EQUAL_ERROR * errors[best] + 1e-15)
    return min(
        (pool[i] for i in np.flatnonzero(close).tolist()), key=lambda p: (p.complexity, p.expected_error)
    )


def right_rows(point: FrontPoint, X: Floats, y: Floats) -> float:
    """The share of the rows of which an equation gives the first nine digits."""
    with np.errstate(all="ignore"):
        gaps = np.abs(evaluate(point.expression, X) - y)
    return float(np.mean(gaps <= 1e-9 * np.abs(y)))


def _compared(points: Sequence[FrontPoint]) -> list[FrontPoint]:
    ordered = sorted(points, key=lambda p: p.expected_error)
    best: dict[float, FrontPoint] = {}
    for point in ordered:
        best.setdefault(point.complexity, point)
    return list(dict.fromkeys([*ordered[:_COMPARED], *best.values()]))


def expected_rewards(predictions: Floats, errors: Floats, lengths: Floats) -> Floats:
    """float[M], the mean reward 1 / (1 + NMSE) of each model, over all models as the truth, by their weights.

    Args:
        predictions: float[M, n], of M models.
        errors: float[M], mean squared errors as shares of the variance of the target.
        lengths: float[M].
    """
    floor = min(_SMALLEST, max(_TIMES_SMALLEST * float(errors.min()), _EXACT))
    chance = -_POWER * np.log(np.maximum(errors, 0.0) + floor) - _LENGTH * lengths
    _, length, alike = np.unique(lengths, return_inverse=True, return_counts=True)
    chance = np.exp(chance - chance.max()) / alike[length]
    defined = np.isfinite(predictions)
    total = np.zeros(len(predictions))
    for truth, weight in enumerate(chance / chance.sum()):
        rows = defined[truth]
        if weight < 1e-6 or rows.mean() < _SHARE_DEFINED:
            continue
        values = predictions[truth, rows]
        with np.errstate(all="ignore"):
            apart = np.mean(np.square(predictions[:, rows] - values), axis=1)
            # The small number: were a constant the truth, all others would be wrong.
            total += weight * nmse_reward(apart, float(np.var(values)) + 1e-300)
    return total


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


def widened(X: Floats) -> Floats:
    """Rows of data that reach twice as far as X[n, d]."""
    middle = _fixed_point(X)
    copies = max(1, -(-_FEWEST // len(X)))
    stretches = np.linspace(_STRETCH, 1.0, copies + 1)[:-1]
    return np.concatenate([middle + by * (X - middle) for by in stretches])[:_ROWS]


def _fixed_point(X: Floats) -> Floats:
    """float[d], from which data X[n, d] are stretched to be twice as wide: their middle, or 0 where they reach it.
    Inputs that do not change their sign in the data keep it: the end that would cross 0 then goes to a quarter of
    itself, and the other one further."""
    low, high = X.min(axis=0), X.max(axis=0)
    middle, reach = (low + high) / 2, 0.1 * (high - low)
    middle = np.where(low > 0, np.minimum(middle, 1.75 * low), middle)
    middle = np.where(high < 0, np.maximum(middle, 1.75 * high), middle)
    return np.where((low <= reach) & (high >= -reach), 0.0, middle)


def marked_finite(point: FrontPoint, X: Floats) -> FrontPoint:
    """Whether the expression stays finite on a box twice as wide as the data, tried at random points."""
    ends = np.array([X.min(axis=0), X.max(axis=0)])
    middle = _fixed_point(X)
    corners = middle + 2 * (ends - middle)
    points = corners[0] + np.random.default_rng(0).random((2000, X.shape[1])) * (corners[1] - corners[0])
    values = point.expression(np.concatenate((points, corners, X)))
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
