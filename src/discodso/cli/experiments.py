"""The commands that redo experiments: reproduce, bench."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option, Typer

from discodso.base.options import check_options, option
from discodso.cli.command_options import command
from discodso.cli.output import print_lines

bench = Typer(no_args_is_help=True, help="Experiments: the paper's problems, and laws.")


@dataclass(frozen=True)
class Workers:
    """Who makes the runs of an experiment."""

    workers: int = option(2, "Runs at the same time.", least=1)
    executor: str = option(
        "processes", "processes, dask or ray: where the runs go.", choices=("processes", "dask", "ray")
    )
    address: str | None = option(None, "Of a Dask scheduler or a Ray cluster.")

    def __post_init__(self) -> None:
        check_options(self)

    def opened(self) -> Any:
        """An executor, to be closed."""
        from discodso.run.executors.registry import make_executor

        return make_executor(self.executor, self.workers, self.address)


@dataclass(frozen=True)
class Runs(Workers):
    """The runs of a benchmark."""

    budget: int = option(100_000, "Objective calls for each run.", least=1)
    seeds: int = option(1, "Runs of each kind, with seeds from 0 on.", least=1)
    out: Path = option(Path("runs"), "Folder for the runs; those that it has are not repeated.")


class ScaleName(StrEnum):
    """How much of the protocol is run."""

    smoke = "smoke"
    small = "small"
    full = "full"


@command(Workers)
def reproduce(
    workers: Workers,
    name: Annotated[
        str | None, Argument(help="An artefact, or all; without it their names are listed.")
    ] = None,
    scale: Annotated[
        ScaleName, Option(help="smoke takes minutes, small hours, full the protocol of the paper.")
    ] = ScaleName.smoke,
    out: Annotated[
        Path | None, Option(help="Folder for runs and artefacts; reproduction/SCALE by default.")
    ] = None,
    finished: Annotated[bool, Option("--finished", help="Of the runs that have ended; begin none.")] = False,
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
    with workers.opened() as where:
        redo(name, SCALES[scale.value], folder, where, _say, finished)
    print(f"tables and figures: {folder}")


@bench.command("regression")
@command(Runs, defaults={"budget": 1_000_000, "out": Path("regression-runs")})
def bench_regression(
    runs: Runs,
    problems: Annotated[str, Option(help="'all', or names separated by commas.")] = "all",
    preset: Annotated[str, Option(help="paper, or default for the stronger search.")] = "paper",
    variant: Annotated[str, Option(help="Data variant, A or B (drops targets of 100 and more).")] = "A",
    checkpoint: Annotated[list[int], Option(help="Also report at so many calls.")] = [],  # noqa: B006
) -> None:
    """The paper's regression experiment, with its settings or the default ones; go on by the same command."""
    from discodso.base.checks import require_integer, require_one_of
    from discodso.reproduce import regression_runs
    from discodso.tasks.regression.problems import problems as named

    for number in checkpoint:
        require_integer("checkpoint", number, 1)
    require_one_of("preset", preset, ("paper", "default"))
    require_one_of("variant", variant, ("A", "B"))
    names = [problem.name for problem in named(_listed(problems))]
    data: Any = variant
    search: Any = preset
    with runs.opened() as where:
        for calls in sorted({*checkpoint, runs.budget}):  # the runs go on from one to the next
            table = regression_runs.bench(
                names, runs.seeds, calls, data, search, runs.out.resolve(), where, _say
            )
            print(f"\n{calls} calls, variant {variant}, {runs.seeds} seed(s)\n\n{table}")


@bench.command("laws")
@command(Runs, defaults={"out": Path("law-runs")})
def bench_laws(
    runs: Runs,
    sets: Annotated[
        str, Option(help="feynman, nguyen, keijzer, korns, vladislavleva, nist, or 'all'; by commas.")
    ] = "feynman",
    laws: Annotated[str, Option(help="'all', or names such as I.12.2 separated by commas.")] = "all",
    noise: Annotated[str, Option(help="Shares of the target's deviation, separated by commas.")] = "0",
    half: Annotated[str, Option(help="all, tuned (odd numbers) or shown (even numbers).")] = "all",
    units: Annotated[bool, Option("--units", help="Tell the units of laws that have some.")] = False,
) -> None:
    """Search for laws of physics and of classical sets: how many are found again; go on by the same command."""
    from discodso.base.checks import require, require_one_of
    from discodso.reproduce import law_runs
    from discodso.tasks.regression.laws import HALVES

    require_one_of("half", half, HALVES)
    try:
        noises = [float(part) for part in noise.split(",")]
    except ValueError:
        noises = []
    good = bool(noises) and all(0 <= own < 10 for own in noises)
    require("noise", noise, good, "numbers such as 0,0.01")
    part: Any = half
    wanted = law_runs.chosen(_listed(sets), _listed(laws), part)
    with runs.opened() as where:
        table = law_runs.bench(
            wanted, noises, runs.seeds, runs.budget, runs.out.resolve(), where, _say, units
        )
    print(f"{runs.budget} calls, {runs.seeds} seed(s)\n\n{table}", end="")


def _listed(names: str) -> Any:
    """Names that commas separate, or "all"."""
    return "all" if names == "all" else [name.strip() for name in names.split(",")]


def _say(line: str) -> None:
    """Print a line about an experiment that goes on."""
    print_lines([line], error=True)
