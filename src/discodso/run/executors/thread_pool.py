"""Threads of this process, for objectives that let go of Python's lock."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from discodso.run.executors.chunks import worker_count


class Threads(ThreadPoolExecutor):
    """Threads, for objectives that let go of Python's lock: compiled code, waiting for another machine.

    Args:
        workers: how many; None for the number of processors.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = worker_count(workers)
        super().__init__(self.workers, thread_name_prefix="discodso")

    def close(self) -> None:
        """End the threads; what runs is awaited."""
        self.shutdown(wait=True, cancel_futures=True)
