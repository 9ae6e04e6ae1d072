"""Digits and simple numbers by what the data say."""

from __future__ import annotations

import numpy as np
import pytest

from discodso.tasks.regression.export import text
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.losses import squared_loss
from discodso.tasks.regression.operators import Operator
from discodso.tasks.regression.precision import rounded, significant_digits, snapped
from discodso.tasks.regression.prune import fit_constants

COLUMNS = ("a", "b")


def fitted(model, truth, rows, noise=0.0, seed=0, operators=()):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.5, 3, (rows, 2))
    y = Expression.parse(truth, COLUMNS)(X)
    y = y + noise * y.std() * rng.normal(size=rows)
    weights = rng.uniform(0.5, 1.5, rows)
    expression = Expression.parse(model, COLUMNS, operators)
    return fit_constants(expression, (X, y, weights / weights.sum()))[0], X, y, weights


@pytest.mark.parametrize("noise", [0.0, 1e-5, 0.01])
@pytest.mark.parametrize(
    ("model", "truth"),
    [
        ("0.51 * a^1.98 * b + 0.01 * a", "0.5 * a^2 * b"),
        ("6.2 * sqrt(a / b) + 0.01 * b", "2 * pi * sqrt(a / b)"),
        ("4.1 * pow(a, 2.9)", "4 * pi * a^3 / 3"),
        ("1.1 * exp(-0.4 * a) * b", "b * exp(-a / 3)"),
    ],
)
def test_laws_are_found_behind_fitted_constants(model, truth, noise):
    found, _ = snapped(*fitted(model, truth, 200, noise))
    assert text(found) == truth
    assert len(found.constants) == 0


def test_constants_that_are_not_simple_stay():
    expression, *data = fitted(
        "1.2 * sin(2.9 * a) + 0.7 * b", "1.234567 * sin(3 * a) + 0.7654321 * b", 300, 1e-4
    )
    found, _ = snapped(expression, *data)
    assert "sin(3 * a)" in text(found)
    np.testing.assert_allclose(sorted(found.constants), [0.7654321, 1.234567], rtol=1e-3)
    before, after = (squared_loss(e, *data[:2], data[2] / data[2].sum()) for e in (expression, found))
    assert after < before * 1.1


def test_the_loss_stays_within_what_one_parameter_is_worth():
    for seed in range(10):
        expression, *data = fitted("0.5 * a + 0.3 * b + 0.2", "0.537 * a + 0.291 * b", 25, 0.2, seed)
        found, _ = snapped(expression, *data)
        share = data[2] / data[2].sum()
        before, after = (squared_loss(e, *data[:2], share) for e in (expression, found))
        assert after <= before * (1 + 3.5**2 / 20)


def test_tiny_samples():
    for rows in (1, 2, 3):
        expression, *data = fitted("2.1 * a + 1.1", "2 * a + 1", rows)
        assert np.isfinite(snapped(expression, *data)[0](data[0])).all()
        assert len(significant_digits(expression, *data)) == 2


def test_exact_data_keep_all_their_digits():
    expression, *data = fitted("1.2 * a + 0.7", "1.23456789 * a + 0.75", 50)
    found, _ = snapped(expression, *data)
    assert significant_digits(found, *data) == (9,)
    assert text(found, 9) == "1.23456789 * a + 0.75"


def test_digits_follow_the_noise():
    digits = []
    for noise in (1e-6, 1e-2):
        expression, *data = fitted("2.3 * a + 0.4 * b", "2.3456789 * a + 0.4321987 * b", 100, noise)
        digits.append(significant_digits(expression, *data))
        short = rounded(expression, digits[-1])
        share = data[2] / data[2].sum()
        before, after = (squared_loss(e, *data[:2], share) for e in (expression, short))
        assert after <= before * 1.001
    assert min(digits[0]) > max(digits[1])
    assert max(digits[1]) <= 5


def test_rounding():
    expression = Expression.parse("1234.5678 * a + 0.00012345", COLUMNS)
    assert rounded(expression, 3).constants.tolist() == [1230.0, 0.000123]
    assert rounded(expression, (6, 1)).constants.tolist() == [1234.57, 0.0001]


def test_operators_of_ones_own():
    root = Operator("cube_root", 1, np.cbrt)
    expression, *data = fitted("1.9 * cube_root(a) + 0.01", "2 * pow(a, 1 / 3)", 100, 1e-3, operators=(root,))
    assert text(snapped(expression, *data)[0]) == "2 * cube_root(a)"


def test_what_is_not_finite_is_left_alone():
    expression = Expression.parse("log(a - 100) * 2.5", COLUMNS)
    X, y, weights = np.ones((5, 2)), np.ones(5), np.ones(5)
    assert not np.isfinite(snapped(expression, X, y, weights)[0](X)).any()
    assert len(significant_digits(expression, X, y, weights)) == 2
