"""Coefficients against NumPy's least squares, constants against SciPy's."""

import numpy as np
import pytest
from scipy.optimize import least_squares

from discodso.tasks.regression.engine import _fitting as fitting
from discodso.tasks.regression.engine import _trees as trees
from discodso.tasks.regression.engine._trees import ADD, COLUMN, CONSTANT, EXP, MUL, N2, SIN

X1, X2 = COLUMN, COLUMN + 1


def fitted(codes, values, columns, y, weights, most_calls):
    codes, values = np.array(codes, np.int64), np.array(values, np.float64)
    roots = np.sqrt(weights / weights.sum())
    target = y * roots
    fixed = roots[None, :].copy()
    mean = float(fixed[0] @ target)
    room = fitting.fitting_room(columns, len(codes))
    starts = np.zeros(trees.MOST_TERMS, np.int64)
    count = trees.terms_of(codes, len(codes), starts)
    limits = (-1e60, 1e60)
    rest = target - mean * fixed[0]
    error, calls = fitting.fit(
        codes, values, np.zeros(1), starts, count, (rest, roots, fixed, mean), limits, most_calls, 1e-9, room
    )
    error = fitting.solve_terms(codes, values, np.zeros(1), starts, count, (rest, roots, fixed, mean), room)
    return error, calls, room[3][: count + 1].copy(), values


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    columns = np.ascontiguousarray(rng.uniform(0.5, 3, (2, 60)))
    return columns, rng.uniform(0.1, 2, 60), rng


def test_coefficients_are_those_of_least_squares(data):
    columns, weights, rng = data
    y = rng.standard_normal(60)
    codes = [ADD, N2, X1, ADD, SIN, X2, MUL, X1, X2]
    error, calls, factors, _ = fitted(codes, [np.nan] * len(codes), columns, y, weights, 1)
    table = np.column_stack([np.ones(60), columns[0] ** 2, np.sin(columns[1]), columns[0] * columns[1]])
    share = np.sqrt(weights / weights.sum())
    expected, rest, _, _ = np.linalg.lstsq(table * share[:, None], y * share, rcond=None)
    assert calls == 1
    np.testing.assert_allclose(factors, expected, rtol=1e-9)
    assert error == pytest.approx(rest[0], rel=1e-10)


def test_constants_within_terms_are_those_of_scipy(data):
    columns, weights, rng = data
    y = 2 + 3 * np.exp(-0.7 * columns[0]) * columns[1] + 0.01 * rng.standard_normal(60)
    codes = [MUL, EXP, MUL, CONSTANT, X1, X2]
    values = [np.nan, np.nan, np.nan, -0.2, np.nan, np.nan]
    error, calls, factors, found = fitted(codes, values, columns, y, weights, 60)
    share = np.sqrt(weights / weights.sum())

    def residuals(p):
        return share * (p[0] + p[1] * np.exp(p[2] * columns[0]) * columns[1] - y)

    best = least_squares(residuals, [1.0, 1.0, -0.2], xtol=1e-14, ftol=1e-14, gtol=1e-14)
    assert calls <= 60
    np.testing.assert_allclose([factors[0], factors[1], found[3]], best.x, rtol=1e-5)
    assert error == pytest.approx(2 * best.cost, rel=1e-8)


def test_a_term_that_adds_nothing_gets_no_coefficient(data):
    columns, weights, rng = data
    codes = [ADD, X1, ADD, X2, ADD, X1, X2]  # x1 + x2 + (x1 + x2): the last two are the first two
    _, _, factors, _ = fitted(codes, [np.nan] * len(codes), columns, rng.standard_normal(60), weights, 1)
    assert np.count_nonzero(factors[1:]) == 2


def test_what_is_not_finite_has_no_error(data):
    columns, weights, _ = data
    codes = [EXP, MUL, CONSTANT, X1]
    error, _, _, _ = fitted(codes, [np.nan, np.nan, 1e5, np.nan], columns, columns[0], weights, 1)
    assert error == np.inf
