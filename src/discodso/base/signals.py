"""Ctrl-C and the signals that ask a process to end: all of them are a KeyboardInterrupt, which a run survives."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any, NoReturn

# A system has those that it has: there is no hangup on Windows.
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def _interrupt(number: int, frame: Any) -> NoReturn:
    raise KeyboardInterrupt


@contextlib.contextmanager
def endings_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP are like Ctrl-C until this is over.

    In the main thread only, which alone gets signals, and only where nobody has said what else they do: `nohup`
    has SIGHUP ignored, and a program may have handlers of its own.
    """
    main = threading.current_thread() is threading.main_thread()
    ours = [number for number in _ENDING if main and signal.getsignal(number) == signal.SIG_DFL]
    for number in ours:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def interrupts_later() -> Iterator[None]:
    """Ctrl-C and its like wait until this is over.

    Python drops an interrupt in the midst of a fork, and with it the release of a lock that all later forks need;
    it drops it as well where objects of `multiprocessing` clean up after themselves.
    """
    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *_ENDING) if main}
    handlers = {number: handler for number, handler in before.items() if callable(handler)}
    came: list[tuple[int, Any]] = []
    for number in handlers:
        signal.signal(number, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if came:
            handlers[came[0][0]](*came[0])


def leave_interrupts_to_the_parent() -> None:
    """For a worker process: Ctrl-C and a hangup reach its parent too, which ends it; SIGTERM ends it at once."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
