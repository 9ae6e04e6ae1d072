"""Inner optimisers: the optimum of smooth, stepped and many-peaked functions, and SciPy's own steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from discodso.baselines import inner


def minimise(name, cost, n, *, calls=3000, seed=0, point=None, low=0.0, high=1.0):
    start = np.full(n, 0.5) if point is None else point
    box = np.full(n, low), np.full(n, high)
    running = inner.start(name, start, *box, calls, 10.0, seed)
    best, used = (np.inf, None), 0
    while running.points is not None and used + len(running.points) <= calls:
        points = running.points.copy()
        costs = np.array([cost(x) for x in points])
        used += len(costs)
        at = int(costs.argmin())
        if costs[at] < best[0]:
            best = float(costs[at]), points[at]
        running.answer(costs)
    return best, used


TARGET = np.array([0.31, 0.62, 0.17])


def smooth(x):
    return float(((x - TARGET) ** 2).sum())


def many_optima(x):
    return float(-np.abs(np.sinc(50 * (x - TARGET) / np.pi)).sum())


def stepped(x):
    return float(-(np.abs(x - TARGET) <= 0.05).sum() - 0.5 * (np.abs(x - TARGET) <= 0.1).sum())


@pytest.mark.parametrize("name", inner.INNER)
def test_a_smooth_optimum_is_found(name):
    (least, where), _ = minimise(name, smooth, 3)
    assert least < 1e-4
    assert np.allclose(where, TARGET, atol=0.02)


@pytest.mark.parametrize("name", ["anneal", "evo"])
@pytest.mark.parametrize("cost", [many_optima, stepped])
def test_global_optimisers_find_the_optimum_among_many_and_on_steps(name, cost):
    # A single run may end on a lower peak, as it may in a search; most do not.
    found = [minimise(name, cost, 3, calls=5000, seed=seed)[0][0] for seed in range(5)]
    assert sorted(found)[2] <= cost(TARGET) + 0.05


def test_a_local_optimiser_finds_the_peak_that_it_begins_on_and_stays_on_a_step():
    (least, _), _ = minimise("bfgs", many_optima, 3, point=TARGET + 0.01)
    assert least < many_optima(TARGET) + 1e-3
    (_, where), used = minimise("bfgs", stepped, 3)
    assert np.array_equal(where, np.full(3, 0.5))
    assert used == 4  # one gradient, which is zero


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(0, 10_000))
def test_bfgs_makes_the_calls_and_the_steps_of_scipy(n, seed):
    rng = np.random.default_rng(seed)
    low = np.where(rng.random(n) < 0.5, 0.0, -np.inf)
    high = np.where(rng.random(n) < 0.5, 1.0, np.inf)
    point, centre = rng.random(n), rng.normal(0.5, 1.0, n)

    def cost(x):
        return float(((x - centre) ** 2).sum() + 0.1 * np.sin(5 * x).sum())

    mine = inner.start("bfgs", point, low, high, 1000, 10.0, 0)
    calls = 0
    while mine.points is not None:
        last = mine.points[0]
        calls += len(mine.points)
        mine.answer(np.array([cost(x) for x in mine.points]))
    theirs = optimize.minimize(
        cost, point, method="L-BFGS-B", bounds=list(zip(low, high, strict=True)), options={"maxfun": 10**6}
    )
    assert calls == theirs.nfev
    assert np.allclose(last, theirs.x, atol=1e-6) or cost(last) >= theirs.fun
