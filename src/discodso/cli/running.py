"""Commands that search: run, fit, resume."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from discodso.cli.output import callbacks_for, show_outcome

Out = Annotated[
    Path | None, typer.Option(help="Folder for the run, new or empty; `discodso resume` goes on with it.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON only.")]
Events = Annotated[Path | None, typer.Option(help="File to append events of the run to, as JSON lines.")]
TensorBoardFolder = Annotated[
    Path | None, typer.Option("--tensorboard", help="Folder for TensorBoard's event files.")
]
CheckpointSeconds = Annotated[float, typer.Option(help="Time between checkpoints in the folder.")]


class TaskOrFile(TyperGroup):
    """A group whose first argument may also be a settings file."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Hand a settings file over to the command that reads it."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            return "file", self.commands["file"], args
        return super().resolve_command(ctx, args)

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        """Name both forms."""
        formatter.write_usage(ctx.command_path, "SETTINGS.toml [OPTIONS] | TASK [OPTIONS]")


run = typer.Typer(
    cls=TaskOrFile,
    no_args_is_help=True,
    help="Search: `run settings.toml` does what a settings file says (`discodso init` writes one), "
    "`run bitstring` needs none.",
)


class Landscape(StrEnum):
    """Objective functions of the bitstring task."""

    f1 = "f1"
    f2 = "f2"


class PresetName(StrEnum):
    """Settings by name."""

    default = "default"
    paper = "paper"


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Options that were given."""
    return {name: value for name, value in options.items() if value is not None}


@run.command("file", hidden=True)
def run_file(
    settings: Annotated[Path, typer.Argument(help="Settings file, TOML.")],
    set_: Annotated[
        list[str], typer.Option("--set", help="Change a setting: table.key=value; may be given again.")
    ] = [],  # noqa: B006
    out: Out = None,
    as_json: Json = False,
    events: Events = None,
    tensorboard: TensorBoardFolder = None,
) -> None:
    """Do what a settings file says."""
    from discodso.run.settings import read
    from discodso.tasks.runs import run_settings

    checked = read(settings, set_)
    outcome = run_settings(checked, out=out, callback=callbacks_for(as_json, events, tensorboard))
    show_outcome(outcome, as_json)


@run.command("bitstring")
def run_bitstring(
    length: Annotated[int, typer.Option(help="Number of hidden bits, T.")] = 10,
    alpha: Annotated[float, typer.Option(help="Weight of the bits against the numbers, 0 to 1.")] = 0.9,
    objective: Annotated[Landscape, typer.Option(help="f1 has many local maxima, f2 jumps.")] = Landscape.f1,
    calls: Annotated[int, typer.Option(help="Objective calls to spend.")] = 50_000,
    seed: Annotated[int, typer.Option(help="Decides the hidden solution and the run.")] = 0,
    preset: Annotated[PresetName, typer.Option(help="Settings to begin from.")] = PresetName.default,
    batch_size: Annotated[int | None, typer.Option(help="Designs for one update.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Of Adam.")] = None,
    risk_factor: Annotated[float | None, typer.Option(help="Share of a batch that teaches.")] = None,
    entropy: Annotated[float | None, typer.Option(help="Weight of the entropy bonus.")] = None,
    learn_scale: Annotated[bool | None, typer.Option(help="Let the network set the scale of values.")] = None,
    position: Annotated[bool | None, typer.Option(help="Show the network the position.")] = None,
    queue_size: Annotated[int | None, typer.Option(help="Best designs to keep.")] = None,
    queue_weight: Annotated[float | None, typer.Option(help="Weight of imitating them.")] = None,
    out: Out = None,
    checkpoint_seconds: CheckpointSeconds = 60.0,
    as_json: Json = False,
    events: Events = None,
    tensorboard: TensorBoardFolder = None,
) -> None:
    """The paper's parameterised bitstring task: find hidden bits and hidden numbers."""
    from discodso.disco.presets import preset as settings_by_name
    from discodso.run.plan import Limits, Plan
    from discodso.run.settings import BitstringTable, ExecutorTable, RunSettings
    from discodso.tasks.runs import run_settings

    plan = Plan(Limits(calls), seed, checkpoint_seconds=checkpoint_seconds)
    base = settings_by_name(preset.value, budget=calls)
    given = {
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "risk_factor": risk_factor,
        "entropy_coefficient": entropy,
        "queue_size": queue_size,
        "queue_weight": queue_weight,
    }
    inputs = None if position is None else ("neighbours", "position")[: 1 + position]
    network = {"learn_scale": learn_scale, "inputs": inputs}
    method = replace(base, policy=replace(base.policy, **_given(network)), **_given(given))
    # Without pydantic's checks: the task has its own, whose words are those of its options.
    task = BitstringTable.model_construct(length=length, alpha=alpha, objective=objective.value)
    settings = RunSettings(task, method, plan, ExecutorTable())
    outcome = run_settings(settings, out=out, callback=callbacks_for(as_json, events, tensorboard))
    show_outcome(outcome, as_json)


def fit(
    table: Annotated[Path, typer.Argument(help="CSV file with a header line.")],
    target: Annotated[str, typer.Option(help="Column to explain.")],
    ignore: Annotated[list[str], typer.Option(help="Column to leave out; may be given again.")] = [],  # noqa: B006
    calls: Annotated[int, typer.Option(help="Objective calls to spend.")] = 100_000,
    max_time: Annotated[float | None, typer.Option(help="Seconds to spend.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same equation.")] = 0,
    max_length: Annotated[int, typer.Option(help="Longest expression, in tokens.")] = 32,
    selection: Annotated[
        str, typer.Option(help="auto, accuracy, validation or complexity: how to choose from the front.")
    ] = "auto",
    preset: Annotated[PresetName, typer.Option(help="Settings of the search.")] = PresetName.default,
    plot: Annotated[Path | None, typer.Option(help="Picture of fit and front to write, PNG or SVG.")] = None,
    out: Out = None,
    checkpoint_seconds: CheckpointSeconds = 60.0,
    as_json: Json = False,
    events: Events = None,
    tensorboard: TensorBoardFolder = None,
) -> None:
    """Find an equation for a column of a table."""
    from discodso.base.checks import require_integer, require_number
    from discodso.run.plan import Limits, Plan
    from discodso.run.settings import ExecutorTable, RegressionTable, RunSettings
    from discodso.tasks.runs import run_settings

    require_integer("max_calls", calls, 1)
    if max_time is not None:
        require_number("max_time", max_time, above=0)
    if plot is not None:
        from discodso.report.figures import require_format

        require_format(plot)
    plan = Plan(Limits(calls, time_limit=max_time), seed, checkpoint_seconds=checkpoint_seconds)
    task = RegressionTable.model_construct(
        table=str(table),
        target=target,
        ignore=ignore,
        max_length=max_length,
        selection=selection,
        preset=preset.value,
    )
    settings = RunSettings(task, None, plan, ExecutorTable())
    outcome = run_settings(settings, out=out, callback=callbacks_for(as_json, events, tensorboard))
    show_outcome(outcome, as_json, plot)


def resume(
    folder: Annotated[Path, typer.Argument(help="Folder of the run, its --out.")],
    calls: Annotated[int | None, typer.Option(help="Objective calls in all, if more than before.")] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(help="Seconds in all, those before included, if another limit than before."),
    ] = None,
    as_json: Json = False,
    events: Events = None,
    tensorboard: TensorBoardFolder = None,
) -> None:
    """Go on with a run, exactly as if it had never stopped."""
    from discodso.tasks.runs import resume_run

    outcome = resume_run(
        folder, budget=calls, time_limit=time_limit, callback=callbacks_for(as_json, events, tensorboard)
    )
    show_outcome(outcome, as_json)
