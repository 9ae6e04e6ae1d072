"""Worker processes of a run: designs that hang or crash, workers that are killed, no process left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from executor_tasks import METHOD, objective, outcome
from killing import is_running
from killing import pids as worker_pids
from spaces import roomy_fixed, valued_sequence

from discodso import DisCoSettings, NetworkSettings, RandomSettings, StopReason, Task, search
from discodso.run.executors.registry import Processes


def hanging_or_crashing(design):
    if design.tokens[:2] == ("a", "b"):
        time.sleep(3600)
    if design.tokens[:2] == ("c", "b"):
        os._exit(3)
    return float(design.tokens.count("c"))


def test_a_design_that_hangs_or_ends_its_worker_fails_alone():
    with Processes(2) as executor:
        result = search(
            Task(roomy_fixed(), hanging_or_crashing),
            budget=30,
            executor=executor,
            design_seconds=0.2,
            method=DisCoSettings(batch_size=30, network=NetworkSettings(units=4)),
        )
    reasons = {failure.design.tokens[:2]: failure.reason for failure in result.failures}
    assert set(reasons) == {("a", "b"), ("c", "b")}
    assert reasons["a", "b"] == "took longer than 0.2 s"
    assert "lost 2 times with its worker" in reasons["c", "b"]
    assert result.calls == 30
    assert result.failure_count < 25


def test_a_design_that_hangs_is_cut_in_this_process_too():
    release = threading.Event()

    def hang(design):
        if design.tokens[0] == "a":
            release.wait(3600)
        return 1.0

    try:
        result = search(
            Task(roomy_fixed(), hang), budget=10, design_seconds=0.05, method=DisCoSettings(batch_size=10)
        )
    finally:
        release.set()
    assert 0 < result.failure_count < 10
    assert {f.reason for f in result.failures} == {"took longer than 0.05 s"}


def test_a_worker_killed_from_outside_changes_nothing():
    def slow(design):
        time.sleep(0.002)
        return objective(design)

    task = Task(valued_sequence(), slow)
    expected = outcome(task)
    with Processes(2) as executor:
        stop = threading.Event()

        def kill_some():
            kills = 0
            while kills < 2 and not stop.wait(
                0.1
            ):  # a third could hit the same design, which then has failed
                if worker_pids(executor):
                    os.kill(worker_pids(executor)[-1], signal.SIGKILL)
                    kills += 1

        killer = threading.Thread(target=kill_some)
        killer.start()
        try:
            assert outcome(task, executor=executor) == expected
        finally:
            stop.set()
            killer.join()
        assert executor.replaced > 0


def test_an_interrupt_leaves_no_process_behind():
    def slow(design):
        time.sleep(0.01)
        return 1.0

    pids = []

    def after_the_first_batch(row, ranking):
        if not pids:
            pids.extend(worker_pids(executor))
            threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()

    with Processes(2) as executor:
        task = Task(valued_sequence(), slow)
        watch = after_the_first_batch
        result = search(task, budget=100_000, executor=executor, method=METHOD, callback=watch)
    assert result.stop is StopReason.INTERRUPTED
    assert len(pids) == 2
    assert not any(is_running(pid) for pid in pids)


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    code = (
        "import sys, time\n"
        "from discodso.run.executors.registry import Processes\n"
        "executor = Processes(2)\n"
        "futures = [executor.submit(time.sleep, 3600) for _ in range(2)]\n"
        "print(*(worker.process.pid for worker in executor._team), flush=True)\n"
        "time.sleep(3600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    pids = [int(pid) for pid in process.stdout.readline().split()]
    process.kill()
    process.wait()
    end = time.monotonic() + 20
    while any(is_running(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.1)
    assert len(pids) == 2
    assert not any(is_running(pid) for pid in pids)


@pytest.mark.parametrize("retries", [0, 3])
def test_a_design_that_ends_its_worker_is_tried_again_as_often_as_is_said(retries, tmp_path):
    def crashing(design):
        with (tmp_path / "calls").open("a") as file:
            file.write("x")
        os._exit(3)

    with Processes(1) as executor:
        result = search(
            Task(roomy_fixed(), crashing),
            budget=1,
            executor=executor,
            retries=retries,
            method=RandomSettings(1),
        )
    assert len((tmp_path / "calls").read_text()) == 1 + retries
    assert f"lost {'once' if retries == 0 else '4 times'} with its worker" in result.failures[0].reason


def leaking(design):
    HELD.append(bytearray(b"x") * 2**24)
    return float(os.getpid())


HELD: list[bytearray] = []


@pytest.mark.parametrize(
    ("renewal", "pids"), [({}, {1}), ({"renew_after": 5}, {4}), ({"renew_megabytes": 40}, set(range(4, 11)))]
)
def test_workers_are_renewed_after_some_designs_or_megabytes(renewal, pids):
    with Processes(1, **renewal) as executor:
        task = Task(roomy_fixed(), leaking)
        found = search(task, budget=20, executor=executor, method=RandomSettings(4), top=20)
        assert executor.replaced == 0
    born = {scored.reward for scored in found.top}
    assert (found.calls, found.failure_count) == (20, 0)
    assert len(born) in pids  # what a worker itself takes or gives back counts, too
