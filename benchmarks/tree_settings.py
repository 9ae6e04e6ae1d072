"""How the default for tree policies is chosen: on CartPole and MountainCar, seeds 0 to 2, alone.

With three seeds, one option at a time, chance would choose. So settings are drawn at random, every value of every
option equally often, and a linear model tells what each value is worth on average over all others (`screening`).
The best of these, the best of those drawn and the default before, each with a variant or two, meet in a final of
other and more runs (those that a finalist was picked by would count its luck). The default changes only as far as
the final shows it to be better beyond the error. Scores are taken on test seeds of their own, so that those of the
results stay unseen.

    python benchmarks/tree_settings.py          goes on with what the result file has (40 minutes)
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import screening  # type: ignore[import-not-found]

from discodso import DisCoSettings, search_policy
from discodso.base.arrays import Floats
from discodso.base.files import write_atomically
from discodso.disco.network import PolicySettings
from discodso.disco.presets import batch_for

RESULTS = Path(__file__).parent / "results"
SEEDS = range(3)
TEST_SEEDS = range(10_000, 11_000)  # the results have 0 to 999
DRAWN = 64  # settings
# Returns that nothing reaches; the score of a run is -log10 of what it lacks, so that the last steps count.
LIMITS = {"CartPole-v1": 501.0, "MountainCar-v0": -97.0}
OPTIONS: dict[str, tuple[Mapping[str, Any], ...]] = {
    "preferred length": tuple({"typical_nodes": nodes} for nodes in (0, 7, 13, 21)),
    "batch": tuple({"batch_size": size} for size in (50, 100, 200)),
    "share of variation": tuple({"variation": share} for share in (0.35, 0.6, 0.8)),
    "moves of single thresholds": tuple({"variation_single": share} for share in (0.0, 0.5)),
    "refinement": tuple({"refinement": share} for share in (0.0, 0.1)),
    "size of the queue": tuple({"queue_size": size} for size in (20, 50, 100)),
    "niches": (
        {"queue_niche": 0},
        {"queue_niche": 2},
        {"queue_niche": 10, "queue_niche_length": 3},
    ),
    "imitation of the queue": (
        {"queue_weight": 0.0},
        {"queue_weight": 0.3},
        {"queue_weight": 1.0},
        {"queue_weight": 0.3, "queue_steps": 3},
    ),
    "evaluating again": tuple({"queue_recheck": share} for share in (0.0, 0.1, 0.2, 0.4)),
    "learning from varied trees": tuple({"off_policy": on} for on in (True, False)),
    "learning rate": tuple({"learning_rate": rate} for rate in (0.002, 0.005, 0.01)),
    "entropy": tuple({"entropy_coefficient": weight} for weight in (0.01, 0.05, 0.1)),
    "share that teaches": tuple({"risk_factor": share} for share in (0.1, 0.2)),
    "distribution of thresholds": (
        {"scale": 0.1},
        {"scale": 0.2},
        {"scale": 0.1, "learn_scale": True, "min_scale": 0.02},
    ),
    "unit of the means": tuple({"mean_scale": unit} for unit in (1.0, 0.3, 0.1)),
}


# The default before: options that Acrobot and LunarLander had a say in, and so only a candidate here.
BEFORE: dict[str, Any] = {
    "typical_nodes": 13,
    "batch_size": 100,
    "variation": 0.6,
    "queue_size": 50,
    "queue_niche": 10,
    "queue_niche_length": 3,
    "queue_weight": 0.3,
    "queue_steps": 3,
    "queue_recheck": 0.2,
    "learning_rate": 0.005,
    "entropy_coefficient": 0.1,
    "risk_factor": 0.1,
    "scale": 0.1,
    "mean_scale": 0.1,
}


@dataclass(frozen=True)
class Cell:
    """What one run of some settings is."""

    environment: str
    calls: int
    episodes: int = 100
    max_nodes: int = 31
    common: bool = False

    @property
    def name(self) -> str:
        """For tables."""
        kind = "common episodes" if self.common else "episodes"
        return f"{self.environment}, {self.calls:,} calls of {self.episodes} {kind}"

    @property
    def kind(self) -> str:
        """What it repeats."""
        return f"{self.environment}, {self.calls:,} calls" + (", common episodes" if self.common else "")


CELLS = (
    Cell("CartPole-v1", 500),
    Cell("MountainCar-v0", 2_000),
    Cell("MountainCar-v0", 10_000),
    Cell("MountainCar-v0", 10_000, 200, common=True),
)
# What a size or a number of episodes more or less does to a search is chance: these are repetitions.
SIZES = (23, 25, 27, 29, 31, 33, 35, 37)
FINAL = (
    *(Cell("CartPole-v1", 1_000, 50, size) for size in SIZES[:4]),
    *(Cell("MountainCar-v0", 10_000, 3 * size, size) for size in SIZES),
    *(Cell("MountainCar-v0", 10_000, 6 * size, size, common=True) for size in SIZES[:4]),
)
CHOSEN = "the default before, 200 batches of fresh episodes"
BEST_DRAWN = 3  # of the settings drawn go to the final


def method(own: Mapping[str, Any], cell: Cell) -> DisCoSettings:
    """Over common episodes nothing is evaluated again, and equal returns count once. `small_batches`: where the
    rule of the general default holds: 200 batches, of 20 to 100 designs."""
    names = ("scale", "learn_scale", "min_scale", "mean_scale")
    network = PolicySettings(shift=0.5, **{name: own[name] for name in names if name in own})
    others = (*names, "typical_nodes", "small_batches")
    rest = {name: value for name, value in own.items() if name not in others}
    rest["queue_recheck"] = 0.0 if cell.common else own["queue_recheck"]
    if own.get("small_batches") == "always" or (
        own.get("small_batches") == "fresh episodes" and not cell.common
    ):
        rest["batch_size"] = batch_for(cell.calls)
    return DisCoSettings(**rest, queue_unequal=cell.common, policy=network)


def run(own: Mapping[str, Any], cell: Cell, seed: int) -> float:
    """Mean return of the chosen policy on the seeds kept for this."""
    found = search_policy(
        cell.environment,
        calls=cell.calls,
        seed=seed,
        episodes=cell.episodes,
        max_nodes=cell.max_nodes,
        common_episodes=cell.common,
        method=method(own, cell),
        typical_nodes=own["typical_nodes"],
        trim=False,
        test_seeds=TEST_SEEDS,
    )
    return round(float(found.test_returns.mean()), 3)


def scores(returns: Any, cells: Sequence[Cell]) -> Floats:
    """float[n, cells] of returns[n, cells, seeds], means over seeds."""
    limits = np.array([LIMITS[cell.environment] for cell in cells])
    by_cell: Floats = -np.log10(limits[:, None] - np.array(returns)).mean(axis=2)
    return by_cell


def screened(records: list[dict[str, Any]]) -> Floats:
    """float[n], of the settings drawn; each cell counts by how much it differs."""
    by_cell = scores([record["returns"] for record in records], CELLS)
    standard: Floats = ((by_cell - by_cell.mean(axis=0)) / by_cell.std(axis=0)).mean(axis=1)
    return standard


def finalists(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Settings by what they are."""
    values, own = [record["values"] for record in records], screened(records)
    best = screening.settings(OPTIONS, [option.best for option in screening.worth(OPTIONS, values, own)])
    drawn = [int(row) for row in np.argsort(-own, kind="stable")[:BEST_DRAWN]]
    return {
        "the default before": BEFORE,
        "the default before, 200 batches": {**BEFORE, "small_batches": "always"},
        "the default before, 200 batches, restarts": {
            **BEFORE,
            "small_batches": "always",
            "restart_batches": 20,
        },
        CHOSEN: {**BEFORE, "small_batches": "fresh episodes"},
        "the best value of each option": best,
        # To evaluate again costs calls at first, and long searches are where it may pay.
        "the same, evaluating again": {**best, "queue_recheck": 0.2},
        "the same, evaluating again, restarts": {**best, "queue_recheck": 0.2, "restart_batches": 20},
        **{f"number {row + 1} of those drawn": screening.settings(OPTIONS, values[row]) for row in drawn},
    }


def write(records: list[dict[str, Any]], final: dict[str, Any]) -> None:
    """Results as JSON, and as Markdown when all settings have been drawn."""
    command = "python benchmarks/tree_settings.py"
    lines = ",\n  ".join(json.dumps(record) for record in records)
    head = json.dumps({"command": command, "cells": [cell.name for cell in CELLS], "final": final})
    write_atomically(RESULTS / "tree_settings.json", f'{head[:-1]},\n "runs": [\n  {lines}\n ]}}\n')
    if len(records) < DRAWN:
        return
    returns = np.array([record["returns"] for record in records])
    rows = screening.table(
        OPTIONS,
        [record["values"] for record in records],
        screened(records),
        {cell.name: returns[:, k].mean(axis=1) for k, cell in enumerate(CELLS)},
    )
    text = [
        f"How the default for tree policies was chosen, by `{command}`: on CartPole and",
        f"MountainCar, seeds 0 to 2, nothing else. {DRAWN} settings drawn at random, every value of every option",
        "equally often. A run scores -log10(limit - return), the limits being 501 and -97, on test seeds",
        "10,000 to 10,999; scores are in units of their standard deviation over the settings. Worth: of a value,",
        "by least squares over all settings, with its standard error. Returns are plain means over settings.",
        "",
        *rows,
        "## Final",
        "",
        "Plain scores, every kind of run counts the same; repetitions differ in the largest tree and the number",
        "of episodes. Gaps are taken run by run, with 95 % intervals. What the final does not show to be better",
        "beyond that does not change the default.",
        "",
        *final_rows(final),
    ]
    write_atomically(RESULTS / "tree_settings.md", "\n".join(text) + "\n")


def final_rows(final: dict[str, Any]) -> list[str]:
    """A row for each finalist: its score, what the chosen one has more, mean and worst return of each kind."""
    kinds = list(dict.fromkeys(cell.kind for cell in FINAL))
    rows = [
        "| | score | the chosen one has more by | "
        + " | ".join(f"{kind}: mean, worst" for kind in kinds)
        + " |"
    ]
    rows.append("|---" * (3 + len(kinds)) + "|")
    for name, own in final.items():
        score = float(np.mean([part.mean() for part in by_kind(own["returns"])]))
        returns = [
            [
                one
                for cell, ones in zip(FINAL, own["returns"], strict=True)
                if cell.kind == kind
                for one in ones
            ]
            for kind in kinds
        ]
        cells = " | ".join(f"{statistics.fmean(ones):.2f}, {min(ones):.2f}" for ones in returns)
        ahead = "chosen" if name == CHOSEN else ""
        if not ahead and CHOSEN in final:
            ahead = gap(final[CHOSEN]["returns"], own["returns"])
        rows.append(f"| {name} | {score:.3f} | {ahead} | {cells} |")
    return rows


def by_kind(returns: list[list[float]]) -> list[Floats]:
    """float[n] for each kind of cell: the scores of its runs."""
    limits = np.array([LIMITS[cell.environment] for cell in FINAL])
    own = -np.log10(limits[:, None] - np.array(returns))
    kinds = dict.fromkeys(cell.kind for cell in FINAL)
    return [own[[cell.kind == kind for cell in FINAL]].ravel() for kind in kinds]


def gap(chosen: list[list[float]], other: list[list[float]]) -> str:
    """What one finalist scores more than another, run by run, and the 95 % interval; all kinds count the same."""
    parts = [a - b for a, b in zip(by_kind(chosen), by_kind(other), strict=True)]
    variance = sum(float(part.var(ddof=1)) / len(part) for part in parts) / len(parts) ** 2
    return f"{np.mean([part.mean() for part in parts]):+.3f} ± {1.96 * variance**0.5:.3f}"


Futures = list[list[Future[float]]]


def ask(pool: ProcessPoolExecutor, own: Mapping[str, Any], cells: Sequence[Cell]) -> Futures:
    """Runs of some settings, by cell and seed."""
    return [[pool.submit(run, own, cell, seed) for seed in SEEDS] for cell in cells]


def answers(futures: Futures) -> list[list[float]]:
    """What they found."""
    return [[future.result() for future in own] for own in futures]


def main() -> None:
    """Run what is missing; the file is written after each of the settings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    path = RESULTS / "tree_settings.json"
    known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    records: list[dict[str, Any]] = known.get("runs", [])
    final: dict[str, Any] = known.get("final", {})
    missing = screening.drawn(OPTIONS, DRAWN)[len(records) :]
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        asked = [ask(pool, screening.settings(OPTIONS, values), CELLS) for values in missing]
        for values, futures in zip(missing, asked, strict=True):
            records.append({"values": values, "returns": answers(futures)})
            write(records, final)
            print(f"{len(records)} of {DRAWN}: {records[-1]['returns']}", flush=True)
        news = {name: own for name, own in finalists(records).items() if name not in final}
        waiting = {name: ask(pool, own, FINAL) for name, own in news.items()}
        for name, futures in waiting.items():
            final[name] = {"settings": news[name], "returns": answers(futures)}
            write(records, final)
            print(f"{name}: {final[name]['returns']}", flush=True)
    write(records, final)
    print((RESULTS / "tree_settings.md").read_text())


if __name__ == "__main__":
    main()
