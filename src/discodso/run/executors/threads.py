"""Threads of this process, for objectives that let go of Python's lock."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from discodso.base.checks import require_integer


class Threads(ThreadPoolExecutor):
    """Threads, for objectives that let go of Python's lock: compiled code, waiting for another machine.

    Args:
        workers: how many; None for the number of processors.
    """

    def __init__(self, workers: int | None = None) -> None:
        count = os.cpu_count() or 1 if workers is None else workers
        require_integer("workers", count, 1)
        super().__init__(int(count), thread_name_prefix="discodso")
        self.workers = int(count)

    def close(self) -> None:
        """End the threads; what runs is awaited."""
        self.shutdown(wait=True, cancel_futures=True)
