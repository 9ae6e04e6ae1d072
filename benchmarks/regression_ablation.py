"""The 45 regression problems: what is each part of the default search worth?

100,000 calls, variant A of the data, seeds 0 to 2. The default has runs of its own, so that all rows are of one
version.

    python benchmarks/regression_ablation.py   what results/regression_ablation.jsonl lacks (hours), and its table
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Literal

import regression
from harness import Benchmark, Key, Record, gaps, main, markdown, signed_gap

from discodso.disco.presets import preset
from discodso.disco.settings import LearnerSettings
from discodso.reproduce.regression_runs import run_problem

DEFAULT = preset(refines=True)
assert DEFAULT.archive is not None
# What each row of the ablation leaves out.
ABLATION: dict[str, dict[str, Any]] = {
    "default": {},
    "without variation": {"method": replace(DEFAULT, variation=None)},
    "without least squares": {"method": replace(DEFAULT, task_refinement=None)},
    "without scale and offset": {"scaled": False},
    "without the choice (smallest error)": {"selection": "accuracy"},
    "a network that never learns": {
        "method": replace(DEFAULT, learner=replace(DEFAULT.learner, learning_rate=0.0))
    },
    "no network": {"method": replace(DEFAULT, network=None, learner=LearnerSettings())},
    "without niches": {"method": replace(DEFAULT, archive=replace(DEFAULT.archive, niche=0))},
    "paper": {"preset": "paper"},
}
CALLS, SEEDS = 100_000, range(3)
VARIANT: Literal["A"] = "A"
TIE = 0.01  # in evaluation reward
KEYS = [
    dict(zip(regression.FIELDS, (method, problem, seed, CALLS, VARIANT), strict=True))
    for seed, problem, method in product(SEEDS, regression.NAMES, ABLATION)
]


def run(key: Key) -> Record:
    """One search."""
    options = {"preset": "default", **ABLATION[key["method"]]}
    found = run_problem(key["problem"], key["seed"], CALLS, VARIANT, **options)
    return {figure: found[figure] for figure in regression.FIGURES}


def differences(records: Sequence[Record]) -> list[str]:
    """What the default has more than each row, problem by problem, with intervals."""
    rows, default = [], dict[str, float]()
    for method in ABLATION:
        own = [r for r in records if r["method"] == method]
        if not own:
            continue
        means = {
            name: statistics.fmean(r["evaluation"] for r in own if r["problem"] == name)
            for name in sorted({r["problem"] for r in own})
        }
        default = default or means
        more = ["", "", ""]
        if method != "default":
            found = gaps(default, means)
            counts = [sum(gap > TIE for gap in found), sum(abs(gap) <= TIE for gap in found)]
            more = [*signed_gap(found), f"{counts[0]}, {counts[1]}, {len(found) - sum(counts)}"]
        train = statistics.fmean(r["train"] for r in own)
        rows.append([method, f"{train:.3f}", f"{statistics.fmean(means.values()):.3f}", *more])
    head = ["", "train", "evaluation", "the default has more by", "95 %", "better, equal, worse"]
    return markdown(head, rows)


def table(records: Sequence[Record]) -> str:
    """Differences, then the means."""
    lines = [
        "Made by `python benchmarks/regression_ablation.py`; seconds of one busy core. "
        f"Gaps of at most {TIE} count as equal.",
        "",
        *differences(records),
        "",
        *regression.means_table(records, list(ABLATION)),
    ]
    return "\n".join(lines)


BENCHMARK = Benchmark("regression_ablation", KEYS, run, table)
if __name__ == "__main__":
    main(BENCHMARK, __doc__)
