"""The whole regression loop on Jin-1 (100 rows): objective calls per second on one core, and where time goes;
and whole searches with the default settings beside the paper's.

python benchmarks/regression_loop.py   prints, and writes benchmarks/results/regression_loop.json
"""

from __future__ import annotations

import statistics
import time
from dataclasses import replace

import numpy as np
from harness import write_result

from discodso import DisCo, DisCoSettings, preset, search
from discodso.tasks.regression.expression_space import RegressionSpace, regression_task
from discodso.tasks.regression.problems import FUNCTION_SETS, problem_task, problems

BATCH, WARM, ROUNDS = 1000, 5, 60
CALLS = 30_000  # of the whole searches


def searches() -> dict[str, int]:
    """Objective calls for each CPU second of whole searches, best of three, by turns."""
    (problem,) = problems("Jin-1")
    task = problem_task(problem)
    kinds = {
        "default": (task, preset(refines=True, budget=CALLS)),
        "default of tasks that cannot refine": (replace(task, refine=None), preset(budget=CALLS)),
        "paper preset": (task, preset("paper")),
    }
    best = dict.fromkeys(kinds, 0.0)
    for turn in range(4):
        for name, (own, method) in kinds.items():
            started = time.process_time()
            search(own, budget=CALLS, seed=0, method=method)
            rate = CALLS / (time.process_time() - started)
            best[name] = max(best[name], rate if turn else 0.0)  # the first one compiles
    return {name: round(rate) for name, rate in best.items()}


def main() -> None:
    """Measure, print, write."""
    (problem,) = problems("Jin-1")
    X, y = problem.training_set()
    task = regression_task(X, y, RegressionSpace(library=FUNCTION_SETS[problem.function_set]))
    disco = DisCo(task.space, DisCoSettings(batch_size=BATCH), seed=0)
    assert task.batch_objective is not None
    parts: dict[str, list[float]] = {"sampling": [], "evaluation": [], "training": []}
    for _ in range(WARM + ROUNDS):
        at = [time.process_time()]
        designs = disco.ask()
        at.append(time.process_time())
        rewards = task.batch_objective(designs)
        at.append(time.process_time())
        disco.tell(designs, rewards)
        at.append(time.process_time())
        for own, seconds in zip(parts.values(), np.diff(at).tolist(), strict=True):
            own.append(seconds)
    medians = {name: statistics.median(own[WARM:]) for name, own in parts.items()}
    total = sum(medians.values())
    result = {
        "problem": problem.name,
        "rows": len(y),
        "batch": BATCH,
        "calls_per_second": round(BATCH / total),
        "share": {name: round(seconds / total, 3) for name, seconds in medians.items()},
        "milliseconds_per_batch": {name: round(1e3 * seconds, 2) for name, seconds in medians.items()},
        "whole_searches_calls_per_second": searches(),
        "time": f"CPU of one core, medians over the first {ROUNDS} batches after {WARM}",
    }
    write_result("regression_loop", result)


if __name__ == "__main__":
    main()
