"""Executors: the same result everywhere, and what goes wrong there costs no more than it must."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from killing import comparable, is_running
from killing import pids as worker_pids
from spaces import roomy_fixed, valued_sequence

from discodso import (
    DeclarationError,
    DisCoSettings,
    ExecutorError,
    Measured,
    NetworkSettings,
    StopReason,
    Task,
    resume,
    search,
)
from discodso.run.executors.dispatch import as_completed
from discodso.run.executors.registry import Dask, Processes, Ray, Threads, make_executor

METHOD = DisCoSettings(batch_size=50, network=NetworkSettings(units=8))


def objective(design):
    if design.tokens == ("d", "d"):
        raise ValueError("two of them")
    return -sum((v - 0.7) ** 2 for v in design.values if v is not None)


def noisy(design, seed):
    return objective(design) + np.random.default_rng(seed).random()


def batch(designs):
    return Measured(np.nansum(designs.values, axis=1), cost=float(len(designs)))


TASKS = {
    "plain": Task(valued_sequence(), objective),
    "stochastic": Task(valued_sequence(), noisy, stochastic=True),
    "batch": Task(valued_sequence(), batch_objective=batch, cost_unit="rows"),
}


def outcome(task, **options):
    return comparable(search(task, budget=173, seed=2, method=METHOD, **options))


@pytest.mark.parametrize("kind", TASKS)
def test_all_executors_and_numbers_of_workers_give_the_same_result(kind):
    task = TASKS[kind]
    expected = outcome(task)
    for workers in (1, 2, 8):
        with Processes(workers) as executor:
            assert outcome(task, executor=executor) == expected
    with Threads(2) as threads, ProcessPoolExecutor(2) as pool:
        assert outcome(task, executor=threads) == expected
        assert outcome(task, executor=pool) == expected
        assert outcome(task, executor=threads, design_seconds=60.0) == expected


class Shuffled:
    """Gives results in the reverse order, and fails some of the time."""

    workers = 3

    def __init__(self):
        self.jobs = []
        self.submitted = 0

    def submit(self, function, *arguments):
        future = Future()
        self.submitted += 1
        self.jobs.append((future, function, arguments, self.submitted % 5 == 0))
        return future

    def pump(self, seconds):
        jobs, self.jobs = self.jobs[::-1], []
        for future, function, arguments, lost in jobs:
            if lost:
                future.set_exception(ConnectionError("the worker went away"))
            else:
                future.set_result(function(*arguments))


@pytest.mark.parametrize("kind", TASKS)
def test_results_may_come_in_any_order_and_lost_chunks_are_sent_again(kind):
    executor = Shuffled()
    assert outcome(TASKS[kind], executor=executor) == outcome(TASKS[kind])
    assert executor.submitted > 20


def test_the_number_of_workers_alone_says_how_many_designs_travel_together():
    class Noting(Shuffled):
        sizes = ()

        def submit(self, function, *arguments):
            self.sizes = (*self.sizes, len(arguments[1]))
            return super().submit(function, *arguments)

    executor = Noting()
    search(TASKS["plain"], budget=48, method=METHOD, executor=executor)
    assert set(executor.sizes) == {4}  # a quarter of what each of three workers gets
    with pytest.raises(TypeError, match="chunk_size"):
        search(TASKS["plain"], budget=48, executor=executor, chunk_size=7)


def test_a_batch_objective_with_dependent_rows_stays_whole_and_here():
    sizes = []

    def ranks(designs):
        sizes.append((len(designs), os.getpid()))
        return np.argsort(np.argsort(np.nansum(designs.values, axis=1))).astype(float)

    task = Task(valued_sequence(), batch_objective=ranks, rows_independent=False)
    with Processes(2) as executor:
        outcome(task, executor=executor)
    assert set(sizes) == {(50, os.getpid()), (23, os.getpid())}


def test_a_batch_objective_that_raises_fails_the_same_with_workers():
    def broken(designs):
        raise RuntimeError("no licence")

    task = Task(valued_sequence(), batch_objective=broken)
    with Processes(2) as executor:
        assert outcome(task, executor=executor) == outcome(task)


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
    assert "lost 3 times with its worker" in reasons["c", "b"]
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


def double(x):
    return 2 * x


def exit_once(path):
    if not path.exists():
        path.write_text("")
        os._exit(1)
    return "done"


def test_whole_experiments_spread_over_an_executor(tmp_path):
    with Processes(2) as executor:
        assert sorted(as_completed(executor, double, range(10))) == list(range(0, 20, 2))
        assert list(as_completed(executor, exit_once, [tmp_path / "mark"])) == ["done"]
        with pytest.raises(TypeError):
            list(as_completed(executor, double, [None]))
    with Threads(2) as threads:
        assert sorted(as_completed(threads, double, range(10))) == list(range(0, 20, 2))


def test_an_executor_that_breaks_ends_the_run_with_a_good_checkpoint(tmp_path):
    class Breaking(Shuffled):
        def check(self):
            if self.submitted > 30:
                raise ExecutorError("the scheduler went away")

        def pump(self, seconds):
            if self.submitted <= 30:
                super().pump(seconds)

    task = TASKS["plain"]
    result = search(task, budget=300, seed=2, method=METHOD, executor=Breaking(), out=tmp_path / "run")
    assert result.stop is StopReason.EXECUTOR
    assert "the scheduler went away" in result.sentence
    assert 0 < result.calls < 300
    whole = search(task, budget=300, seed=2, method=METHOD)
    assert comparable(resume(tmp_path / "run", task=task)) == comparable(whole)


@pytest.mark.parametrize(
    ("do", "words"),
    [
        (lambda: make_executor("dask"), "executor.address must name a Dask scheduler"),
        (lambda: make_executor("slurm"), "executor.kind must be one of"),
        (lambda: Processes(0), "workers must be an integer >= 1"),
        (
            lambda: search(TASKS["plain"], budget=9, executor=3),
            "executor must be an object with a method submit",
        ),
        (lambda: search(TASKS["plain"], budget=9, design_seconds=0), "design_seconds"),
    ],
)
def test_bad_executors_get_one_line(do, words):
    with pytest.raises(DeclarationError, match=words):
        do()


# -------------------------------------------------------------------------------------------- Dask and Ray


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


def test_a_scheduler_that_is_not_there_gets_one_line():
    pytest.importorskip("distributed")
    with pytest.raises(ExecutorError, match=r"no Dask scheduler with workers at tcp://127\.0\.0\.1:9"):
        Dask("tcp://127.0.0.1:9", timeout=1.0)


def test_a_module_that_workers_do_not_have_ends_the_run_in_one_line(tmp_path):
    class Elsewhere(Shuffled):
        def pump(self, seconds):
            jobs, self.jobs = self.jobs, []
            for future, *_ in jobs:
                future.set_exception(RuntimeError("Traceback ...\nNo module named 'my_task'\n"))

    found = search(TASKS["plain"], budget=100, method=METHOD, executor=Elsewhere(), out=tmp_path / "run")
    assert found.stop is StopReason.EXECUTOR
    assert "a worker has no module 'my_task'" in found.sentence
    assert "\n" not in found.sentence
    whole = search(TASKS["plain"], budget=100, method=METHOD)
    assert comparable(resume(tmp_path / "run", task=TASKS["plain"])) == comparable(whole)


@pytest.mark.slow
def test_ray_gives_the_same_result():
    pytest.importorskip("ray")
    with Ray(workers=2) as executor:
        for task in TASKS.values():
            assert outcome(task, executor=executor) == outcome(task)


def where(_):
    import ray

    time.sleep(0.2)
    return ray.get_runtime_context().get_node_id()


@pytest.mark.slow
def test_two_nodes_of_ray_give_the_same_result(monkeypatch):
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(os.path.abspath(path) for path in sys.path))
    cluster = Cluster()
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1, include_dashboard=False)
        ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
        with Ray() as executor:
            assert executor.workers == 2
            assert len(set(as_completed(executor, where, range(8)))) == 2
            for task in TASKS.values():
                assert outcome(task, executor=executor) == outcome(task)
    finally:
        ray.shutdown()
        cluster.shutdown()
