"""The command line: it gathers the commands. They parse, call the library and print; nothing is computed there."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from discodso import cli_control
from discodso._version import __version__
from discodso.commands import bench, reporting, reproduce, running, show, tools
from discodso.commands.output import EXIT_ERROR, EXIT_INTERRUPTED
from discodso.errors import DiscodsoError

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Optimise designs that are part structure, part numbers.",
)


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


app.add_typer(running.run, name="run")
app.command()(running.fit)
app.command()(cli_control.policy)
app.command()(cli_control.play)
app.command()(running.resume)
app.command()(show.show)
app.command()(reporting.report)
app.command()(reporting.compare)
app.command()(tools.init)
app.command()(tools.check)
app.command()(tools.doctor)
app.command()(reproduce.reproduce)
app.add_typer(bench.bench, name="bench")


def main(arguments: list[str] | None = None) -> Any:
    """Entry point: an error that discodso raises on purpose is one line, not a traceback."""
    try:
        return app(arguments)
    except DiscodsoError as error:
        print(f"discodso: {error}", file=sys.stderr)
        sys.exit(EXIT_ERROR)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:  # the reader of the output has gone, as `head` does
        sys.stderr.close()
        sys.exit(EXIT_ERROR)


if __name__ == "__main__":
    main()
