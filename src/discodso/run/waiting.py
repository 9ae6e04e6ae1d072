"""How busy the workers of a run are: whoever evaluates in batches is told when these leave them idle."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_IDLE = 0.85  # share of the time that workers are busy, below which it is worth a line
_LEAST_SECONDS = 10.0  # of evaluation before anything is said
_SLOW = 0.05  # seconds of one evaluation; shorter ones lose their time on the way


class Waiting:
    """What workers had to do, against the time that they were there.

    Args:
        workers: 0 for none.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._busy = self._there = 0.0
        self._calls = 0

    @contextmanager
    def measured(self) -> Iterator[Callable[[float, int], None]]:
        """Round the evaluation of a batch; give the function seconds of work, and calls, when it is over."""
        began = time.monotonic()

        def note(seconds: float, calls: int) -> None:
            self._busy += seconds
            self._there += self._workers * (time.monotonic() - began)
            self._calls += calls

        yield note

    @property
    def words(self) -> str:
        """What to do about it; empty if there is nothing to say."""
        share = self._busy / max(self._there, 1e-9)
        slow = self._busy >= _SLOW * max(self._calls, 1)
        if self._workers < 2 or self._there < _LEAST_SECONDS * self._workers or not slow or share >= _IDLE:
            return ""
        return (
            f"the {self._workers} workers were busy {share:.0%} of the time: batches wait for their slowest "
            "design; asynchronous=True gives every worker the next one at once"
        )
