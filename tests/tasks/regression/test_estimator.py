"""DisCoRegressor as scikit-learn's users meet it."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from discodso import Design, DisCoRegressor
from discodso.base.errors import DeclarationError
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.front import FrontPoint, undominated
from discodso.tasks.regression.model_choice import choose_by_rule, widened
from discodso.tasks.regression.operators import Operator
from discodso.tasks.regression.prune import fit_constants, prune, shorter


@parametrize_with_checks([DisCoRegressor(budget=1000, random_state=0)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def law(rows=80, seed=0):
    rng = np.random.default_rng(seed)
    frame = pandas.DataFrame(rng.uniform(0.5, 3, (rows, 2)), columns=["speed", "mass"])
    return frame, 0.5 * frame["mass"] * frame["speed"] ** 2


SMALL = DisCoRegressor(budget=5000, random_state=0)


def test_a_law_is_found_named_and_exported():
    X, y = law()
    model = clone(SMALL).fit(X, y)
    assert model.score(X, y) > 0.999
    assert "speed" in str(model)
    assert "mass" in model.latex()
    assert {str(s) for s in model.sympy().free_symbols} <= {"speed", "mass"}
    names: dict = {}
    exec(model.export("python"), names)  # our own text
    got = [names["predict"](*row) for row in X.to_numpy().tolist()]
    np.testing.assert_allclose(got, model.predict(X), rtol=1e-9)
    assert "double predict" in model.export("c")
    with pytest.raises(DeclarationError, match="language"):
        model.export("fortran")


def test_the_front_falls_and_its_choice_is_marked():
    X, y = law()
    model = clone(SMALL).fit(X, y + np.random.default_rng(1).normal(0, 0.1, len(y)))
    front = model.equations_
    assert isinstance(front, pandas.DataFrame)
    assert front["complexity"].is_monotonic_increasing
    assert front["loss"].is_monotonic_decreasing
    assert front["chosen"].sum() == 1
    assert front["leave_one_out_error"].notna()[front["chosen"]].all()
    assert front["validation_loss"].isna().all()  # no rows were held out
    assert 4750 < model.calls_ <= 5000  # the choice costs some, too


def test_same_seed_same_model_and_pickles_predict_alike():
    X, y = law()
    first, second = (clone(SMALL).fit(X, y) for _ in range(2))
    assert first.expression_ == second.expression_
    again = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(again.predict(X), first.predict(X))
    assert str(again) == str(first)


def test_pipelines_and_grid_search():
    X, y = law(40)
    pipeline = make_pipeline(StandardScaler(), DisCoRegressor(budget=500, random_state=0))
    grid = GridSearchCV(pipeline, {"discoregressor__max_length": [5, 12]}, cv=2).fit(X, y)
    assert grid.best_score_ > 0


def test_warm_start_goes_on():
    X, y = law()
    y = np.sin(3 * X["speed"]) + y
    model = DisCoRegressor(budget=1500, random_state=0, warm_start=True, selection="accuracy").fit(X, y)
    before = min(c.loss for c in model.front_points_)
    kept = model._found.kept
    assert len(kept) > 5
    model.fit(X, y)
    started = model.result_.history[0]
    assert started.calls >= len(kept)  # it begins with them, and refines the best of them
    assert started.best > 0.9
    after = min(c.loss for c in model.front_points_)
    assert after <= 1.01 * before  # what is hardly better may be left out of the front


def test_time_limit_and_paper_protocol():
    X, y = law()
    quick = DisCoRegressor(budget=10_000_000, time_limit=1.0, random_state=0).fit(X, y)
    assert quick.calls_ < 10_000_000
    plain = DisCoRegressor(budget=2000, polish=False, scaled=False, random_state=0).fit(X, y)
    assert plain.result_.calls == 1900
    assert 1900 < plain.calls_ <= 1950  # nothing was left to fit: one for each expression that was compared


def test_models_that_are_not_finite_outside_are_passed_over():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.1, 2, (100, 1))
    y = np.log(X[:, 0])
    careful = DisCoRegressor(budget=3000, random_state=0).fit(X, y)
    bold = DisCoRegressor(budget=3000, random_state=0, must_extrapolate=False).fit(X, y)
    assert np.isfinite(careful.predict(widened(X))).all()  # inputs that are never negative stay so
    assert careful.score(X, y) > 0.99
    assert bold.score(X, y) > 0.9999


def test_operators_losses_and_ranges_of_ones_own():
    X, y = law()
    root = Operator("cbrt", 1, np.cbrt)
    model = DisCoRegressor(
        operators=("add", "mul", root, "const"), budget=1000, const_range=(0.0, 1.0), random_state=0
    )
    model.fit(X, np.cbrt(y))
    assert model.score(X, np.cbrt(y)) > 0.5
    worst = DisCoRegressor(budget=1000, loss=lambda y, p, w: float(np.abs(y - p).max()), random_state=0)
    assert math.isfinite(worst.fit(X, y).score(X, y))
    absolute = DisCoRegressor(budget=1000, loss="mae", random_state=0).fit(X, y)
    assert absolute.score(X, y) > 0.3


def test_constant_targets_and_single_rows():
    X = np.arange(10.0)[:, None]
    constant = DisCoRegressor(budget=300, random_state=0).fit(X, np.full(10, 4.0))
    np.testing.assert_allclose(constant.predict(X), 4.0, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"budget": 0}, "budget"),
        ({"time_limit": -1}, "time_limit"),
        ({"selection": "best"}, "selection"),
        ({"patience": 0}, "patience"),
        ({"loss": "rmse"}, "loss"),
        ({"operators": ("sinh", "const")}, "unknown operator 'sinh'"),
        ({"column_names": ("a",)}, "column_names"),
    ],
)
def test_bad_settings_name_their_key(change, words):
    X, y = law(20)
    with pytest.raises(ValueError, match=words):
        clone(SMALL).set_params(**change).fit(X.to_numpy(), y)


def test_a_fit_of_constants_never_makes_it_worse_and_counts():
    X = np.linspace(0.1, 3, 40)[:, None]
    y = 2.0 * np.exp(-1.3 * X[:, 0])
    weights = np.full(40, 1 / 40)
    start = Expression(Design.of("mul", ("const", 1.0), "exp", "mul", ("const", -1.0), "x1"), ("x1",))
    better, calls = fit_constants(start, (X, y, weights))
    np.testing.assert_allclose(better.constants, [2.0, -1.3], rtol=1e-6)
    assert calls > 3
    inside, _ = fit_constants(start, (X, y, weights), const_range=(-1.1, 1.5))
    assert np.all((inside.constants >= -1.1) & (inside.constants <= 1.5))
    nothing = Expression(Design.of("exp", "x1"), ("x1",))
    assert fit_constants(nothing, (X, y, weights)) == (nothing, 0)


def test_what_carries_nothing_is_cut_out():
    X = np.random.default_rng(0).uniform(0.5, 3, (60, 2))
    y = 2.5 * X[:, 0] / X[:, 1]
    weights = np.full(60, 1 / 60)
    padded = Expression.parse("2.4 * (a + b - b * 1.0) / b * (a / a) + 0.001 * sin(b) - 0.002", ("a", "b"))
    stages, calls = prune(padded, (X, y, weights))
    lengths = [len(stage) for stage in stages]
    assert lengths == sorted(lengths, reverse=True)
    exact = [stage for stage in stages if np.allclose(stage(X), y)]
    assert len(exact[-1]) == 5
    assert calls > len(stages)
    near, fewer = prune(padded, (X, y, weights), most=1.2)
    assert near == stages[: len(near)]
    assert len(near) < len(stages)
    assert fewer < calls
    assert {len(e) for e in shorter(Expression.parse("a + b", ("a", "b")))} == {1}


def candidate(complexity, loss, validation=None, finite=True):
    return FrontPoint(Expression(Design.of("x1"), ("x1",)), complexity, loss, validation, finite)


def test_choosing_from_a_front():
    front = [
        candidate(1, 10, 11),
        candidate(3, 1.0, 1.2),
        candidate(9, 0.9, 1.21),
        candidate(20, 0.1, 5.0, False),
    ]
    assert choose_by_rule(front, "accuracy").complexity == 9  # the best one is not finite
    assert choose_by_rule(front, "validation").complexity == 3
    assert choose_by_rule(front, "complexity").complexity == 3
    assert [c.complexity for c in undominated([*front, candidate(5, 2.0)])] == [1, 3, 9, 20]


def test_operators_may_have_costs_which_the_front_adds_up():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3, (80, 2))
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 0]) + 0.02 * rng.standard_normal(80)
    costs = {"add": 2, "mul": 3, "sin": 11, "const": 5}
    model = DisCoRegressor(budget=8000, operators=costs, random_state=0).fit(X, y)
    known = {**costs, "x1": 1, "x2": 1, "sub": 2, "neg": 2, "n2": 3, "n3": 3, "n4": 3, "div": 3, "inv": 3}
    for point in model.front_points_:  # what is no operator and no input is a number
        assert point.complexity == sum(known.get(token, 5) for token in point.expression.design.tokens)
    equal = {row["complexity"]: row for row in model.front_rows_}
    assert all("sin" not in row["expression"] for cost, row in equal.items() if cost < 12)


def test_costs_count_where_disco_searches_too():
    X, y = law()
    costs = {"add": 2, "mul": 3, "const": 4, Operator("cbrt", 1, np.cbrt): 7}
    model = DisCoRegressor(budget=600, operators=costs, random_state=0).fit(X, y)
    known = {"cbrt": 7, "add": 2, "sub": 2, "neg": 2, "mul": 3, "n2": 3, "n3": 3, "n4": 3, "div": 3}
    known |= {"x1": 1, "x2": 1}
    for point in model.front_points_:
        assert point.complexity == sum(known.get(token, 4) for token in point.expression.design.tokens)
    assert model.space_.library.tokens[model.space_.library.id("cbrt")].complexity == 7


@pytest.mark.parametrize(
    ("operators", "words"),
    [
        ({"add": 1, "sin": 0}, "the cost of 'sin' must be an integer from 1 to 40, got 0"),
        ({"add": 1.5, "sin": 1}, "the cost of 'add' must be an integer"),
        ("add", "operators must be names such as"),
        ((), "operators must be names such as"),
    ],
)
def test_operators_that_cannot_be_are_refused(operators, words):
    X, y = law(20)
    with pytest.raises(DeclarationError, match=words):
        clone(SMALL).set_params(operators=operators).fit(X, y)


def nested(model, outer, inner):
    """Whether an operator stands inside another in anything that was kept."""
    for point in model.front_points_:
        tokens = point.expression.design.tokens
        for place, name in enumerate(tokens):
            open_slots = 1
            for token in tokens[place:]:
                operator = point.expression.operator(token)
                open_slots += (operator.arity if operator else 0) - 1
                if name == outer and token == inner and token is not tokens[place]:
                    return True
                if open_slots == 0:
                    break
    return False


def test_rules_of_nesting_are_the_users():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (80, 1))
    y = 2 * np.sin(np.cos(X[:, 0]))
    free = DisCoRegressor(budget=20_000, nesting={}, random_state=0).fit(X, y)
    assert str(free) == "2 * sin(cos(x1))"
    ruled = DisCoRegressor(budget=20_000, random_state=0).fit(X, y)
    assert not nested(ruled, "sin", "cos")
    assert nested(free, "sin", "cos")
    own = DisCoRegressor(budget=20_000, nesting={"sin": "cos", "exp": ["sin", "cos"]}, random_state=0).fit(
        X, y
    )
    assert not nested(own, "sin", "cos")


def test_rules_of_nesting_hold_for_disco():
    X, y = law()
    kept = {}
    for nesting in ({"exp": ["exp", "log"]}, {}):
        model = DisCoRegressor(
            budget=1500,
            operators=("add", "exp", "log", "const"),
            nesting=nesting,
            scaled=False,
            random_state=0,
        ).fit(X, y)
        inside = [nested(model, "exp", name) for name in ("exp", "log")]
        kept[bool(nesting)] = any(inside)
        names = [rule.name for rule in model.space_.constraints]
        assert any("ForbiddenDescendant" in name for name in names) is bool(nesting)
    assert not kept[True]


@pytest.mark.parametrize(
    ("nesting", "words"),
    [({"sinus": ["sin"]}, "nesting must be names of operators"), (("sin",), "nesting must be a mapping")],
)
def test_rules_of_nesting_that_cannot_be_are_refused(nesting, words):
    X, y = law(20)
    with pytest.raises(DeclarationError, match=words):
        clone(SMALL).set_params(nesting=nesting).fit(X, y)


def test_a_loss_of_ones_own_is_minimised():
    X, y = law()
    y = y.to_numpy() * np.where(
        np.arange(len(y)) == 3, 50.0, 1.0
    )  # an outlier, which this loss does not mind

    def loss(y, prediction, weights):
        return float(weights @ np.log1p(np.abs(y - prediction)))

    model = DisCoRegressor(budget=3000, loss=loss, random_state=0).fit(X, y)
    weights = np.full(len(y), 1 / len(y))
    for point in model.front_points_:
        assert point.loss == pytest.approx(loss(y, point.expression(X.to_numpy()), weights))
    best = model.result_.best
    assert best.reward == pytest.approx(-min(point.loss for point in model.front_points_), rel=0.5)
    constant = loss(y, np.full(len(y), np.median(y)), weights)
    assert min(point.loss for point in model.front_points_) < 0.5 * constant
