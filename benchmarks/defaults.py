"""The default method beside the paper's settings, random search and genetic programming; what each part is worth.

Parts, each with its table: "bitstring" are the four bitstring settings (50,000 calls, 5 seeds; a run ends at a
reward of 0.99999); "filter" and "coating" are the spaces of examples/ at 5,000 calls, 10 seeds; "unseen" has four
problems by which no setting was chosen (benchmarks/unseen.py), likewise. The default was tuned on seeds 0 to 2 of
the bitstring (f1 with alpha 0.5, f2 with both) and 0 to 5 of the filter; `queue_weight` with all ten in view. No
setting was tuned on the coating, but two operators of variation were added after a first look at it. Runs that are
there already are not made again.

    python benchmarks/defaults.py [PART...]     prints, and writes benchmarks/results/defaults.{json,md}
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import intervals  # type: ignore[import-not-found]
from unseen import UNSEEN

from discodso import GPSettings, Task, preset, search
from discodso.base.files import write_atomically
from discodso.baselines.random_search import RandomSettings
from discodso.disco.method import MethodSettings
from discodso.tasks.bitstring import bitstring

RESULTS = Path(__file__).parent / "results"
sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))


def ablation(budget: int) -> dict[str, MethodSettings]:
    """The default for a budget, the default without each of its parts, the paper's settings, and searches without
    a network."""
    default = preset("default", budget=budget)
    return {
        "default": default,
        "without variation": replace(default, variation=0.0),
        "without moves of single values": replace(default, variation_single=0.0),
        "without refinement": replace(default, refinement=0.0),
        "without allocation: fixed shares": replace(default, allocation=False),
        "without learning from varied and refined designs": replace(default, off_policy=False),
        "without a learned scale": replace(default, policy=replace(default.policy, learn_scale=False)),
        "without niches": replace(default, queue_niche=0),
        "without restarts": replace(default, restart_batches=0),
        "with learning from the archive": replace(default, queue_weight=1.0),
        "with two modes": replace(default, policy=replace(default.policy, modes=2)),
        "paper preset": preset("paper"),
        "genetic programming": GPSettings(population=100),
        "random search": RandomSettings(),
    }


PEERS = ("default", "paper preset", "genetic programming", "random search")
CASES = [(objective, alpha) for alpha in (0.9, 0.5) for objective in ("f1", "f2")]


def filter_task() -> Task:
    """The example, whose modules are no package."""
    import ladder_filter  # type: ignore[import-not-found]

    task: Task = ladder_filter.ladder_task(ladder_filter.butterworth())
    return task


def coating_task() -> Task:
    """The example."""
    import mirror_coating  # type: ignore[import-not-found]

    task: Task = mirror_coating.coating_task()
    return task


def bitstring_cell(part: str, seed: int) -> Task:
    """A task by the name of its column."""
    objective, _, alpha = part.replace(",", "").split()
    return bitstring(10, float(alpha), objective, seed)


COLUMNS: dict[str, tuple[dict[str, MethodSettings], dict[str, Callable[[int], Task]], int, int]] = {
    "filter": (ablation(5_000), {"ladder filter": lambda seed: filter_task()}, 5_000, 10),
    "coating": (ablation(5_000), {"mirror coating": lambda seed: coating_task()}, 5_000, 10),
    "unseen": (
        {name: settings for name, settings in ablation(5_000).items() if name in PEERS},
        {name: lambda seed, task=task: task() for name, task in UNSEEN.items()},  # type: ignore[misc]
        5_000,
        10,
    ),
    "bitstring": (
        ablation(50_000),
        {
            name: lambda seed, name=name: bitstring_cell(name, seed)  # type: ignore[misc]
            for name in (f"{objective}, alpha {alpha}" for objective, alpha in CASES)
        },
        50_000,
        5,
    ),
}


def make(part: str, runs: dict[str, Any], methods: list[str]) -> None:
    """Make the runs of a part that are not there yet, and write after each."""
    table, columns, calls, seeds = COLUMNS[part]
    for name in methods or table:
        for column, task in columns.items():
            cell = runs.setdefault(part, {}).setdefault(name, {}).setdefault(column, [])
            for seed in range(len(cell), seeds):
                target = 0.99999 if part == "bitstring" else None
                result = search(task(seed), budget=calls, seed=seed, method=table[name], target=target)
                assert result.best is not None
                cell.append({"best": round(result.best.reward, 5), "calls": result.calls})
                write(runs)
            print(f"{part}, {name}, {column}: {shown(cell, part)}", flush=True)


def shown(cell: list[dict[str, Any]], part: str) -> str:
    """Mean reward with its interval; for the bitstring the mean of the calls too: most reach the end."""
    rewards = intervals.shown([run["best"] for run in cell], wanted=COLUMNS[part][3], digits=4)
    if part != "bitstring" or not cell:
        return rewards
    return f"{rewards}; {statistics.fmean(run['calls'] for run in cell):,.0f} calls"


def write(runs: dict[str, Any]) -> None:
    """Results as JSON and Markdown."""
    lines = ["Mean best reward and its 95 % interval. Made by `python benchmarks/defaults.py`.", ""]
    for part, cells in runs.items():
        table, columns, calls, seeds = COLUMNS[part]
        lines += [f"## {part}: {calls:,} objective calls, {seeds} seeds", ""]
        lines += ["| method | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
        for name in table:
            if name in cells:
                row = [shown(cells[name].get(column, []), part) for column in columns]
                lines.append(f"| {name} | " + " | ".join(row) + " |")
        lines.append("")
    write_atomically(RESULTS / "defaults.md", "\n".join(lines))
    data = {"command": "python benchmarks/defaults.py", "runs": runs}
    write_atomically(RESULTS / "defaults.json", json.dumps(data, indent=1) + "\n")


def main() -> None:
    """Make what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(COLUMNS)}; all by default")
    parser.add_argument("--method", action="append", default=[], help="only this row; may be given again")
    options = parser.parse_args()
    path = RESULTS / "defaults.json"
    runs = json.loads(path.read_text())["runs"] if path.exists() else {}
    for part in options.parts or COLUMNS:
        make(part, runs, options.method)
    print((RESULTS / "defaults.md").read_text())


if __name__ == "__main__":
    main()
