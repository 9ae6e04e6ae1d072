"""Speed of Decoupled-RL-BFGS on Jin-1: skeletons with optimised constants for each second of CPU time.

The public DSO code does 100 to 200 on a machine of the same kind, with 32 to 61 objective calls for each.

    python benchmarks/decoupled.py         prints, and writes benchmarks/results/decoupled.json
"""

from __future__ import annotations

import argparse
import time

from harness import write_result

from discodso import DecoupledSettings, DisCoSettings
from discodso.tasks.regression.problems import problem_task, problems


def measure(calls: int) -> dict[str, float]:
    """One search by ask and tell, after a short one that compiles."""
    (problem,) = problems("Jin-1")
    task = problem_task(problem)
    settings = DecoupledSettings(DisCoSettings(batch_size=1000), in_flight=1000)
    assert task.batch_objective is not None
    for budget in (5000, calls):
        method = settings.build(task.space, 0)
        done, started = 0, time.process_time()
        while done < budget:
            designs = method.ask()
            method.tell(designs, task.batch_objective(designs))
            done += len(designs)
        seconds = time.process_time() - started
    return {
        "designs_per_cpu_second": round(method.optimised / seconds),
        "calls_per_cpu_second": round(done / seconds),
        "calls_per_design": round(done / method.optimised, 1),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=int, default=500_000)
    write_result("decoupled", measure(parser.parse_args().calls))
