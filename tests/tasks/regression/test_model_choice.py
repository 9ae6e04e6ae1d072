"""Which model comes of a search: simplification, cross-validation, and the choice."""

from __future__ import annotations

import numpy as np
import pytest

from discodso import DisCoRegressor
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.front import FrontPoint
from discodso.tasks.regression.losses import squared_loss
from discodso.tasks.regression.model_choice import (
    box_outside,
    choose_by_description_length,
    choose_by_rule,
    marked_finite,
    rows_that_count,
    with_leave_one_out_error,
)
from discodso.tasks.regression.models import make_model


def data(function, low, high, rows=60):
    X = np.random.default_rng(1).uniform(low, high, (rows, 1))
    return X, function(X[:, 0]), np.full(rows, 1 / rows)


def rated(text, seen):
    expression = Expression.parse(text, ("x",))
    candidate = FrontPoint(expression, expression.complexity, squared_loss(expression, *seen))
    return with_leave_one_out_error(candidate, *seen)


# ------------------------------------------------------------------------------------------------------ errors


def test_leaving_one_out_is_exact_for_a_line():
    X, y, weights = data(lambda x: np.sin(3 * x), 0, 2, rows=12)
    slope, offset = np.polyfit(X[:, 0], y, 1).tolist()
    found = rated(f"{offset!r} + {slope!r} * x", (X, y, weights))
    errors = []
    for row in range(12):
        rest = np.arange(12) != row
        line = np.polyfit(X[rest, 0], y[rest], 1)
        errors.append((np.polyval(line, X[row, 0]) - y[row]) ** 2)
    assert found.leave_one_out_error == pytest.approx(np.mean(errors))
    assert found.leave_one_out_error > found.loss


@pytest.mark.parametrize("sign", [1, -1])
def test_the_box_outside_is_twice_as_wide_and_keeps_a_sign_that_the_data_keep(sign):
    X = sign * np.array([[1.0, 4.0, 0.0], [5.0, 5.0, 5.0]])
    low, high = np.sort(box_outside(X) * sign, axis=0)
    # The first would cross 0, and goes to a quarter of its end; the second would not; the third begins at 0.
    np.testing.assert_allclose(low, [0.25, 3.5, 0.0])
    np.testing.assert_allclose(high, [8.25, 5.5, 10.0])
    X, seen = np.abs(X[:, :1]), (np.abs(X[:, :1]), X[:, 1], np.full(2, 0.5))
    assert marked_finite(rated("sqrt(x)", seen), X).finite
    assert not marked_finite(rated("sqrt(x - 0.5)", seen), X).finite


# ------------------------------------------------------------------------------------------------------ choice


@pytest.mark.parametrize(("noise", "wanted"), [(0.09, 0), (0.02, 1)])
def test_models_that_end_outside_must_fit_better(noise, wanted):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 2, (60, 1))
    y = np.sqrt(2.5 - X[:, 0]) + noise * rng.standard_normal(60)
    seen = X, y, np.full(60, 1 / 60)
    slope, offset = np.polyfit(X[:, 0], y, 1).tolist()
    found = [rated(text, seen) for text in (f"{offset!r} + {slope!r} * x", "sqrt(2.5 - x)")]
    assert choose_by_description_length(found, *seen) is found[1]
    found = [marked_finite(point, X) for point in found]
    assert [point.finite for point in found] == [True, False]
    assert choose_by_description_length(found, *seen) is found[wanted]
    assert choose_by_rule(found, "accuracy") is found[0]


def test_the_exact_one_is_chosen_and_of_equals_the_shorter():
    seen = data(lambda x: 2.0 * x**2, -1, 1)
    exact, longer = rated("2.0 * x^2", seen), rated("2.0 * x^2 + 0.0 * sin(x)", seen)
    near = rated("1.9 * x^2 + 0.03", seen)
    assert choose_by_description_length([longer, near, exact], *seen) is exact


@pytest.mark.parametrize(("rows", "size", "wanted"), [(30, 0.01, 0), (1000, 0.02, 1)])
def test_waves_that_bring_little_need_many_rows(rows, size, wanted):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (rows, 1))
    y = 2 * X[:, 0] + size * np.sin(66 * X[:, 0]) + 0.008 * rng.standard_normal(rows)
    seen = X, y, np.full(rows, 1 / rows)
    line, wave = "2.0 * x", f"2.0 * x + {size} * sin(66.0 * x)"
    found = [rated(text, seen) for text in (line, wave, f"{wave} + 1e-5", f"{wave} + 1e-5 * x^2")]
    assert 1.5 * found[1].loss < found[0].loss
    assert choose_by_description_length(found, *seen) is found[wanted]


def test_rows_that_count():
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 2, (1000, 2))
    noise = rng.standard_normal(1000)
    assert rows_that_count(X, noise) > 900
    assert rows_that_count(X * [1, 1e9], 1e-9 * noise) == pytest.approx(rows_that_count(X, noise))
    assert rows_that_count(X, rng.standard_t(3, 1000)) < 700
    outlier = np.where(np.arange(1000) == 5, 100.0, noise)
    assert rows_that_count(X, outlier) == 20  # but not fewer
    smooth = np.sin(3 * X[:, 0] + 2 * X[:, 1])
    assert rows_that_count(X, smooth) < 100
    assert rows_that_count(X, smooth + 5 * noise) > 700
    assert rows_that_count(X[:12], smooth[:12]) == 12
    assert rows_that_count(np.ones((100, 1)), noise[:100]) > 60  # no row lies closer than another


def test_of_what_is_no_law_the_short_one_is_taken():
    """Where the best leaves a wave, or is right but for a few rows, it has less to say than its error suggests."""
    seen = data(lambda x: x**2 + 0.05 * np.sin(3 * x), 0, 6, rows=400)
    curve, waves = rated("x^2", seen), rated("x^2 + 0.02 * sin(2.8 * x + 0.3 * cos(x)) * cos(0.1 * x)", seen)
    assert waves.loss < curve.loss
    assert choose_by_description_length([curve, waves], *seen) is curve
    X, y, weights = seen
    noisy = y + 0.05 * np.random.default_rng(0).standard_normal(len(y))
    found = [rated(text, (X, noisy, weights)) for text in ("x^2", "x^2 + 0.05 * sin(3.0 * x)")]
    assert choose_by_description_length(found, X, noisy, weights) is found[1]


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.1])
def test_what_only_fits_the_noise_is_cut_from_the_chosen_model(noise):
    rng = np.random.default_rng(2)
    X = rng.uniform(1, 5, (200, 3))
    law = 0.5 * X[:, 0] * (X[:, 1] ** 2 + X[:, 2] ** 2)
    seen = X, law + noise * law.std() * rng.standard_normal(200), np.full(200, 1 / 200)
    padded = "0.01 + 0.5 * (m * ((sqrt(exp(-9.8 + -0.3 * exp(v))) + u)^2 + v^2)) + 0.002 * sin(3 * m)"
    model = make_model([Expression.parse(padded, ("m", "v", "u"))], seen, room=1000)
    assert len(model.expression) <= 9
    assert model.calls <= 1000
    wide = 2 * X
    truth = 0.5 * wide[:, 0] * (wide[:, 1] ** 2 + wide[:, 2] ** 2)
    assert np.mean((model.expression(wide) - truth) ** 2) < 1e-3 * truth.var()


def test_a_model_is_made_with_no_more_calls_than_there_are():
    seen = data(lambda x: 2.5 * np.exp(-x), 0, 2)
    texts = ["2.4 * exp(0 - x) + 0.001 * sin(x)", "2 - x", "2.5 * exp(0 - 1.0 * x)", "log(x - 1)"]
    found = [Expression.parse(text, ("x",)) for text in texts]
    for room in (1, 5, 40, 1000):
        model = make_model(found, seen, room=room)
        assert model.calls <= room
        assert squared_loss(model.expression, *seen) < 0.02
        complexities, losses = zip(*((c.complexity, c.loss) for c in model.front), strict=True)
        assert list(complexities) == sorted(complexities)
        assert list(losses) == sorted(losses, reverse=True)
        assert model.expression in [c.expression for c in model.front]
    assert squared_loss(model.expression, *seen) < 1e-12
    held_out = data(lambda x: 2.5 * np.exp(-x), 0, 2, rows=20)
    fitted = make_model(found[:2], seen, held_out, room=200, selection="validation")
    assert 0 < fitted.calls <= 200
    assert squared_loss(fitted.expression, *seen) < 1e-6


def test_every_evaluation_of_the_choice_is_counted():
    seen = data(lambda x: 2.5 * np.exp(-x), 0, 2)
    held_out = data(lambda x: 2.5 * np.exp(-x), 0, 2, rows=20)
    texts = ["2.4 * exp(0 - x) + 0.001 * sin(x)", "2 - x", "2.5 * exp(0 - 1.0 * x)", "x * x", "sin(x)", "3.0"]
    found = [Expression.parse(text, ("x",)) for text in texts]
    made = []

    def loss(expression, X, y, weights):
        made.append(expression)
        return squared_loss(expression, X, y, weights)

    for unseen, selection in ((None, "accuracy"), (held_out, "validation")):
        made.clear()
        model = make_model(
            found, seen, unseen, room=100, selection=selection, loss=loss, refines=False, widen=False
        )
        assert model.calls == len(made) - 1  # the loss of the constant is the variance


@pytest.mark.parametrize("budget", [1, 2, 10, 61, 400, 1000])
def test_small_budgets_hold_with_all_that_is_counted(budget):
    X, y, _ = data(lambda x: 2.5 * np.exp(-x), 0, 2)
    model = DisCoRegressor(budget=budget, random_state=0).fit(X, y)
    assert model.result_.calls <= model.calls_ <= budget


def test_an_exact_fit_has_most_rows_right():
    """One row is all that squared errors see; a curve through it is shorter than the law."""
    X = np.linspace(1, 2, 30)[:, None]
    y = 1e-12 * X[:, 0] ** 2
    y[-1], X[-1] = 4e28, 2e20
    seen = X, y, np.full(30, 1 / 30)
    law, through = rated("0.000000000001 * x^2", seen), rated("200000000.0 * x", seen)
    assert through.loss < 1e-24 * y.var()
    assert through.complexity < law.complexity
    assert choose_by_description_length([law, through], *seen) is law
    assert choose_by_description_length([through], *seen) is through
