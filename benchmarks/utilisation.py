"""How busy workers are: objectives of 0.1 to 3 s, 120 calls, asynchronously, in batches, and by others.

The objective sleeps, as for a simulator elsewhere, so long as the design says: its utilisation is the sum of the
seconds of all calls over workers times wall time. Optuna's TPE runs its trials by `n_jobs`, which are threads;
"ask(1) / tell(1)" is what one writes by hand round a pool of threads and `DisCo`.

    python benchmarks/utilisation.py          makes what results/utilisation.jsonl lacks, and its table
    python benchmarks/utilisation.py --only workers=8
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from typing import Any

from executors import dask_cluster
from harness import Benchmark, Key, Record, main

from discodso import Dask, Design, DisCo, OpenSequence, Processes, Ray, Space, Task, Threads, Token, search

CALLS = 120
SPACE = Space([Token("v", range=(0, 1)), Token("w", range=(0, 1)), Token("d")], OpenSequence(1, 6))
WAYS = (
    "asynchronous, threads",
    "asynchronous, processes",
    "asynchronous, Dask",
    "asynchronous, Ray",
    "batches, threads",
    "batches, processes",
    "batches, Dask",
    "batches, Ray",
    "ask(1) / tell(1) by hand, threads",
    "Optuna TPE, n_jobs",
)
SEEDS = 5  # of asynchronous runs with eight workers: the end of one run decides much
KEYS = [
    {"workers": workers, "way": way, "seed": seed}
    for workers in (8, 2)
    for way in WAYS
    for seed in range(SEEDS if workers == 8 and way.startswith("asynchronous") else 1)
]


def seconds_of(design: Design) -> float:
    """From 0.1 to 3, evenly."""
    digest = hashlib.sha256(design.to_json().encode()).digest()
    return 0.1 + 2.9 * int.from_bytes(digest[:4], "little") / 2**32


def objective(design: Design) -> float:
    """Sleeps, and is the better the nearer the sum of the values is to 2.345."""
    time.sleep(seconds_of(design))
    return -abs(float(sum(value for value in design.values if value is not None)) - 2.345)


def by_hand(workers: int) -> list[Design]:
    """A design for every thread that is free; gives those that were evaluated."""
    method, done = DisCo(SPACE, budget=CALLS, seed=0), list[Design]()
    with ThreadPoolExecutor(workers) as pool:
        running: dict[Future[float], Design] = {}
        for _ in range(CALLS):
            if len(running) == workers:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    method.tell([running[future]], [future.result()])
                    done.append(running.pop(future))
            design = method.ask(1)[0]
            running[pool.submit(objective, design)] = design
    return done + list(running.values())


def by_optuna(workers: int) -> list[float]:
    """Define-by-run with TPE; gives the seconds of all trials."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    seconds, lock = list[float](), threading.Lock()

    def trial(trial: Any) -> float:
        parts: list[Any] = []
        for at in range(trial.suggest_int("length", 1, 6)):
            name = trial.suggest_categorical(f"{at}", ["v", "w", "d"])
            parts.append("d" if name == "d" else (name, trial.suggest_float(f"{at} {name}", 0, 1)))
        design = Design.of(*parts)
        with lock:
            seconds.append(seconds_of(design))
        return objective(design)

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(trial, n_trials=CALLS, n_jobs=workers)
    return seconds


def run(key: Key) -> Record:
    """One way, once."""
    workers, way, seed = int(key["workers"]), str(key["way"]), int(key["seed"])
    with ExitStack() as stack:
        executor: Any = None
        if "processes" in way:
            executor = stack.enter_context(Processes(workers))
            executor.start()
        elif "Dask" in way:
            executor = stack.enter_context(Dask(stack.enter_context(dask_cluster(workers))))
            while executor.workers < workers:
                time.sleep(0.1)
        elif "Ray" in way:
            executor = stack.enter_context(Ray(workers=workers))
            for started in [executor.submit(time.sleep, 0.5) for _ in range(workers)]:
                started.result()
        elif "threads" in way and "hand" not in way:
            executor = stack.enter_context(Threads(workers))
        began = time.monotonic()
        if "Optuna" in way:
            busy = by_optuna(workers)
        elif "hand" in way:
            busy = [seconds_of(design) for design in by_hand(workers)]
        else:
            evaluated: list[Design] = []
            task = Task(SPACE, objective)
            asynchronous = way.startswith("asynchronous")
            found = search(
                task, budget=CALLS, executor=executor, asynchronous=asynchronous, seed=seed, top=CALLS
            )
            evaluated = [scored.design for scored in found.top]
            busy = [seconds_of(design) for design in evaluated]
        wall = time.monotonic() - began
    return {
        "calls": len(busy),
        "wall": round(wall, 2),
        "busy": round(sum(busy), 2),
        "utilisation": round(sum(busy) / workers / wall, 4),
    }


def table(records: Sequence[Record]) -> str:
    """Both numbers of workers side by side."""
    lines = [
        "Objectives of 0.1 to 3 s, 120 calls: seconds of all calls over workers times wall time, in brackets how",
        "many runs where it is their mean. Made by `python benchmarks/utilisation.py`, on two cores.",
        "",
        "| way | 2 workers | 8 workers |",
        "|---|---|---|",
    ]
    for way in WAYS:
        cells = []
        for workers in (2, 8):
            own = [r["utilisation"] for r in records if (r["workers"], r["way"]) == (workers, way)]
            runs = f" ({len(own)})" if len(own) > 1 else ""
            cells.append(f"{sum(own) / len(own):.3f}{runs}" if own else "")
        lines.append(f"| {way} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


BENCHMARK = Benchmark("utilisation", KEYS, run, table)

if __name__ == "__main__":
    main(BENCHMARK, __doc__)
