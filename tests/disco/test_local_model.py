"""The model of one skeleton's rewards: a Gaussian process, and what it saves the search."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from discodso.base.threads import one_blas_thread
from discodso.disco.proposers import local_model, refinement
from discodso.disco.proposers.refinement import LocalSearch
from discodso.disco.screen import normal_scores


def test_it_expects_what_scikit_learn_expects(monkeypatch):
    rng = np.random.default_rng(0)
    points, others = rng.standard_normal((30, 4)), rng.standard_normal((50, 4))
    rewards = -((points - 0.3) ** 2).sum(axis=1)
    monkeypatch.setattr(local_model, "_LENGTHS", (2.0,))
    monkeypatch.setattr(local_model, "_NOISES", (1e-3,))
    model = local_model.local_model(points, rewards)
    # Distances count in steps of the search: sqrt(4) times the length.
    peer = GaussianProcessRegressor(RBF(2.0 * math.sqrt(4)), alpha=1e-3 + 1e-8, optimizer=None)
    peer.fit(points, normal_scores(rewards))
    np.testing.assert_allclose(model(others), peer.predict(others), rtol=1e-6, atol=1e-6)


def test_length_and_noise_are_the_likeliest(monkeypatch):
    rng = np.random.default_rng(1)
    points = rng.standard_normal((60, 3))
    fitted = []
    plain = local_model.dpotrf

    def noted(kernel, **options):
        fitted.append(kernel.copy())
        return plain(kernel, **options)

    monkeypatch.setattr(local_model, "dpotrf", noted)
    model = local_model.local_model(points, -(points**2).sum(axis=1))
    assert len(fitted) == len(local_model._LENGTHS) * len(local_model._NOISES)
    targets = normal_scores(-(points**2).sum(axis=1))

    def likelihood(kernel):
        """With the best prior variance."""
        variance = targets @ np.linalg.solve(kernel, targets) / len(targets)
        return -0.5 * (len(targets) * math.log(variance) + np.linalg.slogdet(kernel)[1])

    best = max(fitted, key=likelihood)
    weights = np.linalg.solve(best, targets)
    np.testing.assert_allclose(model(points), (best - np.diag(np.diag(best) - 1)) @ weights, atol=1e-5)


def test_equal_points_do_not_break_it():
    model = local_model.local_model(np.zeros((20, 3)), np.zeros(20))
    assert model is None or np.isfinite(model(np.ones((2, 3)))).all()


@pytest.fixture(autouse=True)
def one_thread():
    """As a search does; two threads are twenty times slower where cores are shared."""
    with one_blas_thread():
        yield


def calls_needed(objective, count, least, seed):
    """Until a reward is reached."""
    rng, calls = np.random.default_rng(seed), 0
    start = np.full(count, 0.2)
    limits = np.zeros(count), np.ones(count)
    nothing = np.empty(0, np.int64)
    search = LocalSearch.begin(nothing, nothing, start, float(objective(start[None])[0]), *limits)
    while calls < 4000:
        units = search.propose(search.generation_size, rng)
        rewards = objective(units)
        calls += len(units)
        if rewards.max() > least:
            return calls
        search = search.told(units, rewards)
    return calls


def slope(units):
    """Axes whose weights differ by a hundred."""
    return -(np.geomspace(1, 100, units.shape[1]) * (units - 0.6) ** 2).sum(axis=1)


@pytest.mark.parametrize("count", [3, 8, 15])
def test_the_model_saves_calls(monkeypatch, count):
    with_model = [calls_needed(slope, count, -1e-4, seed) for seed in range(5)]
    monkeypatch.setattr(refinement, "local_model", lambda points, rewards: None)
    without = [calls_needed(slope, count, -1e-4, seed) for seed in range(5)]
    assert np.mean(with_model) < 0.75 * np.mean(without)


def test_proposals_keep_to_the_limits():
    rng, count = np.random.default_rng(0), 4
    low, high = np.array([0.0, -2.0, 0.5, -np.inf]), np.array([1.0, 2.0, 0.6, np.inf])
    start = np.array([0.0, 2.0, 0.5, 1e6])
    nothing = np.empty(0, np.int64)
    search = LocalSearch.begin(nothing, nothing, start, 0.0, low, high)
    for _ in range(30):
        units = search.propose(search.generation_size, rng)
        assert units.shape == (search.generation_size, count)
        assert ((units >= low) & (units <= high)).all()
        search = search.told(units, units[:, 0] - units[:, 3] / 1e6)
