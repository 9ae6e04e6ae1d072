"""Sharing the designs of a batch among the workers of an executor, and putting the answers in order again.

Designs travel in chunks, and the task once. An answer of a chunk depends on its designs and their seeds only, so
neither the number of workers nor the order of answers shows in the result. A chunk that was lost with its worker
is sent again; if it is lost again its designs go one by one, so that only the one to blame fails.
"""

from __future__ import annotations

import math
import os
import queue
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from discodso.base.errors import ExecutorError
from discodso.run.objective_calls import Answer, Rows, Seeds, answer_rows, describe
from discodso.run.task import Task
from discodso.space.design import DesignBatch

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")
_CHUNKS_PER_WORKER = 4
_ATTEMPTS = 3  # a single design that is lost so often has failed
_PAUSE = 1.0  # seconds for a cluster to notice that it has lost a worker
_GRACE = 5.0  # seconds beyond the limits of its designs after which a worker that can be ended is ended


class WorkerLost(Exception):
    """The process that had a job has ended."""


class Executor(Protocol):
    """Anything that runs functions elsewhere: `concurrent.futures` and all that look like it.

    An executor may also have these, which are used where they are there: `workers`, how many there are;
    `share(value)`, which ships a value once and gives what to hand over in its place; `pump(seconds)`, which does
    the work of waiting in the caller's thread; `submit_within(seconds, function, *arguments)`, which ends what
    takes longer; `check()`, which raises ExecutorError if all is lost; `abandon()`, which drops what is under way.
    """

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """A future: it has `result()`, `cancel()` and `add_done_callback(function)`."""
        ...


@dataclass
class _Chunk:
    """Designs from `first` on, and how often they were lost."""

    first: int
    rows: Rows
    lost: int = 0

    def singles(self) -> list[_Chunk]:
        r = self.rows
        parts = [slice(i, i + 1) for i in range(len(r))]
        return [
            _Chunk(
                self.first + p.start,
                Rows(r.tokens[p], r.values[p], r.lengths[p], None if r.seeds is None else r.seeds[p]),
            )
            for p in parts
        ]


@dataclass
class Flight:
    """A batch that is being evaluated; it lives from `Dispatcher.begin` to `Dispatcher.finish`."""

    first: int
    count: int
    window: int  # chunks that may be under way
    waiting: deque[_Chunk]
    busy: dict[int, tuple[Any, _Chunk]] = field(default_factory=dict)  # by number of submission
    answers: dict[int, Answer] = field(default_factory=dict)  # by position of the first design
    arrived: queue.SimpleQueue[int] = field(default_factory=queue.SimpleQueue)


class Dispatcher:
    """Evaluates designs of one task by an executor.

    Args:
        task: what to evaluate.
        executor: who does it.
        limit: seconds for one design.
        chunk_size: designs that travel together; None for a quarter of what each worker gets.
    """

    def __init__(self, task: Task, executor: Executor, limit: float | None, chunk_size: int | None) -> None:
        self._task = task
        self._executor = executor
        self._limit = limit
        self._chunk_size = chunk_size
        self._shared: Any = None
        self._is_shared = False
        self._submissions = 0

    @property
    def _workers(self) -> int:
        return max(1, int(getattr(self._executor, "workers", None) or os.cpu_count() or 1))

    def begin(self, designs: DesignBatch, seeds: Seeds | None, first: int, end: int) -> Flight:
        """Send off the first chunks of the rows from `first` to `end`; `seeds` has one for each row."""
        workers = self._workers
        size = self._chunk_size or max(1, math.ceil((end - first) / (workers * _CHUNKS_PER_WORKER)))
        chunks = [
            _Chunk(start, Rows.of(designs, seeds, start, min(start + size, end)))
            for start in range(first, end, size)
        ]
        flight = Flight(first, end - first, 2 * workers, deque(chunks))
        self._feed(flight)
        return flight

    def finish(self, flight: Flight, out_of_time: Callable[[], bool]) -> tuple[Answer, bool]:
        """Answers of the designs, in order, and whether Ctrl-C came before the last.

        Without time no more chunks are sent, and those under way are awaited; the answer then is of fewer designs.
        """
        try:
            while flight.waiting or flight.busy:
                if out_of_time():
                    flight.waiting.clear()
                self._feed(flight)
                if flight.busy:
                    self._wait(flight)
        except KeyboardInterrupt:
            self.abandon(flight)
            return _in_order(flight), True
        except BaseException:
            self.abandon(flight)
            raise
        return _in_order(flight), False

    def abandon(self, flight: Flight) -> None:
        """Let go of what is under way."""
        busy, flight.busy = flight.busy, {}
        flight.waiting.clear()
        for future, _ in busy.values():
            future.cancel()
        if hasattr(self._executor, "abandon"):
            self._executor.abandon()

    def _feed(self, flight: Flight) -> None:
        while flight.waiting and len(flight.busy) < flight.window:
            chunk = flight.waiting.popleft()
            number = self._submissions
            self._submissions += 1
            future = self._submit(chunk)
            flight.busy[number] = future, chunk
            future.add_done_callback(lambda _, number=number: flight.arrived.put(number))

    def _submit(self, chunk: _Chunk) -> Any:
        """A future of a chunk; tried again if a worker is lost just while it is sent."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._submit_once(chunk)
            except ExecutorError:
                if not hasattr(self._executor, "check"):
                    raise
                self._executor.check()
                self._is_shared = False
                time.sleep(_PAUSE)
        return self._submit_once(chunk)

    def _submit_once(self, chunk: _Chunk) -> Any:
        executor: Any = self._executor
        try:
            if not self._is_shared:
                self._shared = executor.share(self._task) if hasattr(executor, "share") else self._task
                self._is_shared = True
            work = (answer_rows, self._shared, chunk.rows, self._limit)
            if self._limit is not None and hasattr(executor, "submit_within"):
                return executor.submit_within(self._limit * len(chunk.rows) + _GRACE, *work)
            return executor.submit(*work)
        except ExecutorError:
            raise
        except Exception as error:
            if hasattr(executor, "check"):
                executor.check()  # it may know better why
            raise ExecutorError(f"the executor takes no more work: {describe(error)}") from error

    def _wait(self, flight: Flight) -> None:
        """Take the answers that are there, or wait a moment for the next."""
        executor: Any = self._executor
        if hasattr(executor, "pump"):
            executor.pump(1.0)
            timeout = 0.0
        else:
            timeout = 1.0
        try:
            while True:
                number = flight.arrived.get(timeout=timeout) if timeout else flight.arrived.get_nowait()
                timeout = 0.0
                if number in flight.busy:
                    self._take(flight, *flight.busy.pop(number))
        except queue.Empty:
            if hasattr(executor, "check"):
                executor.check()

    def _take(self, flight: Flight, future: Any, chunk: _Chunk) -> None:
        try:
            flight.answers[chunk.first] = future.result()
            return
        except KeyboardInterrupt:
            raise
        except ExecutorError:
            raise
        except BrokenExecutor as error:
            raise ExecutorError(f"the executor broke: {describe(error)}; start a new one") from error
        except BaseException as error:  # the work itself raises nothing: this is its worker, or the way to it
            failure = error
        if hasattr(self._executor, "check"):
            self._executor.check()
        _require_module(failure)
        late = isinstance(failure, TimeoutError)
        chunk.lost += 1
        if len(chunk.rows) > 1 and (late or chunk.lost > 1):
            flight.waiting.extendleft(reversed(chunk.singles()))
        elif late or chunk.lost >= _ATTEMPTS:
            reason = f"took longer than {self._limit:g} s" if late else _lost(chunk, failure)
            flight.answers[chunk.first] = Answer.failed(len(chunk.rows), reason)
        else:
            self._is_shared = False  # what was shipped may have been lost as well
            flight.waiting.appendleft(chunk)


def as_completed(
    executor: Executor, function: Callable[[_Item], _Answer], items: Sequence[_Item]
) -> Iterator[_Answer]:
    """Answers of a function for some items, in the order in which they come: whole experiments over an executor.

    An item that is lost with its worker is sent again; what the function raises is raised here.
    """
    arrived: queue.SimpleQueue[int] = queue.SimpleQueue()
    busy: dict[int, tuple[Any, _Item, int]] = {}
    waiting = deque((item, 1) for item in items)
    submissions = 0
    flexible: Any = executor
    try:
        while waiting or busy:
            while waiting:
                item, attempt = waiting.popleft()
                future = executor.submit(function, item)
                busy[submissions] = future, item, attempt
                future.add_done_callback(lambda _, number=submissions: arrived.put(number))
                submissions += 1
            pumping = hasattr(flexible, "pump")
            if pumping:
                flexible.pump(1.0)
            try:
                # No timeout after pumping: a short one may never end on a busy machine (a fault of CPython).
                number = arrived.get_nowait() if pumping else arrived.get(timeout=1.0)
            except queue.Empty:
                if hasattr(flexible, "check"):
                    flexible.check()
                continue
            future, item, attempt = busy.pop(number)
            try:
                answer = future.result()
            except WorkerLost:
                if attempt >= _ATTEMPTS:
                    raise
                waiting.append((item, attempt + 1))
                continue
            yield answer
    except BaseException:
        for future, _, _ in busy.values():
            future.cancel()
        if hasattr(flexible, "abandon"):
            flexible.abandon()
        raise


def _lost(chunk: _Chunk, error: BaseException) -> str:
    return f"was lost {chunk.lost} times with its worker, the last time by {describe(error)}"


def _require_module(error: BaseException) -> None:
    """What a worker cannot import is missing for every design: that ends the run instead of failing them all."""
    missing = re.search(r"No module named '([^']+)'", str(error))
    if missing:
        raise ExecutorError(
            f"a worker has no module {missing[1]!r}, which the task needs; install it there, or put its folder "
            "on the PYTHONPATH of the workers"
        )


def _in_order(flight: Flight) -> Answer:
    """All answers from the first design to the first gap."""
    answers: list[Answer] = []
    position = flight.first
    while position in flight.answers:
        answer = flight.answers[position]
        if answer.broken:  # as if the batch objective had been called with all designs
            return Answer.failed(flight.count, next(iter(answer.reasons.values())), broken=True)
        answers.append(answer)
        position += len(answer.rewards)
    return Answer.joined(answers)
