"""The literature's tree methods with their published settings: do they reach what their authors reached?

Evolutionary, cascading and differentiable trees on the paper's environments, each with its own published episodes,
as methods of `search_policy`: crisp trees on 1000 test seeds, and of the soft ones what they had before.

    python benchmarks/literature.py                               makes what results/literature.jsonl lacks (hours)
    python benchmarks/literature.py --only environment=CartPole-v1
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from harness import Benchmark, Key, Record, grid, half_width, main

from discodso import search_policy
from discodso.baselines.literature import LITERATURE, Practising, published
from discodso.tasks.policies.literature.soft_trees import SoftTrees
from discodso.tasks.policies.splits import Oblique, Split

ENVIRONMENTS = ("CartPole-v1", "MountainCar-v0", "Acrobot-v1", "LunarLander-v3")
SEEDS = range(10)
KEYS: list[Key] = [
    {"environment": environment, "method": method, "seed": seed}
    for seed in SEEDS
    for environment in ENVIRONMENTS
    for method in LITERATURE
]
EPISODES = 100  # that count as one objective call
# What the paper prints (mean over 1000 seeds, nodes), and what others say of the same methods.
PAPER = {
    "Evolutionary DTs": ("499.58 (5)", "-104.93 (13)", "-97.12 (5)", "-87.62 (17)"),
    "Cascading DTs": ("496.63 (22)", "-200.00 (10)", "-82.14 (58)", "-227.02 (29)"),
    "Interpretable DDTs": ("389.79 (11)", "-172.21 (15)", "-497.86 (15)", "-120.38 (19)"),
}
OTHERS = {
    "Evolutionary DTs": ("500 (5)", "-101.72 (13)", "-", "213 (oblique)"),
    "Cascading DTs": ("at least 490", "-", "-", "-"),
    "Interpretable DDTs": ("499.80 (13)", "-", "-", "-"),
}


def run(key: Key) -> Record:
    """A run, with what its soft trees had."""
    settings, made = published(key["environment"])[key["method"]], list[Any]()

    class Watched(type(settings)):  # type: ignore[misc]
        """The same settings, which keep the method that they start."""

        def build(self, space: Any, seed: Any = 0) -> Any:
            """Start it."""
            made.append(Practising.build(self, space, seed))
            return made[0]

    method = Watched(**{own.name: getattr(settings, own.name) for own in fields(settings)})
    began = time.process_time()
    found = search_policy(
        key["environment"], budget=10**7, method=method, seed=key["seed"], episodes=EPISODES, preset="paper"
    )
    soft = made[0].best_soft if isinstance(made[0], SoftTrees) else None
    return {
        "test": round(found.test_mean, 2),
        "error": round(found.test_error, 2),
        "nodes": len(found.policy),
        "counted": counted(found.policy.nodes, settings),
        "soft": None if soft is None or not np.isfinite(soft) else round(soft, 2),
        "episodes": found.episodes,
        "stop": found.search.stop.name.lower(),
        "cpu_seconds": round(time.process_time() - began, 1),
    }


def counted(nodes: Any, settings: Any) -> int:
    """Nodes as the paper counts them: of a cascade each node of its trees, and each weight of the features.

    The splits on single features are those of the first tree, and so many features are used as there are subtrees
    below them; of the tree on features the largest part that is left counts, since all subtrees are parts of it.
    """
    if not hasattr(settings, "features"):
        return len(nodes)
    wide = max((len(own.terms) for own, _ in nodes if isinstance(own, Oblique)), default=1)

    def parts(place: int) -> tuple[int, list[int]]:
        own, jump = nodes[place]
        if isinstance(own, Split) and wide > 1:
            (first, left), (second, right) = parts(place + 1), parts(place + jump)
            return 1 + first + second, left + right
        return 0, [size(place)]

    def size(place: int) -> int:
        jump = nodes[place][1]
        return 1 if jump == 0 else 1 + size(place + 1) + size(place + jump)

    gates, below = parts(0)
    used = [own for own in below if own > 1]
    return int(gates + len(used) * settings.features * wide + max(below))


def table(records: Sequence[Record]) -> str:
    """Crisp trees beside what was published; the soft trees before them."""

    def of(method: str, environment: str, figure: str) -> list[float]:
        own = [r for r in records if (r["method"], r["environment"]) == (method, environment)]
        return [r[figure] for r in own if r[figure] is not None]

    def cell(row: str, environment: str) -> str:
        method, _, what = row.partition(": ")
        place = ENVIRONMENTS.index(environment)
        if what in ("paper", "others"):
            return (PAPER if what == "paper" else OTHERS)[method][place]
        figures = of(method, environment, "soft" if what == "before it is crisp" else "test")
        if not figures:
            return "-"
        if what == "best, nodes":
            best = max(
                (r for r in records if (r["method"], r["environment"]) == (method, environment)),
                key=lambda r: r["test"],
            )
            return f"{best['test']:.2f} ({best['counted']})"
        spread = f" ± {half_width(figures):.2f}" if len(figures) > 2 else ""
        return f"{statistics.fmean(figures):.2f}{spread} ({len(figures)} run{'s' * (len(figures) > 1)})"

    rows = [
        f"{method}: {what}"
        for method in LITERATURE
        for what in ("mean", "best, nodes", "before it is crisp", "paper", "others")
    ]
    lines = [
        "# The literature's tree methods",
        "",
        "`python benchmarks/literature.py`: crisp trees, means over 1000 test seeds; the mean of the runs ± half "
        "of its 95 % interval, and the best run with its nodes as the paper counts them. Before it is crisp: the "
        "highest mean return of 50 episodes of training, actions drawn. "
        f"{len(records)} of {len(KEYS)} runs.",
        "",
        *grid("", rows, ENVIRONMENTS, cell),
    ]
    return "\n".join(lines)


BENCHMARK = Benchmark("literature", KEYS, run, table)
if __name__ == "__main__":
    main(BENCHMARK, __doc__)
