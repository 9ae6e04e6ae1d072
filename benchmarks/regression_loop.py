"""The whole regression loop on Jin-1 (100 rows): objective calls per second on one core.

Whole searches: the default for equations, with the choice of a model, and pyoperon, as many calls each, on noisy
data, so that neither ends early; then DisCo with least squares, without, and with the preset "paper-scaled". And
where the time of the last goes.

python benchmarks/regression_loop.py   prints, and writes benchmarks/results/regression_loop.json
"""

from __future__ import annotations

import statistics
import time
from dataclasses import replace

import numpy as np
import peers
from harness import write_result

from discodso import DisCo, DisCoRegressor, DisCoSettings, preset, search
from discodso.tasks.regression.expression_space import RegressionSpace, regression_task
from discodso.tasks.regression.problems import FUNCTION_SETS, problem_task, problems

BATCH, WARM, ROUNDS = 1000, 5, 60
CALLS, MANY = 30_000, 300_000  # of the whole searches


def searches() -> dict[str, int]:
    """Objective calls for each CPU second of whole searches, best of three, by turns."""
    (problem,) = problems("Jin-1")
    task = problem_task(problem)
    kinds = {
        "with least squares": (task, preset(refines=True, budget=CALLS)),
        "without": (replace(task, refine=None), preset(budget=CALLS)),
        "paper-scaled preset": (task, preset("paper-scaled")),
    }
    best = dict.fromkeys(kinds, 0.0)
    for turn in range(4):
        for name, (own, method) in kinds.items():
            started = time.process_time()
            search(own, budget=CALLS, seed=0, method=method)
            rate = CALLS / (time.process_time() - started)
            best[name] = max(best[name], rate if turn else 0.0)  # the first one compiles
    return {name: round(rate) for name, rate in best.items()}


def compiled_and_peer() -> dict[str, float]:
    """Objective calls for each CPU second of the default and of pyoperon, best of three, by turns."""
    (problem,) = problems("Jin-1")
    X, y = problem.training_set()
    X, y = X[:100], y[:100] + 0.1 * y[:100].std() * np.random.default_rng(0).standard_normal(100)
    names = FUNCTION_SETS[problem.function_set]
    symbols = {"n2": "square", "const": "constant", "n3": ""}
    peer = ({symbols.get(name, name) for name in names} - {""}) | {"variable"}
    best = {"default": 0.0, "pyoperon": 0.0}
    for turn in range(4):
        started = time.process_time()
        model = DisCoRegressor(budget=MANY, random_state=turn, operators=names).fit(X, y)
        found = {"default": model.calls_ / (time.process_time() - started)}
        started = time.process_time()
        peers.operon(X, y, peer, turn, MANY)
        found["pyoperon"] = MANY / (time.process_time() - started)
        if turn:  # the first one compiles
            best = {name: max(rate, found[name]) for name, rate in best.items()}
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
        "default_and_pyoperon_calls_per_second": compiled_and_peer(),
        "disco_calls_per_second": searches(),
        "time": f"CPU of one core, medians over the first {ROUNDS} batches after {WARM}",
    }
    write_result("regression_loop", result)


if __name__ == "__main__":
    main()
