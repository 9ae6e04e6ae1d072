"""Commands that search: run, fit, policy, resume."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option, Typer
from typer.core import TyperGroup

from discodso.cli.command_options import Search, Starting, Watching, command
from discodso.cli.output import callbacks_for, leave, print_lines, show_outcome
from discodso.run.plan import Limits, Plan
from discodso.tasks import bitstring_options
from discodso.tasks.bitstring_options import BitstringOptions
from discodso.tasks.policies import policy_options
from discodso.tasks.policies.policy_options import PolicyOptions
from discodso.tasks.regression import options as regression_options
from discodso.tasks.regression.options import RegressionOptions

_BEGAN = time.monotonic()  # loading the rest of the program takes time, too


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


run = Typer(
    cls=TaskOrFile,
    no_args_is_help=True,
    help="Search: `run settings.toml` does what a settings file says (`discodso init` writes one), "
    "`run bitstring` needs none.",
)


@run.command("file", hidden=True)
@command(Starting, Watching)
def run_file(
    starting: Starting, watching: Watching, settings: Annotated[Path, Argument(help="Settings file, TOML.")]
) -> None:
    """Do what a settings file says."""
    from discodso.run.settings import read

    _start(_with_designs(read(settings, starting.changes, follow=True), starting), starting.out, watching)


@run.command("bitstring")
@command(BitstringOptions, Plan, Search, Watching, defaults={"budget": bitstring_options.BUDGET})
def run_bitstring(task: BitstringOptions, plan: Plan, search: Search, watching: Watching) -> None:
    """The paper's parameterised bitstring task: find hidden bits and hidden numbers."""
    _start(_settings(task, plan, search), search.out, watching)


@command(
    RegressionOptions,
    Plan,
    Search,
    Watching,
    arguments=("table",),
    defaults={"budget": regression_options.BUDGET},
)
def fit(
    task: RegressionOptions,
    plan: Plan,
    search: Search,
    watching: Watching,
    plot: Annotated[Path | None, Option(help="Picture of fit and front to write, PNG or SVG.")] = None,
) -> None:
    """Find an equation for a column of a table."""
    if plot is not None:
        from discodso.report.figures import require_format

        require_format(plot)
        plot = plot.absolute()  # it is drawn at the end, and the current folder may change
    _start(_settings(task, plan, search), search.out, watching, plot)


@command(
    PolicyOptions,
    Plan,
    Search,
    Watching,
    arguments=("environment",),
    defaults={"budget": policy_options.BUDGET},
)
def policy(task: PolicyOptions, plan: Plan, search: Search, watching: Watching) -> None:
    """Find a decision tree that acts well in a Gymnasium environment, and score it on 1000 fresh seeds."""
    _start(_settings(task, plan, search), search.out, watching)


@command(Limits, Watching)
def resume(
    limits: Limits,
    watching: Watching,
    folder: Annotated[Path, Argument(help="Folder of the run, its --out.")],
    force: Annotated[
        bool, Option("--force", help="Go on although settings or the objective are not those of the run.")
    ] = False,
) -> None:
    """Go on with a run, exactly as if it had never stopped."""
    from discodso.run.start import settings_of

    _start(settings_of(folder, limits.budget, limits.time_limit), folder, watching, resume=True, force=force)


def _settings(task: Any, plan: Plan, search: Search) -> Any:
    """The description of a run, as a settings file would make it."""
    from discodso.run.settings import RunSettings, apply_changes, parse

    settings = RunSettings(task, plan, preset=search.preset)  # type: ignore[arg-type]
    settings = replace(settings, plan=replace(plan, top=settings.kind.top))
    if search.changes or search.preset != "default":
        data = settings.record()
        apply_changes(data, search.changes)
        settings = parse(data, "--set" if search.changes else "options")
    return _with_designs(settings, search)


def _with_designs(settings: Any, starting: Starting) -> Any:
    """With the designs of files that the command names, behind those of the settings."""
    from discodso.run.known import first_designs, known_designs

    if starting.known:
        settings = replace(settings, known=(*settings.known, *known_designs(list(starting.known))))
    if starting.initial_designs is not None:
        first = first_designs(starting.initial_designs)
        settings = replace(settings, initial_designs=(*settings.initial_designs, *first))
    return settings


def _start(
    settings: Any,
    out: Path | None,
    watching: Watching,
    plot: Path | None = None,
    resume: bool = False,
    force: bool = False,
) -> None:
    from discodso.run.callbacks import Callbacks
    from discodso.run.clock import Clock
    from discodso.run.start import start

    introduce = None if watching.as_json else partial(print_lines, error=True)
    callbacks = callbacks_for(watching)
    clock = Clock(settings.plan.time_limit, partial(Callbacks(callbacks), "note"))
    clock.go_on(time.monotonic() - _BEGAN)
    outcome = start(
        settings, out=out, resume=resume, callback=callbacks, introduce=introduce, clock=clock, force=force
    )
    show_outcome(settings.kind, outcome, watching.as_json, out)
    if plot is not None:  # last, so that a picture that cannot be written costs nothing
        settings.kind.draw(outcome.found, plot)
    leave(outcome)
