"""The 45 regression problems: what is each part of the default search worth?

100,000 calls, variant A of the data, seeds 0 to 2. Runs of the default are those of benchmarks/regression.py.

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
from discodso.reproduce.regression_runs import Trial, execute

DEFAULT = preset(refines=True)
assert DEFAULT.archive is not None
# What each row of the ablation leaves out.
ABLATION: dict[str, dict[str, Any]] = {
    "without variation": {"method": replace(DEFAULT, variation=None)},
    "without least squares": {"method": replace(DEFAULT, task_refinement=None)},
    "without scale and offset": {"scaled": False},
    "without the choice (smallest error)": {"selection": "accuracy"},
    "a network that never learns": {
        "method": replace(DEFAULT, learner=replace(DEFAULT.learner, learning_rate=0.0))
    },
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
    found = execute(Trial(key["problem"], key["seed"], CALLS, VARIANT, **options))
    return {figure: found[figure] for figure in regression.FIGURES}


def with_default(records: Sequence[Record]) -> list[Record]:
    """And the same runs of the default."""
    theirs = regression.BENCHMARK.records()
    wanted = [{**key, "method": "default"} for key in KEYS if key["method"] == next(iter(ABLATION))]
    known = {theirs.identity(record): record for record in theirs}
    return [*(known[theirs.identity(key)] for key in wanted if key in theirs), *records]


def differences(records: Sequence[Record]) -> list[str]:
    """What the default has more than each row, problem by problem, with intervals."""
    rows, default = [], dict[str, float]()
    for method in ("default", *ABLATION):
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
    found = with_default(records)
    lines = [
        "Made by `python benchmarks/regression_ablation.py`; seconds of one busy core. "
        f"Gaps of at most {TIE} count as equal.",
        "",
        *differences(found),
        "",
        *regression.means_table(found, ["default", *ABLATION]),
    ]
    return "\n".join(lines)


BENCHMARK = Benchmark("regression_ablation", KEYS, run, table)
if __name__ == "__main__":
    main(BENCHMARK, __doc__)
