"""The command line. It parses, calls the library, and prints; nothing is computed here."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from discodso._version import __version__
from discodso.disco import DisCoSettings
from discodso.errors import DiscodsoError
from discodso.policy import PolicySettings
from discodso.result import HistoryRow, Ranking, Result, StopReason
from discodso.search import search
from discodso.space import Space
from discodso.task import Task
from discodso.tasks.bitstring import bitstring as bitstring_task

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Optimise designs that are part structure, part numbers.",
)
run = typer.Typer(no_args_is_help=True, help="Search on one of the built-in tasks.")
app.add_typer(run, name="run")

EXIT_ERROR, EXIT_INTERRUPTED = 1, 130


class Landscape(StrEnum):
    """Objective functions of the bitstring task."""

    f1 = "f1"
    f2 = "f2"


def _version(wanted: bool) -> None:
    if wanted:
        print(f"discodso {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Optimise designs that are part structure, part numbers."""


@run.command("bitstring")
def run_bitstring(
    length: Annotated[int, typer.Option(help="Number of hidden bits, T.")] = 10,
    alpha: Annotated[float, typer.Option(help="Weight of the bits against the numbers, 0 to 1.")] = 0.9,
    objective: Annotated[Landscape, typer.Option(help="f1 has many local maxima, f2 jumps.")] = Landscape.f1,
    calls: Annotated[int, typer.Option(help="Objective calls to spend.")] = 50_000,
    seed: Annotated[int, typer.Option(help="Decides the hidden solution and the run.")] = 0,
    batch_size: Annotated[int, typer.Option(help="Designs for one update.")] = DisCoSettings().batch_size,
    learning_rate: Annotated[float, typer.Option(help="Of Adam.")] = DisCoSettings().learning_rate,
    risk_factor: Annotated[
        float, typer.Option(help="Share of a batch that teaches.")
    ] = DisCoSettings().risk_factor,
    entropy: Annotated[
        float, typer.Option(help="Weight of the entropy bonus.")
    ] = DisCoSettings().entropy_coefficient,
    learn_scale: Annotated[bool, typer.Option(help="Let the network set the scale of values.")] = False,
    position: Annotated[bool, typer.Option(help="Show the network the position.")] = False,
    queue_size: Annotated[int, typer.Option(help="Best designs to imitate as well.")] = 0,
    queue_weight: Annotated[float, typer.Option(help="Weight of that imitation.")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON only.")] = False,
) -> None:
    """The paper's parameterised bitstring task: find hidden bits and hidden numbers."""
    settings = DisCoSettings(
        batch_size=batch_size,
        learning_rate=learning_rate,
        risk_factor=risk_factor,
        entropy_coefficient=entropy,
        queue_size=queue_size,
        queue_weight=queue_weight,
        policy=PolicySettings(learn_scale=learn_scale, inputs=("previous", "position") if position else None),
    )
    task = bitstring_task(length, alpha, objective.value, seed)
    result = _search_with_progress(task, settings, calls, seed, quiet=as_json)
    _show(result, task.space, as_json)
    if result.stop is StopReason.INTERRUPTED:
        raise typer.Exit(EXIT_INTERRUPTED)
    if result.best is None or result.stop in (StopReason.TRAINING, StopReason.DEAD_END):
        raise typer.Exit(EXIT_ERROR)


def _search_with_progress(task: Task, settings: DisCoSettings, calls: int, seed: int, quiet: bool) -> Result:
    """Search with a bar on a terminal, a line for every tenth of the budget elsewhere."""
    console = Console(stderr=True, quiet=quiet)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("best {task.fields[best]}"),
        TimeRemainingColumn(),
        console=console,
        disable=quiet or not console.is_terminal,
    )
    tenths = 0
    with bar:
        line = bar.add_task(task.name, total=calls, best="-")

        def report(row: HistoryRow, ranking: Ranking) -> None:
            nonlocal tenths
            best = "-" if row.best is None else f"{row.best:.5f}"
            bar.update(line, completed=row.calls, best=best)
            if not console.is_terminal and row.calls * 10 // calls > tenths:
                tenths = row.calls * 10 // calls
                console.print(f"{row.calls} calls, best {best}, mean {row.mean or 0:.5f}", highlight=False)

        return search(task, budget=calls, seed=seed, method=settings, callback=report)


def _show(result: Result, space: Space, as_json: bool) -> None:
    if as_json:
        print(json.dumps(result.to_dict(), allow_nan=False))
        return
    console = Console()
    if result.best is None:
        console.print("No evaluation succeeded.")
    else:
        table = Table("reward", "call", "design", title="best designs", title_justify="left")
        for scored in result.top[:5]:
            table.add_row(f"{scored.reward:.6f}", str(scored.call), space.render(scored.design))
        console.print(table)
        console.print(f"best reward {result.best.reward:.6f} at call {result.best.call}", highlight=False)
    console.print(
        f"{result.calls} objective calls, {result.failure_count} failed, {result.seconds:.1f} s: "
        f"{result.sentence}",
        highlight=False,
        soft_wrap=True,
    )


def main(arguments: list[str] | None = None) -> Any:
    """Entry point: an error that discodso raises on purpose is one line, not a traceback."""
    try:
        return app(arguments)
    except DiscodsoError as error:
        print(f"discodso: {error}", file=sys.stderr)
        sys.exit(EXIT_ERROR)


if __name__ == "__main__":
    main()
