"""The command that redoes the paper's tables and figures."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class ScaleName(StrEnum):
    """How much of the protocol is run."""

    smoke = "smoke"
    small = "small"
    paper = "paper"


def reproduce(
    name: Annotated[
        str | None, typer.Argument(help="An artefact, or all; without it their names are listed.")
    ] = None,
    scale: Annotated[
        ScaleName, typer.Option(help="smoke takes minutes, small hours, paper the full protocol.")
    ] = ScaleName.smoke,
    out: Annotated[
        Path | None, typer.Option(help="Folder for runs and artefacts; reproduction/SCALE by default.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Runs at the same time.")] = 2,
    executor: Annotated[str, typer.Option(help="processes, dask or ray: where the runs go.")] = "processes",
    address: Annotated[str | None, typer.Option(help="Of a Dask scheduler or a Ray cluster.")] = None,
) -> None:
    """Redo a table or figure of the paper; the same command goes on where it stopped."""
    from rich.console import Console

    from discodso.base.checks import require_integer, require_one_of
    from discodso.reproduce.artefacts import ARTEFACTS
    from discodso.reproduce.artefacts import reproduce as redo
    from discodso.reproduce.scales import scale_named
    from discodso.run.executors.kinds import make_executor

    if name is None:
        for key, artefact in ARTEFACTS.items():
            print(f"{key:16} {artefact.shows}")
        print(f"{'all':16} all of them")
        return
    require_one_of("NAME", name, (*ARTEFACTS, "all"))
    require_one_of("executor", executor, ("processes", "dask", "ray"))
    require_integer("workers", workers, 1)
    console = Console(stderr=True)
    folder = (Path("reproduction") / scale.value if out is None else out).resolve()
    with make_executor(executor, workers, address) as where:
        redo(name, scale_named(scale.value), folder, where, lambda line: console.print(line, highlight=False))
    print(f"tables and figures: {folder}")
