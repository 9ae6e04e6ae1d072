"""How the settings of the search for equations are chosen: on the odd rows of the 45 problems alone, seeds 0 to 2.

Settings are drawn at random, every value of every option equally often (see `screening`), and run with 30,000
calls on the 23 problems, each setting with one of the three seeds. The best value of each option, the default
before and a variant of it meet in a final with 100,000 calls and all three seeds. The default changes only as far
as the final shows it to be better beyond the error. Rows of the final are of the choice of a model as it was then.

    python benchmarks/regression_settings.py          goes on with what the result file has (an hour)
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import screening  # type: ignore[import-not-found]

from discodso import DisCoSettings
from discodso.base.files import write_atomically
from discodso.base.statistics import bootstrap_interval
from discodso.disco.network import PolicySettings
from discodso.reproduce.regression_runs import Run, execute
from discodso.tasks.regression.problems import problems

RESULTS = Path(__file__).parent / "results"
SEEDS = 3
CALLS, FINAL_CALLS = 30_000, 100_000
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


# The default before: even rows had a say in it, and so it is only a candidate here.
BEFORE: dict[str, Any] = {
    "batch_size": 500,
    "variation": 0.7,
    "task_refinement": 0.5,
    "queue_size": 100,
    "queue_niche": 1,
    "queue_weight": 1.0,
    "queue_sample": 20,
    "learning_rate": 0.003,
    "scale": 0.5,
    "learn_scale": True,
    "min_scale": 0.01,
}
Found = list[tuple[float, float, float]]  # evaluation and training reward and CPU seconds, by problem


def finalists(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Settings by what they are."""
    scores = [statistics.fmean(found[0] for found in record["found"]) for record in records]
    worth = screening.worth(OPTIONS, [record["values"] for record in records], scores)
    return {
        "the default before": BEFORE,
        "the default before, fixed scale": {**BEFORE, "learn_scale": False},
        "the best value of each option": screening.settings(OPTIONS, [own.best for own in worth]),
    }


def final_rows(final: dict[str, list[Found]]) -> list[str]:
    """A row for each finalist, and what it has more than the default before, problem by problem."""
    rows = [
        "| | evaluation | more than the default before by | 95 % | train | CPU seconds |",
        "|---" * 6 + "|",
    ]
    for name, found in final.items():
        figures = np.array(found).mean(axis=0)  # over seeds
        gaps = (figures - np.array(final["the default before"]).mean(axis=0))[:, 0]
        limits = bootstrap_interval(gaps.tolist())
        interval = "" if limits is None or not gaps.any() else f"{limits[0]:+.3f} to {limits[1]:+.3f}"
        evaluation, train, seconds = figures.mean(axis=0)
        rows.append(
            f"| {name} | {evaluation:.3f} | {gaps.mean():+.3f} | {interval} | {train:.3f} | {seconds:.1f} |"
        )
    return rows


def method(own: Mapping[str, Any]) -> DisCoSettings:
    """Of settings by name."""
    network = PolicySettings(**{name: own[name] for name in NETWORK if name in own})
    rest = {name: value for name, value in own.items() if name not in NETWORK}
    return DisCoSettings(**rest, policy=network)


def run(own: Mapping[str, Any], problem: str, seed: int, calls: int) -> tuple[float, float, float]:
    """Evaluation and training reward, and CPU seconds."""
    found = execute(Run(problem, seed, calls, preset="default", settings=method(own)))
    return round(found["evaluation"], 4), round(found["train"], 4), found["cpu_seconds"]


def write(records: list[dict[str, Any]], final: dict[str, list[Found]]) -> None:
    """Results as JSON, and as Markdown when all settings have been drawn."""
    command = "python benchmarks/regression_settings.py"
    lines = ",\n  ".join(json.dumps(record) for record in records)
    head = json.dumps({"command": command, "problems": ODD, "final": final})
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
        *rows,
        "## Final",
        "",
        f"{FINAL_CALLS:,} calls, three seeds each; gaps are taken problem by problem.",
        "",
        *final_rows(final),
    ]
    write_atomically(RESULTS / "regression_settings.md", "\n".join(text) + "\n")


Futures = list[Future[tuple[float, float, float]]]


def ask(pool: ProcessPoolExecutor, own: Mapping[str, Any], seed: int, calls: int) -> Futures:
    """Runs of some settings, by problem."""
    return [pool.submit(run, own, name, seed, calls) for name in ODD]


def main() -> None:
    """Run what is missing; the file is written after each of the settings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    path = RESULTS / "regression_settings.json"
    known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    records: list[dict[str, Any]] = known.get("runs", [])
    final: dict[str, list[Found]] = known.get("final", {})
    missing = list(enumerate(screening.drawn(OPTIONS, DRAWN)))[len(records) :]
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        asked = [
            ask(pool, screening.settings(OPTIONS, values), row % SEEDS, CALLS) for row, values in missing
        ]
        for (_, values), futures in zip(missing, asked, strict=True):
            records.append({"values": values, "found": [future.result() for future in futures]})
            write(records, final)
            means = [round(statistics.fmean(column), 3) for column in zip(*records[-1]["found"], strict=True)]
            print(f"{len(records)} of {DRAWN}: {means}", flush=True)
        news = {name: own for name, own in finalists(records).items() if name not in final}
        waiting = {
            name: [ask(pool, own, seed, FINAL_CALLS) for seed in range(SEEDS)] for name, own in news.items()
        }
        for name, seeds in waiting.items():
            final[name] = [[future.result() for future in futures] for futures in seeds]
            write(records, final)
    write(records, final)
    print((RESULTS / "regression_settings.md").read_text())


if __name__ == "__main__":
    main()
