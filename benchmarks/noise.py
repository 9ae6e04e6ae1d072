"""Noisy rewards: what the race at the end of a search is worth, and how lucky the rewards are that a search tells.

Three tasks with normal noise added to each reward, standard deviation 0.1, 5,000 objective calls, 10 seeds. For
each method the true reward of the design that it calls the best, and its luck: the reward that it tells less the
true one. The default keeps a tenth of the calls for the race, a share that was not tuned.

    python benchmarks/noise.py          makes what results/noise.jsonl lacks (half an hour), and noise.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from defaults import LEARNER, NETWORK
from harness import Benchmark, Key, Record, grid, main, shown
from ladder_filter import butterworth, ladder_task
from mirror_coating import coating_task

from discodso import DesignBatch, GPSettings, Task, preset, search
from discodso.baselines.random_search import RandomSettings
from discodso.tasks.bitstring import bitstring

CALLS, SEEDS, NOISE = 5_000, range(10), 0.1
DEFAULT = preset("default", noisy=True, budget=CALLS)
assert DEFAULT.archive is not None
assert DEFAULT.variation is not None
TASKS: dict[str, Callable[[int], Task]] = {
    "bitstring f1, alpha 0.9": lambda seed: bitstring(10, 0.9, "f1", seed),
    "ladder filter": lambda seed: ladder_task(butterworth()),
    "mirror coating": lambda seed: coating_task(),
}
METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    "without the race": {"confirm_calls": 0},
    "without the race and without evaluating again": {
        "method": replace(DEFAULT, archive=replace(DEFAULT.archive, recheck=0.0))
    },
    "moves of single values (as for exact rewards)": {
        "method": replace(DEFAULT, variation=replace(DEFAULT.variation, single=0.5)),
        "confirm_calls": CALLS // 10,
    },
    "with a network that learns": {
        "method": replace(DEFAULT, network=NETWORK, learner=LEARNER),
        "confirm_calls": CALLS // 10,
    },
    "paper-scaled preset": {"preset": "paper-scaled"},
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


KEYS = [
    {"task": name, "method": method, "seed": seed} for seed in SEEDS for name in TASKS for method in METHODS
]


def run(key: Key) -> Record:
    """One search."""
    seed = key["seed"]
    task = TASKS[key["task"]](seed)
    result = search(with_noise(task), budget=CALLS, seed=seed, **METHODS[key["method"]])
    assert result.best is not None
    (true,) = true_rewards(task, task.space.encode([result.best.design])).tolist()
    return {"calls": result.calls, "true": round(true, 5), "luck": round(result.best.reward - true, 5)}


def table(records: Sequence[Record]) -> str:
    """True rewards and luck."""
    lines = [
        f"Noise of standard deviation {NOISE} on every reward, {CALLS:,} objective calls, {len(SEEDS)} seeds,",
        "95 % intervals. Made by `python benchmarks/noise.py`.",
    ]
    titles = {"true": "True reward of the winner", "luck": "Luck: the reward told less the true one"}
    for figure, title in titles.items():

        def cell(method: str, task: str, figure: str = figure) -> str:
            own = [r[figure] for r in records if (r["task"], r["method"]) == (task, method)]
            return shown(own, wanted=len(SEEDS), digits=3)

        lines += ["", f"## {title}", "", *grid("method", METHODS, list(TASKS), cell)]
    return "\n".join(lines)


BENCHMARK = Benchmark("noise", KEYS, run, table)
if __name__ == "__main__":
    main(BENCHMARK, __doc__)
