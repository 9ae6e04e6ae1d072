"""Commands that search: run, fit, policy, resume."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from discodso.cli.options import Changes, Events, Json, Out, PresetName, TensorBoardFolder, command, split
from discodso.cli.output import callbacks_for, introduce, leave, show_outcome
from discodso.run.plan import Plan
from discodso.tasks.bitstring_options import BitstringOptions
from discodso.tasks.policies.options import BUDGET, PolicyOptions
from discodso.tasks.regression.options import RegressionOptions


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


@run.command("file", hidden=True)
def run_file(
    settings: Annotated[Path, typer.Argument(help="Settings file, TOML.")],
    changes: Changes = [],  # noqa: B006
    out: Out = None,
    as_json: Json = False,
    events: Events = None,
    tensorboard: TensorBoardFolder = None,
) -> None:
    """Do what a settings file says."""
    from discodso.run.settings import read

    _start(read(settings, changes), out, as_json, events, tensorboard)


@run.command("bitstring")
@command(BitstringOptions, Plan, defaults={"budget": 50_000})
def run_bitstring(
    preset: PresetName = "default",
    changes: Changes = [],  # noqa: B006
    out: Out = None,
    as_json: Json = False,
    events: Events = None,
    tensorboard: TensorBoardFolder = None,
    **options: Any,
) -> None:
    """The paper's parameterised bitstring task: find hidden bits and hidden numbers."""
    task, plan = split(options, BitstringOptions, Plan)
    _start(_settings(task, plan, preset, changes), out, as_json, events, tensorboard)


@command(RegressionOptions, Plan, arguments=("table",), defaults={"budget": 100_000})
def fit(
    preset: PresetName = "default",
    plot: Annotated[Path | None, typer.Option(help="Picture of fit and front to write, PNG or SVG.")] = None,
    changes: Changes = [],  # noqa: B006
    out: Out = None,
    as_json: Json = False,
    events: Events = None,
    tensorboard: TensorBoardFolder = None,
    **options: Any,
) -> None:
    """Find an equation for a column of a table."""
    if plot is not None:
        from discodso.report.figures import require_format

        require_format(plot)
        plot = plot.absolute()  # it is drawn at the end, and the current folder may change
    task, plan = split(options, RegressionOptions, Plan)
    _start(_settings(task, plan, preset, changes), out, as_json, events, tensorboard, plot)


@command(PolicyOptions, Plan, arguments=("environment",), defaults={"budget": BUDGET})
def policy(
    preset: PresetName = "default",
    start_from: Annotated[
        list[Path],
        typer.Option(help="Folder of an earlier run, whose best trees come first; may be given again."),
    ] = [],  # noqa: B006
    changes: Changes = [],  # noqa: B006
    out: Out = None,
    as_json: Json = False,
    events: Events = None,
    tensorboard: TensorBoardFolder = None,
    **options: Any,
) -> None:
    """Find a decision tree that acts well in a Gymnasium environment, and score it on 1000 fresh seeds."""
    task, plan = split(options, PolicyOptions, Plan)
    settings = _settings(task, plan, preset, changes)
    if start_from:
        from discodso.tasks.policies.kind import earlier_designs

        first = earlier_designs(start_from, settings.task, settings.preset, settings.plan.seed)
        settings = replace(settings, initial_designs=first)
    _start(settings, out, as_json, events, tensorboard)


def resume(
    folder: Annotated[Path, typer.Argument(help="Folder of the run, its --out.")],
    budget: Annotated[int | None, typer.Option(help="Objective calls in all, if more than before.")] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(help="Seconds in all, those before included, if another limit than before."),
    ] = None,
    as_json: Json = False,
    events: Events = None,
    tensorboard: TensorBoardFolder = None,
) -> None:
    """Go on with a run, exactly as if it had never stopped."""
    from discodso.run.start import settings_of

    settings = settings_of(folder, budget, time_limit)
    _start(settings, folder, as_json, events, tensorboard, resume=True)


def _settings(task: Any, plan: Plan, preset: str, changes: list[str]) -> Any:
    """The description of a run, as a settings file would make it."""
    from discodso.run.settings import RunSettings, apply_changes, parse

    settings = RunSettings(task, plan, preset=preset)  # type: ignore[arg-type]
    plan = plan if plan.top != Plan(1).top else replace(plan, top=settings.kind.top)
    settings = replace(settings, plan=plan)
    if not changes and preset == "default":
        return settings
    data = settings.record()
    apply_changes(data, changes)
    return parse(data, "--set" if changes else "options")


def _start(
    settings: Any,
    out: Path | None,
    as_json: bool,
    events: Path | None,
    tensorboard: Path | None,
    plot: Path | None = None,
    resume: bool = False,
) -> None:
    from discodso.run.start import start

    outcome = start(
        settings,
        out=out,
        resume=resume,
        callback=callbacks_for(as_json, events, tensorboard),
        introduce=None if as_json else introduce,
    )
    show_outcome(settings.kind, outcome, as_json, out)
    if plot is not None:  # last, so that a picture that cannot be written costs nothing
        from discodso.tasks.regression.fit_picture import draw

        draw(outcome.found, plot)
    leave(outcome)
