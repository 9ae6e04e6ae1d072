"""What each part of the default for tree policies is worth: the default, the default without each, the paper's.

The three compiled environments: 20,000 calls of 100 episodes, seeds 10 to 14, where no setting was tuned (though
10 and 11 had shown that the scale needed it); and 2,000 calls, seeds 10 to 19: what it is worth to learn where
calls are few.

    python benchmarks/trees.py                      makes what results/trees.jsonl lacks (hours), and trees.md
    python benchmarks/trees.py --only calls=2000    of the short searches
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from harness import Benchmark, Key, Record, gaps, grid, main, shown

from discodso import search_policy
from discodso.disco.settings import (
    DrawSettings,
    LearnerSettings,
    NetworkSettings,
    ScreenSettings,
    VariationSettings,
)
from discodso.tasks.policies.policy_kind import default_settings

ENVIRONMENTS = ("CartPole-v1", "MountainCar-v0", "Acrobot-v1")
SEEDS = {20_000: range(10, 15), 2_000: range(10, 20)}  # by calls


def ablation(calls: int) -> dict[str, dict[str, Any]]:
    """What each row changes, as arguments of `search_policy`."""
    default = default_settings(budget=calls)
    assert default.archive is not None
    # The default of the version before: thresholds begin near the middle, means are emitted in units of the scale.
    network = replace(
        default,
        network=NetworkSettings(scale=0.1, shift=0.5, mean_scale=0.1),
        draws=DrawSettings(),
        learner=LearnerSettings(learning_rate=0.005, risk_factor=0.1, entropy_coefficient=0.1),
        variation=VariationSettings(share=0.6),
        adaptive=False,
    )
    return {
        "default": {},
        "a network that learns": {"method": network},
        "a network that never learns": {
            "method": replace(network, learner=replace(network.learner, learning_rate=0.0))
        },
        "without variation": {"method": replace(default, variation=None)},
        "without shares by what is earned": {
            "method": replace(default, adaptive=False, variation=VariationSettings(share=0.6))
        },
        "with a screen": {"method": replace(default, screen=ScreenSettings())},
        "values drawn evenly": {"method": replace(default, draws=DrawSettings())},
        "without niches": {"method": replace(default, archive=replace(default.archive, niche=0))},
        "without racing": {"racing": False},
        "without trimming": {"trim": False},
        "paper-scaled preset": {"preset": "paper-scaled"},
    }


METHODS = tuple(ablation(20_000))
ROWS = {20_000: METHODS, 2_000: METHODS[:8]}  # by calls
KEYS = [
    {"environment": environment, "method": method, "seed": seed, "calls": calls}
    for calls, seeds in SEEDS.items()
    for seed in seeds
    for environment in ENVIRONMENTS
    for method in ROWS[calls]
]
BySeed = dict[int, Record]
Cell = Callable[[BySeed, BySeed, int], str]  # of a method's runs, the default's, and how many there should be


def run(key: Key) -> Record:
    """One search, chosen and tested."""
    calls, started = key["calls"], time.process_time()
    options = ablation(calls)[key["method"]]
    found = search_policy(key["environment"], budget=calls, seed=key["seed"], **options)
    assert found.calls == calls
    return {
        "test": round(float(found.test_returns.mean()), 3),
        "nodes": len(found.policy),
        "episodes": found.episodes + found.validation_episodes,
        "cpu_seconds": round(time.process_time() - started, 1),
    }


def means(own: BySeed, default: BySeed, wanted: int) -> str:
    """Test mean with its interval, and means of nodes and CPU seconds."""
    if not own:
        return "-"
    nodes, seconds = (statistics.fmean(r[key] for r in own.values()) for key in ("nodes", "cpu_seconds"))
    tests = shown([r["test"] for r in own.values()], wanted=wanted, digits=2)
    return f"{tests} ({nodes:.0f}; {seconds:.0f} s)"


def ahead(own: BySeed, default: BySeed, wanted: int) -> str:
    """By how much the default is ahead, seed by seed, and in how many."""
    best, other = ({seed: r["test"] for seed, r in runs.items()} for runs in (default, own))
    found = gaps(best, other) if own != default else []
    if not found:
        return "-"
    mean = shown(found, wanted=wanted, digits=2)
    return f"{mean} (ahead in {sum(gap > 0 for gap in found)}, behind in {sum(gap < 0 for gap in found)})"


TABLES: dict[str, Cell] = {"test means": means, "by how much the default is ahead, seed by seed": ahead}


def table(records: Sequence[Record]) -> str:
    """For each number of calls the test means, and the gaps."""
    lines = [
        "Test means over 1000 unseen seeds, calls of 100 episodes, 95 % intervals; in brackets nodes and",
        "CPU seconds. Made by `python benchmarks/trees.py`.",
        "",
    ]
    runs: dict[tuple[int, str, str], BySeed] = {}
    for r in records:
        runs.setdefault((r["calls"], r["method"], r["environment"]), {})[r["seed"]] = r
    for calls, seeds in SEEDS.items():
        for title, show in TABLES.items():

            def cell(method: str, environment: str, calls: int = calls, show: Cell = show) -> str:
                own, default = (runs.get((calls, row, environment), {}) for row in (method, "default"))
                return show(own, default, len(SEEDS[calls]))

            lines += [f"## {calls:,} calls, {len(seeds)} seeds: {title}", ""]
            lines += [*grid("method", METHODS, ENVIRONMENTS, cell), ""]
    return "\n".join(lines)


BENCHMARK = Benchmark("trees", KEYS, run, table)
if __name__ == "__main__":
    main(BENCHMARK, __doc__)
