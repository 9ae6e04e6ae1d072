"""Cost of the screen, as ratios to scikit-learn's Gaussian process on the same features in the same process, and
of whole searches.

The circuit of examples/: 600 known designs, 200 candidates, one thread. "fit" factorises the covariance, "choose"
also computes features, predicts and chooses; parameters of the kernel are fixed on both sides. Then what searches
take for each call, the objective not counted: of 500 calls with the screen and without, and of several budgets, in
all and after the 2,000th call. CPU time, medians; of searches over three seeds.

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


def ms_a_call(task: Task, budget: int, after: int = 0, method: Any = None) -> float:
    """CPU milliseconds of a search for each call, those after some calls only."""
    calls, spent, started = 0, 0.0, 0.0

    def objective(design: Any) -> float:
        nonlocal calls, spent, started
        if calls == after:
            spent, started = 0.0, time.process_time()
        calls += 1
        began = time.process_time()
        assert task.objective is not None
        reward = float(task.objective(design))
        spent += time.process_time() - began
        return reward

    found = []
    for seed in range(3):
        calls, began = 0, time.process_time()
        search(Task(task.space, objective), budget=budget, seed=seed, method=method)
        found.append((time.process_time() - (started if after else began) - spent) / (budget - after))
    return round(1000 * statistics.median(found), 3)


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
        process.predict(tuple(block[:1] for block in blocks))
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
            ms_a_call(task, 500, method=method) for method in (default, replace(default, screen=None))
        )
        whole = {str(budget): ms_a_call(task, budget) for budget in (50, 200, 2_000)}
        late = {str(budget): ms_a_call(task, budget, 2_000) for budget in (10_000, 20_000, 50_000)}
    return {
        "fit_ms": round(own_fit, 2),
        "fit_over_scikit_learn": round(own_fit / their_fit, 2),
        "choose_ms": round(own_choose, 2),
        "choose_over_scikit_learn_predict": round(own_choose / their_predict, 2),
        "search_ms_a_call_with_screen": with_screen,
        "search_ms_a_call_without": without,
        "ms_a_call_by_budget": whole,
        "ms_a_call_after_2000_calls_by_budget": late,
    }


if __name__ == "__main__":
    import sklearn

    write_result("screen", measure(), f"scikit-learn {sklearn.__version__}")
