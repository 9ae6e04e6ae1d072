"""What each part of the default for tree policies is worth: the default, the default without each, the paper's.

The three compiled environments: 20,000 calls of 100 episodes, seeds 10 to 14, on which no setting was tuned; with
`--calls 2000`, seeds 10 to 19, what it is worth to learn where calls are few. Runs that the result file has are
not repeated; `--methods` and `--environments` choose.

    python benchmarks/trees.py                  hours; writes benchmarks/results/trees.{json,md}
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from discodso import search_policy
from discodso.files import write_atomically
from discodso.tasks.control.search import tuned_settings

RESULTS = Path(__file__).parent / "results"
ENVIRONMENTS = ("CartPole-v1", "MountainCar-v0", "Acrobot-v1")
SEEDS = {20_000: range(10, 15), 2_000: range(10, 20)}  # by calls
T_95 = {5: 2.776, 10: 2.262}  # Student's t, two-sided
TUNED = tuned_settings()
ABLATION: dict[str, dict[str, Any]] = {
    "default": {},
    "without variation": {"method": replace(TUNED, variation=0.0)},
    "without learning from the queue": {"method": replace(TUNED, queue_weight=0.0, queue_steps=1)},
    "without learning from varied trees": {"method": replace(TUNED, off_policy=False)},
    "without niches": {"method": replace(TUNED, queue_niche=0)},
    "without evaluating good trees again": {"method": replace(TUNED, queue_recheck=0.0)},
    "with a learned scale": {
        "method": replace(TUNED, policy=replace(TUNED.policy, learn_scale=True, min_scale=0.02))
    },
    "without racing": {"racing": False},
    "without trimming": {"trim": False},
    "with restarts after 3000 calls": {"restart_after": 3000},
    "paper preset": {"preset": "paper"},
}
LEARNING = (
    "default",
    "without variation",
    "without learning from the queue",
    "without learning from varied trees",
    "without niches",
)
Pair = tuple[dict[str, Any], dict[str, Any]]  # a run, and the default's with the same seed
ROWS = {20_000: tuple(ABLATION), 2_000: LEARNING}  # by calls, if no methods are chosen


def run(environment: str, method: str, seed: int, calls: int) -> dict[str, Any]:
    """One search, chosen and tested."""
    started = time.process_time()
    found = search_policy(environment, calls=calls, seed=seed, **ABLATION[method])
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


def interval(numbers: list[float], wanted: int) -> str:
    """Mean and half the width of its 95 % interval by Student's t; the number of runs where some are missing."""
    if len(numbers) != wanted:
        return f"{statistics.fmean(numbers):.2f} ({len(numbers)} runs)" if numbers else "-"
    half = T_95[wanted] * statistics.stdev(numbers) / math.sqrt(wanted)
    return f"{statistics.fmean(numbers):.2f} ± {half:.2f}"


def table(records: list[dict[str, Any]], calls: int, gaps: bool) -> list[str]:
    """Test means with intervals, and means of nodes and CPU seconds; or by how much the default is ahead, seed by
    seed, and in how many seeds."""
    title = "by how much the default is ahead, seed by seed" if gaps else "test means"
    rows = [
        f"## {calls:,} calls, {len(SEEDS[calls])} seeds: {title}",
        "",
        "| method | " + " | ".join(ENVIRONMENTS) + " |",
        "|---" * (len(ENVIRONMENTS) + 1) + "|",
    ]
    cells = {(r["method"], r["environment"], r["seed"]): r for r in records if r["calls"] == calls}
    for method in ABLATION:
        row = []
        for environment in ENVIRONMENTS:
            pairs = [
                (cells[method, environment, seed], cells["default", environment, seed])
                for seed in SEEDS[calls]
                if {(method, environment, seed), ("default", environment, seed)} <= cells.keys()
            ]
            row.append(gap(pairs, len(SEEDS[calls])) if gaps else mean(pairs, len(SEEDS[calls])))
        if any(cell != "-" for cell in row) and not (gaps and method == "default"):
            rows.append(f"| {method} | " + " | ".join(row) + " |")
    return [*rows, ""]


def mean(pairs: list[Pair], wanted: int) -> str:
    """A cell of test means."""
    if not pairs:
        return "-"
    nodes, seconds = (statistics.fmean(own[key] for own, _ in pairs) for key in ("nodes", "cpu_seconds"))
    return f"{interval([own['test'] for own, _ in pairs], wanted)} ({nodes:.0f}; {seconds:.0f} s)"


def gap(pairs: list[Pair], wanted: int) -> str:
    """A cell of what the default has more."""
    if not pairs:
        return "-"
    gaps = [default["test"] - own["test"] for own, default in pairs]
    return f"{interval(gaps, wanted)} (ahead in {sum(g > 0 for g in gaps)}, behind in {sum(g < 0 for g in gaps)})"


def write(records: list[dict[str, Any]]) -> None:
    """Results as JSON and Markdown."""
    data = {"command": "python benchmarks/trees.py", "records": records}
    write_atomically(RESULTS / "trees.json", json.dumps(data, indent=1) + "\n")
    lines = [
        "Test means over 1000 unseen seeds, calls of 100 episodes, 95 % intervals; in brackets nodes and",
        "CPU seconds. Made by `python benchmarks/trees.py` and `python benchmarks/trees.py --calls 2000`.",
        "",
    ]
    for calls in SEEDS:
        lines += table(records, calls, gaps=False) + table(records, calls, gaps=True)
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
