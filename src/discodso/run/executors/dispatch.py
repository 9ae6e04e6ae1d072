"""Sharing the designs of a batch among the workers of an executor, and putting the answers in order again.

Designs travel in chunks, and the task once. An answer of a chunk depends on its designs and their seeds only, so
neither the number of workers nor the order of answers shows in the result; `chunks` sees to those that are lost.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from discodso.base.errors import ExecutorError
from discodso.run.executors.chunks import Chunk, Chunks, Executor, GivenUp, Retries
from discodso.run.objective_calls import Answer, Rows, Seeds, answer_rows, describe
from discodso.run.task import Task
from discodso.space.design import DesignBatch

__all__ = ["Dispatcher", "Executor", "as_completed"]

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")
_CHUNKS_PER_WORKER = 4
_PAUSE = 1.0  # seconds for a cluster to notice that it has lost a worker
_GRACE = 5.0  # seconds beyond the limits of its designs after which a worker that can be ended is ended


class Dispatcher:
    """Evaluates designs of one task by an executor.

    Args:
        task: what to evaluate.
        executor: who does it.
        limit: seconds for one design.
        retries: times that a design is evaluated again which lost its worker.
    """

    def __init__(self, task: Task, executor: Executor, limit: float | None, retries: int = 1) -> None:
        self._task = task
        # The work itself raises nothing: whatever comes is of its worker, or of the way to it.
        self._retries = Retries(alone=retries + 1, losses=(BaseException,))
        self._executor = executor
        self._limit = limit
        self._shared: Any = None
        self._is_shared = False

    def evaluate(
        self,
        designs: DesignBatch,
        seeds: Seeds | None,
        out_of_time: Callable[[], bool],
        known: Mapping[int, Answer] = MappingProxyType({}),
        write: Callable[[int, Answer], None] = lambda first, answer: None,
    ) -> tuple[Answer, bool]:
        """Answers of the designs, in order, and whether Ctrl-C came before the last.

        Without time no more chunks are sent, and those under way are awaited; the answer then is of fewer designs.

        Args:
            known: answers that need not be asked for, by the position of the first design of each.
            write: is told every new answer in the same way, as soon as it comes.
        """
        workers = self.workers
        size = math.ceil(len(designs) / (workers * _CHUNKS_PER_WORKER))
        loads = (
            (start, Rows.of(designs, seeds, start, min(start + size, end)))
            for first, end in gaps(known, len(designs))
            for start in range(first, end, size)
        )
        chunks: Chunks[Rows, Answer] = Chunks(
            self._executor, self._submit, loads, self._retries, window=2 * workers, on_loss=self._lose
        )
        answers = dict(known)  # by position of the first design
        interrupted = False
        try:
            for chunk, found in chunks.answers(out_of_time):
                answers[chunk.first] = answer = self.answer(chunk, found)
                write(chunk.first, answer)
        except KeyboardInterrupt:
            chunks.abandon()
            interrupted = True
        return in_order(answers, len(designs)), interrupted

    @property
    def workers(self) -> int:
        """How many there are now."""
        return max(1, int(getattr(self._executor, "workers", None) or os.cpu_count() or 1))

    def flight(self) -> Chunks[Rows, Answer]:
        """Chunks to which designs are added while others are under way; `first` is then a number of any kind."""
        return Chunks(self._executor, self._submit, (), self._retries, on_loss=self._lose)

    def answer(self, chunk: Chunk[Rows], found: Answer | GivenUp) -> Answer:
        """What came of a chunk, also where it was given up."""
        return self._failed(chunk.load, found) if isinstance(found, GivenUp) else found

    def _lose(self, error: BaseException) -> None:
        _require_module(error)
        self._is_shared = False  # what was shipped may have been lost as well

    def _failed(self, rows: Rows, given_up: GivenUp) -> Answer:
        late = f"took longer than {self._limit:g} s" if given_up.late and self._limit is not None else ""
        times = "once" if given_up.lost == 1 else f"{given_up.lost} times"
        lost = f"was lost {times} with its worker, the last time by {describe(given_up.error)}"
        return Answer.failed(len(rows), late or lost)

    def _submit(self, rows: Rows, attempts: int = 3) -> Any:
        """A future of some designs; tried again if a worker is lost just while it is sent."""
        executor: Any = self._executor
        try:
            if not self._is_shared:
                self._shared = executor.share(self._task) if hasattr(executor, "share") else self._task
                self._is_shared = True
            work = (answer_rows, self._shared, rows, self._limit)
            if self._limit is not None and hasattr(executor, "submit_within"):
                return executor.submit_within(self._limit * len(rows) + _GRACE, *work)
            return executor.submit(*work)
        except Exception as error:
            if hasattr(executor, "check"):
                executor.check()  # it may know better why
            if attempts == 1 or not hasattr(executor, "check"):
                if isinstance(error, ExecutorError):
                    raise
                raise ExecutorError(f"the executor takes no more work: {describe(error)}") from error
        self._is_shared = False
        time.sleep(_PAUSE)
        return self._submit(rows, attempts - 1)


@dataclass(frozen=True)
class _Single(Generic[_Item]):
    """One item, which cannot be split."""

    item: _Item

    def __len__(self) -> int:
        return 1

    def singles(self) -> list[_Single[_Item]]:
        return [self]


def as_completed(
    executor: Executor, function: Callable[[_Item], _Answer], items: Sequence[_Item]
) -> Iterator[_Answer]:
    """Answers of a function for some items, in the order in which they come: whole experiments over an executor.

    An item that is lost with its worker is sent again; what the function raises is raised here.
    """

    def send(load: _Single[_Item]) -> Any:
        return executor.submit(function, load.item)

    loads = ((position, _Single(item)) for position, item in enumerate(items))
    chunks: Chunks[_Single[_Item], _Answer] = Chunks(executor, send, loads, Retries())
    for _, found in chunks.answers():
        if isinstance(found, GivenUp):
            chunks.abandon()
            raise found.error
        yield found


def _require_module(error: BaseException) -> None:
    """What a worker cannot import is missing for every design: that ends the run instead of failing them all."""
    missing = re.search(r"No module named '([^']+)'", str(error))
    if missing:
        raise ExecutorError(
            f"a worker has no module {missing[1]!r}, which the task needs; install it there, or put its folder "
            "on the PYTHONPATH of the workers"
        )


def gaps(found: Mapping[int, Answer], count: int) -> list[tuple[int, int]]:
    """Of so many designs the positions, from the first to behind the last, of those that have no answer."""
    left, at = list[tuple[int, int]](), 0
    for first in sorted(found):
        if first > at:
            left.append((at, first))
        at = first + len(found[first].rewards)
    return left if at >= count else [*left, (at, count)]


def in_order(found: Mapping[int, Answer], count: int) -> Answer:
    """All answers from the first design to the first gap, of so many designs."""
    answers: list[Answer] = []
    position = 0
    while position in found:
        answer = found[position]
        if answer.broken:  # as if the batch objective had been called with all designs
            return Answer.failed(count, next(iter(answer.reasons.values())), broken=True)
        answers.append(answer)
        if not len(answer.rewards):  # there was time for none
            break
        position += len(answer.rewards)
    return Answer.joined(answers)
