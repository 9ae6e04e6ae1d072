"""The regression task and the paper's problems."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discodso import DeclarationError, Design, search
from discodso.baselines.random_search import RandomSettings
from discodso.disco.disco import DisCoSettings
from discodso.disco.sampling import sample
from discodso.disco.settings import LearnerSettings
from discodso.disco.uniform import UniformStepper
from discodso.tasks.regression.evaluator import Program
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.expression_space import Fit, RegressionSpace, regression_task
from discodso.tasks.regression.operators import Operator
from discodso.tasks.regression.problems import FUNCTION_SETS, problems
from discodso.testing import check_task


def data(rows=50, seed=0):
    X = np.random.default_rng(seed).uniform(-2, 2, (rows, 2))
    return X, X[:, 0] ** 2 + 0.5 * X[:, 1]


def test_there_are_45_problems_as_in_the_paper():
    everything = problems()
    assert len(everything) == 45
    assert len({p.name for p in everything}) == 45
    assert sum(p.inputs <= 3 for p in everything) > 30
    assert {p.function_set for p in everything} == set(FUNCTION_SETS)
    with pytest.raises(DeclarationError, match="no problem 'Jin-9'"):
        problems("Jin-9")


@pytest.mark.parametrize("problem", problems(), ids=lambda p: p.name)
@pytest.mark.parametrize("variant", ["A", "B"])
def test_the_truth_scores_one_on_both_sets(problem, variant):
    X, y = problem.training_set(variant)
    wide_x, wide_y = problem.evaluation_set(variant)
    assert X.shape == (problem.points, problem.inputs)
    assert wide_x.shape == (2 * problem.points, problem.inputs)
    assert X.min() >= problem.low
    assert X.max() <= problem.high
    assert wide_x.min() >= 2 * problem.low
    assert wide_x.max() <= 2 * problem.high
    if variant == "B":
        assert np.abs(y).max() < 100
    truth = problem.truth
    library = (
        "add",
        "sub",
        "mul",
        "div",
        "sin",
        "cos",
        "exp",
        "log",
        "sqrt",
        "n2",
        "n3",
        "n4",
        "pow",
        "neg",
        "const",
    )
    space = RegressionSpace(library=library, min_length=1, max_length=64, nesting={}).build(problem.inputs)
    program = Program.of(space.library)
    for inputs, target in ((X, y), (wide_x, wide_y)):
        assert Fit.of(program, inputs, target)(space.encode([truth.design]))[0] == pytest.approx(1, abs=1e-9)
    again, _ = problem.training_set(variant)
    assert np.array_equal(again, X)


@pytest.mark.parametrize("loss", ["nmse", "nrmse", "mae", "r2"])
def test_rewards_are_what_they_say(loss):
    X, y = data()
    weights = np.random.default_rng(3).random(50)
    task = regression_task(X, y, RegressionSpace(min_length=1), loss=loss, weights=weights)
    expression = Expression.parse("x1 * x1 + 0.4", ("x1", "x2"))
    reward = task.batch_objective(task.space.encode([expression.design]))[0]
    w = weights / weights.sum()
    error = expression(X) - y
    variance = w @ (y - w @ y) ** 2
    nmse = w @ error**2 / variance
    want = {
        "nmse": 1 / (1 + nmse),
        "nrmse": 1 / (1 + math.sqrt(nmse)),
        "mae": 1 / (1 + w @ np.abs(error) / math.sqrt(variance)),
        "r2": 1 - nmse,
    }
    assert reward == pytest.approx(want[loss], rel=1e-12)


def test_a_loss_of_ones_own_and_non_finite_predictions():
    X, y = data()
    task = regression_task(
        X, y, RegressionSpace(min_length=1), loss=lambda y, p, w: float(np.max(np.abs(y - p)))
    )
    good, bad = Expression.parse("x1 * x1", ("x1", "x2")), Expression.parse("log(x1)", ("x1", "x2"))
    rewards = task.batch_objective(task.space.encode([good.design, bad.design]))
    assert rewards[0] == pytest.approx(-np.abs(0.5 * X[:, 1]).max())
    assert rewards[1] == -np.inf
    plain = regression_task(X, y, RegressionSpace(min_length=1))
    assert plain.batch_objective(plain.space.encode([bad.design]))[0] == 0


def test_the_task_passes_the_checks_and_can_be_learned():
    X, y = data()
    task = regression_task(X, y)
    check_task(task)
    result = search(
        task,
        budget=10_000,
        seed=0,
        method=DisCoSettings(batch_size=200, learner=LearnerSettings(learning_rate=0.005)),
    )
    assert result.best.reward > search(task, budget=200, seed=0, method=RandomSettings()).best.reward
    first, last = (
        np.mean([row.mean for row in result.history[part]]) for part in (slice(5), slice(-5, None))
    )
    assert last > 2 * first  # what it proposes becomes better


def test_the_papers_constraints_are_the_defaults():
    space = RegressionSpace().build(2)
    assert (space.shape.min_length, space.shape.max_length) == (4, 32)
    assert any("NoNesting" in v.rule for v in space.violations(Design.of("sin", "add", "cos", "x1", "x2")))


def test_switchable_constraints():
    strict = RegressionSpace(
        library=("add", "mul", "exp", "log", "neg", "1", "const"),
        min_length=1,
        max_length=12,
        need_input=True,
        no_constant_subtrees=True,
        no_inverses=True,
        max_constants=2,
        const_range=(0.5, 2.0),
    ).build(2)
    drawn = sample(strict, UniformStepper(strict), 400, np.random.default_rng(0)).designs
    for design in drawn:
        assert {"x1", "x2"} & set(design.tokens)
        assert design.tokens.count("const") <= 2
        assert all(v is None or 0.5 <= v <= 2 for v in design.values)
        text = strict.render(design)
        assert "exp(log(" not in text
        assert "log(exp(" not in text
        assert "neg(neg(" not in text
        assert_no_constant_subtrees(design)


def assert_no_constant_subtrees(design):
    stack = []
    for name in reversed(design.tokens):
        arity = {"add": 2, "mul": 2, "exp": 1, "log": 1, "neg": 1}.get(name, 0)
        below = [stack.pop() for _ in range(arity)]
        assert not arity or any(below)
        stack.append(any(below) if arity else name.startswith("x"))


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (np.zeros((3, 1)), np.zeros(2), "X and y"),
        (np.zeros((0, 1)), np.zeros(0), "n >= 1"),
        (np.array([[np.nan]]), np.zeros(1), "finite"),
        (np.zeros((1, 1)), np.array([np.inf]), "finite"),
    ],
)
def test_bad_data_is_refused(X, y, words):
    with pytest.raises(DeclarationError, match=words):
        regression_task(X, y)


def test_constant_targets_single_rows_and_many_columns_work():
    for X, y in (
        (np.ones((5, 1)), np.full(5, 3.0)),
        (np.ones((1, 1)), np.array([2.0])),
        (np.random.default_rng(0).normal(size=(20, 200)), np.arange(20.0)),
    ):
        result = search(regression_task(X, y), budget=300, method=DisCoSettings(batch_size=100))
        assert 0 < result.best.reward <= 1


def test_a_million_rows():
    X = np.random.default_rng(0).uniform(-2, 2, (1_000_000, 2))
    task = regression_task(X, X[:, 0] * X[:, 1], threads=2)
    result = search(task, budget=60, method=DisCoSettings(batch_size=30))
    assert result.calls == 60
    exact = task.space.encode([Design.of("mul", "x1", "mul", "x2", "div", "x1", "x1")])
    assert task.batch_objective(exact)[0] == pytest.approx(1)


@pytest.mark.parametrize("own", [False, True])
def test_scaled_rewards_are_those_of_the_best_line(own):
    """Against NumPy's polyfit; with an operator of one's own they take the other way through the evaluator."""
    X, y = data(300)
    weights = np.random.default_rng(2).random(300)
    library = ("add", "mul", "exp", "log", "const", *((Operator("half", 1, lambda a: a / 2),) if own else ()))
    task = regression_task(
        X, y, RegressionSpace(library=library, min_length=1, max_length=9), weights=weights
    )
    fit = task.batch_objective
    scaled = Fit.of(fit.program, X, y, weights, scaled=True)
    drawn = sample(task.space, UniformStepper(task.space), 200, np.random.default_rng(1)).designs
    rewards, predictions = scaled(drawn), fit.program.predict(drawn, fit.columns)
    w = weights / weights.sum()
    compared = 0
    for reward, f in zip(rewards, predictions, strict=True):
        if not np.isfinite(f).all():
            assert reward == 0
        elif 1e-6 < f.std() < 1e6:
            slope, offset = np.polyfit(f, y, 1, w=np.sqrt(w))
            nmse = (w @ (offset + slope * f - y) ** 2) / (w @ (y - w @ y) ** 2)
            assert reward == pytest.approx(1 / (1 + nmse), abs=1e-7)
            compared += 1
    assert compared > 60
    with pytest.raises(DeclarationError, match="scaled needs loss"):
        Fit.of(fit.program, X, y, loss="mae", scaled=True)
