"""SIGTERM and SIGHUP end a run like Ctrl-C does."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from near_task import METHOD, NEAR, near

from discodso import StopReason, Task, resume, search
from discodso.base.signals import endings_interrupt, interrupts_later


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_run_that_is_told_to_end_can_be_gone_on_with(name, tmp_path):
    calls = []

    def objective(design):
        calls.append(design)
        if len(calls) == 77:
            os.kill(os.getpid(), getattr(signal, name))
        return near(design)

    expected = search(NEAR, budget=150, method=METHOD)
    task = Task(NEAR.space, objective)
    stopped = search(task, budget=150, method=METHOD, out=tmp_path / "run")
    assert stopped.stop is StopReason.INTERRUPTED
    assert signal.getsignal(getattr(signal, name)) == signal.SIG_DFL
    assert resume(tmp_path / "run", task=NEAR, force=True).top == expected.top


def test_handlers_of_others_and_other_threads_are_left_alone():
    seen = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under nohup
    try:
        with endings_interrupt():
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.signal(signal.SIGHUP, ignored)
    assert seen == [signal.SIGTERM]
    handlers = []

    def elsewhere():
        with endings_interrupt(), interrupts_later():
            handlers.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert handlers == [signal.SIG_DFL]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_can_wait(number):
    done = []

    def work():
        with endings_interrupt(), interrupts_later():
            os.kill(os.getpid(), number)
            done.append("what must not be cut")
        done.append("never")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["what must not be cut"]
