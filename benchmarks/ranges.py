"""Unknown ranges: thresholds in declared bounds, in what random episodes show, and in ranges that move.

    python benchmarks/ranges.py    makes what results/ranges.jsonl lacks (some minutes)

CartPole declares no bounds of its velocities, LunarLander some that are far wider than what happens, and the wide
CartPole declares all of its bounds a thousand times too wide.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from harness import Benchmark, Key, Record, main, markdown

from discodso import search_policy

SEEDS = range(3)
_HIGHEST = np.array([4.8, 3.0, 0.418, 3.0], np.float32)  # of CartPole; its velocities seldom go beyond 3
_CART = {"budget": 600, "episodes": 20, "test_seeds": range(200)}
_LANDER = {"budget": 4000, "episodes": 50, "common_episodes": True, "test_seeds": range(200)}
WAYS: dict[str, dict[str, Any]] = {
    "declared": {},
    "probed": {"probe_ranges": True},
    "moving": {"moving_ranges": True},
}


def _declared(name: str) -> dict[str, tuple[float, float]]:
    """The bounds that an environment declares."""
    space = gymnasium.make(name).observation_space
    assert isinstance(space, Box)
    ends = zip(space.low.tolist(), space.high.tolist(), strict=True)
    return {str(place): own for place, own in enumerate(ends)}


def wide() -> Any:
    """CartPole with bounds that are a thousand times too wide."""
    env = gymnasium.make("CartPole-v1")
    return gymnasium.wrappers.TransformObservation(env, lambda x: x, Box(-1000 * _HIGHEST, 1000 * _HIGHEST))


ENVIRONMENTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "CartPole": ("CartPole-v1", _CART),
    "CartPole, wide": (wide, _CART),
    "LunarLander": ("LunarLander-v3", _LANDER),
}
# Velocities of CartPole have no declared bounds, so these are probed.
KEYS = [
    {"environment": name, "ranges": way, "seed": seed}
    for name in ENVIRONMENTS
    for way in WAYS
    if (name, way) != ("CartPole", "declared")
    for seed in SEEDS
]


def run(key: Key) -> Record:
    """One search, and where it looked for thresholds at last."""
    environment, options = ENVIRONMENTS[key["environment"]]
    own = dict(WAYS[key["ranges"]])
    if key["environment"] == "LunarLander" and key["ranges"] == "declared":
        own["ranges"] = _declared("LunarLander-v3")  # by default those of version 2
    found = search_policy(environment, seed=key["seed"], **options, **own)
    return {
        "mean": round(found.test_mean, 2),
        "error": round(found.test_error, 2),
        "nodes": len(found.policy),
        "calls": found.calls,
        "episodes": found.episodes,
        "text": str(found.policy.export("text")),
    }


def table(records: Sequence[Record]) -> str:
    """Means of the test, of each seed and over all."""
    lines = []
    for name in ENVIRONMENTS:
        for way in WAYS:
            own = [r for r in records if (r["environment"], r["ranges"]) == (name, way)]
            own.sort(key=lambda r: int(r["seed"]))
            if own:
                means = ", ".join(f"{r['mean']:.1f} ± {r['error']:.1f} ({r['nodes']})" for r in own)
                mean = statistics.fmean(r["mean"] for r in own)
                episodes = statistics.fmean(r["episodes"] for r in own)
                lines.append([name, way, f"{mean:.1f}", means, f"{own[0]['calls']:,}", f"{episodes:,.0f}"])
    head = ["environment", "ranges", "mean", "by seed, from 0 on (nodes)", "calls", "episodes"]
    return "\n".join(markdown(head, lines)) + "\n"


BENCHMARK = Benchmark("ranges", KEYS, run, table)

if __name__ == "__main__":
    main(BENCHMARK, __doc__)
