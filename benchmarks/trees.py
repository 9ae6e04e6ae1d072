"""What each part of the default for tree policies is worth: the default, the default without each, the paper's.

The three compiled environments: 20,000 calls of 100 episodes, seeds 10 to 14, where no setting was tuned (though
10 and 11 had shown that the scale needed it); with `--calls 2000`, seeds 10 to 19, what it is worth to learn where
calls are few. Runs that the result file has are not repeated; `--methods` and `--environments` choose.

    python benchmarks/trees.py                  hours; writes benchmarks/results/trees.{json,md}
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import intervals  # type: ignore[import-not-found]

from discodso import search_policy
from discodso.base.files import write_atomically
from discodso.tasks.policies.policy_search import tuned_settings

RESULTS = Path(__file__).parent / "results"
ENVIRONMENTS = ("CartPole-v1", "MountainCar-v0", "Acrobot-v1")
SEEDS = {20_000: range(10, 15), 2_000: range(10, 20)}  # by calls


def ablation(calls: int) -> dict[str, dict[str, Any]]:
    """What each row leaves out, as arguments of `search_policy`."""
    tuned = tuned_settings(calls=calls)
    scale = replace(tuned.policy, learn_scale=True, min_scale=0.02)
    return {
        "default": {},
        "without variation": {"method": replace(tuned, variation=0.0)},
        "without learning from the queue": {"method": replace(tuned, queue_weight=0.0, queue_steps=1)},
        "without learning from varied trees": {"method": replace(tuned, off_policy=False)},
        "without niches": {"method": replace(tuned, queue_niche=0)},
        "without evaluating good trees again": {"method": replace(tuned, queue_recheck=0.0)},
        "with batches of 100": {"method": replace(tuned, batch_size=100)},
        "with a learned scale": {"method": replace(tuned, policy=scale)},
        "without racing": {"racing": False},
        "without trimming": {"trim": False},
        "with restarts after 3000 calls": {"restart_after": 3000},
        "paper preset": {"preset": "paper"},
    }


METHODS = tuple(ablation(20_000))
LEARNING = (
    "default",
    "with batches of 100",  # at 20,000 calls the default has them too
    "without variation",
    "without learning from the queue",
    "without learning from varied trees",
    "without niches",
)
Runs = list[dict[str, Any] | None]  # by seed
Cell = Callable[[Runs, Runs], str]  # of a method's runs and the default's
ROWS = {
    20_000: tuple(row for row in METHODS if row != LEARNING[1]),
    2_000: LEARNING,
}  # by calls, if no methods are chosen


def run(environment: str, method: str, seed: int, calls: int) -> dict[str, Any]:
    """One search, chosen and tested."""
    started = time.process_time()
    found = search_policy(environment, calls=calls, seed=seed, **ablation(calls)[method])
    return {
        "environment": environment,
        "method": method,
        "seed": seed,
        "calls": found.calls,
        "test": round(float(found.test_returns.mean()), 3),
        "nodes": len(found.policy),
        "episodes": found.episodes + found.validation_episodes,
        "cpu_seconds": round(time.process_time() - started, 1),
    }


def table(records: list[dict[str, Any]], calls: int, cell: Cell) -> list[str]:
    """A row for each method that has runs, a column for each environment."""
    by_seed = {(r["method"], r["environment"], r["seed"]): r for r in records if r["calls"] == calls}
    rows = ["| method | " + " | ".join(ENVIRONMENTS) + " |", "|---" * (len(ENVIRONMENTS) + 1) + "|"]
    for method in METHODS:
        row = [
            cell(
                [by_seed.get((method, environment, seed)) for seed in SEEDS[calls]],
                [by_seed.get(("default", environment, seed)) for seed in SEEDS[calls]],
            )
            for environment in ENVIRONMENTS
        ]
        if any(text != "-" for text in row):
            rows.append(f"| {method} | " + " | ".join(row) + " |")
    return [*rows, ""]


def means(own: Runs, default: Runs) -> str:
    """Test mean with its interval, and means of nodes and CPU seconds."""
    there = [run for run in own if run is not None]
    if not there:
        return "-"
    nodes, seconds = (statistics.fmean(run[key] for run in there) for key in ("nodes", "cpu_seconds"))
    tests = intervals.shown([run["test"] for run in there], wanted=len(own), digits=2)
    return f"{tests} ({nodes:.0f}; {seconds:.0f} s)"


def gaps(own: Runs, default: Runs) -> str:
    """By how much the default is ahead, seed by seed, and in how many."""
    ahead = [
        best["test"] - run["test"]
        for run, best in zip(own, default, strict=True)
        if run is not None and best is not None and run is not best
    ]
    if not ahead:
        return "-"
    mean = intervals.shown(ahead, wanted=len(own), digits=2)
    return f"{mean} (ahead in {sum(gap > 0 for gap in ahead)}, behind in {sum(gap < 0 for gap in ahead)})"


TABLES: dict[str, Cell] = {"test means": means, "by how much the default is ahead, seed by seed": gaps}


def write(records: list[dict[str, Any]]) -> None:
    """Results as JSON and Markdown."""
    data = {"command": "python benchmarks/trees.py", "records": records}
    write_atomically(RESULTS / "trees.json", json.dumps(data, indent=1) + "\n")
    lines = [
        "Test means over 1000 unseen seeds, calls of 100 episodes, 95 % intervals; in brackets nodes and",
        "CPU seconds. Made by `python benchmarks/trees.py` and `python benchmarks/trees.py --calls 2000`.",
        "",
    ]
    for calls, seeds in SEEDS.items():
        for title, cell in TABLES.items():
            lines += [f"## {calls:,} calls, {len(seeds)} seeds: {title}", "", *table(records, calls, cell)]
    write_atomically(RESULTS / "trees.md", "\n".join(lines))


def main() -> None:
    """Run what is missing; the files are written after each run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, choices=SEEDS, default=20_000, help="of one search")
    parser.add_argument("--methods", help="separated by commas")
    parser.add_argument("--environments", default=",".join(ENVIRONMENTS), help="separated by commas")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    methods = options.methods.split(",") if options.methods else ROWS[options.calls]
    path = RESULTS / "trees.json"
    records = json.loads(path.read_text())["records"] if path.exists() else []
    done = {(r["environment"], r["method"], r["seed"], r["calls"]) for r in records}
    jobs = [
        (environment, method, seed, options.calls)
        for seed in SEEDS[options.calls]
        for environment in options.environments.split(",")
        for method in methods
        if (environment, method, seed, options.calls) not in done
    ]
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        for future in as_completed([pool.submit(run, *job) for job in jobs]):
            records.append(future.result())
            print(records[-1], flush=True)
            records.sort(
                key=lambda r: (-r["calls"], r["seed"], ENVIRONMENTS.index(r["environment"]), r["method"])
            )
            write(records)
    write(records)
    print((RESULTS / "trees.md").read_text())


if __name__ == "__main__":
    main()
