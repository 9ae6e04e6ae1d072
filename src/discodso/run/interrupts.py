"""Ctrl-C during a search: at once while designs are evaluated, and otherwise when the step under way is done.

In the midst of an update a method is in no state that could be saved. So the search ends behind it, with a
checkpoint, and nothing is done twice. Whoever presses Ctrl-C once more does not wait for that.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")  # as far as the system has them


class Interrupts:
    """A context manager that takes over the signals which would raise KeyboardInterrupt.

    Attributes:
        came: whether one has come that waits for the end of a step.
    """

    def __init__(self) -> None:
        self.came = False
        self._open = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (getattr(signal, name, None) for name in _NAMES):
                handler = None if number is None else signal.getsignal(number)
                if number is not None and callable(handler):  # others are left to the system
                    self._before[number] = handler
                    signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Raise KeyboardInterrupt in here as soon as it comes."""
        if self.came:
            raise KeyboardInterrupt
        self._open = True
        try:
            yield
        finally:
            self._open = False

    def _receive(self, number: int, frame: Any) -> None:
        second, self.came = self.came, True
        if self._open or second:
            self._before.get(number, signal.default_int_handler)(number, frame)
