"""Which model comes of a search: simplification, cross-validation, and the choice."""

from __future__ import annotations

import numpy as np
import pytest

from discodso import DisCoRegressor
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.front import FrontPoint
from discodso.tasks.regression.losses import squared_loss
from discodso.tasks.regression.model_choice import (
    choose,
    choose_by_rule,
    expected_rewards,
    is_noise,
    marked_finite,
    widened,
    with_leave_one_out_error,
)
from discodso.tasks.regression.models import make_model

RNG = np.random.default_rng(0)


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


def test_rows_reach_twice_as_far_and_keep_their_signs():
    X = np.column_stack((RNG.uniform(0, 3, 50), RNG.uniform(-2, 2, 50), RNG.uniform(100, 110, 50)))
    wide = widened(X)
    assert wide[:, 0].min() >= 0
    assert wide[:, 0].max() == pytest.approx(2 * X[:, 0].max())
    assert wide[:, 1].min() == pytest.approx(2 * X[:, 1].min())
    reach = X[:, 2].max() - X[:, 2].min()
    assert wide[:, 2].max() - wide[:, 2].min() == pytest.approx(2 * reach)
    assert len(wide) >= 400


@pytest.mark.parametrize("sign", [1, -1])
def test_rows_outside_keep_a_sign_that_the_data_keep(sign):
    X = sign * np.array([[1.0, 4.0, 0.0], [5.0, 5.0, 5.0]])
    wide = np.abs(widened(X))
    # The first would cross 0, and goes to a quarter of its end; the second would not; the third begins at 0.
    np.testing.assert_allclose(wide.min(axis=0), [0.25, 3.5, 0.0])
    np.testing.assert_allclose(wide.max(axis=0), [8.25, 5.5, 10.0])
    assert marked_finite(
        rated("sqrt(x)", (np.abs(X[:, :1]), X[:, 1], np.full(2, 0.5))), np.abs(X[:, :1])
    ).finite


# ------------------------------------------------------------------------------------------------------ choice


def test_models_that_run_away_or_end_outside_are_passed_over():
    seen = data(lambda x: np.sqrt(x + 0.01) + 0.001 * np.sin(40 * x), 0, 2)
    sane = rated("1.414 * sqrt(0.5 * x + 0.005)", seen)
    # Both fit a little better than the sane one, and are something else outside.
    ends = rated("1.414 * sqrt(0.5 * x + 0.005) + 0.001 * sin(40 * x) + 0.0001 * sqrt(2.5 - x)", seen)
    runs = rated("1.414 * sqrt(0.5 * x + 0.005) + 0.0009 * sin(40 * x) + exp(9 * (x - 3))", seen)
    others = [rated(f"1.414 * sqrt(0.5 * x + {c})", seen) for c in (0.004, 0.006)]
    assert ends.loss < sane.loss
    chosen = choose([ends, runs, sane, *others], *seen)
    assert chosen not in (ends, runs)
    assert choose_by_rule([ends, sane], "accuracy") is ends
    assert choose([ends, sane], *seen, widen=False) is ends  # inside it is the better one


def test_the_exact_one_is_chosen_and_of_equals_the_shorter():
    seen = data(lambda x: 2.0 * x**2, -1, 1)
    exact, longer = rated("2.0 * x^2", seen), rated("2.0 * x^2 + 0.0 * sin(x)", seen)
    near = rated("1.9 * x^2 + 0.03", seen)
    assert choose([longer, near, exact], *seen) is exact


@pytest.mark.parametrize(("noise", "wanted"), [(0.09, 0), (0.02, 1)])
def test_with_noise_models_that_end_outside_must_fit_better(noise, wanted):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 2, (60, 1))
    y = np.sqrt(2.5 - X[:, 0]) + noise * rng.standard_normal(60)
    seen = X, y, np.full(60, 1 / 60)
    slope, offset = np.polyfit(X[:, 0], y, 1).tolist()
    line = f"{offset!r} + {slope!r} * x"
    texts = (line, "sqrt(2.5 - x)", f"{line} + 0.0001 * sin(9.1 * x + 2.7 * sin(x))")
    found = [rated(text, seen) for text in texts]
    assert choose(found, *seen) is found[1]
    found = [marked_finite(point, X) for point in found]
    assert [point.finite for point in found] == [True, False, True]
    assert choose(found, *seen) is found[wanted]
    assert choose(found[:2], *seen) is found[0]  # nothing longer shows that noise was reached


def test_what_is_noise():
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 2, (1000, 2))
    noise = rng.standard_normal(1000)
    assert is_noise(X, noise)
    assert is_noise(X * [1, 1e9], 1e-9 * noise)
    assert is_noise(X[:5], noise[:5])
    assert is_noise(np.ones((100, 1)), noise[:100])  # no row lies closer than another
    assert not is_noise(X, np.where(np.arange(1000) == 5, 30.0, noise))
    smooth = np.sin(3 * X[:, 0] + 2 * X[:, 1])
    assert not is_noise(X, smooth)
    assert not is_noise(X, smooth + noise)
    assert is_noise(X, 0.1 * smooth + noise)


@pytest.mark.parametrize(("rows", "size", "wanted"), [(30, 0.01, 0), (1000, 0.02, 1)])
def test_waves_that_bring_little_need_many_rows(rows, size, wanted):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (rows, 1))
    y = 2 * X[:, 0] + size * np.sin(66 * X[:, 0]) + 0.008 * rng.standard_normal(rows)
    seen = X, y, np.full(rows, 1 / rows)
    line, wave = "2.0 * x", f"2.0 * x + {size} * sin(66.0 * x)"
    found = [rated(text, seen) for text in (line, wave, f"{wave} + 1e-5", f"{wave} + 1e-5 * x^2")]
    assert 1.5 * found[1].loss < found[0].loss
    assert choose(found, *seen) is found[wanted]


def test_expected_rewards_by_hand():
    predictions = np.array([[0.0, 1.0, 2.0], [0.0, 1.0, np.nan], [0.0, 1.0, 2.0]])
    got = expected_rewards(predictions, np.zeros(3), np.zeros(3))
    # The second is not defined on a row of the others, and as the truth has the first two rows only.
    np.testing.assert_allclose(got, [1.0, 1 / 3, 1.0])


def test_models_of_one_length_share_the_weight_of_that_length():
    flat, steep = [0.0, 1.0, 2.0], [0.0, 1.0, 4.0]
    apart = 1 / (1 + np.mean([0, 0, 4]) / np.var(flat)), 1 / (1 + np.mean([0, 0, 4]) / np.var(steep))
    got = expected_rewards(np.array([flat, steep, steep]), np.zeros(3), np.zeros(3))
    np.testing.assert_allclose(got[:2], [1 / 3 + 2 / 3 * apart[1], 2 / 3 + 1 / 3 * apart[0]])
    weights = 1 / (1 + np.exp(-0.1)), 1 / (1 + np.exp(0.1))  # one of length 4, two of length 5
    got = expected_rewards(np.array([flat, steep, steep]), np.zeros(3), np.array([4.0, 5.0, 5.0]))
    np.testing.assert_allclose(got[0], weights[0] + weights[1] * apart[1])


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
    assert choose([law, through], *seen) is law
    assert choose([through], *seen) is through


def test_small_errors_count_where_the_data_show_them():
    """Rounded data: an error of 1e-10 of the variance is no accident, if nothing else comes near."""
    predictions = np.array([np.linspace(0, 1, 50), np.linspace(0, 1, 50) ** 2])
    lengths = np.array([20.0, 10.0])
    first, second = expected_rewards(predictions, np.array([1e-10, 1e-6]), lengths)
    assert first > second
    first, second = expected_rewards(predictions, np.array([1e-7, 2e-7]), lengths)
    assert first < second
