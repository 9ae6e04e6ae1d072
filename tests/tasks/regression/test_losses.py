"""One definition of each loss, and the compiled kernels held against it."""

from __future__ import annotations

import numpy as np
import pytest

from discodso.tasks.regression.evaluator import Program, evaluate
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.expression_space import Fit, RegressionSpace
from discodso.tasks.regression.losses import (
    nmse_reward,
    prediction_reward,
    scaled_error,
    squared_error,
    squared_loss,
    weighted_variance,
)

FORMULAS = ("x1 * x2 + 0.5", "sin(x1) - 2 * x2", "exp(x1 + 3.5)", "log(x1 - 1.5)", "1e100 * x1 * x1")


def data():
    rng = np.random.default_rng(5)
    X = rng.uniform(0.5, 3, (300, 2))  # more than one block of the kernels
    weights = rng.random(300)
    return X, X[:, 0] ** 2 + np.sin(X[:, 1]), weights / weights.sum()


@pytest.mark.parametrize("scaled", [False, True])
def test_the_kernels_have_the_same_errors(scaled):
    X, y, weights = data()
    space = RegressionSpace(min_length=1, library=("add", "sub", "mul", "sin", "exp", "log", "const"))
    built = space.build(2)
    expressions = [Expression.parse(formula, ("x1", "x2")) for formula in FORMULAS]
    program, columns = Program.of(built.library), np.ascontiguousarray(X.T)
    batch = built.encode([expression.design for expression in expressions])
    defined = scaled_error if scaled else squared_error
    found = Fit(program, columns, y, weights, scaled=scaled).errors(batch)
    want = [defined(evaluate(expression, X), y, weights) for expression in expressions]
    assert found == pytest.approx(want, rel=1e-9)
    assert np.isinf(found[3])
    fit = Fit.of(program, X, y, weights, scaled=scaled)
    assert fit(batch) == pytest.approx(nmse_reward(want, weighted_variance(y, weights)), rel=1e-9)


def test_the_reward_of_predictions():
    X, y, _ = data()
    assert prediction_reward(y, y) == 1
    assert prediction_reward(np.full(300, y.mean()), y) == pytest.approx(0.5)
    assert prediction_reward(np.where(X[:, 0] > 1, y, np.nan), y) == 0
    assert prediction_reward(np.full(300, 1e300), y) == 0
    assert (
        prediction_reward([3.0, 3.0], np.array([2.0, 2.0])) == 0.5
    )  # a constant target counts as of variance 1
    assert nmse_reward([0.0, 2.0, np.inf, np.nan], 2.0).tolist() == [1, 0.5, 0, 0]


def test_losses_of_what_is_not_finite_are_infinite():
    X, y, weights = data()
    undefined, large = (
        Expression.parse(formula, ("x1", "x2")) for formula in ("log(x1 - 1.5)", "1e200 * x1")
    )
    assert squared_loss(undefined, X, y, weights) == np.inf
    assert squared_loss(large, X, y, weights) == np.inf  # and without a warning of the overflow
    assert scaled_error(undefined(X), y, weights) == np.inf
