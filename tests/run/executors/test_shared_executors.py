"""One executor for searches in several threads: each finds what it finds alone, whatever the others do."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from killing import comparable
from spaces import valued_sequence

from discodso import DisCoSettings, ExecutorError, NetworkSettings, StopReason, Task, search
from discodso.run.executors.registry import Dask, Processes, Threads

METHOD = DisCoSettings(batch_size=40, network=NetworkSettings(units=8))


def reward(wanted, pause, design):
    time.sleep(pause)
    return -sum((value - wanted) ** 2 for value in design.values if value is not None)


def task(wanted, pause=0.0):
    return Task(valued_sequence(), partial(reward, wanted, pause))


def found(task, executor=None, **options):
    return comparable(
        search(task, budget=options.pop("budget", 200), seed=2, method=METHOD, **options, executor=executor)
    )


def stopping(wanted, design):
    """Ctrl-C in the midst of a batch: the worker hands it on as if it had come here."""
    if design.tokens == ("d", "v") and design.values[1] > 0.5:
        raise KeyboardInterrupt
    time.sleep(0.002)
    return reward(wanted, 0.0, design)


def in_threads(*functions):
    with ThreadPoolExecutor(len(functions)) as pool:
        futures = [pool.submit(function) for function in functions]
        return [future.result(timeout=120) for future in futures]


KINDS = {
    "two processes": lambda: Processes(2),
    "one process": lambda: Processes(1),
    "threads": lambda: Threads(2),
}


@pytest.mark.parametrize("kind", KINDS)
def test_searches_that_share_an_executor_find_what_they_find_alone(kind):
    tasks = [task(wanted, 0.0005) for wanted in (0.1, 0.5, 0.9)]
    alone = [found(each) for each in tasks]
    with KINDS[kind]() as executor:
        for _ in range(2):
            assert in_threads(*(partial(found, each, executor) for each in tasks)) == alone


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_that_is_interrupted_or_drops_a_batch_takes_nothing_from_the_others(kind):
    quiet = task(0.3, 0.002)
    alone = found(quiet)
    over = threading.Event()
    ended = []

    def disturb():
        while not over.is_set():
            broken = Task(valued_sequence(), partial(stopping, 0.6))
            ended.append(search(broken, budget=400, seed=len(ended), method=METHOD, executor=executor).stop)
            near = search(task(0.6), budget=400, method=METHOD, executor=executor, target=-9.0)
            ended.append(near.stop)

    def measured():
        try:
            return [found(quiet, executor) for _ in range(3)]
        finally:
            over.set()

    with KINDS[kind]() as executor:
        results, _ = in_threads(measured, disturb)
    assert results == [alone] * 3
    assert {StopReason.INTERRUPTED, StopReason.TARGET} <= set(ended)


def interrupt_after(seconds, over):
    """Ctrl-C, again every few seconds: Python drops one that comes while an object is collected."""
    while not over.wait(seconds):
        os.kill(os.getpid(), signal.SIGINT)
        seconds = 3.0


def test_ctrl_c_in_the_main_thread_leaves_the_search_of_another_alone():
    """Real signals, at any place of the code that both threads use."""
    quiet = task(0.3, 0.002)
    alone = found(quiet, budget=300)
    interrupts = 0
    over = threading.Event()

    def interrupt(*_):
        if not over.is_set():  # one that comes late is not for this test to suffer from
            raise KeyboardInterrupt

    def until_interrupted_enough(executor):
        results = [found(quiet, executor, budget=300)]
        while interrupts < 5:
            results.append(found(quiet, executor, budget=300))
        return results

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        with Processes(2) as executor, ThreadPoolExecutor(1) as pool:
            other = pool.submit(until_interrupted_enough, executor)
            while not other.done():
                over.clear()
                sender = threading.Thread(
                    target=interrupt_after, args=(0.03 + 0.013 * (interrupts % 7), over)
                )
                try:
                    sender.start()
                    search(task(0.6, 0.001), budget=100_000, method=METHOD, executor=executor)
                except KeyboardInterrupt:
                    pass  # it came before the search had begun to listen
                over.set()
                sender.join()
                interrupts += 1
            results = other.result(timeout=60)
    finally:
        signal.signal(signal.SIGINT, before)
    assert results == [alone] * len(results)
    assert interrupts >= 5


def test_who_waits_for_a_closed_executor_is_told():
    executor = Processes(1)
    future = executor.submit(time.sleep, 3600)
    threading.Timer(0.2, executor.close).start()
    with pytest.raises(ExecutorError, match="closed"):
        future.result(timeout=30)


def test_searches_share_a_dask_cluster():
    distributed = pytest.importorskip("distributed")
    tasks = [task(wanted, 0.0005) for wanted in (0.1, 0.9)]
    alone = [found(each) for each in tasks]
    cluster = distributed.LocalCluster(2, threads_per_worker=1, processes=False, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client, Dask(client) as executor:
        assert in_threads(*(partial(found, each, executor) for each in tasks)) == alone
