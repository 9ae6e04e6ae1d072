"""Learning on the parameterised bitstring task: DisCo beside uniform random search, the same calls for both.

T = 10, alpha 0.5 and 0.9, f1 and f2, 50,000 objective calls, 5 seeds: mean of the best reward and its standard
error. The other options (learned scale, position) were picked on seeds 0 to 2, their values on seeds 10 to
13; seeds 3 and 4 were never looked at before.

    python benchmarks/bitstring.py          makes what results/bitstring.jsonl lacks (minutes), and bitstring.md
    python benchmarks/bitstring.py --again  makes all of it anew
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from harness import Benchmark, Key, Record, grid, main

from discodso import DisCoSettings, NetworkSettings, search
from discodso.base.statistics import standard_error
from discodso.baselines.random_search import RandomSettings
from discodso.disco.method import MethodSettings
from discodso.disco.settings import LearnerSettings
from discodso.tasks.bitstring import bitstring

LENGTH, CALLS, SEEDS = 10, 50_000, 5
CASES = [(objective, alpha) for alpha in (0.9, 0.5) for objective in ("f1", "f2")]
OTHER = DisCoSettings(
    learner=LearnerSettings(learning_rate=0.006, risk_factor=0.1, entropy_coefficient=0.1),
    network=NetworkSettings(learn_scale=True, inputs=("previous", "position")),
)
METHODS: dict[str, MethodSettings] = {
    "random search": RandomSettings(),
    "DisCo, preset paper-scaled, batch 1000": DisCoSettings(batch_size=1000),
    "DisCo, preset paper-scaled, batch 100": DisCoSettings(batch_size=100),
    "DisCo, other options": OTHER,
}


KEYS = [
    {"method": method, "objective": objective, "alpha": alpha, "seed": seed}
    for method in METHODS
    for objective, alpha in CASES
    for seed in range(SEEDS)
]


def run(key: Key) -> Record:
    """Best reward of one search."""
    seed = key["seed"]
    task = bitstring(LENGTH, key["alpha"], key["objective"], seed)
    result = search(task, budget=CALLS, seed=seed, method=METHODS[key["method"]])
    assert result.best is not None
    assert result.calls == CALLS
    return {"best": round(result.best.reward, 6)}


def table(records: Sequence[Record]) -> str:
    """Means and standard errors."""
    columns = {f"{objective}, alpha {alpha}": (objective, alpha) for objective, alpha in CASES}

    def cell(method: str, column: str) -> str:
        kind = (method, *columns[column])
        own = [r["best"] for r in records if (r["method"], r["objective"], r["alpha"]) == kind]
        return f"{statistics.fmean(own):.4f} ± {standard_error(own) or 0:.4f}" if own else "-"

    lines = [
        f"Bitstring, T = {LENGTH}, {CALLS:,} objective calls, {SEEDS} seeds: mean best reward ± standard error.",
        "Made by `python benchmarks/bitstring.py` (`make bench-bitstring`).",
        "",
        *grid("method", METHODS, list(columns), cell),
        "",
        "The other options: " + ", ".join(describe(OTHER)) + "; all other settings are the paper's.",
    ]
    return "\n".join(lines)


def describe(settings: DisCoSettings) -> list[str]:
    """The settings that differ from the defaults."""
    default, changed = DisCoSettings(), dict[str, Any]()
    for own, usual in ((settings.learner, default.learner), (settings.network, default.network)):
        assert own is not None
        assert usual is not None
        plain = asdict(usual)
        changed |= {key: value for key, value in asdict(own).items() if value != plain[key]}
    return [f"`{key}={value!r}`" for key, value in changed.items()]


BENCHMARK = Benchmark("bitstring", KEYS, run, table)
if __name__ == "__main__":
    main(BENCHMARK, __doc__)
