"""The default method beside the paper's settings, random search and genetic programming; what each part is worth.

Parts, each with its table: "bitstring" are the four bitstring settings (50,000 calls, 5 seeds; a run ends at a
reward of 0.99999); "filter" and "coating" are the spaces of examples/ at 5,000 calls, 10 seeds; "unseen" has four
problems by which only the screen was chosen, on other seeds (benchmarks/unseen.py), likewise. The default was
tuned on seeds 0 to 2 of the bitstring (f1 with alpha 0.5, f2 with both) and 0 to 5 of the filter. No setting was
tuned on the coating, but two operators of variation were added after a first look at it.

    python benchmarks/defaults.py                      makes what results/defaults.jsonl lacks, and its table
    python benchmarks/defaults.py --only part=filter   of one part
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from harness import Benchmark, Key, Record, grid, main, shown
from ladder_filter import butterworth, ladder_task
from mirror_coating import coating_task
from unseen import UNSEEN

from discodso import GPSettings, NetworkSettings, Task, preset, search
from discodso.baselines.random_search import RandomSettings
from discodso.disco.method import MethodSettings
from discodso.disco.settings import LearnerSettings, RefinementSettings
from discodso.tasks.bitstring import bitstring

# The best network that was found, and one that never learns.
NETWORK = NetworkSettings(learn_scale=True, min_scale=0.01, inputs=("neighbours", "position"))
LEARNER = LearnerSettings(learning_rate=0.005, entropy_coefficient=0.05)
NEVER = replace(LEARNER, learning_rate=0.0)


def ablation(budget: int) -> dict[str, MethodSettings]:
    """The default for a budget, the default without each of its parts, the paper's settings, and searches without
    a network."""
    default = preset("default", budget=budget)
    assert default.variation is not None
    assert default.archive is not None
    return {
        "default": default,
        "without variation": replace(default, variation=None),
        "without moves of single values": replace(default, variation=replace(default.variation, single=0.0)),
        "without refinement": replace(default, refinement=None),
        "without a model of each skeleton": replace(default, refinement=RefinementSettings(model=False)),
        "without allocation: fixed shares": replace(default, adaptive=False),
        "without the screen": replace(default, screen=None),
        "with a network that learns": replace(default, network=NETWORK, learner=LEARNER),
        "with a network that never learns": replace(default, network=NETWORK, learner=NEVER),
        "without niches": replace(default, archive=replace(default.archive, niche=0)),
        "without restarts": replace(default, restarts=None),
        "paper preset": preset("paper"),
        "paper-scaled preset": preset("paper-scaled"),
        "genetic programming": GPSettings(population=100),
        "random search": RandomSettings(),
    }


PEERS = ("default", "paper preset", "paper-scaled preset", "genetic programming", "random search")
OBJECTIVES: tuple[Literal["f1", "f2"], ...] = ("f1", "f2")
CASES = [(objective, alpha) for alpha in (0.9, 0.5) for objective in OBJECTIVES]


def bitstring_cell(objective: Literal["f1", "f2"], alpha: float) -> Callable[[int], Task]:
    """A task for each seed."""
    return lambda seed: bitstring(10, alpha, objective, seed)


@dataclass(frozen=True)
class Part:
    """A table: its rows, its columns by the seed, objective calls, number of seeds."""

    methods: dict[str, MethodSettings]
    tasks: dict[str, Callable[[int], Task]]
    calls: int
    seeds: int


def fixed(task: Callable[[], Task]) -> Callable[[int], Task]:
    """The same for every seed."""
    return lambda seed: task()


PARTS = {
    "filter": Part(ablation(5_000), {"ladder filter": fixed(lambda: ladder_task(butterworth()))}, 5_000, 10),
    "coating": Part(ablation(5_000), {"mirror coating": fixed(coating_task)}, 5_000, 10),
    "unseen": Part(
        {name: settings for name, settings in ablation(5_000).items() if name in PEERS},
        {name: fixed(task) for name, task in UNSEEN.items()},
        5_000,
        10,
    ),
    "bitstring": Part(
        ablation(50_000),
        {f"{objective}, alpha {alpha}": bitstring_cell(objective, alpha) for objective, alpha in CASES},
        50_000,
        5,
    ),
}
KEYS = [
    {"part": name, "method": method, "task": task, "seed": seed}
    for name, part in PARTS.items()
    for method in part.methods
    for task in part.tasks
    for seed in range(part.seeds)
]


def run(key: Key) -> Record:
    """One search."""
    part, seed = PARTS[key["part"]], key["seed"]
    target = 0.99999 if key["part"] == "bitstring" else None
    method = part.methods[key["method"]]
    result = search(part.tasks[key["task"]](seed), budget=part.calls, seed=seed, method=method, target=target)
    assert result.best is not None
    return {"best": round(result.best.reward, 5), "calls": result.calls}


def table(records: Sequence[Record]) -> str:
    """Mean rewards with their intervals; for the bitstring the means of the calls too: most reach the end."""
    lines = ["Mean best reward and its 95 % interval. Made by `python benchmarks/defaults.py`.", ""]
    for name, part in PARTS.items():

        def cell(method: str, task: str, name: str = name, part: Part = part) -> str:
            own = [r for r in records if (r["part"], r["method"], r["task"]) == (name, method, task)]
            rewards = shown([r["best"] for r in own], wanted=part.seeds, digits=4)
            if name != "bitstring" or not own:
                return rewards
            return f"{rewards}; {statistics.fmean(r['calls'] for r in own):,.0f} calls"

        lines += [f"## {name}: {part.calls:,} objective calls, {part.seeds} seeds", ""]
        lines += [*grid("method", part.methods, list(part.tasks), cell), ""]
    return "\n".join(lines)


BENCHMARK = Benchmark("defaults", KEYS, run, table)
if __name__ == "__main__":
    main(BENCHMARK, __doc__)
