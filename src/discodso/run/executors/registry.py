"""Executors by name: what a settings file or the command line asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discodso.base.checks import require, require_one_of
from discodso.run.executors.dask_cluster import Dask
from discodso.run.executors.processes import Processes
from discodso.run.executors.ray_cluster import Ray
from discodso.run.executors.thread_pool import Threads

__all__ = ["KINDS", "Dask", "Processes", "Ray", "Threads", "make_executor"]

# The one place where executors are registered: name, and what makes one of workers, an address and more options.
_EXECUTORS: dict[str, Callable[..., Any]] = {
    "none": lambda workers, address: None,
    "threads": lambda workers, address: Threads(workers),
    "processes": lambda workers, address, **renewal: Processes(workers, **renewal),
    "dask": lambda workers, address: Dask(address),
    "ray": lambda workers, address: Ray(address, workers),
}
KINDS = tuple(_EXECUTORS)


def make_executor(
    kind: str, workers: int | None = None, address: str | None = None, **renewal: float | None
) -> Any:
    """An executor by name, None for "none"; the caller closes it.

    Args:
        kind: "none", "threads", "processes", "dask" or "ray".
        workers: how many, where they are started here.
        address: of a Dask scheduler, or of a Ray cluster.
        renewal: `renew_after` and `renew_megabytes` of `Processes`.
    """
    require_one_of("executor.kind", kind, KINDS)
    given = {name: value for name, value in renewal.items() if value is not None}
    for name in given:
        require("executor.kind", kind, kind == "processes", f"'processes', whose workers {name} is about")
    return _EXECUTORS[kind](workers, address, **given)
