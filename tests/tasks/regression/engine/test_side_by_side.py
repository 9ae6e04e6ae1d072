"""Searches side by side: one budget, the same result for a seed and a number of jobs, and exact checkpoints."""

from types import SimpleNamespace

import numpy as np
import pytest

from discodso.tasks.regression.engine.setting import make_setting
from discodso.tasks.regression.engine.side_by_side import SideBySide
from discodso.tasks.regression.expression_space import RegressionSpace

NAMES = ["add", "sub", "mul", "div", "sin", "exp"]


def searches(jobs=2, seed=0, budget=40_000):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3, (60, 2))
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(60)
    settings = SimpleNamespace(description=RegressionSpace((*NAMES, "const")), budget=budget)
    setting = make_setting(np.ascontiguousarray(X.T), y, np.full(60, 1 / 60), NAMES, [], settings)
    return SideBySide(setting, seed, jobs)


def go(search, calls, step=6000):
    while search.counts[0] < calls:
        search.step(min(step, calls - int(search.counts[0])))
    return search


def kept(search):
    return [(codes.tolist(), error) for codes, _, _, error, _ in search.kept()]


@pytest.mark.parametrize("jobs", [2, 3])
def test_a_seed_and_a_number_decide_and_calls_are_counted(jobs):
    first, again = go(searches(jobs), 40_000), go(searches(jobs), 40_000)
    assert kept(first) == kept(again)
    assert first.counts.tolist() == again.counts.tolist()
    assert first.counts[0] == 40_000
    others = [int(other.counts[0]) for other in first._others]
    assert len(others) == jobs - 1
    assert kept(go(searches(jobs, seed=1), 40_000)) != kept(first)


def test_what_one_has_found_all_know():
    search = go(searches(), 30_000, step=4000)
    (other,) = search._others
    search._tell(other, True)
    assert kept(search) == [(codes.tolist(), error) for codes, _, _, error, _ in other.kept()]
    for own, theirs in zip(search.views, other.views, strict=True):
        assert set(own.seen.tolist()) == set(theirs.seen.tolist())
        assert 2 * own.calls <= len(own.seen)


def test_the_best_of_all_is_kept():
    search = searches()
    while not search._others:
        search.step(6000)
    (other,) = search._others
    assert search.views[0].best <= other.views[0].best
    both = min(error for _, error in kept(search))
    assert both == search.views[0].best


@pytest.mark.parametrize("stop", [3000, 14_000, 20_000, 26_000])
def test_a_checkpoint_goes_on_bit_for_bit(stop):
    whole = searches()
    states = []
    while whole.counts[0] < 40_000:
        if not states and whole.counts[0] >= stop:
            states.append(whole.state())
        whole.step(min(6000, 40_000 - int(whole.counts[0])))
    again = searches()
    again.restore(states[0])
    go(again, 40_000)
    assert kept(again) == kept(whole)
    assert again.counts.tolist() == whole.counts.tolist()
