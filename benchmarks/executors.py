"""Executors on 4,000 designs of a 5 ms objective, computing and waiting: wall time, overhead, and equal results.

Serial, two worker processes, a Dask scheduler with two workers in processes of their own, and Ray with two local
nodes. A computing objective does a fixed number of rounds of hashing, set so that one takes 5 ms of CPU time here;
a waiting one sleeps, as if a simulator elsewhere did the work. Then the overhead of the evaluator for a batch
objective that costs nothing.

    python benchmarks/executors.py         prints, and writes benchmarks/results/executors.json and executors.md
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from harness import RESULTS, write_result

from discodso import OpenSequence, RandomSettings, Space, Task, Token, search
from discodso.base.files import write_atomically
from discodso.baselines.random_search import RandomSearch
from discodso.run.evaluation import Evaluator
from discodso.run.executors.registry import Dask, Processes, Ray

OBJECTIVES = ("computing", "waiting")
MILLISECONDS = 5.0
SPACE = Space([Token("v", range=(0, 1)), Token("w", range=(0, 1)), Token("d")], OpenSequence(1, 6))


class Hashing:
    """An objective of a fixed amount of work."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def __call__(self, design: Any) -> float:
        """A number that depends on the design and took the work."""
        digest = design.to_json().encode()
        for _ in range(self.rounds):
            digest = hashlib.sha256(digest).digest()
        return int.from_bytes(digest[:4], "little") / 2**32


class Waiting:
    """An objective that waits, as for an instrument or another machine; other work here does not slow it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, design: Any) -> float:
        """The length, after a while."""
        time.sleep(self.seconds)
        return float(len(design))


def rounds_for(seconds: float) -> int:
    """Rounds of hashing that take so much CPU time."""
    rounds, design = 20_000, next(iter(RandomSearch(SPACE, RandomSettings(1), seed=0).ask(1)))
    times = []
    for _ in range(9):
        started = time.process_time()
        Hashing(rounds)(design)
        times.append(time.process_time() - started)
    return round(rounds * seconds / float(np.median(times)))


@contextmanager
def dask_cluster(workers: int) -> Any:
    """The address of a scheduler with workers, all in processes of their own."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        file = Path(folder) / "scheduler.json"
        scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-dashboard"]
        commands = [[*scheduler, "--scheduler-file", str(file)]]
        commands += [[*worker, "--scheduler-file", str(file), "--local-directory", folder]] * workers
        for command in commands:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.terminate)
        while not file.exists():
            time.sleep(0.05)
        yield json.loads(file.read_text())["address"]


@contextmanager
def ray_nodes(nodes: int) -> Any:
    """Ray with several nodes on this machine, one processor each."""
    import ray
    from ray.cluster_utils import Cluster

    cluster: Any = Cluster()
    for _ in range(nodes):
        cluster.add_node(num_cpus=1, include_dashboard=False)
    ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
    try:
        yield Ray()
    finally:
        stop: Any = ray.shutdown
        stop()
        cluster.shutdown()


def comparable(result: Any) -> dict[str, Any]:
    """All of a result but the clock."""
    data = result.to_dict()
    for part in (data, *data["history"]):
        part.pop("seconds")
    return dict(data)


def measure(designs: int, milliseconds: float, kinds: list[str], waiting: bool) -> dict[str, Any]:
    """One table."""
    seconds = milliseconds / 1000
    task = Task(SPACE, Waiting(seconds) if waiting else Hashing(rounds_for(seconds)))
    rows: list[dict[str, Any]] = []
    reference: dict[str, Any] = {}
    for kind in kinds:
        with ExitStack() as stack:
            executor: Any = None
            if kind == "processes":
                executor = stack.enter_context(Processes(2))
            elif kind == "dask":
                executor = stack.enter_context(Dask(stack.enter_context(dask_cluster(2))))
                while executor.workers < 2:
                    time.sleep(0.05)
            elif kind == "ray":
                executor = stack.enter_context(ray_nodes(2))
            warm = RandomSettings(100)
            search(task, budget=100, method=warm, executor=executor)
            load = os.getloadavg()[0]
            started = time.perf_counter()
            result = search(task, budget=designs, seed=1, method=RandomSettings(400), executor=executor)
            wall = time.perf_counter() - started
        reference = reference or comparable(result)
        workers = 1 if kind == "serial" else 2
        rows.append(
            {
                "executor": kind,
                "workers": workers,
                "wall_seconds": round(wall, 2),
                "speedup": round(rows[0]["wall_seconds"] / wall, 2) if rows else 1.0,
                "overhead_microseconds": round((wall * workers / designs - milliseconds / 1000) * 1e6),
                "same_result": comparable(result) == reference,
                "load_before": round(load, 2),
            }
        )
        print(json.dumps(rows[-1]), flush=True)
    what = "waiting" if waiting else "computing"
    return {"designs": designs, "objective": what, "objective_milliseconds": milliseconds, "rows": rows}


def batch_overhead(designs: int = 100_000) -> float:
    """Microseconds for each design that the evaluator adds to a batch objective that costs nothing."""
    rewards = np.zeros(1000)
    task = Task(SPACE, batch_objective=lambda batch: rewards)
    batch = RandomSearch(SPACE, RandomSettings(1000), seed=0).ask()
    evaluator = Evaluator(task, np.random.SeedSequence(0))
    started = time.process_time()
    for _ in range(designs // 1000):
        evaluator.evaluate(batch)
    return (time.process_time() - started) / designs * 1e6


def written(found: dict[str, Any]) -> str:
    """The results as Markdown."""
    lines = [f"`python benchmarks/executors.py` on {found['machine']['processors']} processors."]
    for table in (found[what] for what in OBJECTIVES if what in found):
        lines += [
            "",
            f"{table['designs']} designs, each {table['objective_milliseconds']:g} ms of {table['objective']}:",
            "",
            "| executor | workers | wall s | speed-up | overhead a design, us | same result | load before |",
            "|---|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {r['executor']} | {r['workers']} | {r['wall_seconds']} | {r['speedup']} | "
            f"{r['overhead_microseconds']} | {'yes' if r['same_result'] else 'NO'} | {r['load_before']} |"
            for r in table["rows"]
        ]
    lines += [
        "",
        "Overhead is wall time times workers, less the objective; what else the machine does counts into it. The "
        "load is that of a machine that others used as well: where it is above 0, times are upper limits.",
    ]
    if "evaluator" in found:
        lines += [
            "",
            f"The evaluator adds {found['evaluator']['microseconds']} us a design to a batch objective that costs "
            "nothing (100,000 designs, batches of 1000, in-process).",
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print and write; parts that are not measured stay as they were."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--designs", type=int, default=4000)
    parser.add_argument("--kinds", default="serial,processes,dask,ray")
    parser.add_argument("--parts", default="computing,waiting,evaluator", help="computing needs quiet")
    parser.add_argument("--dry", action="store_true", help="write nothing")
    given = parser.parse_args()
    file = RESULTS / "executors.json"
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() and not given.dry else {}
    found["machine"] = {
        "processors": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
    }
    for part in given.parts.split(","):
        if part in OBJECTIVES:
            found[part] = measure(given.designs, MILLISECONDS, given.kinds.split(","), part == "waiting")
        else:
            found[part] = {"microseconds": round(batch_overhead(), 3)}
        if not given.dry:
            write_result("executors", found, shown=False)
            write_atomically(file.with_suffix(".md"), written(found))
    print(written(found))


if __name__ == "__main__":
    main()
