"""What every learned part is worth: the default beside the same method with a network, and without the screen.

Rows: the default, which has no network; with a network that learns, and with one that never does (learning rate
0); without the screen; without the model by which refinement chooses. Rewards of noisy tasks are true ones (noise
of standard deviation 0.1). Ten seeds by which nothing was chosen. The summary has gains over the same method with
a network that never learns, in standard deviations over seeds. A call of the pipeline takes 20 ms, so it has 200
and 500 calls only.

    python benchmarks/learning.py                      makes what results/learning.jsonl lacks, and its table
    python benchmarks/learning.py --only calls=200     of short searches
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from defaults import LEARNER, NETWORK, NEVER, fixed
from designs import PROBLEMS, task_of
from harness import Benchmark, Key, Record, grid, half_width, main, shown
from ladder_filter import butterworth, ladder_task
from mirror_coating import coating_task
from noise import true_rewards, with_noise
from unseen import UNSEEN

from discodso import DisCoSettings, Task, preset, search
from discodso.disco.settings import RefinementSettings
from discodso.tasks.bitstring import bitstring

SEEDS, FIRST_SEED = 10, 200
CALLS = (200, 500, 2_000, 10_000)
EXACT: dict[str, Callable[[int], Task]] = {
    "bitstring f1, alpha 0.5": lambda seed: bitstring(10, 0.5, "f1", seed),
    "bitstring f2, alpha 0.9": lambda seed: bitstring(10, 0.9, "f2", seed),
    "ladder filter": lambda seed: ladder_task(butterworth()),
    "mirror coating": lambda seed: coating_task(),
    **{name: fixed(made) for name, made in UNSEEN.items()},
    **{name: fixed(partial(task_of, name)) for name in PROBLEMS},
}
NOISY = ("bitstring f1, alpha 0.5", "ladder filter", "mirror coating")
ROWS = (
    "default",
    "a network that learns",
    "a network that never learns",
    "no screen",
    "no model of skeletons",
)
FROZEN = ROWS[2]


def tasks(calls: int) -> list[str]:
    """The columns of a budget."""
    exact = [name for name in EXACT if name != "pipeline" or calls <= 500]
    return exact + [f"{name}, noise" for name in NOISY if calls == 2_000]


KEYS = [
    {"task": task, "method": row, "calls": calls, "seed": seed}
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS)
    for calls in CALLS
    for task in tasks(calls)
    for row in ROWS
]


def settings(row: str, calls: int, noisy: bool) -> DisCoSettings:
    """The method of a row."""
    default = preset("default", noisy=noisy, budget=calls)
    return {
        "default": default,
        "a network that learns": replace(default, network=NETWORK, learner=LEARNER),
        FROZEN: replace(default, network=NETWORK, learner=NEVER),
        "no screen": replace(default, screen=None),
        "no model of skeletons": replace(default, refinement=RefinementSettings(model=False)),
    }[row]


def run(key: Key) -> Record:
    """One search: the true reward of the best design."""
    name, noisy = key["task"].removesuffix(", noise"), key["task"].endswith(", noise")
    exact = EXACT[name](key["seed"])
    result = search(
        with_noise(exact) if noisy else exact,
        budget=key["calls"],
        seed=key["seed"],
        method=settings(key["method"], key["calls"], noisy),
        **({"confirm_calls": key["calls"] // 10} if noisy else {}),
    )
    assert result.best is not None
    best = exact.space.encode([result.best.design])
    return {"best": round(float(true_rewards(exact, best)[0]), 6)}


def table(records: Sequence[Record]) -> str:
    """Mean rewards with intervals, and gains over the frozen network."""
    found: dict[tuple[str, str, int], dict[int, float]] = {}
    for record in records:
        own = found.setdefault((record["task"], record["method"], record["calls"]), {})
        own[record["seed"]] = record["best"]
    lines = ["Mean best reward and its 95 % interval. Made by `python benchmarks/learning.py`.", ""]
    lines += ["## Gains over a network that never learns, in standard deviations over seeds", ""]
    lines += [
        "Mean over tasks; in brackets on how many it is ahead and behind by more than the interval.",
        "",
    ]
    lines += [
        *grid("method", ROWS, [f"{calls:,}" for calls in CALLS], lambda row, c: _gain(found, row, c)),
        "",
    ]
    for calls in CALLS:

        def cell(task: str, row: str, calls: int = calls) -> str:
            return shown(list(found.get((task, row, calls), {}).values()), wanted=SEEDS, digits=3)

        lines += [f"## {calls:,} calls, {SEEDS} seeds", "", *grid("task", tasks(calls), ROWS, cell), ""]
    return "\n".join(lines)


def _gain(found: dict[tuple[str, str, int], dict[int, float]], row: str, column: str) -> str:
    """Mean gain of a row over all tasks with at least three pairs of seeds."""
    calls, gains, ahead, behind = int(column.replace(",", "")), list[float](), 0, 0
    for task in tasks(calls):
        own, frozen = (found.get((task, name, calls), {}) for name in (row, FROZEN))
        pairs = [own[seed] - frozen[seed] for seed in own if seed in frozen]
        if len(pairs) < 3 or row == FROZEN:
            continue
        spread = math.sqrt((statistics.variance(own.values()) + statistics.variance(frozen.values())) / 2)
        gain, width = statistics.fmean(pairs), half_width(pairs)
        ahead, behind = ahead + (gain > width), behind + (gain < -width)
        gains.append(0.0 if not spread else max(-4.0, min(4.0, gain / spread)))
    if len(gains) < 2:
        return "-"
    return f"{statistics.fmean(gains):+.2f} ± {half_width(gains):.2f} ({ahead}, {behind} of {len(gains)})"


BENCHMARK = Benchmark("learning", KEYS, run, table)
if __name__ == "__main__":
    main(BENCHMARK, __doc__)
