"""The whole regression loop on Jin-1 (100 rows): objective calls per second on one core, and where time goes.

python benchmarks/regression_loop.py   prints, and writes benchmarks/results/regression_loop.json
"""

from __future__ import annotations

import json
import platform
import statistics
import time
from pathlib import Path

import numpy as np

from discodso import DisCo, DisCoSettings
from discodso.tasks.regression.problems import FUNCTION_SETS, problems
from discodso.tasks.regression.task import RegressionSpace, regression_task

RESULTS = Path(__file__).parent / "results" / "regression_loop.json"
BATCH, WARM, ROUNDS = 1000, 5, 60


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
        "command": "python benchmarks/regression_loop.py",
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "problem": problem.name,
        "rows": len(y),
        "batch": BATCH,
        "calls_per_second": round(BATCH / total),
        "share": {name: round(seconds / total, 3) for name, seconds in medians.items()},
        "milliseconds_per_batch": {name: round(1e3 * seconds, 2) for name, seconds in medians.items()},
        "time": f"CPU of one core, medians over the first {ROUNDS} batches after {WARM}",
    }
    print(json.dumps(result, indent=1))
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
