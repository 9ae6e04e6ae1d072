"""A Dask cluster as an executor."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from discodso.base.checks import module_of_extra
from discodso.base.errors import DeclarationError, ExecutorError
from discodso.base.files import Closing


class Dask(Closing):
    """A Dask cluster, by the address of its scheduler: the way to many machines, and to Slurm by dask-jobqueue.

    Needs the extra `discodso[dask]`. The workers need discodso and the code of the task.

    Args:
        address: of the scheduler, such as "tcp://10.0.0.1:8786"; or a `distributed.Client` that is connected.
        timeout: seconds to wait for the scheduler, and for a first worker.
    """

    def __init__(self, address: Any, timeout: float = 30.0) -> None:
        connect = module_of_extra("distributed", "Dask").Client
        if not address:
            raise DeclarationError(
                "executor.address must name a Dask scheduler, such as 'tcp://10.0.0.1:8786'"
            )
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
