"""The command line. It parses, calls the library, and prints; nothing is computed here."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from discodso import cli_control
from discodso._version import __version__
from discodso.checks import require_integer, require_one_of
from discodso.disco import DisCoSettings
from discodso.errors import DiscodsoError
from discodso.policy import PolicySettings
from discodso.result import HistoryRow, Ranking, Result, StopReason
from discodso.search import search
from discodso.space import Space
from discodso.task import Task
from discodso.tasks.bitstring import bitstring as bitstring_task

if TYPE_CHECKING:
    from discodso.tasks.regression.estimator import DisCoRegressor

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Optimise designs that are part structure, part numbers.",
)
run = typer.Typer(no_args_is_help=True, help="Search on one of the built-in tasks.")
app.add_typer(run, name="run")
bench = typer.Typer(no_args_is_help=True, help="The experiments of the paper.")
app.add_typer(bench, name="bench")

app.command()(cli_control.policy)
app.command()(cli_control.play)

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


@app.command()
def fit(
    table: Annotated[Path, typer.Argument(help="CSV file with a header line.")],
    target: Annotated[str, typer.Option(help="Column to explain.")],
    ignore: Annotated[list[str], typer.Option(help="Column to leave out; may be given again.")] = [],  # noqa: B006
    calls: Annotated[int, typer.Option(help="Objective calls to spend.")] = 100_000,
    max_time: Annotated[float | None, typer.Option(help="Seconds to spend at most.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same equation.")] = 0,
    max_length: Annotated[int, typer.Option(help="Longest expression, in tokens.")] = 32,
    selection: Annotated[
        str, typer.Option(help="auto, accuracy, validation or complexity: how to choose from the front.")
    ] = "auto",
    plot: Annotated[Path | None, typer.Option(help="Picture of fit and front to write, PNG or SVG.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON only.")] = False,
) -> None:
    """Find an equation for a column of a table."""
    from discodso.tasks.regression.data import read_table
    from discodso.tasks.regression.estimator import DisCoRegressor
    from discodso.tasks.regression.picture import draw

    data = read_table(table, target, tuple(ignore))
    require_integer("seed", seed, 0)
    console = Console(stderr=True, quiet=as_json)
    model = DisCoRegressor(
        max_calls=calls,
        max_time=max_time,
        max_length=max_length,
        selection=selection,
        column_names=data.columns,
        random_state=seed,
    )
    with console.status(f"{len(data.y)} rows, {len(data.columns)} inputs: searching with {calls} calls"):
        model.fit(data.X, data.y)
    score = float(model.score(data.X, data.y))
    if as_json:
        print(
            json.dumps(
                {
                    "target": target,
                    "expression": str(model),
                    "latex": model.latex(),
                    "design": model.expression_.design.to_dict(),
                    "r2": score,
                    "calls": model.calls_,
                    "polish_calls": model.polish_calls_,
                    "front": model.front_rows_,
                },
                allow_nan=False,
            )
        )
    else:
        _show_model(model, target, score)
    if plot is not None:  # last, so that a picture that cannot be written costs nothing
        draw(model, data, plot)
    if model.result_.stop is StopReason.INTERRUPTED:
        raise typer.Exit(EXIT_INTERRUPTED)


def _show_model(model: DisCoRegressor, target: str, score: float) -> None:
    from discodso.tasks.regression import export

    out = Console()
    shown = Table(
        "complexity", "loss", "held-out loss", "", "expression", title="front", title_justify="left"
    )
    width = max(20, out.width - 55)  # the other columns must not be squeezed
    for row in model.front_rows_:
        held_out = "-" if row["validation_loss"] is None else f"{row['validation_loss']:.4g}"
        mark = "chosen" if row["chosen"] else ("" if row["finite"] else "not finite")
        shown.add_row(
            f"{row['complexity']:g}",
            f"{row['loss']:.4g}",
            held_out,
            mark,
            _shortened(row["expression"], width),
        )
    out.print(shown)
    out.print(f"{target} = {model}", highlight=False, soft_wrap=True, markup=False)
    simple = export.simplified(model.expression_)
    out.print(f"simplified: {simple}", highlight=False, soft_wrap=True, markup=False)
    out.print(
        f"R2 {score:.6f} on all rows, {model.calls_} objective calls and {model.polish_calls_} for polishing",
        highlight=False,
    )


@bench.command("regression")
def bench_regression(
    problems: Annotated[str, typer.Option(help="'all', or names separated by commas.")] = "all",
    calls: Annotated[int, typer.Option(help="Objective calls for each run.")] = 1_000_000,
    seeds: Annotated[int, typer.Option(help="Runs for each problem.")] = 1,
    variant: Annotated[str, typer.Option(help="Data variant, A or B (drops targets of 100 and more).")] = "A",
    checkpoint: Annotated[list[int], typer.Option(help="Also report at so many calls.")] = [],  # noqa: B006
    workers: Annotated[int, typer.Option(help="Processes.")] = 2,
    out: Annotated[Path, typer.Option(help="File of JSON lines; runs that it has are not repeated.")] = Path(
        "regression.jsonl"
    ),
) -> None:
    """The paper's regression experiment, with the paper's settings; go on with it by the same command."""
    from discodso.tasks.regression import experiment
    from discodso.tasks.regression.problems import problems as named

    require_integer("seeds", seeds, 1)
    require_integer("calls", calls, 1)
    require_one_of("variant", variant, ("A", "B"))
    chosen = named("all" if problems == "all" else [name.strip() for name in problems.split(",")])
    runs = experiment.runs_of(chosen, seeds, calls, "A" if variant == "A" else "B", tuple(checkpoint))
    console = Console(stderr=True)

    def report(record: dict[str, Any], count: int, total: int) -> None:
        console.print(
            f"{count}/{total} {record['problem']} seed {record['seed']}: train {record['train']:.4f}, "
            f"evaluation {record['evaluation']:.4f}, {record['cpu_seconds']:.0f} s",
            highlight=False,
        )

    records = experiment.execute_all(runs, out, workers, report)
    for number in (*sorted(checkpoint), calls):
        print(f"\n{number} calls, variant {variant}, {seeds} seed(s)\n")
        print(experiment.table(records, number))


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


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
