"""Worker processes on this machine, as an executor that can lose a worker, or end one, and go on.

There are no helper threads: whoever waits for a result does the work of sending and receiving (`pump`), so that
workers may be forked at any time. Forked workers know what was shared before by inheritance; nothing is pickled
for that, and objectives may be closures. Where there is no fork, the shared values are pickled once for each
worker.
"""

from __future__ import annotations

import itertools
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from discodso.base.checks import require_integer
from discodso.base.errors import ExecutorError
from discodso.run.executors.dispatch import WorkerLost
from discodso.run.objective_calls import GUARDED

_AT_ONCE = 2  # jobs that a worker holds, so that it has the next when it is done with one
_BIRTHS = 50  # workers that may be lost one after the other without a single result


@dataclass(frozen=True)
class Shared:
    """Stands for a shared value among the arguments of a job."""

    number: int


@dataclass(eq=False)
class _Job:
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    future: Future[Any]
    seconds: float | None

    @property
    def needs(self) -> set[int]:
        return {argument.number for argument in self.arguments if isinstance(argument, Shared)}


@dataclass(eq=False)
class _Worker:
    process: Any
    connection: Any
    knows: frozenset[int]
    jobs: deque[_Job] = field(default_factory=deque)
    since: float = 0.0  # when it began with the first of its jobs


class Processes:
    """An executor of worker processes; a context manager, and nothing is left behind when it closes.

    Args:
        workers: how many; None for the number of processors.
    """

    def __init__(self, workers: int | None = None) -> None:
        count = os.cpu_count() or 1 if workers is None else workers
        require_integer("workers", count, 1)
        self.workers = int(count)
        self.replaced = 0
        forking = "fork" in multiprocessing.get_all_start_methods() and sys.platform != "darwin"
        self._context: Any = multiprocessing.get_context("fork" if forking else "spawn")
        self._values: dict[int, Any] = {}
        self._numbers = itertools.count()
        self._waiting: deque[_Job] = deque()
        self._team: list[_Worker] = []
        self._lost_in_a_row = 0
        self._closed = False

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the workers."""
        return tuple(worker.process.pid for worker in self._team)

    def start(self) -> None:
        """Start all workers now, not with the first job."""
        try:
            while len(self._team) < self.workers:
                self._team.append(self._start())
        except BaseException:
            self.close()
            raise

    def share(self, value: Any) -> Shared:
        """Ship a value once to every worker; hand over what this returns in its place."""
        for number, known in self._values.items():
            if known is value:
                return Shared(number)
        shared = Shared(next(self._numbers))
        self._values[shared.number] = value
        return shared

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Run a function of a module in a worker."""
        return self._enqueue(None, function, arguments)

    def submit_within(self, seconds: float, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """The same, but a worker that takes longer is ended, and the future raises TimeoutError."""
        return self._enqueue(seconds, function, arguments)

    def _enqueue(
        self, seconds: float | None, function: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> Future[Any]:
        if self._closed:
            raise ExecutorError("these worker processes are closed; start new ones")
        future: Future[Any] = _PumpedFuture(self)
        self._waiting.append(_Job(function, arguments, future, seconds))
        self._feed()
        return future

    # ------------------------------------------------------------------------------------------ the work of it

    def pump(self, seconds: float) -> None:
        """Send what waits and take what has come; waits at most so long for something to come."""
        self._feed()
        busy = {worker.connection: worker for worker in self._team if worker.jobs}
        if not busy:
            return
        for connection in multiprocessing.connection.wait(list(busy), min(seconds, self._next_deadline())):
            self._receive(busy[connection])
        for worker in list(self._team):
            limit = worker.jobs[0].seconds if worker.jobs else None
            if limit is not None and time.monotonic() - worker.since > limit:
                job = worker.jobs.popleft()
                self._replace(worker)
                _settle(job.future, TimeoutError(f"took longer than {limit:g} s"))
        self._feed()

    def _next_deadline(self) -> float:
        now = time.monotonic()
        ends = [w.since + w.jobs[0].seconds - now for w in self._team if w.jobs and w.jobs[0].seconds]
        return max(0.0, min(ends, default=3600.0)) + 0.01

    def _feed(self) -> None:
        while len(self._team) < self.workers and self._waiting:
            self._team.append(self._start())
        # Round by round, so that all have one before anyone has two.
        for depth in range(_AT_ONCE):
            for worker in list(self._team):
                if self._waiting and len(worker.jobs) == depth:
                    self._send(worker)

    def _send(self, worker: _Worker) -> None:
        job = self._waiting[0]
        if not job.needs <= worker.knows:
            if worker.jobs:
                return  # it finishes first
            worker = self._replace(worker, lost=False)
        self._waiting.popleft()
        if not job.future.running() and not job.future.set_running_or_notify_cancel():
            return
        if not worker.jobs:
            worker.since = time.monotonic()
        worker.jobs.append(job)
        try:
            worker.connection.send((job.function, job.arguments))
        except OSError:
            return  # dead; found out when its answer is awaited
        except Exception as error:  # it cannot be pickled
            worker.jobs.remove(job)
            _settle(job.future, error)

    def _receive(self, worker: _Worker) -> None:
        try:
            good, value = worker.connection.recv()
        except (EOFError, OSError):
            job = worker.jobs.popleft()
            self._lost_in_a_row += 1
            self._replace(worker)
            code = worker.process.exitcode
            _settle(job.future, WorkerLost(f"its worker process ended with exit code {code}"))
            return
        except Exception as error:  # the answer cannot be read
            good, value = False, error
        if good is None:  # it has said goodbye, and its jobs are as they were
            self._replace(worker)
            return
        self._lost_in_a_row = 0
        job = worker.jobs.popleft()
        worker.since = time.monotonic()
        _settle(job.future, None if good else value, value)

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        forked = self._context.get_start_method() == "fork"
        others = [worker.connection for worker in self._team] + [ours] if forked else []
        process = self._context.Process(
            target=_serve,
            args=(theirs, others, dict(self._values), os.getpid()),
            daemon=True,
            name="discodso-worker",
        )
        try:
            process.start()
        except OSError as error:
            raise ExecutorError(f"cannot start a worker process: {error.strerror or error}") from None
        except Exception as error:  # of pickle, where there is no fork
            raise ExecutorError(f"the task cannot be sent to a worker process: {error}") from None
        theirs.close()
        return _Worker(process, ours, frozenset(self._values))

    def _replace(self, worker: _Worker, lost: bool = True) -> _Worker:
        """A new worker in place of one that has ended or shall end; its other jobs go back to the front."""
        if self._lost_in_a_row > _BIRTHS:
            raise ExecutorError(f"{_BIRTHS} worker processes ended one after the other without a result")
        self._waiting.extendleft(reversed(worker.jobs))
        worker.jobs.clear()
        _end(worker)
        self.replaced += lost
        place = self._team.index(worker)
        del self._team[
            place
        ]  # a forked child closes the connections of the others; this one is closed already
        fresh = self._start()
        self._team.insert(place, fresh)
        return fresh

    def abandon(self) -> None:
        """Drop all jobs; workers in the middle of one are ended."""
        self._waiting.clear()
        for worker in [worker for worker in self._team if worker.jobs]:
            for job in worker.jobs:
                job.future.cancel()
            worker.jobs.clear()
            _end(worker)
            self._team.remove(worker)

    def close(self) -> None:
        """End the workers."""
        self._closed = True
        self._waiting.clear()
        team, self._team = self._team, []
        for worker in team:
            worker.connection.close()
            worker.process.terminate()
        for worker in team:
            _end(worker)


class _PumpedFuture(Future[Any]):
    """A future that does the waiting work itself when someone asks for its result."""

    def __init__(self, executor: Processes) -> None:
        super().__init__()
        self._executor = executor

    def result(self, timeout: float | None = None) -> Any:
        end = None if timeout is None else time.monotonic() + timeout
        while not self.done():
            if end is not None and time.monotonic() >= end:
                raise TimeoutError
            self._executor.pump(1.0 if end is None else max(0.0, end - time.monotonic()))
        return super().result(0)


def _settle(future: Future[Any], error: BaseException | None, value: Any = None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(value)


def _end(worker: _Worker) -> None:
    worker.connection.close()
    worker.process.terminate()
    worker.process.join(2)
    if worker.process.is_alive():
        worker.process.kill()
        worker.process.join()


def _serve(connection: Any, others: list[Any], values: Mapping[int, Any], parent: int) -> None:
    """A worker: does jobs until the other end of the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends the workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for (
        other
    ) in others:  # inherited by the fork; as long as they are open a sibling would not see the parent die
        other.close()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    while True:
        try:
            function, arguments = connection.recv()
        except (EOFError, OSError):
            return
        try:
            resolved = (values[a.number] if isinstance(a, Shared) else a for a in arguments)
            answer = True, function(*resolved)
        except BaseException as error:
            answer = False, error
        try:
            connection.send(answer)
        except (BrokenPipeError, OSError):
            return
        except Exception as error:  # the answer cannot be pickled
            connection.send((False, RuntimeError(f"the answer cannot be sent: {error}")))
        if any(thread.name == GUARDED and thread.is_alive() for thread in threading.enumerate()):
            time.sleep(0.05)  # one that has just finished is given the time to end
            if any(thread.name == GUARDED and thread.is_alive() for thread in threading.enumerate()):
                connection.send((None, None))  # what hangs ends with the process; another takes its place
                return


def _end_with(parent: int) -> None:
    """End this process when its parent has gone, even in the middle of a job that hangs."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
