"""How the settings of the search for equations are chosen: on the odd rows of the 45 problems alone, seeds 0 to 2.

Settings are drawn at random, every value of every option equally often (see `screening`), and run with 100,000
calls on the 23 problems, each setting with one of the three seeds.

    python benchmarks/regression_settings.py          goes on with what the result file has (an hour)
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import screening  # type: ignore[import-not-found]

from discodso import DisCoSettings
from discodso.files import write_atomically
from discodso.policy import PolicySettings
from discodso.tasks.regression.experiment import Run, execute
from discodso.tasks.regression.problems import problems

RESULTS = Path(__file__).parent / "results"
SEEDS = 3
CALLS = 100_000
DRAWN = 48  # settings
ODD = [problem.name for problem in problems()[0::2]]
NETWORK = ("scale", "learn_scale", "min_scale")
OPTIONS: dict[str, tuple[Mapping[str, Any], ...]] = {
    "batch": tuple({"batch_size": size} for size in (250, 500, 1000)),
    "share of variation": tuple({"variation": share} for share in (0.5, 0.7, 0.85)),
    "moves of single constants": tuple({"variation_single": share} for share in (0.0, 0.5)),
    "share for least squares": tuple({"task_refinement": share} for share in (0.1, 0.25, 0.5)),
    "size of the queue": tuple({"queue_size": size} for size in (50, 100, 200)),
    "niches": tuple({"queue_niche": size} for size in (0, 1, 3)),
    "imitation of the queue": (
        {"queue_weight": 0.0},
        {"queue_weight": 1.0, "queue_sample": 20},
        {"queue_weight": 1.0},
    ),
    "learning from varied designs": tuple({"off_policy": on} for on in (True, False)),
    "learning rate": tuple({"learning_rate": rate} for rate in (0.001, 0.003, 0.01)),
    "entropy": tuple({"entropy_coefficient": weight} for weight in (0.01, 0.05)),
    "share that teaches": tuple({"risk_factor": share} for share in (0.1, 0.2)),
    "distribution of constants": (
        {"scale": 0.5},
        {"scale": 0.5, "learn_scale": True, "min_scale": 0.01},
    ),
}


def method(own: Mapping[str, Any]) -> DisCoSettings:
    """Of settings by name."""
    network = PolicySettings(**{name: own[name] for name in NETWORK if name in own})
    rest = {name: value for name, value in own.items() if name not in NETWORK}
    return DisCoSettings(**rest, policy=network)


def run(own: Mapping[str, Any], problem: str, seed: int) -> tuple[float, float, float]:
    """Evaluation and training reward, and CPU seconds."""
    found = execute(Run(problem, seed, CALLS, preset="default", settings=method(own)))
    return round(found["evaluation"], 4), round(found["train"], 4), found["cpu_seconds"]


def write(records: list[dict[str, Any]]) -> None:
    """Results as JSON, and as Markdown when they are complete."""
    command = "python benchmarks/regression_settings.py"
    lines = ",\n  ".join(json.dumps(record) for record in records)
    head = json.dumps({"command": command, "problems": ODD})
    write_atomically(RESULTS / "regression_settings.json", f'{head[:-1]},\n "runs": [\n  {lines}\n ]}}\n')
    if len(records) < DRAWN:
        return
    figures = np.array([record["found"] for record in records]).mean(axis=1)
    rows = screening.table(
        OPTIONS,
        [record["values"] for record in records],
        figures[:, 0],
        dict(zip(("evaluation", "train", "CPU seconds"), figures.T, strict=True)),
    )
    text = [
        f"How the settings of the search for equations were chosen, by `{command}`:",
        f"on the odd rows of the 45 problems, seeds 0 to 2, nothing else. {DRAWN} settings drawn at random, every",
        f"value of every option equally often, {CALLS:,} calls. Worth: of a value, in evaluation reward, by least",
        "squares over all settings, with its standard error. The last columns are plain means.",
        "",
    ]
    write_atomically(RESULTS / "regression_settings.md", "\n".join([*text, *rows]))


def main() -> None:
    """Run what is missing; the file is written after each of the settings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    path = RESULTS / "regression_settings.json"
    records: list[dict[str, Any]] = json.loads(path.read_text())["runs"] if path.exists() else []
    numbered = list(enumerate(screening.drawn(OPTIONS, DRAWN)))[len(records) :]
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        futures = [
            [pool.submit(run, screening.settings(OPTIONS, values), name, number % SEEDS) for name in ODD]
            for number, values in numbered
        ]
        for (_, values), own in zip(numbered, futures, strict=True):
            records.append({"values": values, "found": [future.result() for future in own]})
            write(records)
            means = [round(statistics.fmean(column), 3) for column in zip(*records[-1]["found"], strict=True)]
            print(f"{len(records)} of {DRAWN}: {means} {screening.settings(OPTIONS, values)}", flush=True)
    write(records)
    print((RESULTS / "regression_settings.md").read_text())


if __name__ == "__main__":
    main()
