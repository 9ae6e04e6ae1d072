"""Where designs are evaluated: threads, processes, a Dask cluster, Ray. All give the same results.

Each is a context manager with `submit`; so is everything in `concurrent.futures`, which `search` takes as well.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal

from discodso.checks import require_integer, require_one_of
from discodso.errors import DeclarationError, ExecutorError
from discodso.worker_processes import Processes

__all__ = ["KINDS", "Dask", "Processes", "Ray", "Threads", "make_executor"]

KINDS = ("none", "threads", "processes", "dask", "ray")
Kind = Literal["none", "threads", "processes", "dask", "ray"]


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


class Dask:
    """A Dask cluster, by the address of its scheduler: the way to many machines, and to Slurm by dask-jobqueue.

    Needs the extra `discodso[dask]`. The workers need discodso and the code of the task.

    Args:
        address: of the scheduler, such as "tcp://10.0.0.1:8786"; or a `distributed.Client` that is connected.
        timeout: seconds to wait for the scheduler, and for a first worker.
    """

    def __init__(self, address: Any, timeout: float = 30.0) -> None:
        try:
            import distributed
        except ImportError:
            raise DeclarationError(
                'Dask is not installed; install it with pip install "discodso[dask]"'
            ) from None
        connect: Any = distributed.Client
        self._own = isinstance(address, str)
        self._address = address if self._own else address.scheduler.address
        if self._own:
            logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # we tell it ourselves
        try:
            self._client: Any = connect(address, timeout=timeout) if self._own else address
            self._client.wait_for_workers(1, timeout=timeout)
        except (OSError, TimeoutError, ValueError):
            if hasattr(self, "_client") and self._own:
                self._client.close(timeout=2)
            raise ExecutorError(
                f"no Dask scheduler with workers at {self._address} within {timeout:g} s; is it running?"
            ) from None

    def __enter__(self) -> Dask:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def workers(self) -> int:
        """Threads of all workers that are there now."""
        try:
            return max(1, int(sum(self._client.nthreads().values())))
        except (OSError, TimeoutError, ValueError):  # it has gone, which `check` tells
            return 1

    def share(self, value: Any) -> Any:
        """Ship a value to all workers."""
        return self._client.scatter(value, broadcast=True, hash=False)

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """Run a function on the cluster."""
        return self._client.submit(function, *arguments, pure=False)

    def check(self) -> None:
        """Raise ExecutorError if the scheduler has gone."""
        if self._client.status != "running" or self._client.scheduler_comm is None:
            raise ExecutorError(f"the Dask scheduler at {self._address} went away")

    def close(self) -> None:
        """Let go of the scheduler, which goes on; a client that was handed over stays connected."""
        if self._own:  # in a thread, because a client whose scheduler has gone may wait for it for ever
            closing = threading.Thread(target=self._client.close, kwargs={"timeout": 5}, daemon=True)
            closing.start()
            closing.join(10)


class Ray:
    """A Ray cluster, or Ray on this machine. Needs the extra `discodso[ray]`.

    Args:
        address: of a cluster; None for a Ray that runs already, or else one on this machine.
        workers: processors of a Ray on this machine.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        try:
            import ray
        except ImportError:
            raise DeclarationError(
                'Ray is not installed; install it with pip install "discodso[ray]"'
            ) from None
        self._ray: Any = ray
        self._own = not ray.is_initialized()
        if self._own:
            # Workers on this machine find what can be imported here, such as a task in the current folder.
            paths = {"PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path)}
            options: dict[str, Any] = (
                {"address": address} if address else {"num_cpus": workers, "runtime_env": {"env_vars": paths}}
            )
            try:
                ray.init(
                    include_dashboard=None if address else False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    configure_logging=False,
                    **options,
                )
            except (ConnectionError, RuntimeError, ValueError) as error:
                first = (str(error).splitlines() or [type(error).__name__])[0]
                raise ExecutorError(f"Ray cannot be started or reached: {first}") from None
        self._apply: Any = ray.remote(max_retries=3)(_apply)

    def __enter__(self) -> Ray:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def workers(self) -> int:
        """Processors of the cluster."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def share(self, value: Any) -> Any:
        """Put a value into Ray's store."""
        return self._ray.put(value)

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Run a function on the cluster."""
        future: Future[Any] = self._apply.remote(function, *arguments).future()
        return future

    def check(self) -> None:
        """Raise ExecutorError if Ray has gone."""
        if not self._ray.is_initialized():
            raise ExecutorError("Ray was shut down")

    def close(self) -> None:
        """End the Ray that was started here; one that ran before goes on."""
        if self._own:
            self._ray.shutdown()


def _apply(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def make_executor(kind: str, workers: int | None = None, address: str | None = None) -> Any:
    """An executor by name, None for "none"; the caller closes it.

    Args:
        kind: "none", "threads", "processes", "dask" or "ray".
        workers: how many, where they are started here.
        address: of a Dask scheduler, or of a Ray cluster.
    """
    require_one_of("executor.kind", kind, KINDS)
    if kind == "dask":
        if not address:
            raise DeclarationError(
                "executor.address must name a Dask scheduler, such as 'tcp://10.0.0.1:8786'"
            )
        return Dask(address)
    if kind == "ray":
        return Ray(address, workers)
    if kind == "none":
        return None
    return Threads(workers) if kind == "threads" else Processes(workers)
