"""The fit of a form with parts: derivatives, constants that stand several times, and checkpoints of the search."""

from types import SimpleNamespace

import numpy as np
import pytest

from discodso.tasks.regression.engine import _form as forms
from discodso.tasks.regression.engine import _trees as trees
from discodso.tasks.regression.engine.form_search import Form, FormSearch, part_terms
from discodso.tasks.regression.engine.setting import make_setting
from discodso.tasks.regression.expression_space import RegressionSpace

NAMES = ["add", "sub", "mul", "div", "sin", "exp"]
# k * f(x1) + exp(-(k * x2)) with k in two places
CODES = [
    trees.ADD,
    trees.MUL,
    trees.CONSTANT,
    forms.PART,
    trees.EXP,
    trees.NEG,
    trees.MUL,
    trees.CONSTANT,
    65,
]


def search_for(law, noise=0.0, seed=0, budget=20_000):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3, (60, 2))
    y = law(*X.T) + noise * rng.standard_normal(60)
    settings = SimpleNamespace(description=RegressionSpace((*NAMES, "const")), budget=budget)
    setting = make_setting(np.ascontiguousarray(X.T), y, np.full(60, 1 / 60), NAMES, [], settings)
    ties = np.array([0 if code == trees.CONSTANT else -1 for code in CODES])
    form = Form(np.array(CODES), ties, 1, np.array([[True, False]]))
    return FormSearch(setting, form, seed), X, y


def go(search, calls):
    while search.counts[0] < calls and not search.found:
        search.step(min(1000, calls - int(search.counts[0])))
    return search


def test_a_constant_in_two_places_is_one():
    search, X, y = search_for(lambda a, b: 0.7 * (np.sin(a) + 2) + np.exp(-0.7 * b))
    go(search, 20_000)
    best = min(search.kept(), key=lambda row: row.error)
    assert best.error < 1e-20
    k = best.parameters[0]
    values = best.parameters[best.bases[0]] + sum(
        factor * np.sin(X[:, 0])
        for factor, (codes, _) in zip(best.parameters[best.bases[0] + 1 :], part_terms(best, 0), strict=False)
        if codes == [trees.SIN, trees.COLUMN]
    )
    if len(part_terms(best, 0)) == 1:
        np.testing.assert_allclose(k * values + np.exp(-k * X[:, 1]), y, atol=1e-8)
    assert k == pytest.approx(0.7)


def test_no_part_has_another_input_and_calls_hold():
    search, _, _ = search_for(lambda a, b: a * b, noise=0.1)
    go(search, 5000)
    assert 4900 < search.counts[0] <= 5000
    rows = list(search.kept())
    assert len(rows) > 20
    assert all(trees.COLUMN + 1 not in row.codes for row in rows)


def test_what_is_lean_fits_no_worse():
    search, _, _ = search_for(lambda a, b: 0.7 * a + np.exp(-0.7 * b))
    go(search, 20_000)
    row = next(row for row in search.kept() if row.error < 1e-20)
    lean, calls = search.lean(row, 1000)
    assert lean.error < 1e-20
    assert lean.parameters[lean.bases[0]] == 0.0
    assert 0 < calls <= 1000
    assert search.lean(row, 10) == (row, 0)


@pytest.mark.parametrize("stop", [900, 4000, 8000])
def test_a_checkpoint_goes_on_bit_for_bit(stop):
    whole, _, _ = search_for(lambda a, b: a / (1 + a) + b, noise=0.1)
    state = None
    while whole.counts[0] < 12_000:
        if state is None and whole.counts[0] >= stop:
            state = whole.state()
        whole.step(min(1000, 12_000 - int(whole.counts[0])))
    again, _, _ = search_for(lambda a, b: a / (1 + a) + b, noise=0.1)
    again.restore(state)
    go(again, 12_000)
    assert again.counts.tolist() == whole.counts.tolist()
    assert [row.error for row in again.kept()] == [row.error for row in whole.kept()]
