"""Cost of the screen, as ratios to scikit-learn's Gaussian process on the same features in the same process.

The circuit of examples/: 600 known designs, 200 candidates, one thread. "fit" factorises the covariance, "choose"
also computes features, predicts and chooses; parameters of the kernel are fixed on both sides. Then what a whole
search of 500 calls takes for each call, with the screen and without, its objective not counted. CPU time, medians.

    python benchmarks/screen.py            prints, and writes benchmarks/results/screen.json
"""

from __future__ import annotations

import statistics
import time
from dataclasses import replace
from typing import Any

import numpy as np
from designs import task_of
from engine import medians
from harness import write_result
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

from discodso import Task, preset, search
from discodso.disco.archive import Pool
from discodso.disco.features import features
from discodso.disco.screen import Process, Screen, normal_scores
from discodso.disco.settings import ScreenSettings

SHAPE = (1 / 3, 1 / 3, 1 / 3), 1.0, 0.03


def seconds_a_call(task: Task, method: Any) -> float:
    """CPU milliseconds of the method for each call of a search of 500 calls."""
    spent = 0.0

    def objective(design: Any) -> float:
        nonlocal spent
        started = time.process_time()
        assert task.objective is not None
        reward = float(task.objective(design))
        spent += time.process_time() - started
        return reward

    found = []
    for seed in range(5):
        spent, started = 0.0, time.process_time()
        search(Task(task.space, objective), budget=500, seed=seed, method=method)
        found.append(1000 * (time.process_time() - started - spent) / 500)
    return statistics.median(found)


def measure() -> dict[str, Any]:
    """All figures."""
    task = task_of("circuit")
    space = task.space
    known, candidates = space.sample(600, seed=0), space.sample(200, seed=1)
    rewards = np.array([float(task.objective(design)) for design in known])  # type: ignore[misc]
    blocks, targets = features(space, known), normal_scores(rewards)
    joined = np.concatenate(blocks, axis=1)
    others = np.concatenate(features(space, candidates), axis=1)
    rng = np.random.default_rng(0)

    def fit() -> Any:
        process = Process.fit(blocks, targets, np.ones(600), SHAPE)
        process.predict(tuple(block[:1] for block in blocks))  # type: ignore[arg-type]
        return process

    def fit_theirs() -> Any:
        return GaussianProcessRegressor(RBF(1.0), alpha=0.03, optimizer=None).fit(joined, targets)

    screen = Screen(space, ScreenSettings())
    screen.add(Pool(known, rewards, np.ones(600)))
    screen.choose(candidates, 20, rng)
    theirs = fit_theirs()
    with threadpool_limits(1):
        own_fit, their_fit, own_choose, their_predict = medians(
            20,
            fit,
            fit_theirs,
            lambda: screen.choose(candidates, 20, rng),
            lambda: theirs.predict(others, return_std=True),
        )
        default = preset("default", budget=500)
        with_screen, without = (
            seconds_a_call(task, method) for method in (default, replace(default, screen=None))
        )
    return {
        "fit_ms": round(own_fit, 2),
        "fit_over_scikit_learn": round(own_fit / their_fit, 2),
        "choose_ms": round(own_choose, 2),
        "choose_over_scikit_learn_predict": round(own_choose / their_predict, 2),
        "search_ms_a_call_with_screen": round(with_screen, 3),
        "search_ms_a_call_without": round(without, 3),
    }


if __name__ == "__main__":
    import sklearn

    write_result("screen", measure(), f"scikit-learn {sklearn.__version__}")
