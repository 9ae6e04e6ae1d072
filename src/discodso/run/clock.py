"""The clock of a run: it starts with the run, knows the time limit, and passes on what there is to say."""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class Clock:
    """Started when it is made.

    Args:
        limit: seconds for all of the run; None for no limit.
        say: tells whoever watches a line, such as that a phase of the run begins.
    """

    def __init__(self, limit: float | None = None, say: Callable[[str], None] = lambda words: None) -> None:
        self.limit, self.say = limit, say
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the run began, with those before it was gone on with."""
        return time.monotonic() - self._started

    @property
    def left(self) -> float:
        """Seconds until the limit, below 0 behind it; infinite without one."""
        return math.inf if self.limit is None else self.limit - self.seconds

    def go_on(self, seconds: float) -> None:
        """Count the seconds that the run has taken before."""
        self._started -= seconds
