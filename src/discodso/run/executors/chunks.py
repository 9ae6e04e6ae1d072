"""Work that is under way at an executor, in chunks: the one loop that sends, waits, and sends again what was lost.

A chunk that was lost with its worker is sent again; if it is lost again its parts go one by one, so that only the
one to blame is given up. Designs of a batch, episodes of an environment and whole experiments all go this way.
"""

from __future__ import annotations

import os
import queue
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

from discodso.base.checks import require_integer
from discodso.base.errors import ExecutorError
from discodso.run.objective_calls import describe


class WorkerLost(Exception):
    """The process that had a job has ended."""


class Executor(Protocol):
    """Anything that runs functions elsewhere: `concurrent.futures` and all that look like it.

    An executor may also have these, which are used where they are there: `workers`, how many there are;
    `share(value)`, which ships a value once and gives what to hand over in its place; `pump(seconds)`, which does
    the work of waiting in the caller's thread; `submit_within(seconds, function, *arguments)`, which ends what
    takes longer; `check()`, which raises ExecutorError if all is lost; `abandon(futures)`, which drops these
    and nothing else.
    """

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """A future: it has `result()`, `cancel()` and `add_done_callback(function)`."""
        ...


def worker_count(given: int | None) -> int:
    """How many workers to start; None for as many as there are processors."""
    count = os.cpu_count() or 1 if given is None else given
    require_integer("workers", count, 1)
    return int(count)


class Load(Protocol):
    """What a chunk carries."""

    def __len__(self) -> int:
        """How many parts it has."""
        ...

    def singles(self) -> list[Self]:
        """A load for each part."""
        ...


_Load = TypeVar("_Load", bound=Load)
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class Retries:
    """When lost work is given up.

    Args:
        together: losses of a chunk of several parts after which they go one by one.
        alone: losses of a single part after which it is given up.
        afresh: whether parts of a lost chunk begin to count anew when they go one by one: where a worker may be
            lost for any reason, they are not to blame for their neighbours.
        losses: kinds of errors that are a loss; all others are raised.
    """

    together: int = 2
    alone: int = 3
    afresh: bool = True
    losses: tuple[type[BaseException], ...] = (WorkerLost,)


@dataclass(frozen=True)
class Chunk(Generic[_Load]):
    """A load, the position of its first part, and how often it was lost."""

    first: int
    load: _Load
    lost: int = 0


@dataclass(frozen=True)
class GivenUp:
    """Comes in place of an answer: a single part was lost too often, or took too long.

    Attributes:
        error: of the last time.
        lost: how often it was lost.
    """

    error: BaseException
    lost: int

    @property
    def late(self) -> bool:
        """Whether it took too long."""
        return isinstance(self.error, TimeoutError)


class Chunks(Generic[_Load, _Answer]):
    """Chunks at an executor, from the first that is sent to the last answer.

    Args:
        executor: who does the work.
        send: hands a load over to it; gives the future.
        loads: by the position of their first parts.
        retries: what happens to lost chunks.
        window: chunks that may be under way at once; None for all.
        on_loss: is told the error of every loss before the chunk is sent again; it may raise.
    """

    def __init__(
        self,
        executor: Executor,
        send: Callable[[_Load], Any],
        loads: Iterable[tuple[int, _Load]],
        retries: Retries,
        window: int | None = None,
        on_loss: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self._executor: Any = executor
        self._send = send
        self._retries = retries
        self._window = window
        self._on_loss = on_loss
        self._waiting = deque(Chunk(first, load) for first, load in loads)
        self._busy: dict[int, tuple[Any, Chunk[_Load]]] = {}  # by number of submission
        self._submissions = 0
        self._arrived: queue.SimpleQueue[int] = queue.SimpleQueue()

    @property
    def busy(self) -> int:
        """How many are under way, or wait to be sent."""
        return len(self._busy) + len(self._waiting)

    def add(self, first: int, load: _Load) -> None:
        """One more."""
        self._waiting.append(Chunk(first, load))
        self._feed()

    def next(self) -> Iterator[tuple[Chunk[_Load], _Answer | GivenUp]]:
        """The answers that are there now, after a moment of waiting if there are none."""
        self._feed()
        if self._busy:
            yield from self._next()

    def _feed(self) -> None:
        """Send what may be under way."""
        while self._waiting and (self._window is None or len(self._busy) < self._window):
            chunk = self._waiting.popleft()
            number = self._submissions
            self._submissions += 1
            future = self._send(chunk.load)
            self._busy[number] = future, chunk
            future.add_done_callback(lambda _, number=number: self._arrived.put(number))

    def answers(
        self, out_of_time: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[Chunk[_Load], _Answer | GivenUp]]:
        """Chunks and what came of them, in the order in which they come.

        Without time no more chunks are sent, and those under way are awaited. Whatever is raised here, or in the
        midst of it, lets go of all that is under way.
        """
        try:
            while self._waiting or self._busy:
                if out_of_time():
                    self._waiting.clear()
                self._feed()
                if self._busy:
                    yield from self._next()
        except BaseException:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Let go of what is under way."""
        busy, self._busy = self._busy, {}
        self._waiting.clear()
        for future, _ in busy.values():
            future.cancel()
        if hasattr(self._executor, "abandon"):
            self._executor.abandon([future for future, _ in busy.values()])

    def _next(self) -> Iterator[tuple[Chunk[_Load], _Answer | GivenUp]]:
        """Take the answers that are there, or wait a moment for the next."""
        pumping = hasattr(self._executor, "pump")
        if pumping:
            self._executor.pump(1.0)
        wait = not pumping  # after it a short timeout may never end on a busy machine (a fault of CPython)
        try:
            while True:
                number = self._arrived.get(timeout=1.0) if wait else self._arrived.get_nowait()
                wait = False
                if number in self._busy:
                    yield from self._take(*self._busy.pop(number))
        except queue.Empty:
            self._check()
        if pumping:  # find answers whose callback was cut off by Ctrl-C in the thread that did the pumping
            for number, (future, _) in self._busy.items():
                if future.done():
                    self._arrived.put(number)

    def _check(self) -> None:
        if hasattr(self._executor, "check"):
            self._executor.check()

    def _take(self, future: Any, chunk: Chunk[_Load]) -> Iterator[tuple[Chunk[_Load], _Answer | GivenUp]]:
        try:
            answer = future.result()
        except (KeyboardInterrupt, ExecutorError):
            raise
        except BrokenExecutor as error:
            raise ExecutorError(f"the executor broke: {describe(error)}; start a new one") from error
        except self._retries.losses as error:
            self._check()
            self._on_loss(error)
            failure = GivenUp(error, chunk.lost + 1)
        else:
            yield chunk, answer
            return
        alone = len(chunk.load) == 1
        if alone and (failure.late or failure.lost >= self._retries.alone):
            yield chunk, failure
        elif not alone and (failure.late or failure.lost >= self._retries.together):
            lost = 0 if self._retries.afresh else failure.lost
            parts = [
                Chunk(chunk.first + place, load, lost) for place, load in enumerate(chunk.load.singles())
            ]
            self._waiting.extendleft(reversed(parts))
        else:
            self._waiting.appendleft(Chunk(chunk.first, chunk.load, failure.lost))
