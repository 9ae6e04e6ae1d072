"""Worker processes on this machine, as an executor that can lose a worker, or end one, and go on.

There are no helper threads: whoever waits for a result does the work of sending and receiving (`pump`), so that
workers may be forked at any time. Forked workers know what was shared before by inheritance; nothing is pickled
for that, and objectives may be closures. Where there is no fork, the shared values are pickled once for each
worker.

Several threads may use one executor. All that it knows is guarded by one lock; whoever waits first watches the
pipes for all of them, without the lock, and a bell wakes that thread when another has changed what there is to
watch. Ctrl-C may come anywhere in the main thread, so a job is written to its new place before it leaves the old
one (better done twice than never), and a worker in the midst of a message is marked `torn` until it is through.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import multiprocessing
import multiprocessing.connection
import os
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discodso.base.checks import require_integer, require_number
from discodso.base.errors import DeclarationError, ExecutorError
from discodso.base.files import Closing
from discodso.base.signals import interrupts_later, leave_interrupts_to_the_parent
from discodso.run.executors.chunks import WorkerLost, worker_count
from discodso.run.objective_calls import GUARDED, Rows

_AT_ONCE = 2  # jobs that a worker holds, so that it has the next when it is done with one
_CLOSED = "these worker processes are closed; start new ones"
_BIRTHS = 50  # workers that may be lost one after the other without a single result


@dataclass(frozen=True)
class Shared:
    """Stands for a shared value among the arguments of a job."""

    number: int


@dataclass(frozen=True)
class _Renewal:
    """When a worker makes room for a new one; None for never."""

    after: int | None
    megabytes: float | None

    def is_due(self, done: int, born: float | None) -> bool:
        """Whether it is, after so many designs, for a worker that had so many megabytes when it was born."""
        if self.after is not None and done >= self.after:
            return True
        return self.megabytes is not None and (_megabytes() or 0.0) - (born or 0.0) >= self.megabytes


def _megabytes() -> float | None:
    """What this process holds in memory now, or has held at most where the system tells no more; else None."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


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
    torn: bool = False  # in the midst of a message; if it stays so, nobody knows what comes next
    ended: bool = False


class Processes(Closing):
    """An executor of worker processes; a context manager, and nothing is left behind when it closes.

    Searches in several threads may share one: each gets its own answers, and what one drops is its own.

    Args:
        workers: how many; None for the number of processors.
        renew_after: designs, or other jobs, after which a worker is replaced by a new one; None for never.
        renew_megabytes: a worker that has grown by so much since it started is replaced by a new one after its
            job, for objectives that lose memory; None for never.

    Attributes:
        replaced: workers that were lost, or ended because they took too long.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        renew_after: int | None = None,
        renew_megabytes: float | None = None,
    ) -> None:
        self.workers = worker_count(workers)
        if renew_after is not None:
            require_integer("renew_after", renew_after, 1)
        if renew_megabytes is not None:
            require_number("renew_megabytes", renew_megabytes, above=0)
            if _megabytes() is None:
                raise DeclarationError("renew_megabytes cannot be kept on this system; use renew_after")
        self._renewal = _Renewal(renew_after, renew_megabytes)
        self.replaced = 0
        forking = "fork" in multiprocessing.get_all_start_methods() and sys.platform != "darwin"
        self._context: Any = multiprocessing.get_context("fork" if forking else "spawn")
        self._values: dict[int, Any] = {}
        self._numbers = itertools.count()
        self._waiting: deque[_Job] = deque()
        self._team: list[_Worker] = []
        self._lost_in_a_row = 0
        self._closed = False
        # Guards all of the above and below. It is entered by itself: Ctrl-C in the midst of entering a condition
        # would leave it locked for ever.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._answers: deque[tuple[Future[Any], BaseException | None, Any]] = deque()  # not told yet
        self._settled = 0  # futures so far; a thread that has seen fewer has something to look at
        self._seen = threading.local()
        self._watched_until = -math.inf  # some thread watches the pipes until then
        # Single bytes, not messages: Ctrl-C in the midst of reading a message would leave half of it behind.
        self._bell, self._ringer = socket.socketpair()
        self._bell.setblocking(False)
        self._ringer.setblocking(False)
        self._rung = False

    def start(self) -> None:
        """Start all workers now, not with the first job."""
        with self._lock:
            try:
                while len(self._team) < self.workers:
                    self._team.append(self._start())
            except BaseException:
                self.close()
                raise

    def share(self, value: Any) -> Shared:
        """Ship a value once to every worker; hand over what this returns in its place."""
        with self._lock:
            for number, known in self._values.items():
                if known is value:
                    return Shared(number)
            shared = Shared(next(self._numbers))
            self._values[shared.number] = value
            return shared

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Run a function of a module in a worker."""
        return self.submit_within(None, function, *arguments)

    def submit_within(
        self, seconds: float | None, function: Callable[..., Any], /, *arguments: Any
    ) -> Future[Any]:
        """The same, but a worker that takes longer is ended, and the future raises TimeoutError."""
        with self._lock:
            if self._closed:
                raise ExecutorError(_CLOSED)
            future: Future[Any] = _PumpedFuture(self)
            self._waiting.append(_Job(function, arguments, future, seconds))
            self._feed()
            self._ring()
            return future

    # ------------------------------------------------------------------------------------------ the work of it

    def pump(self, seconds: float) -> None:
        """Send what waits and take what has come; waits at most so long for something to come."""
        with self._lock:
            self._feed()
            self._ring()
            self._changed.wait_for(lambda: self._has_news() or not self._is_watched(), seconds)
            if self._has_news() or self._is_watched():
                self._seen.settled = self._settled
                return
            watched = {worker.connection: worker for worker in self._team if worker.jobs}
            if not watched:
                return
            seconds = min(seconds, self._next_deadline())
            self._watched_until = time.monotonic() + seconds + 0.1
        try:
            ready = multiprocessing.connection.wait([*watched, self._bell], seconds)
        except (OSError, ValueError):  # another thread has just closed one of them
            ready = []
        except BaseException:
            with self._lock:
                self._watched_until = -math.inf
                self._changed.notify_all()  # another may watch
            raise
        with self._lock:
            self._watched_until = -math.inf
            self._changed.notify_all()
            if self._closed:
                return
            self._rung = False
            with contextlib.suppress(BlockingIOError):
                self._bell.recv(4096)
            for worker in (watched[connection] for connection in ready if connection in watched):
                # Another thread may have replaced it, or taken its answer, in the meantime.
                if worker in self._team and worker.jobs and not worker.torn and worker.connection.poll():
                    self._receive(worker)
            self._end_late_ones()
            self._feed()
            self._seen.settled = self._settled

    def _has_news(self) -> bool:
        """Whether another thread has settled a future since this one looked."""
        return getattr(self._seen, "settled", 0) != self._settled

    def _is_watched(self) -> bool:
        return time.monotonic() < self._watched_until

    def _ring(self) -> None:
        """Wake the thread that watches the pipes: there may be others to watch now."""
        if self._is_watched() and not self._rung and not self._closed:
            self._rung = True
            with contextlib.suppress(BlockingIOError):  # full of rings that nobody has heard yet
                self._ringer.send(b"!")

    def _end_late_ones(self) -> None:
        for worker in list(self._team):
            job = worker.jobs[0] if worker.jobs else None
            if job is not None and job.seconds is not None and time.monotonic() - worker.since > job.seconds:
                self._answers.append((job.future, TimeoutError(f"took longer than {job.seconds:g} s"), None))
                worker.jobs.popleft()
                self._replace(worker)

    def _next_deadline(self) -> float:
        now = time.monotonic()
        ends = [w.since + w.jobs[0].seconds - now for w in self._team if w.jobs and w.jobs[0].seconds]
        return max(0.0, min(ends, default=3600.0)) + 0.01

    def _feed(self) -> None:
        for worker in [worker for worker in self._team if worker.torn]:
            self._replace(worker, lost=False)
        while len(self._team) < self.workers and self._waiting:
            self._team.append(self._start())
        # Round by round, so that all have one before anyone has two.
        for depth in range(_AT_ONCE):
            for worker in list(self._team):
                if self._waiting and len(worker.jobs) == depth:
                    self._send(worker)
        self._tell()

    def _send(self, worker: _Worker) -> None:
        job = self._waiting[0]
        if job.future.done():  # cancelled, or done twice
            self._waiting.popleft()
            return
        if not job.needs <= worker.knows:
            if worker.jobs:
                return  # it finishes first
            worker = self._replace(worker, lost=False)
        if not job.future.running() and not job.future.set_running_or_notify_cancel():
            self._waiting.popleft()
            return
        worker.torn = True
        if not worker.jobs:
            worker.since = time.monotonic()
        worker.jobs.append(job)
        self._waiting.popleft()
        try:
            worker.connection.send((job.function, job.arguments))
        except OSError:
            pass  # dead; found out when its answer is awaited
        except Exception as error:  # it cannot be pickled
            self._answers.append((job.future, error, None))
            worker.jobs.remove(job)
        worker.torn = False

    def _receive(self, worker: _Worker) -> None:
        worker.torn = True
        job = worker.jobs[0]
        try:
            good, value = worker.connection.recv()
        except (EOFError, OSError):
            self._lost_in_a_row += 1
            worker.process.join(2)
            code = worker.process.exitcode
            error = WorkerLost(f"its worker process ended with exit code {code}")
            self._answers.append((job.future, error, None))
            worker.jobs.popleft()
            self._replace(worker)
            return
        except Exception as unreadable:
            good, value = False, unreadable
        if good is None:  # it has said goodbye, and its jobs are as they were
            self._replace(worker, lost=bool(value))
            return
        self._lost_in_a_row = 0
        self._answers.append((job.future, None if good else value, value))
        worker.jobs.popleft()
        worker.since = time.monotonic()
        worker.torn = False

    def _tell(self) -> None:
        """Tell the futures what came; last of all, because their callbacks may submit more."""
        while self._answers:
            entry = self._answers[0]
            future, error, value = entry
            self._settled += 1
            if not future.done():
                if error is not None:
                    future.set_exception(error)
                else:
                    future.set_result(value)
            if self._answers and self._answers[0] is entry:
                self._answers.popleft()
            self._changed.notify_all()

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        forked = self._context.get_start_method() == "fork"
        others = [worker.connection for worker in self._team] + [ours] if forked else []
        process = self._context.Process(
            target=_serve,
            args=(theirs, others, dict(self._values), os.getpid(), self._renewal),
            daemon=True,
            name="discodso-worker",
        )
        try:
            with interrupts_later():
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
        place = self._team.index(worker)
        self._dismiss(worker)
        self.replaced += lost
        fresh = self._start()
        self._team.insert(place, fresh)
        return fresh

    def _dismiss(self, worker: _Worker) -> None:
        """End a worker; those of its jobs that are not done go back to the front."""
        worker.torn = True
        while worker.jobs:
            if not worker.jobs[-1].future.done():
                self._waiting.appendleft(worker.jobs[-1])
            worker.jobs.pop()
        _end(worker)
        # Out of the team before another is started: a forked child closes the connections of the others, and this
        # one is closed already.
        self._team.remove(worker)

    def abandon(self, futures: Iterable[Future[Any]]) -> None:
        """Drop the jobs of these futures; workers in the middle of one are ended.

        Jobs of others that such a worker holds go to another one.
        """
        with self._lock:
            dropped = {id(future) for future in futures}
            mine = [w for w in self._team if w.torn or any(id(job.future) in dropped for job in w.jobs)]
            for worker in mine:
                self._dismiss(worker)
            gone = [job for job in self._waiting if id(job.future) in dropped]
            self._waiting = deque(job for job in self._waiting if id(job.future) not in dropped)
            for job in gone:
                job.future.cancel()
            self._ring()
            self._changed.notify_all()

    def close(self) -> None:
        """End the workers; who still waits for an answer gets an ExecutorError."""
        with self._lock:
            self._closed = True
            team, self._team = self._team, []
            left = [*self._waiting, *(job for worker in team for job in worker.jobs)]
            self._waiting.clear()
            for worker in team:
                worker.connection.close()
                if not worker.ended:
                    worker.process.terminate()
            for worker in team:
                _end(worker)
            self._bell.close()
            self._ringer.close()
            self._answers.extend((job.future, ExecutorError(_CLOSED), None) for job in left)
            self._tell()
            self._changed.notify_all()


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


def _end(worker: _Worker) -> None:
    with interrupts_later():
        if worker.ended:
            return
        worker.connection.close()
        worker.process.terminate()
        worker.process.join(2)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        worker.process.close()  # here, and not when it is collected
        worker.ended = True


def _serve(
    connection: Any, others: list[Any], values: Mapping[int, Any], parent: int, renewal: _Renewal
) -> None:
    """A worker: does jobs until the other end of the pipe is closed."""
    leave_interrupts_to_the_parent()
    # Inherited by the fork; as long as they are open a sibling would not see the parent die.
    for other in others:
        other.close()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    done, born = 0, _megabytes() if renewal.megabytes is not None else None
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
        guarded = [thread for thread in threading.enumerate() if thread.name == GUARDED]
        for thread in guarded:
            thread.join(0.05)  # one that has just finished is given the time to end
        if any(thread.is_alive() for thread in guarded):
            connection.send((None, True))  # what hangs ends with the process; another takes its place
            return
        done += sum(len(argument) for argument in arguments if isinstance(argument, Rows)) or 1
        if renewal.is_due(done, born):
            connection.send((None, False))
            return


def _end_with(parent: int) -> None:
    """End this process when its parent has gone, even in the middle of a job that hangs."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
