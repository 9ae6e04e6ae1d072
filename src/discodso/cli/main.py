"""The command line: it gathers the commands. They parse, call the library and print; nothing is computed there."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any, NoReturn, TextIO, cast

from typer import Exit, Option, Typer

from discodso.base.errors import DiscodsoError
from discodso.base.streams import Forgiving, discard
from discodso.base.terminal import visible
from discodso.base.version import __version__
from discodso.cli import asking, experiments, play, reporting, running, tools
from discodso.cli.output import EXIT_ERROR, EXIT_INTERRUPTED

app = Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Optimise designs that are part structure, part numbers.",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"discodso {__version__}")
        raise Exit


@app.callback()
def _root(
    version: Annotated[
        bool, Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Optimise designs that are part structure, part numbers."""


app.add_typer(running.run, name="run")
_commands: list[Callable[..., None]] = [running.fit, running.policy, play.play, running.resume]
_commands += [
    reporting.show,
    reporting.report,
    reporting.export,
    reporting.compare,
    tools.init,
    tools.check,
    tools.doctor,
]
_commands += [asking.ask, asking.tell, experiments.reproduce]
for _command in _commands:
    app.command()(_command)
app.add_typer(experiments.bench, name="bench")


def main(arguments: list[str] | None = None) -> Any:
    """Entry point: an error that discodso raises on purpose, or the system, is one line, not a traceback.

    Standard error that cannot be written costs its words only. If the reader of the output has gone, as `head`
    does, the program ends without a word.
    """
    if "" not in sys.path:  # the current folder, last, so that modules of one's own hide no others
        sys.path.append("")
    errors = sys.stderr
    words = Forgiving(errors)
    sys.stderr = cast("TextIO", words)
    try:
        return _run(arguments)
    finally:
        try:
            _flush_output()
        finally:
            sys.stderr = errors
            if words.broken:
                discard(errors)


def _run(arguments: list[str] | None) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _say
            return app(arguments, prog_name="discodso")
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        sys.exit(EXIT_ERROR)
    except MemoryError as error:
        _fail(f"there is not enough memory; smaller batches, designs or tables need less ({error})")
    except (DiscodsoError, OSError) as error:
        _fail(str(error))


def _flush_output() -> None:
    """Bring out what was printed now, because Python would make a traceback of what goes wrong later."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)
        sys.exit(EXIT_ERROR)
    except (OSError, ValueError) as error:
        discard(sys.stdout)
        _fail(f"cannot write the output: {getattr(error, 'strerror', None) or error}")


def _fail(words: str) -> NoReturn:
    _say(words)
    sys.exit(EXIT_ERROR)


def _say(message: Warning | str, *_: object, **__: object) -> None:
    """Tell an error or a warning in one line, without the place in the code and without colours."""
    words = re.sub(r"\x1b\[[0-9;]*m", "", str(message))
    print(f"discodso: {visible(' '.join(words.split()))}", file=sys.stderr)


if __name__ == "__main__":
    main()
