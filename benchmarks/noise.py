"""Noisy rewards: what the race at the end of a search is worth, and how lucky the rewards are that a search tells.

Three tasks with normal noise added to each reward, standard deviation 0.1, 5,000 objective calls, 10 seeds. For
each method the true reward of the design that it calls the best, and its luck: the reward that it tells less the
true one. The default keeps a tenth of the calls for the race, a share that was not tuned.

    python benchmarks/noise.py          prints, and writes benchmarks/results/noise.{json,md}
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import intervals  # type: ignore[import-not-found]
import numpy as np
from defaults import coating_task, filter_task  # type: ignore[import-not-found]

from discodso import DesignBatch, GPSettings, Task, preset, search
from discodso.base.files import write_atomically
from discodso.baselines.random_search import RandomSettings
from discodso.tasks.bitstring import bitstring

RESULTS = Path(__file__).parent / "results"
CALLS, SEEDS, NOISE = 5_000, range(10), 0.1
DEFAULT = preset("default", noisy=True, budget=CALLS)
TASKS: dict[str, Callable[[int], Task]] = {
    "bitstring f1, alpha 0.9": lambda seed: bitstring(10, 0.9, "f1", seed),
    "ladder filter": lambda seed: filter_task(),
    "mirror coating": lambda seed: coating_task(),
}
METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    "without the race": {"confirm_calls": 0},
    "without the race and without evaluating again": {"method": replace(DEFAULT, queue_recheck=0.0)},
    "moves of single values, no imitation (as for exact rewards)": {
        "method": replace(DEFAULT, variation_single=0.5, queue_weight=0.0),
        "confirm_calls": CALLS // 10,
    },
    "paper preset": {"preset": "paper"},
    "genetic programming": {"method": GPSettings(population=100)},
    "random search": {"method": RandomSettings()},
}


def true_rewards(task: Task, designs: DesignBatch) -> Any:
    """Without noise."""
    if task.batch_objective is not None:
        return np.asarray(task.batch_objective(designs), np.float64)
    assert task.objective is not None
    return np.array([task.objective(design) for design in designs], np.float64)


def with_noise(task: Task) -> Task:
    """The task with normal noise."""

    def objective(designs: DesignBatch, seeds: Any) -> Any:
        noise = [np.random.default_rng(int(seed)).standard_normal() for seed in seeds]
        return true_rewards(task, designs) + NOISE * np.array(noise)

    return Task(task.space, batch_objective=objective, stochastic=True, name=f"{task.name} with noise")


def run(name: str, method: str, seed: int) -> dict[str, Any]:
    """One search."""
    task = TASKS[name](seed)
    result = search(with_noise(task), budget=CALLS, seed=seed, **METHODS[method])
    assert result.best is not None
    (true,) = true_rewards(task, task.space.encode([result.best.design])).tolist()
    told = result.best.reward
    return {
        "task": name,
        "method": method,
        "seed": seed,
        "calls": result.calls,
        "true": round(true, 5),
        "luck": round(told - true, 5),
    }


def table(records: list[dict[str, Any]]) -> str:
    """True rewards and luck."""
    lines = [
        f"Noise of standard deviation {NOISE} on every reward, {CALLS:,} objective calls, {len(SEEDS)} seeds,",
        "95 % intervals. Made by `python benchmarks/noise.py`.",
    ]
    for key, title in (
        ("true", "True reward of the winner"),
        ("luck", "Luck: the reward told less the true one"),
    ):
        lines += ["", f"## {title}", "", "| method | " + " | ".join(TASKS) + " |"]
        lines.append("|---" * (len(TASKS) + 1) + "|")
        for method in METHODS:
            cells = [
                intervals.shown(
                    [r[key] for r in records if (r["task"], r["method"]) == (name, method)],
                    wanted=len(SEEDS),
                    digits=3,
                )
                for name in TASKS
            ]
            if any(cell != "-" for cell in cells):
                lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run what is missing; the files are written after each run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--method", action="append", default=[], help="only this row; may be given again")
    options = parser.parse_args()
    path = RESULTS / "noise.json"
    records = json.loads(path.read_text())["records"] if path.exists() else []
    done = {(r["task"], r["method"], r["seed"]) for r in records}
    for seed in SEEDS:
        for name in TASKS:
            for method in options.method or METHODS:
                if (name, method, seed) not in done:
                    records.append(run(name, method, seed))
                    print(records[-1], flush=True)
                    data = {"command": "python benchmarks/noise.py", "records": records}
                    write_atomically(path, json.dumps(data, indent=1) + "\n")
                    write_atomically(RESULTS / "noise.md", table(records))
    print(table(records))


if __name__ == "__main__":
    main()
