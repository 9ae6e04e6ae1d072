"""What workers that never wait are worth: the best reward after equal time, asynchronously and in batches.

Three problems of examples/ whose designs take unequal times: a ladder filter, a mirror and a controller, a second
for each part times a factor of each design from 0.2 to 2. Time is simulated: eight workers of an executor that
knows when each of its designs is done, and answers in that order. The search is the real one, and its time exact.

    python benchmarks/asynchronous.py         makes what results/asynchronous.jsonl lacks, and its table
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
from harness import Benchmark, Key, Record, main

from discodso import Design, Task, search
from discodso.base.statistics import bootstrap_interval

WORKERS = 8
SEEDS = 40
PROBLEMS = ("ladder filter", "mirror", "controller")
CALLS = (120, 250, 1_000)
KEYS = [
    {"problem": problem, "calls": calls, "seed": seed}
    for seed in range(SEEDS)
    for calls in CALLS
    for problem in PROBLEMS
    if seed < 20 or (problem, calls) == ("ladder filter", 1_000)
]


def task_of(problem: str) -> Task:
    """A problem of the examples."""
    import ladder_filter
    import mirror_coating
    import pid_controller

    made: dict[str, Callable[[], Task]] = {
        "ladder filter": lambda: ladder_filter.ladder_task(ladder_filter.butterworth()),
        "mirror": mirror_coating.coating_task,
        "controller": pid_controller.task,
    }
    return made[problem]()


def seconds_of(design: Design) -> float:
    """A second for each part, times a factor from 0.2 to 2."""
    digest = hashlib.sha256(design.to_json().encode()).digest()
    return len(design) * (0.2 + 1.8 * int.from_bytes(digest[:4], "little") / 2**32)


class Simulated:
    """An executor whose workers take simulated seconds.

    Attributes:
        now: seconds since the start.
        ended: when each design was done, and its reward.
        busy: seconds of work of all workers.
    """

    def __init__(self, task: Task, workers: int) -> None:
        self.workers, self.now = workers, 0.0
        self.ended: list[tuple[float, float]] = []
        self.busy = 0.0
        self._task, self._count = task, 0
        self._free = [0.0] * workers  # when each worker is done with what it has
        self._running: list[tuple[float, int, Future[Any], Any]] = []

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Give work to the worker that is free first."""
        future: Future[Any] = Future()
        answer = function(*arguments)
        moment = max(heapq.heappop(self._free), self.now)
        for design, reward in zip(arguments[1].designs(self._task), answer.rewards.tolist(), strict=True):
            moment += seconds_of(design)
            self.busy += seconds_of(design)
            self.ended.append((moment, reward))
        heapq.heappush(self._free, moment)
        self._count += 1
        heapq.heappush(self._running, (moment, self._count, future, answer))
        return future

    def pump(self, seconds: float) -> None:
        """Let time pass until the next answer."""
        if self._running:
            self.now, _, future, answer = heapq.heappop(self._running)
            future.set_result(answer)

    def best_until(self, moment: float) -> float:
        """The best reward of designs that were done by then."""
        return max((reward for ended, reward in self.ended if ended <= moment), default=-np.inf)


def run(key: Key) -> Record:
    """Both searches, and what each has when the asynchronous one has made all its calls."""
    problem, calls, seed = str(key["problem"]), int(key["calls"]), int(key["seed"])
    ways = {}
    for asynchronous in (True, False):
        task = task_of(problem)
        executor = Simulated(task, WORKERS)
        search(task, budget=calls, executor=executor, asynchronous=asynchronous, seed=seed)
        ways[asynchronous] = executor
    ends = {way: max(ended for ended, _ in executor.ended) for way, executor in ways.items()}
    return {
        "asynchronous": ways[True].best_until(ends[True]),
        "batches": ways[False].best_until(ends[True]),
        "batches_in_the_end": ways[False].best_until(ends[False]),
        "time": round(ends[True], 1),
        "time_of_batches": round(ends[False], 1),
        "busy": round(ways[True].busy / WORKERS / ends[True], 4),
        "busy_in_batches": round(ways[False].busy / WORKERS / ends[False], 4),
    }


def table(records: Sequence[Record]) -> str:
    """Means and paired differences over seeds."""
    lines = [
        "Eight simulated workers. `time` is that of all calls, asynchronously over in batches; best rewards are",
        "those at the end of the asynchronous search, and the gain is their paired difference with its 95 %",
        "interval. Made by `python benchmarks/asynchronous.py`.",
        "",
        "| problem | calls | seeds | busy | batches busy | time | asynchronous | batches | gain | batches, end |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for problem in PROBLEMS:
        for calls in CALLS:
            own = [r for r in records if (r["problem"], r["calls"]) == (problem, calls)]
            if not own:
                continue
            columns = {
                name: np.array([r[name] for r in own], float) for name in own[0] if name not in KEYS[0]
            }
            gain = columns["asynchronous"] - columns["batches"]
            low, high = bootstrap_interval(gain.tolist()) or (np.nan, np.nan)
            share = (columns["time"] / columns["time_of_batches"]).mean()
            lines.append(
                f"| {problem} | {calls:,} | {len(own)} | {columns['busy'].mean():.2f} "
                f"| {columns['busy_in_batches'].mean():.2f} | {share:.2f} | {columns['asynchronous'].mean():.4f} "
                f"| {columns['batches'].mean():.4f} | {gain.mean():+.4f} [{low:+.4f}, {high:+.4f}] "
                f"| {columns['batches_in_the_end'].mean():.4f} |"
            )
    return "\n".join(lines)


BENCHMARK = Benchmark("asynchronous", KEYS, run, table)

if __name__ == "__main__":
    main(BENCHMARK, __doc__)
