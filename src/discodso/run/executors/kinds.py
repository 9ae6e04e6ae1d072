"""Executors by name: what a settings file or the command line asks for."""

from __future__ import annotations

from typing import Any, Literal

from discodso.base.checks import require_one_of
from discodso.base.errors import DeclarationError
from discodso.run.executors.dask_cluster import Dask
from discodso.run.executors.processes import Processes
from discodso.run.executors.ray_cluster import Ray
from discodso.run.executors.threads import Threads

__all__ = ["KINDS", "Dask", "Processes", "Ray", "Threads", "make_executor"]

KINDS = ("none", "threads", "processes", "dask", "ray")
Kind = Literal["none", "threads", "processes", "dask", "ray"]


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
