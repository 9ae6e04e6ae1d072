"""The 45 regression problems: how good is the default search, beside pyoperon?

100,000 calls, variant A of the data, seeds 0 to 2, and 3 to 5, on which nothing was tuned; then the other data,
and a million calls. pyoperon counts as this project does: one for an evaluation of the residuals, one for a
Jacobian. docs/experiments/settings.md says on which problems the settings were chosen.

    python benchmarks/regression.py                      makes what results/regression.jsonl lacks, and its table
    python benchmarks/regression.py --only variant=B     of the other data
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import peers
from harness import Benchmark, Key, Record, main, markdown

from discodso.base.statistics import bootstrap_interval
from discodso.reproduce.regression_runs import run_problem
from discodso.tasks.regression.losses import prediction_reward
from discodso.tasks.regression.problems import FUNCTION_SETS, Problem, problems

FRESH = 3  # seeds below were used to choose settings
METHODS = ("default", "pyoperon")
FIELDS = ("method", "problem", "seed", "calls", "variant")
NAMES = [problem.name for problem in problems()]
KEYS = [
    dict(zip(FIELDS, (method, problem, seed, calls, variant), strict=True))
    for calls, variant, seeds, methods in (
        (100_000, "A", range(3), METHODS),
        (100_000, "A", range(3, 6), METHODS),
        (100_000, "B", range(3), METHODS),
        (1_000_000, "A", range(1), METHODS[:1]),
    )
    for seed, problem, method in product(seeds, NAMES, methods)
]
FIGURES = ("train", "evaluation", "length", "cpu_seconds", "expression")
HEAD = "method|calls|variant|problems|seeds|train|evaluation|95 %|length|CPU seconds".split("|")
SYMBOLS = {"n2": "square", "const": "constant", "1": "constant", "n3": ""}


def operon(problem: Problem, seed: int, calls: int, variant: Any) -> Record:
    """pyoperon with as many evaluations, the same operators but the cube, and the same longest expression."""
    names = {SYMBOLS.get(name, name) for name in FUNCTION_SETS[problem.function_set]} - {""}
    started = time.process_time()
    (X, y), (X_wide, y_wide) = problem.training_set(variant), problem.evaluation_set(variant)
    model = peers.operon(X, y, names | {"variable"}, seed, calls)
    return {
        "train": prediction_reward(model.predict(X), y),
        "evaluation": prediction_reward(model.predict(X_wide), y_wide),
        "length": int(model.stats_["model_length"]),
        "cpu_seconds": round(time.process_time() - started, 2),
    }


def run(key: Key) -> Record:
    """One search."""
    name, seed, calls, variant = (key[field] for field in FIELDS[1:])
    if key["method"] == "pyoperon":
        (problem,) = problems(name)
        return operon(problem, seed, calls, variant)
    found = run_problem(name, seed, calls, variant, preset="default")
    return {figure: found[figure] for figure in FIGURES}


def means_table(records: Sequence[Record], methods: Sequence[str] = METHODS) -> list[str]:
    """Means over problems and seeds, halves apart, with intervals over the problems."""
    rows = []
    order = [p.name for p in problems()]
    halves: dict[str, Callable[[Problem], bool]] = {
        "all": lambda p: True,
        "dim <= 3": lambda p: p.inputs <= 3,
        "odd rows (the choice was tuned on these)": lambda p: order.index(p.name) % 2 == 0,
        "even rows": lambda p: order.index(p.name) % 2 == 1,
    }
    kinds: dict[tuple[Any, ...], list[Record]] = {}
    for r in records:
        kinds.setdefault((r["method"], r["calls"], r["variant"], r["seed"] >= FRESH), []).append(r)
    for kind in sorted(kinds, key=lambda kind: (*kind[1:], methods.index(kind[0]))):
        (method, calls, variant, _), own = kind, kinds[kind]
        for label, belongs in halves.items():
            names = [p.name for p in problems() if belongs(p)]
            part = [r for r in own if r["problem"] in names]
            there = sorted({r["problem"] for r in part}, key=order.index)
            if not part:
                continue
            means = [float(np.mean([r["evaluation"] for r in part if r["problem"] == n])) for n in there]
            limits = bootstrap_interval(means)
            interval = "" if limits is None else f"{limits[0]:.3f} to {limits[1]:.3f}"
            train, length, seconds = (
                float(np.mean([r[key] for r in part])) for key in ("train", "length", "cpu_seconds")
            )
            numbers = sorted({r["seed"] for r in part})
            seeds = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
            row = f"{method}|{calls}|{variant}|{label}, {len(there)}|{seeds}|{train:.3f}|**{np.mean(means):.3f}**"
            rows.append(f"{row}|{interval}|{length:.1f}|{seconds:.0f}".split("|"))
    return markdown(HEAD, rows)


def table(records: Sequence[Record]) -> str:
    """As Markdown."""
    return "\n".join(
        ["Made by `python benchmarks/regression.py`; seconds of one busy core.", "", *means_table(records)]
    )


BENCHMARK = Benchmark("regression", KEYS, run, table)
if __name__ == "__main__":
    main(BENCHMARK, __doc__)
