"""The commands that redo experiments: reproduce, bench."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option, Typer

from discodso.cli.output import print_lines

ExecutorName = Annotated[str, Option(help="processes, dask or ray: where the runs go.")]
Address = Annotated[str | None, Option(help="Of a Dask scheduler or a Ray cluster.")]
bench = Typer(no_args_is_help=True, help="Experiments: the paper's problems, and laws.")


class ScaleName(StrEnum):
    """How much of the protocol is run."""

    smoke = "smoke"
    small = "small"
    full = "full"


def reproduce(
    name: Annotated[
        str | None, Argument(help="An artefact, or all; without it their names are listed.")
    ] = None,
    scale: Annotated[
        ScaleName, Option(help="smoke takes minutes, small hours, full the protocol of the paper.")
    ] = ScaleName.smoke,
    out: Annotated[
        Path | None, Option(help="Folder for runs and artefacts; reproduction/SCALE by default.")
    ] = None,
    workers: Annotated[int, Option(help="Runs at the same time.")] = 2,
    executor: ExecutorName = "processes",
    address: Address = None,
) -> None:
    """Redo a table or figure of the paper; the same command goes on where it stopped."""
    from discodso.base.checks import require_one_of
    from discodso.reproduce.artefacts import ARTEFACTS
    from discodso.reproduce.artefacts import reproduce as redo
    from discodso.reproduce.scales import SCALES

    if name is None:
        shown = {**{key: artefact.shows for key, artefact in ARTEFACTS.items()}, "all": "all of them"}
        print("\n".join(f"{key:16} {words}" for key, words in shown.items()))
        return
    require_one_of("NAME", name, (*ARTEFACTS, "all"))
    folder = (Path("reproduction") / scale.value if out is None else out).resolve()
    with _executor(executor, workers, address) as where:
        redo(name, SCALES[scale.value], folder, where, _say)
    print(f"tables and figures: {folder}")


@bench.command("regression")
def bench_regression(
    problems: Annotated[str, Option(help="'all', or names separated by commas.")] = "all",
    budget: Annotated[int, Option(help="Objective calls for each run.")] = 1_000_000,
    seeds: Annotated[int, Option(help="Runs for each problem.")] = 1,
    preset: Annotated[str, Option(help="paper, or default for the stronger search.")] = "paper",
    variant: Annotated[str, Option(help="Data variant, A or B (drops targets of 100 and more).")] = "A",
    checkpoint: Annotated[list[int], Option(help="Also report at so many calls.")] = [],  # noqa: B006
    workers: Annotated[int, Option(help="Processes.")] = 2,
    executor: ExecutorName = "processes",
    address: Address = None,
    out: Annotated[Path, Option(help="Folder for the runs; those that it has are not repeated.")] = Path(
        "regression-runs"
    ),
) -> None:
    """The paper's regression experiment, with its settings or the default ones; go on by the same command."""
    from discodso.base.checks import require_integer, require_one_of
    from discodso.reproduce import regression_runs
    from discodso.tasks.regression.problems import problems as named

    require_integer("seeds", seeds, 1)
    for key, number in (("budget", budget), *(("checkpoint", number) for number in checkpoint)):
        require_integer(key, number, 1)
    require_one_of("preset", preset, ("paper", "default"))
    require_one_of("variant", variant, ("A", "B"))
    chosen = named("all" if problems == "all" else [name.strip() for name in problems.split(",")])
    names = [problem.name for problem in chosen]
    data: Any = variant
    search: Any = preset
    with _executor(executor, workers, address) as where:
        for calls in sorted({*checkpoint, budget}):  # the runs go on from one to the next
            table = regression_runs.bench(names, seeds, calls, data, search, out.resolve(), where, _say)
            print(f"\n{calls} calls, variant {variant}, {seeds} seed(s)\n\n{table}")


@bench.command("laws")
def bench_laws(
    sets: Annotated[
        str, Option(help="feynman, nguyen, keijzer, korns, vladislavleva, nist, or 'all'; by commas.")
    ] = "feynman",
    laws: Annotated[str, Option(help="'all', or names such as I.12.2 separated by commas.")] = "all",
    noise: Annotated[str, Option(help="Shares of the target's deviation, separated by commas.")] = "0",
    seeds: Annotated[int, Option(help="Runs for each law and noise.")] = 1,
    budget: Annotated[int, Option(help="Objective calls for each run.")] = 100_000,
    half: Annotated[str, Option(help="all, tuned (odd numbers) or shown (even numbers).")] = "all",
    units: Annotated[bool, Option("--units", help="Tell the units of laws that have some.")] = False,
    workers: Annotated[int, Option(help="Processes.")] = 2,
    executor: ExecutorName = "processes",
    address: Address = None,
    out: Annotated[Path, Option(help="File of the runs; those that it has are not repeated.")] = Path(
        "law-runs.jsonl"
    ),
) -> None:
    """Search for laws of physics and of classical sets: how many are found again; go on by the same command."""
    from discodso.base.checks import require, require_integer, require_one_of
    from discodso.reproduce import law_runs
    from discodso.tasks.regression.laws import HALVES

    require_integer("seeds", seeds, 1)
    require_integer("budget", budget, 1)
    require_one_of("half", half, HALVES)
    try:
        noises = [float(part) for part in noise.split(",")]
    except ValueError:
        noises = []
    good = bool(noises) and all(0 <= own < 10 for own in noises)
    require("noise", noise, good, "numbers such as 0,0.01")
    part: Any = half
    names = "all" if laws == "all" else [name.strip() for name in laws.split(",")]
    chosen = "all" if sets == "all" else [name.strip() for name in sets.split(",")]
    wanted = law_runs.chosen(chosen, names, part)
    with _executor(executor, workers, address) as where:
        table = law_runs.bench(wanted, noises, seeds, budget, out.resolve(), where, _say, units)
    print(f"{budget} calls, {seeds} seed(s)\n\n{table}", end="")


def _executor(kind: str, workers: int, address: str | None) -> Any:
    """Where the runs of an experiment go; to be closed."""
    from discodso.base.checks import require_integer, require_one_of
    from discodso.run.executors.registry import make_executor

    require_one_of("executor", kind, ("processes", "dask", "ray"))
    require_integer("workers", workers, 1)
    return make_executor(kind, workers, address)


def _say(line: str) -> None:
    """Print a line about an experiment that goes on."""
    print_lines([line], error=True)
