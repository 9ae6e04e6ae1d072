"""The compiled search: what it finds, that it never rates a function twice, budgets and checkpoints."""

from types import SimpleNamespace

import numpy as np
import pytest

from discodso.tasks.regression.engine import _trees as trees
from discodso.tasks.regression.engine.search import EquationSearch
from discodso.tasks.regression.engine.setting import make_setting
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.expression_space import RegressionSpace

NAMES = ["add", "sub", "mul", "div", "sin", "cos", "exp", "log", "sqrt", "n2"]


def search_for(formula, budget=20_000, seed=0, rows=100, low=0.5, high=3.0, inputs=2, names=NAMES, noise=0.0):
    columns = [f"x{i + 1}" for i in range(inputs)]
    rng = np.random.default_rng(seed)
    X = rng.uniform(low, high, (rows, inputs))
    y = Expression.parse(formula, columns)(X)
    y = y + noise * y.std() * rng.standard_normal(rows)
    settings = SimpleNamespace(description=RegressionSpace((*names, "const")), budget=budget)
    weights = np.full(rows, 1 / rows)
    setting = make_setting(np.ascontiguousarray(X.T), y, weights, names, [], settings)
    return EquationSearch(setting, seed), X, y


def run(search, budget, step=2000):
    while search.counts[0] < budget and not search.found:
        if search.step(min(step, budget - int(search.counts[0]))) == 0:
            break
    return search


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "formula",
    [
        "x1 * x2 / (1 + x1) + sin(x1)",
        "x1**4 + x1**3 + x1**2 + x1",
        "20 + 80 * exp(-0.3 * x1)",
        "exp(-0.4 * x1) * cos(2 * x2)",
        "sqrt(x1**2 + 3 * x2)",
        "1 / (2 * x1 + x2)",
        "x1**2 * sqrt(x2) * exp(-x1 * x2)",
        "0.3 * x1 * sin(19.7 * x1) + x2",  # a frequency that no descent finds
        "0.77 * x1**3.86 / x2",
        "exp(-8 * (x1 - 1.7)**2)",
        "log(x1 + 1) + log(x1**2 + 1)",
        "10 / (5 + (x1 - 1)**2 + (x2 - 2)**2)",
        "x1**5 - 3 * x1**4 * x2 + x1 * x2**2 - x2 + 0.5 * x1",
    ],
)
def test_laws_of_a_few_terms_are_found_with_every_seed(formula, seed):
    search, _, _ = search_for(formula, 300_000, seed, rows=50)
    assert run(search, 300_000).found


@pytest.mark.parametrize(
    ("formula", "inputs", "low"),
    [
        ("x1 * x2 + sin((x1 - 1) * (x2 - 2))", 2, -3.0),  # waves of two inputs
        ("3 + 2 * cos(40 * x1**2)", 1, 0.0),  # a fast one
        ("30 * (x1 - 1) * (x3 - 1) / ((x1 - 10) * x2**2)", 3, 0.5),  # a quotient of sums
        ("x1 * x2 / ((x3 - x4)**2 + (x5 - x6)**2)", 6, 0.5),
        ("log(x1 + sqrt(x1**2 + 1))", 1, 0.0),  # a shift within
        ("x1 * sqrt(x2**2 + x3**2 + x4**2)", 4, -3.0),  # a factor beside what is no product
        ("x1 / (1 + 9 * exp(-x2 * x3))", 3, 0.5),  # an exponential of two inputs below a line
        ("1 / (exp((x1 - x2) / x3) + 1)", 3, 0.5),
        ("5 * x4 + x1 * exp(-x2 * x3)", 4, 0.5),  # one that an input hides
        ("x1**3 * exp(-x1) * (2 * sin(x1) + sin(3 * x1) - sin(5 * x1)) * (x2 - 5)", 2, 0.0),
        ("3 * exp(-2 * (x1 - 0.6)**2) + 2 * exp(-5 * (x1 - 2)**2)", 1, 0.0),  # two bells
        ("((x1 - 1)**4 + x2) / ((x2 - 2)**4 + 10)", 2, 0.0),
    ],
)
def test_laws_that_need_a_start_are_found(formula, inputs, low):
    search, _, _ = search_for(formula, 100_000, 0, rows=300, low=low, inputs=inputs)
    assert run(search, 100_000, 5000).found


def test_a_product_far_from_zero_is_found():
    """tan x1 tan x2 / (tan x3 tan x4) beside an offset, over decades, without a tangent."""
    formula = "32 - 3 * sin(x1) * sin(x2) * cos(x3) * cos(x4) / (cos(x1) * cos(x2) * sin(x3) * sin(x4))"
    search, _, _ = search_for(formula, 100_000, 0, 500, -20, 20, 4)
    assert run(search, 100_000, 5000).found


def test_a_curve_through_all_points_is_no_law():
    X, noise = np.random.default_rng(0).uniform(0.5, 3, (2, 6))
    settings = SimpleNamespace(description=RegressionSpace((*NAMES, "const")), budget=20_000)
    setting = make_setting(X[None], noise, np.full(6, 1 / 6), NAMES, [], settings)
    found = run(EquationSearch(setting, 0), 20_000)
    for codes, _, coefficients, _, _ in found.kept():
        assert (codes == trees.CONSTANT).sum() + (coefficients != 0).sum() <= 3


def test_a_guess_of_many_coefficients_is_taken():
    search, _, _ = search_for("x1 * x2 + sin(x1)", 1000, noise=0.01)
    terms = [[trees.COLUMN], [trees.COLUMN + 1], [trees.N2, trees.COLUMN], [trees.N2, trees.COLUMN + 1]]
    terms += [[code, trees.COLUMN + i] for code in (trees.EXP, trees.LOG) for i in range(2)]
    codes = [code for own in terms[:-1] for code in (trees.ADD, trees.MUL, trees.CONSTANT, *own)]
    codes += [trees.MUL, trees.CONSTANT, *terms[-1]]
    search.offer(codes, [1.0 if code == trees.CONSTANT else np.nan for code in codes], 100)
    assert len(list(search.kept())) == 1


def test_a_product_of_powers_takes_a_handful_of_calls():
    search, _, _ = search_for("3 * x1**1.5 / x2**2", 10_000)
    assert run(search, 10_000).found
    assert search.solved_at < 300


def test_what_is_kept_predicts_as_it_was_rated():
    search, _, y = search_for("x1 * x2 + sin(x1)", 5000, noise=0.05)
    run(search, 5000)
    room = trees.room_for(search.setting.columns, search.setting.longest)
    checked = 0
    for codes, values, coefficients, error, _ in search.kept():
        starts = np.zeros(trees.MOST_TERMS, np.int64)
        own = np.ascontiguousarray(codes)
        predicted = np.full(len(y), coefficients[0])
        for t in range(trees.terms_of(own, len(own), starts)):
            row = trees.forward(
                own, values, search.setting.literals, starts[t], trees.end_of(own, starts[t]), room
            )
            predicted = predicted + coefficients[t + 1] * room[0][row]
        assert np.mean((predicted - y) ** 2) / y.var() == pytest.approx(error, rel=1e-6, abs=1e-14)
        checked += 1
    assert checked > 50


def test_no_function_is_paid_for_twice():
    search, _, _ = search_for("x1 * x2 + sin(x1) + log(x2)", 20_000, noise=0.1)
    run(search, 20_000)
    plain = search.views[0]
    marks = plain.archive[4][plain.archive[3] < np.inf]
    assert len(np.unique(marks)) == len(marks)
    # Two expressions of the archive with equal errors to all digits would be one function with two marks.
    errors = np.sort(plain.archive[3][plain.archive[3] < np.inf])
    assert np.mean(np.diff(errors) <= 1e-13 * errors[1:]) < 0.05


def test_the_budget_holds_to_the_call():
    for budget in (1, 7, 100, 1234):
        search, _, _ = search_for("x1 * x2 + sin(x1) + log(x2) * x1", budget, noise=0.1)
        assert run(search, budget).counts[0] <= budget


@pytest.mark.parametrize("after", [300, 4000, 9000])
def test_a_restored_search_goes_on_bit_for_bit(after):
    whole, _, _ = search_for("x1 * x2 + sin(x1) + log(x2) * x1", 12_000, noise=0.1)
    half, _, _ = search_for("x1 * x2 + sin(x1) + log(x2) * x1", 12_000, noise=0.1)
    while half.counts[0] < after:
        half.step(500)
        whole.step(500)
    again, _, _ = search_for("x1 * x2 + sin(x1) + log(x2) * x1", 12_000, noise=0.1)
    again.restore(half.state())
    for _ in range(5):
        assert again.step(700) == whole.step(700)
    for one, other in zip(again.views, whole.views, strict=True):
        for a, b in zip(one.archive, other.archive, strict=True):
            np.testing.assert_array_equal(a, b)


def test_all_short_expressions_are_rated():
    """Against a list made by brute force: all sums, products and quotients of two inputs, told apart by values."""
    search, X, y = search_for("x1 * x2 + sin(7 * x1)", 10_000, names=["add", "sub", "mul", "div"], noise=0.1)
    run(search, 2000)
    assert search.complete >= 5
    columns = {1: [X[:, 0], X[:, 1]]}
    for size in (3, 5):
        columns[size] = []
        for left in (1, 3):
            right = size - 1 - left
            if right in columns:
                with np.errstate(all="ignore"):
                    for a in columns[left]:
                        columns[size] += [f for b in columns[right] for f in (a + b, a - b, a * b, a / b)]
    best = min(
        1 - np.corrcoef(f, y)[0, 1] ** 2 for f in columns[5] if np.isfinite(f).all() and f.std() > 1e-9
    )
    found = min(error for _, _, _, error, price in search.kept() if price <= 5)
    assert found <= best * (1 + 1e-9)
