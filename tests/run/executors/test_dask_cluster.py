"""Dask: workers and schedulers that go away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from executor_tasks import METHOD, objective
from killing import comparable
from spaces import valued_sequence

from discodso import ExecutorError, RandomSettings, StopReason, Task, Threads, resume, search
from discodso.run.executors.registry import Dask
from discodso.run.journal import JOURNAL, Journal


@contextmanager
def dask_processes(workers, folder):
    """A scheduler and workers as processes of their own: address, and the processes, the scheduler first."""
    file = folder / "scheduler.json"
    scheduler = ["distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
    worker = ["distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    rest = ["--scheduler-file", str(file)]
    local = ["--local-directory", str(folder)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", *command, *rest],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        for command in (scheduler, *([[*worker, *local]] * workers))
    ]
    try:
        end = time.monotonic() + 60
        while not file.exists() and time.monotonic() < end:
            time.sleep(0.05)
        yield json.loads(file.read_text())["address"], processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def slow_objective(design):
    time.sleep(0.004)
    return objective(design)


def test_a_dask_cluster_loses_a_worker_and_then_its_scheduler(tmp_path):
    pytest.importorskip("distributed")
    task = Task(valued_sequence(), slow_objective)
    whole = search(task, budget=500, seed=2, method=METHOD)
    with dask_processes(2, tmp_path) as (address, processes), Dask(address) as executor:
        while executor.workers < 2:
            time.sleep(0.05)
        timer = threading.Timer(0.5, processes[1].kill)
        timer.start()
        found = search(task, budget=500, seed=2, method=METHOD, executor=executor)
        assert not timer.is_alive()
        assert found.stop is StopReason.BUDGET, found.sentence
        assert comparable(found) == comparable(whole)

        def end_scheduler(row, ranking):
            if row.calls == 100:
                processes[0].kill()

        cut = search(
            task,
            budget=500,
            seed=2,
            method=METHOD,
            executor=executor,
            callback=end_scheduler,
            out=tmp_path / "run",
        )
    assert cut.stop is StopReason.EXECUTOR
    assert address in cut.sentence
    assert comparable(resume(tmp_path / "run", task=task)) == comparable(whole)


def test_an_asynchronous_run_loses_a_worker_and_then_its_scheduler_and_no_answer(tmp_path):
    pytest.importorskip("distributed")
    task, folder = Task(valued_sequence(), slow_objective), tmp_path / "run"
    with dask_processes(2, tmp_path) as (address, processes), Dask(address) as executor:
        while executor.workers < 2:
            time.sleep(0.05)

        def end_one(row, ranking):
            if row.calls in (60, 120):
                processes[{60: 1, 120: 0}[row.calls]].kill()

        options = {"budget": 200, "seed": 2, "method": RandomSettings(20), "asynchronous": True}
        cut = search(task, **options, executor=executor, callback=end_one, out=folder)
    assert cut.stop is StopReason.EXECUTOR
    assert cut.calls >= 120
    with Threads(2) as executor:
        again = resume(folder, task=task, executor=executor)
    assert (again.calls, again.stop) == (200, StopReason.BUDGET)
    with Journal(folder / JOURNAL) as journal:
        numbers = [entry["first"] for entry in journal.entries if "rewards" in entry]
    assert sorted(numbers) == list(range(1, 201))  # each once


def test_a_scheduler_that_is_not_there_gets_one_line():
    pytest.importorskip("distributed")
    with pytest.raises(ExecutorError, match=r"no Dask scheduler with workers at tcp://127\.0\.0\.1:9"):
        Dask("tcp://127.0.0.1:9", timeout=1.0)
