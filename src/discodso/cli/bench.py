"""The experiments of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

bench = typer.Typer(no_args_is_help=True, help="The experiments of the paper.")


@bench.command("regression")
def bench_regression(
    problems: Annotated[str, typer.Option(help="'all', or names separated by commas.")] = "all",
    budget: Annotated[int, typer.Option(help="Objective calls for each run.")] = 1_000_000,
    seeds: Annotated[int, typer.Option(help="Runs for each problem.")] = 1,
    preset: Annotated[str, typer.Option(help="paper, or default for the stronger search.")] = "paper",
    variant: Annotated[str, typer.Option(help="Data variant, A or B (drops targets of 100 and more).")] = "A",
    checkpoint: Annotated[list[int], typer.Option(help="Also report at so many calls.")] = [],  # noqa: B006
    workers: Annotated[int, typer.Option(help="Processes.")] = 2,
    executor: Annotated[str, typer.Option(help="processes, dask or ray: where the runs go.")] = "processes",
    address: Annotated[str | None, typer.Option(help="Of a Dask scheduler or a Ray cluster.")] = None,
    out: Annotated[Path, typer.Option(help="File of JSON lines; runs that it has are not repeated.")] = Path(
        "regression.jsonl"
    ),
) -> None:
    """The paper's regression experiment, with its settings or the default ones; go on by the same command."""
    from rich.console import Console

    from discodso.base.checks import require_integer, require_one_of
    from discodso.reproduce import regression_runs as experiment
    from discodso.run.executors.kinds import make_executor
    from discodso.tasks.regression.problems import problems as named

    require_integer("seeds", seeds, 1)
    require_integer("budget", budget, 1)
    require_one_of("preset", preset, ("paper", "default"))
    for number in checkpoint:
        require_integer("checkpoint", number, 1)
    require_one_of("variant", variant, ("A", "B"))
    require_one_of("executor", executor, ("processes", "dask", "ray"))
    chosen = named("all" if problems == "all" else [name.strip() for name in problems.split(",")])
    runs = experiment.runs_of(
        chosen,
        seeds,
        budget,
        "A" if variant == "A" else "B",
        tuple(checkpoint),
        preset="paper" if preset == "paper" else "default",
    )
    console = Console(stderr=True)

    def report(record: dict[str, Any], count: int, total: int) -> None:
        console.print(
            f"{count}/{total} {record['problem']} seed {record['seed']}: train {record['train']:.4f}, "
            f"evaluation {record['evaluation']:.4f}, {record['cpu_seconds']:.0f} s",
            highlight=False,
        )

    with make_executor(executor, workers, address) as where:
        records = experiment.execute_all(runs, out, where, report)
    for number in (*sorted(checkpoint), budget):
        print(f"\n{number} calls, variant {variant}, {seeds} seed(s)\n")
        print(experiment.table(records, number))
