"""Runs that are killed, short of disk, or wanted by two: what is lost, what is paid twice, and how they end.

An objective of 1 to 6 ms notes every call that is done. The run is a process of its own that is killed (SIGKILL)
after a random time and resumed until it ends. No evaluation that stands in the journal at a kill may be made
again; a run in batches must end as the undisturbed one, to the last bit; an asynchronous one must have made its
calls and no more. In "full disk" one in so many writes fails instead, as on a disk that is full for a moment, and
in "two processes" a second process wants the folder while the first works in it.

    python benchmarks/kills.py                   makes what results/kills.jsonl lacks, and its table
    python benchmarks/kills.py --only "mode=asynchronous, 3 workers"
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from harness import Benchmark, Key, Record, main

from discodso import Design, OpenSequence, Processes, Space, Task, Token, resume, search
from discodso.base.errors import DiscodsoError
from discodso.run.journal import JOURNAL, read_line

BUDGET = 150
MODES = ("batches, this process", "batches, 3 workers", "asynchronous, 3 workers")
FAULTS = ("kill", "full disk", "two processes")
RUNS = {"kill": 40, "full disk": 10, "two processes": 5}
KEYS = [
    {"fault": fault, "mode": mode, "seed": seed}
    for fault in FAULTS
    for mode in MODES
    for seed in range(RUNS[fault])
]
SPACE = Space([Token("v", range=(0, 1)), Token("w", range=(0, 1)), Token("d")], OpenSequence(1, 6))


class Noted:
    """An objective that appends a line to a file for every call that is done."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __call__(self, design: Design) -> float:
        """The nearer the sum of the values is to 2.345, the better."""
        text = design.to_json()
        digest = hashlib.sha256(text.encode()).digest()
        time.sleep(0.001 + 0.005 * digest[0] / 255)
        with self.file.open("a") as file:
            file.write(text + "\n")
        return -abs(float(sum(value for value in design.values if value is not None)) - 2.345)

    @property
    def seen(self) -> list[str]:
        """The designs of all calls so far; the last line may have been cut short by a kill."""
        return self.file.read_text().splitlines() if self.file.exists() else []


def go(folder: Path, log: Path, mode: str, seed: int) -> Any:
    """Start the run, or go on with it."""
    task = Task(SPACE, Noted(log), name="noted")
    workers = 0 if "this process" in mode else 3
    asynchronous = mode.startswith("asynchronous")
    executor = Processes(workers) if workers else None
    try:
        if (folder / "settings.toml").exists():
            return resume(folder, task=task, executor=executor)
        options: dict[str, Any] = {"budget": BUDGET, "seed": seed, "checkpoint_seconds": 0.2}
        return search(task, **options, executor=executor, asynchronous=asynchronous, out=folder)
    finally:
        if executor is not None:
            executor.close()


def comparable(result: Any) -> str:
    """All of a result but the clock."""
    data = result.to_dict()
    for part in (data, *data["history"]):
        part.pop("seconds")
    return json.dumps(data, sort_keys=True)


def journalled(folder: Path) -> set[str]:
    """Designs whose evaluation the journal has."""
    path = folder / JOURNAL
    entries = map(read_line, path.read_bytes().splitlines()) if path.exists() else []
    found = [entry for entry in entries if entry is not None and "rewards" in entry]
    return {json.dumps(design) for entry in found for design in entry.get("designs", ())}


def forked(work: Callable[[], Any]) -> Any:
    """A process that does some work."""
    process = get_context("fork").Process(target=_quietly, args=(work,))
    process.start()
    return process


def _quietly(work: Callable[[], Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        work()
    except DiscodsoError:
        os._exit(3)


def failing(rng: np.random.Generator) -> None:
    """From now on one in sixty writes of this process fails, half of them after some bytes."""
    write = os.write

    def sometimes(handle: int, data: Any) -> int:
        if rng.random() < 1 / 60:
            if rng.random() < 0.5:
                write(handle, bytes(data)[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(handle, data)

    os.write = sometimes


def work(fault: str, folder: Path, log: Path, mode: str, seed: int, number: int) -> None:
    """What the process does that is disturbed."""
    if fault == "full disk":
        failing(np.random.default_rng([seed, number]))
    go(folder, log, mode, seed)


def run(key: Key) -> Record:
    """One run, disturbed until it ends."""
    fault, mode, seed = str(key["fault"]), str(key["mode"]), int(key["seed"])
    rng = np.random.default_rng([seed, MODES.index(mode), FAULTS.index(fault)])
    with tempfile.TemporaryDirectory() as place:
        folder, log = Path(place) / "run", Path(place) / "log"
        began = time.monotonic()
        whole = go(Path(place) / "whole", Path(place) / "whole log", mode, seed)
        seconds = time.monotonic() - began
        faults = repeated = refused = 0
        while faults < 200:
            safe, before = journalled(folder), len(Noted(log).seen)

            process = forked(partial(work, fault, folder, log, mode, seed, faults))
            process.join(rng.uniform(0.02, 0.6) * seconds if fault != "full disk" else None)
            disturbed = process.is_alive()
            if fault == "kill" and disturbed:
                os.kill(process.pid, signal.SIGKILL)
            elif fault == "two processes" and disturbed:
                os.kill(process.pid, signal.SIGSTOP)  # so that it does not end while the second waits
                second = forked(lambda: go(folder, log, mode, seed))
                second.join()
                os.kill(process.pid, signal.SIGCONT)
                refused += second.exitcode == 3
            process.join()
            disturbed = disturbed or process.exitcode == 3
            after = Noted(log).seen[before:]
            repeated += sum(text in safe for text in after)
            if not disturbed or fault == "two processes":
                break
            faults += 1
        result = go(folder, log, mode, seed)
        last = journalled(folder)
        return {
            "faults": faults + refused,
            "paid_twice": repeated,
            "under_way": len(Noted(log).seen) - len(set(Noted(log).seen)),
            "calls": result.calls,
            "lost": result.calls - len(last),
            "equal": mode.startswith("asynchronous") or comparable(result) == comparable(whole),
        }


def table(records: Sequence[Record]) -> str:
    """By fault and mode."""
    lines = [
        f"Runs of {BUDGET} calls of 1 to 6 ms, disturbed until they end. `paid twice` are evaluations that the",
        "journal had and that were made again, `under way` those that a fault cut off and that were made",
        "again, `lost` calls of the result that the journal has not. Made by `python benchmarks/kills.py`.",
        "",
        "| fault | mode | runs | faults | paid twice | under way | lost | ended with all calls | as undisturbed |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for fault in FAULTS:
        for mode in MODES:
            own = [r for r in records if (r["fault"], r["mode"]) == (fault, mode)]
            if own:
                sums = {
                    name: sum(r[name] for r in own) for name in ("faults", "paid_twice", "under_way", "lost")
                }
                ended = sum(r["calls"] == BUDGET for r in own)
                equal = "" if mode.startswith("asynchronous") else f"{sum(r['equal'] for r in own)}"
                lines.append(
                    f"| {fault} | {mode} | {len(own)} | {sums['faults']} | {sums['paid_twice']} "
                    f"| {sums['under_way']} | {sums['lost']} | {ended} | {equal} |"
                )
    return "\n".join(lines)


BENCHMARK = Benchmark("kills", KEYS, run, table)

if __name__ == "__main__":
    main(BENCHMARK, __doc__)
