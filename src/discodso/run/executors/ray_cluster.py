"""A Ray cluster as an executor."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from discodso.base.checks import module_of_extra
from discodso.base.errors import ExecutorError
from discodso.base.files import Closing


class Ray(Closing):
    """A Ray cluster, or Ray on this machine. Needs the extra `discodso[ray]`.

    Args:
        address: of a cluster; None for a Ray that runs already, or else one on this machine.
        workers: processors of a Ray on this machine.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self._ray = ray = module_of_extra("ray", "Ray")
        self._own = not ray.is_initialized()
        if self._own:
            # Workers on this machine find what can be imported here, such as a task in the current folder.
            paths = {"PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path)}
            local = {"num_cpus": workers, "runtime_env": {"env_vars": paths}}
            options: dict[str, Any] = {"address": address} if address else local
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
