"""What every learned part is worth: the default, the same method with nothing learned, and with parts on and off.

Two rows learn nothing: no screen, no model by which refinement chooses, and designs drawn by a network that never
learns (learning rate 0) or evenly, without a network. Variation, refinement and the sharing of calls are as in the
default. The rows below them are the default with one part off or on: without the screen, without the model; with a
network that learns, with one that never does. Rewards of noisy tasks are true ones (noise of standard deviation
0.1). Ten seeds by which nothing was chosen; twenty of the default and of the rows that learn nothing with 200 and
500 calls. Gains are in standard deviations over seeds. A call of the pipeline takes 20 ms, so it has 200 and 500
calls and ten seeds only. With 10,000 calls only the default and the rows that learn nothing are run. Trees and
equations: benchmarks/trees.py and regression_ablation.py.

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
from harness import Benchmark, Key, Record, gaps, grid, half_width, main, shown
from ladder_filter import butterworth, ladder_task
from mirror_coating import coating_task
from noise import true_rewards, with_noise
from unseen import UNSEEN

from discodso import DisCoSettings, Task, preset, search
from discodso.disco.settings import RefinementSettings
from discodso.tasks.bitstring import bitstring

FIRST_SEED = 200
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
FROZEN, EVEN = "nothing learned, frozen network", "nothing learned, no network"
PARTS = ("no screen", "no model of skeletons", "a network that learns", "a network that never learns")
ROWS = ("default", FROZEN, EVEN, *PARTS)


def tasks(calls: int) -> list[str]:
    """The columns of a budget."""
    exact = [name for name in EXACT if name != "pipeline" or calls <= 500]
    return exact + [f"{name}, noise" for name in NOISY if calls == 2_000]


def seeds(task: str, row: str, calls: int) -> int:
    """How many seeds a row has."""
    if row in PARTS:
        return 10 if calls <= 2_000 else 0
    return 20 if calls <= 500 and task != "pipeline" else 10


KEYS = [
    {"task": task, "method": row, "calls": calls, "seed": FIRST_SEED + seed}
    for seed in range(20)
    for calls in CALLS
    for task in tasks(calls)
    for row in ROWS
    if seed < seeds(task, row, calls)
]


def settings(row: str, calls: int, noisy: bool) -> DisCoSettings:
    """The method of a row."""
    default = preset("default", noisy=noisy, budget=calls)
    nothing = replace(default, screen=None, refinement=RefinementSettings(model=False))
    return {
        "default": default,
        FROZEN: replace(nothing, network=NETWORK, learner=NEVER),
        EVEN: nothing,
        "no screen": replace(default, screen=None),
        "no model of skeletons": replace(default, refinement=RefinementSettings(model=False)),
        "a network that learns": replace(default, network=NETWORK, learner=LEARNER),
        "a network that never learns": replace(default, network=NETWORK, learner=NEVER),
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


Found = dict[tuple[str, str, int], dict[int, float]]  # task, row and calls to the best reward by seed
Gain = tuple[float, float]  # of one task, in standard deviations over seeds, and half of its 95 % interval


def gain(found: Found, task: str, row: str, reference: str, calls: int) -> Gain | None:
    """How much more a row has than a reference, seed by seed; None with fewer than three pairs."""
    own, other = (found.get((task, name, calls), {}) for name in (row, reference))
    pairs = gaps(own, other)
    if len(pairs) < 3 or row == reference:
        return None
    spread = math.sqrt((statistics.variance(own.values()) + statistics.variance(other.values())) / 2)
    return (statistics.fmean(pairs) / spread, half_width(pairs) / spread) if spread else (0.0, 0.0)


def table(records: Sequence[Record]) -> str:
    """Gains of the rows, of the default by task, and mean rewards with intervals."""
    found: Found = {}
    for record in records:
        own = found.setdefault((record["task"], record["method"], record["calls"]), {})
        own[record["seed"]] = record["best"]
    lines = [
        "95 % intervals; gains in standard deviations over seeds. Made by `python benchmarks/learning.py`."
    ]
    lines += [
        "",
        "Means of gains over tasks; in brackets on how many of them a row is ahead and behind by more",
    ]
    lines += ["than the interval of that task.", ""]
    columns = [f"{calls:,}" for calls in CALLS]
    for reference in (FROZEN, EVEN, "default"):

        def mean(row: str, column: str, reference: str = reference) -> str:
            calls = int(column.replace(",", ""))
            return summary([gain(found, task, row, reference, calls) for task in tasks(calls)])

        lines += [f"## Gains over {reference!r}", "", *grid("calls", ROWS, columns, mean), ""]
    for calls in CALLS:

        def of_default(task: str, reference: str, calls: int = calls) -> str:
            own = gain(found, task, "default", reference, calls)
            pairs = len(gaps(*(found.get((task, row, calls), {}) for row in ("default", reference))))
            wanted = min(seeds(task, row, calls) for row in ("default", reference))
            runs = "" if pairs == wanted else f" ({pairs} seeds)"
            return "-" if own is None else f"{own[0]:+.2f} ± {own[1]:.2f}{runs}"

        lines += [f"## {calls:,} calls: gains of the default", ""]
        lines += [*grid("task", tasks(calls), ROWS[1:], of_default), ""]
    for calls in CALLS:

        def cell(task: str, row: str, calls: int = calls) -> str:
            own = list(found.get((task, row, calls), {}).values())
            return shown(own, wanted=seeds(task, row, calls), digits=3)

        lines += [f"## {calls:,} calls: mean best reward", ""]
        lines += [*grid("task", tasks(calls), ROWS, cell), ""]
    return "\n".join(lines)


def summary(gains: Sequence[Gain | None]) -> str:
    """Mean over tasks, a single one counting as 4 at most, and on how many tasks a row is ahead and behind."""
    known = [own for own in gains if own is not None]
    if len(known) < 2:
        return "-"
    limited = [max(-4.0, min(4.0, own)) for own, _ in known]
    ahead, behind = (sum(sign * own > width for own, width in known) for sign in (1, -1))
    mean = f"{statistics.fmean(limited):+.2f} ± {half_width(limited):.2f}"
    return f"{mean} ({ahead}, {behind} of {len(known)})"


BENCHMARK = Benchmark("learning", KEYS, run, table)
if __name__ == "__main__":
    main(BENCHMARK, __doc__)
