"""The 45 regression problems: the default search, the paper's settings and pyoperon, side by side.

python benchmarks/regression.py                  3 seeds, 100,000 calls, variant A; writes results/regression.json
python benchmarks/regression.py --ablation       the default without each part; regression-ablation.json
python benchmarks/regression.py --variant B      the other data; --calls, --seeds, --problems, --methods choose
python benchmarks/regression.py --first-seed 3   three seeds on which nothing was tuned

Runs that the result file has are not repeated. pyoperon counts as this project does: one for an evaluation of the
residuals, one for a Jacobian. docs/regression.md says on which problems the settings were chosen.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import peers  # type: ignore[import-not-found]

from discodso.base.files import write_atomically
from discodso.base.statistics import bootstrap_interval
from discodso.disco.presets import preset
from discodso.reproduce.regression_runs import Run, execute
from discodso.tasks.regression.problems import FUNCTION_SETS, Problem, problems

RESULTS = Path(__file__).parent / "results"
DEFAULT = preset(refines=True)
# What each row of the ablation leaves out.
ABLATION: dict[str, dict[str, Any]] = {
    "default": {},
    "without variation": {"settings": replace(DEFAULT, variation=0.0)},
    "without least squares": {"settings": replace(DEFAULT, task_refinement=0.0)},
    "without scale and offset": {"scaled": False},
    "without the choice (smallest error)": {"selection": "accuracy"},
    "without learning from the queue": {"settings": replace(DEFAULT, queue_weight=0.0)},
    "without learning from varied and refined designs": {"settings": replace(DEFAULT, off_policy=False)},
    "without niches": {"settings": replace(DEFAULT, queue_niche=0)},
    "paper": {"preset": "paper"},
}
FRESH = 3  # seeds below were used to choose settings
TIE = 0.01  # in evaluation reward
SYMBOLS = {"n2": "square", "const": "constant", "1": "constant", "n3": ""}


def operon(problem: Problem, seed: int, calls: int, variant: str) -> dict[str, Any]:
    """pyoperon with as many evaluations, the same operators but the cube, and the same longest expression."""
    names = {SYMBOLS.get(name, name) for name in FUNCTION_SETS[problem.function_set]} - {""}
    started = time.process_time()
    (X, y), (X_wide, y_wide) = problem.training_set(variant), problem.evaluation_set(variant)
    model = peers.operon(X, y, names | {"variable"}, seed, calls)
    return {
        "train": peers.reward(model.predict(X), y),
        "evaluation": peers.reward(model.predict(X_wide), y_wide),
        "length": int(model.stats_["model_length"]),
        "cpu_seconds": round(time.process_time() - started, 2),
    }


def run(method: str, problem: Problem, seed: int, calls: int, variant: Any) -> dict[str, Any]:
    """One record."""
    if method == "pyoperon":
        found = operon(problem, seed, calls, variant)
    else:
        options = {"preset": "default", **ABLATION[method]}
        found = execute(Run(problem.name, seed, calls, variant, **options))
        found = {key: found[key] for key in ("train", "evaluation", "length", "cpu_seconds", "expression")}
    key = {"method": method, "problem": problem.name, "seed": seed, "calls": calls, "variant": variant}
    return {**key, **found}


def table(records: Sequence[dict[str, Any]]) -> str:
    """Means over problems and seeds, halves apart, with intervals over the problems."""
    rows = [
        "| method | calls | variant | problems | seeds | train | evaluation | 95 % | length | CPU seconds |"
    ]
    rows.append("|---" * 10 + "|")
    order = [p.name for p in problems()]
    halves = {
        "all": lambda p: True,
        "dim <= 3": lambda p: p.inputs <= 3,
        "odd rows (the choice was tuned on these)": lambda p: order.index(p.name) % 2 == 0,
        "even rows": lambda p: order.index(p.name) % 2 == 1,
    }
    kinds: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for r in records:
        kinds.setdefault((r["method"], r["calls"], r["variant"], r["seed"] >= FRESH), []).append(r)
    methods = ["default", "pyoperon", *ABLATION]
    ordered = sorted(kinds, key=lambda kind: (*kind[1:], methods.index(kind[0])))
    for kind in ordered:
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
            rows.append(
                f"| {method} | {calls} | {variant} | {label}, {len(there)} | {seeds} | "
                f"{train:.3f} | **{np.mean(means):.3f}** | {interval} | {length:.1f} | {seconds:.0f} |"
            )
    return "\n".join(rows) + "\n"


def differences(records: Sequence[dict[str, Any]]) -> str:
    """What the default has more than each row of the ablation, problem by problem, with intervals."""
    rows = [
        "| | train | evaluation | the default has more by | 95 % | better, equal, worse |",
        "|---" * 6 + "|",
    ]
    means: dict[str, dict[str, float]] = {}
    for method in ABLATION:
        own = [r for r in records if r["method"] == method]
        names = sorted({r["problem"] for r in own})
        means[method] = {
            n: float(np.mean([r["evaluation"] for r in own if r["problem"] == n])) for n in names
        }
        if not own:
            continue
        train, evaluation = np.mean([r["train"] for r in own]), np.mean(list(means[method].values()))
        gaps = [means["default"][n] - means[method][n] for n in names if n in means["default"]]
        limits = bootstrap_interval(gaps) if method != "default" else None
        counts = [sum(gap > TIE for gap in gaps), sum(abs(gap) <= TIE for gap in gaps)]
        rows.append(
            f"| {method} | {train:.3f} | {evaluation:.3f} | "
            + (
                "| | |"
                if limits is None
                else f"{np.mean(gaps):+.3f} | {limits[0]:+.3f} to {limits[1]:+.3f} | "
            )
            + ("" if limits is None else f"{counts[0]}, {counts[1]}, {len(gaps) - sum(counts)} |")
        )
    return "\n".join(rows) + "\n"


def main() -> None:
    """Run what is missing, then write the records and the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--variant", choices=("A", "B"), default="A")
    parser.add_argument("--problems", default="all", help="all, odd, even, or names separated by commas")
    parser.add_argument("--methods", default="default,pyoperon", help="separated by commas")
    parser.add_argument("--ablation", action="store_true")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    path = RESULTS / ("regression-ablation.json" if options.ablation else "regression.json")
    parts = {"odd": problems()[0::2], "even": problems()[1::2], "all": problems()}
    chosen = parts[options.problems] if options.problems in parts else problems(options.problems.split(","))
    methods = list(ABLATION) if options.ablation else options.methods.split(",")
    before = json.loads(path.read_text()) if path.exists() else {"runs": [], "commands": []}
    records: list[dict[str, Any]] = before["runs"]
    command = " ".join(["python", "benchmarks/regression.py", *sys.argv[1:]])
    names = ("method", "problem", "seed", "calls", "variant")
    if options.ablation and (RESULTS / "regression.json").exists():  # the default is the same run there
        theirs = json.loads((RESULTS / "regression.json").read_text())["runs"]
        kind = (options.calls, options.variant)
        same = [r for r in theirs if (r["calls"], r["variant"]) == kind and r["method"] in ABLATION]
        records += [r for r in same if r not in records and r["seed"] < options.first_seed + options.seeds]
    known = {tuple(record[name] for name in names) for record in records}
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    missing = [
        (method, problem, seed, options.calls, options.variant)
        for seed, problem, method in product(seeds, chosen, methods)
        if (method, problem.name, seed, options.calls, options.variant) not in known
    ]
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        for done in as_completed([pool.submit(run, *work) for work in missing]):
            record = done.result()
            records.append(record)
            print(
                f"{record['problem']} seed {record['seed']} {record['method']}: train {record['train']:.4f}, "
                f"evaluation {record['evaluation']:.4f}, {record['cpu_seconds']:.0f} s",
                flush=True,
            )
            _write(path, records, [*before["commands"], command])
    print(table(records))
    commands = ", ".join(f"`{line}`" for line in dict.fromkeys([*before["commands"], command]))
    head = f"{commands}; seconds of one busy core."
    if options.ablation:
        head += f" Gaps of at most {TIE} count as equal.\n\n{differences(records).rstrip()}"
    path.with_suffix(".md").write_text(f"{head}\n\n{table(records)}")


def _write(path: Path, records: list[dict[str, Any]], commands: list[str]) -> None:
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    lines = ",\n  ".join(json.dumps(record) for record in records)
    head = json.dumps(
        {"command": commands[-1], "commands": list(dict.fromkeys(commands)), "machine": machine}
    )
    write_atomically(path, f'{head[:-1]},\n "runs": [\n  {lines}\n ]}}\n')


if __name__ == "__main__":
    main()
