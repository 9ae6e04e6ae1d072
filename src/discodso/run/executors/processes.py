"""Worker processes on this machine, as an executor that can lose a worker, or end one, and go on.

Each worker process has a thread here, which hands it one job after the other and waits for the answers. So several
threads may use one executor, and Ctrl-C, which comes to the main thread, never comes in the midst of a message or
a fork. Forked workers know what was shared before by inheritance; nothing is pickled for that, and objectives may
be closures. Where there is no fork, the shared values are pickled once for each worker.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any

from discodso.base.errors import ExecutorError
from discodso.base.files import Closing
from discodso.run.executors.chunks import WorkerLost, worker_count
from discodso.run.objective_calls import GUARDED

_CLOSED = "these worker processes are closed; start new ones"
_BIRTHS = 50  # workers that may be lost one after the other without a single result
# A process that is forked while another thread is about to fork would keep the pipe of that one open.
_FORKING = threading.Lock()


@dataclass(frozen=True)
class Shared:
    """Stands for a shared value among the arguments of a job."""

    number: int


@dataclass(eq=False)
class _Job:
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    seconds: float | None
    future: Future[Any] = field(default_factory=Future)
    dropped: bool = False

    @property
    def needs(self) -> int:
        """How many shared values a worker has to know."""
        return max((a.number + 1 for a in self.arguments if isinstance(a, Shared)), default=0)


@dataclass(eq=False)
class _Worker:
    """A thread and its process, None while there is none."""

    begun: Future[None] = field(default_factory=Future)
    process: Any = None
    connection: Any = None
    knows: int = 0  # shared values
    job: _Job | None = None


class Processes(Closing):
    """An executor of worker processes; a context manager, and nothing is left behind when it closes.

    Searches in several threads may share one: each gets its own answers, and what one drops is its own.

    Args:
        workers: how many; None for the number of processors.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = worker_count(workers)
        self.replaced = 0
        forking = "fork" in multiprocessing.get_all_start_methods() and sys.platform != "darwin"
        self._context: Any = multiprocessing.get_context("fork" if forking else "spawn")
        self._values: list[Any] = []
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._team: dict[threading.Thread, _Worker] = {}
        self._lost_in_a_row = 0
        self._closed = False
        self._lock = threading.RLock()  # of all of these, and of the job and the process of a worker

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the workers."""
        with self._lock:
            return tuple(worker.process.pid for worker in self._team.values() if worker.process)

    def start(self) -> None:
        """Start all workers now, not with the first jobs."""
        try:
            for _ in range(self.workers):
                self._add()
        except BaseException:
            self.close()
            raise

    def share(self, value: Any) -> Shared:
        """Ship a value once to every worker; hand over what this returns in its place."""
        with self._lock:
            for number, known in enumerate(self._values):
                if known is value:
                    return Shared(number)
            self._values.append(value)
            return Shared(len(self._values) - 1)

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Run a function of a module in a worker."""
        return self.submit_within(None, function, *arguments)

    def submit_within(
        self, seconds: float | None, function: Callable[..., Any], /, *arguments: Any
    ) -> Future[Any]:
        """The same, but a worker that takes longer is ended, and the future raises TimeoutError."""
        self._add()
        job = _Job(function, arguments, seconds)
        with self._lock:
            if self._closed:
                raise ExecutorError(_CLOSED)
            self._jobs.put(job)
        return job.future

    def abandon(self, futures: Iterable[Future[Any]]) -> None:
        """Drop the jobs of these futures; workers in the middle of one are ended."""
        with self._lock:
            dropped = {future for future in futures if not future.cancel()}
            for worker in self._team.values():
                if worker.job is not None and worker.job.future in dropped:
                    worker.job.dropped = True
                    _kill(worker)

    def close(self) -> None:
        """End the workers; who still waits for an answer gets an ExecutorError."""
        with self._lock:
            self._closed = True
            team, self._team = self._team, {}
            for worker in team.values():
                self._jobs.put(None)
                _kill(worker)
        for thread in team:
            thread.join(5)
        atexit.unregister(self.close)

    # -------------------------------------------------------------------------------- the thread of a worker

    def _add(self) -> None:
        """One more worker, unless all are there; ExecutorError if its process cannot be started."""
        worker = _Worker()
        with self._lock:
            if self._closed or len(self._team) == self.workers:
                return
            # In this context, which says how NumPy takes errors: a forked process inherits it.
            work = copy_context().run
            thread = threading.Thread(target=work, args=(self._work, worker), daemon=True)
            if not self._team:
                atexit.register(self.close)
            self._team[thread] = worker
            thread.start()
        worker.begun.result()

    def _work(self, worker: _Worker) -> None:
        try:
            self._begin(worker)
            worker.begun.set_result(None)
        except ExecutorError as error:
            worker.begun.set_exception(error)
        while (job := self._jobs.get()) is not None:
            with self._lock:
                if not job.future.set_running_or_notify_cancel():
                    continue
                worker.job = job
            try:
                good, value = self._answer(worker, job)
            except Exception as error:
                good, value = False, error
            with self._lock:
                worker.job = None
            if job.dropped:
                self._end(worker)
            elif good:
                job.future.set_result(value)
            else:
                job.future.set_exception(value)
        self._end(worker)

    def _answer(self, worker: _Worker, job: _Job) -> tuple[bool, Any]:
        """Whether a job went well, and what it gave or raised."""
        if worker.process is None or worker.knows < job.needs:
            self._end(worker)
            self._begin(worker)
        if job.dropped:
            return False, None
        connection = worker.connection
        try:
            connection.send((job.function, job.arguments))
            if not connection.poll(job.seconds):
                self._replace(worker)
                return False, TimeoutError(f"took longer than {job.seconds:g} s")
            good, value, last = connection.recv()
        except (EOFError, OSError):
            if job.dropped:
                return False, None
            self._lost_in_a_row += 1
            worker.process.join(2)
            error = WorkerLost(f"its worker process ended with exit code {worker.process.exitcode}")
            self._replace(worker)
            return False, error
        self._lost_in_a_row = 0
        if last:
            self._replace(worker)
        return good, value

    def _begin(self, worker: _Worker) -> None:
        """Start a process for a worker."""
        if self._closed:
            raise ExecutorError(_CLOSED)
        if self._lost_in_a_row > _BIRTHS:
            raise ExecutorError(f"{_BIRTHS} worker processes ended one after the other without a result")
        with _FORKING:
            values = list(self._values)
            ours, theirs = self._context.Pipe()
            process = self._context.Process(target=_serve, args=(theirs, values, os.getpid()), daemon=True)
            try:
                process.start()
            except OSError as error:
                raise ExecutorError(f"cannot start a worker process: {error.strerror or error}") from None
            except Exception as error:  # of pickle, where there is no fork
                raise ExecutorError(f"the task cannot be sent to a worker process: {error}") from None
            theirs.close()
        with self._lock:
            worker.process, worker.connection, worker.knows = process, ours, len(values)
            if self._closed:
                _kill(worker)

    def _end(self, worker: _Worker) -> None:
        """End the process of a worker, and clean up after it."""
        with self._lock:
            if worker.process is not None:
                worker.process.kill()
                worker.process.join()
                worker.process.close()
                worker.connection.close()
                worker.process = None

    def _replace(self, worker: _Worker) -> None:
        """A new process in place of one that was lost or took too long."""
        self._end(worker)
        self._begin(worker)
        with self._lock:
            self.replaced += 1


def _kill(worker: _Worker) -> None:
    """Let the thread of a worker find its process dead."""
    if worker.process is not None:
        worker.process.kill()


def _serve(connection: Any, values: Sequence[Any], parent: int) -> None:
    """A worker: does jobs until the other end of the pipe is closed, or something hangs in a thread of it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends the workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    hanging = False
    while not hanging:
        try:
            function, arguments = connection.recv()
        except (EOFError, OSError):
            return
        try:
            answer = True, function(*(values[a.number] if isinstance(a, Shared) else a for a in arguments))
        except BaseException as error:
            answer = False, error
        guarded = [thread for thread in threading.enumerate() if thread.name == GUARDED]
        for thread in guarded:
            thread.join(0.05)  # one that has just finished is given the time to end
        hanging = any(thread.is_alive() for thread in guarded)  # it ends with the process
        try:
            connection.send((*answer, hanging))
        except OSError:
            return
        except Exception as error:  # the answer cannot be pickled
            connection.send((False, RuntimeError(f"the answer cannot be sent: {error}"), hanging))


def _end_with(parent: int) -> None:
    """End this process when its parent has gone, even in the middle of a job that hangs."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
