"""Killing runs and their workers: helpers for every task whose runs can be resumed, and for executors."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from discodso import PolicySearch


def comparable(result: Any) -> dict[str, Any]:
    """All of a result, or of what `search_policy` found, but the clock."""
    if isinstance(result, PolicySearch):
        summary = {key: value for key, value in result.summary().items() if key not in ("seconds", "phases")}
        found = (result.policy.to_dict(), result.finalists, result.test_returns.tolist())
        return {"search": comparable(result.search), "summary": summary, "found": found}
    data = result.to_dict()
    for part in (data, *data["history"]):
        part.pop("seconds")
    return data


def _begin(start: Callable[[Path], Any], folder: Path) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    start(folder)


def kill_after(start: Callable[[Path], Any], folder: Path, seconds: float) -> bool:
    """Run `start(folder)` in a forked process and kill it -9 after so long; whether it was still running."""
    process = multiprocessing.get_context("fork").Process(target=_begin, args=(start, folder))
    process.start()
    process.join(seconds)
    alive = process.is_alive()
    if alive:
        os.kill(process.pid, signal.SIGKILL)
    process.join()
    return alive


def killed_and_resumed(
    start: Callable[[Path], Any], resume: Callable[[Path], Any], folder: Path, seconds: float
) -> tuple[Any, bool]:
    """What `resume(folder)` gives after a kill, and whether the kill came before the end.

    A run that was killed before it wrote its settings has left nothing, and is started again.
    """
    killed = kill_after(start, folder, seconds)
    if not (folder / "settings.toml").exists():
        return start(folder), killed
    return resume(folder), killed


def duration(start: Callable[[Path], Any], folder: Path) -> tuple[Any, float]:
    """The undisturbed run, and how long it takes."""
    started = time.monotonic()
    result = start(folder)
    return result, time.monotonic() - started


def pids(executor: Any) -> tuple[int, ...]:
    """Process ids of the workers of an executor of processes."""
    return tuple(worker.process.pid for worker in executor._team)


def is_running(pid: int) -> bool:
    """Whether a process runs; one that has ended, but whose parent has not looked, counts as gone."""
    try:
        os.kill(pid, 0)
        status = Path(f"/proc/{pid}/stat")
        return not status.exists() or status.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
