"""Standard error that may be broken: a closed pipe or a full disk takes away words, never a run."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any


class Forgiving:
    """A text stream that says nothing more once its stream has refused something.

    Args:
        stream: to write to; None for one that was closed before the program began.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.broken = stream is None

    def write(self, text: str) -> int:
        """Write a text, or drop it."""
        self._try("write", text)
        return len(text)

    def flush(self) -> None:
        """Bring it out, if there is a way."""
        self._try("flush")

    def isatty(self) -> bool:
        """Whether people look at it."""
        return not self.broken and bool(self._try("isatty"))

    def _try(self, name: str, *arguments: Any) -> Any:
        if self.broken:
            return None
        try:
            return getattr(self._stream, name)(*arguments)
        except (OSError, ValueError):  # the latter of a stream that was closed here
            self.broken = True
            return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def discard(stream: Any) -> None:
    """Let what a broken stream still holds go nowhere, so that the end of the program does not stumble over it."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, stream.fileno())
        finally:
            os.close(nowhere)
