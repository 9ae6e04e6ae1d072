"""The compiled search as the method of a run: units, samples, guesses, budgets, folders, limits."""

import subprocess
import sys

import numpy as np
import pytest

from discodso import DisCoRegressor
from discodso.run.result import StopReason
from discodso.tasks.regression.engine._trees import ADD, COLUMN, MUL
from discodso.tasks.regression.equation_method import (
    EquationMethod,
    EquationSettings,
    _lean,
    sample,
    with_needed,
)
from discodso.tasks.regression.evaluator import Program
from discodso.tasks.regression.expression_space import Fit, RegressionSpace


def table(rows=120, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.5, 3, (rows, 2))
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 0])
    return X, y + noise * rng.standard_normal(rows)


def test_it_is_the_default_and_stops_when_all_digits_fit():
    X, _ = table()
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 0])
    model = DisCoRegressor(random_state=0).fit(X, y)
    assert model.result_.stop is StopReason.SOLVED
    assert model.calls_ < 100_000
    assert str(model) == "x1 * x2 + sin(x1)"


@pytest.mark.parametrize("budget", [50, 333, 5000])
def test_the_budget_holds_and_is_used(budget):
    X, y = table()
    model = DisCoRegressor(budget=budget, random_state=0).fit(X, y)
    assert 0.8 * budget - 50 <= model.calls_ <= budget
    assert model.result_.stop is StopReason.BUDGET


def test_the_result_says_up_to_where_the_search_was_complete():
    X, y = table()
    costs = [
        DisCoRegressor(budget=budget, random_state=0).fit(X, y).complete_ for budget in (100, 5000, 40_000)
    ]
    assert 1 <= costs[0] < costs[1] < costs[2] < 10


def test_a_search_for_an_equation_does_without_torch():
    code = (
        "import sys; import numpy as np; from discodso import DisCoRegressor\n"
        "X = np.linspace(1, 2, 20)[:, None]; DisCoRegressor(budget=100).fit(X, 3 * X[:, 0] ** 2)\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_badly_scaled_tables_are_as_good_as_others():
    rng = np.random.default_rng(0)
    mass, speed, radius = (
        10.0 ** rng.uniform(-30, -27, 200),
        rng.uniform(1e7, 1e8, 200),
        rng.uniform(1e-11, 1e-10, 200),
    )
    X, y = np.column_stack((mass, speed, radius)), mass * speed**2 / radius
    model = DisCoRegressor(random_state=0, column_names=("mass", "speed", "radius")).fit(X, y)
    assert str(model) == "mass * speed^2 / radius"
    heat = 1.6e-19 + 8.3e-21 * np.sqrt(mass / 1e-30)
    model = DisCoRegressor(budget=20_000, random_state=0).fit(X, heat)
    np.testing.assert_allclose(model.predict(X), heat, rtol=1e-9)


def test_a_folder_goes_on_bit_for_bit(tmp_path, monkeypatch):
    X, y = table()
    whole = DisCoRegressor(budget=30_000, random_state=1).fit(X, y)
    search, steps = EquationMethod.search, []

    def dies(self, room):
        steps.append(room)
        if len(steps) == 5:
            raise KeyboardInterrupt
        return search(self, room)

    monkeypatch.setattr(EquationMethod, "search", dies)
    model = DisCoRegressor(budget=30_000, random_state=1, out=tmp_path / "run")
    model.fit(X, y)
    assert model.result_.stop is StopReason.INTERRUPTED
    monkeypatch.setattr(EquationMethod, "search", search)
    model.resume(X, y)
    assert str(model) == str(whole)
    assert model.calls_ == whole.calls_
    assert [row.best for row in model.result_.history] == [row.best for row in whole.result_.history]


def test_guesses_are_rated_first_and_fitted():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3, (80, 2))
    y = 2.5 * np.exp(-0.7 * X[:, 0]) * np.cos(1.3 * X[:, 1] + 0.4)
    guess = "2 * exp(-1 * x1) * cos(1 * x2 + 0.5)"
    model = DisCoRegressor(budget=200, random_state=0, guesses=(guess,)).fit(X, y)
    assert model.score(X, y) > 1 - 1e-12


def test_of_many_rows_those_far_out_are_always_looked_at():
    target = np.zeros(5000)
    target[:] = np.random.default_rng(0).standard_normal(5000)
    target[[7, 4321]] = 1e6
    rows, weights = sample(target, np.full(5000, 1 / 5000))
    assert len(rows) == 1000
    assert {7, 4321} <= set(rows.tolist())
    assert weights.sum() == pytest.approx(1)
    assert weights[rows.tolist().index(4321)] == pytest.approx(1 / 5000)


def test_parts_that_bring_nothing_get_no_coefficient():
    rng = np.random.default_rng(0)
    a, b, c = rng.standard_normal((3, 200))
    weights = np.full(200, 1 / 200)
    factors, calls = _lean([a, b, c], 2 * a - 3 * c, weights, 100)
    np.testing.assert_allclose(factors, [0, 2, 0, -3], atol=1e-12)
    assert calls > 1
    noisy, _ = _lean([a, b, c], 5 + 2 * a + 0.1 * rng.standard_normal(200), weights, 100)
    np.testing.assert_allclose(noisy, [5, 2, 0, 0], atol=0.05)


def test_the_time_limit_covers_the_choice():
    X, y = table(300)
    model = DisCoRegressor(budget=10**9, time_limit=2.0, random_state=0).fit(X, y)
    assert model.result_.stop is StopReason.TIME
    assert model.result_.seconds < 2.0


def test_long_sums_of_badly_scaled_inputs_can_be_written():
    X = np.random.default_rng(0).uniform(0.5, 3, (50, 4)) * [1e-7, 1e5, 1e9, 1e-20]
    description = RegressionSpace(("add", "mul", "div", "const"), max_length=48)
    wide = with_needed(description)
    space = wide.build(4)
    fit = Fit.of(Program.of(space.library, wide.operators), X, X[:, 0], np.full(50, 0.02))
    method = EquationSettings(description, fit, 1000).build(space, 0)
    product = [MUL, MUL, MUL, *range(COLUMN, COLUMN + 4)]
    codes = np.array([ADD] * 9 + product * 10)
    assert len(codes) <= method.setting.longest
    design = method.design(codes, np.zeros(len(codes)), np.ones(11))
    assert len(design) > 180  # with a scale before each input
    space.encode([design])


def test_a_constant_or_tiny_table_gives_a_model():
    for y in (np.full(5, 3.0), np.array([1.0, 2.0, 4.0, 8.0, 16.0])):
        X = np.arange(5.0)[:, None]
        model = DisCoRegressor(budget=500, random_state=0).fit(X, y)
        assert np.isfinite(model.predict(X)).all()


def test_patience_ends_a_search_that_gets_no_better():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3, (60, 1))
    y = rng.standard_normal(60)  # nothing to find
    model = DisCoRegressor(budget=10**6, patience=20_000, max_length=4, random_state=0).fit(X, y)
    assert model.result_.stop is StopReason.PATIENCE
    assert 20_000 <= model.calls_ < 200_000
    better = [row.calls for row in model.result_.history if row.best == model.result_.best.reward]
    assert model.result_.calls - better[0] >= 20_000


def test_jobs_share_a_budget_and_give_the_same_each_time():
    X, y = table()
    first, again = (DisCoRegressor(budget=30_000, n_jobs=2, random_state=1).fit(X, y) for _ in range(2))
    assert str(first) == str(again)
    assert first.calls_ == again.calls_ <= 30_000
    assert first.calls_ > 25_000


def test_jobs_go_on_bit_for_bit_in_a_folder(tmp_path):
    X, y = table()
    how = {"n_jobs": 2, "random_state": 1, "selection": "accuracy"}
    DisCoRegressor(budget=30_000, out=tmp_path / "run", **how).fit(X, y)
    more = DisCoRegressor(budget=60_000, out=tmp_path / "run", **how).resume(X, y)
    assert 50_000 < more.calls_ <= 60_000


@pytest.mark.parametrize("seed", [0, None])
def test_targets_are_searched_side_by_side(seed):
    X, y = table()
    Y = np.column_stack((y, X[:, 0] ** 2 / X[:, 1]))
    state = np.random.RandomState(3) if seed is None else seed
    model = DisCoRegressor(budget=4000, n_jobs=2, random_state=state, verbose=True).fit(X, Y)
    state = np.random.RandomState(3) if seed is None else seed
    alone = DisCoRegressor(budget=4000, random_state=state).fit(X, Y)
    assert str(model) == str(alone)
    assert [own.n_jobs for own in model.models_] == [2, 2]


def test_no_jobs_are_refused():
    with pytest.raises(ValueError, match="n_jobs must be a number from 1 on, or -1"):
        DisCoRegressor(n_jobs=0).fit(*table())


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_is_tried_may_be_longer_than_what_is_kept(jobs):
    X, y = table(60)
    model = DisCoRegressor(budget=30_000, max_length=1, n_jobs=jobs, random_state=0).fit(X[:, :1], y)
    assert np.isfinite(model.predict(X[:, :1])).all()
    # Two tokens are soon listed: the run ends, and does not look for waves that it could not write.
    assert model.result_.stop is StopReason.EXHAUSTED
    assert model.calls_ < 1000
