"""The commands by which others drive a run: ask, tell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Exit, Option

from discodso.cli.command_options import AsJson
from discodso.cli.output import EXIT_ERROR, json_text

Folder = Annotated[Path, Argument(help="Folder of the run.")]


def ask(
    folder: Folder,
    number: Annotated[int, Option("--number", "-n", help="Designs to hand out.")] = 1,
    settings: Annotated[
        Path | None,
        Option(help="Settings file of a run that is to begin; not looked at if the folder has one."),
    ] = None,
    older_than: Annotated[
        float | None, Option(help="Hand those out again that were handed out so many seconds ago.")
    ] = None,
    forget: Annotated[list[int], Option(help="Id of a design to hand out again; may be given again.")] = [],  # noqa: B006
    as_json: AsJson = False,
) -> None:
    """Print designs to evaluate, each with an id by which `discodso tell` knows it; nobody else gets them.

    A line has the id, the seed if the task is stochastic, and the design.
    """
    from discodso.base.checks import require_integer, require_number
    from discodso.run.queue import Queue
    from discodso.run.settings import read
    from discodso.space.design_text import exact_text

    require_integer("number", number, 1)
    if older_than is not None:
        require_number("older-than", older_than, least=0)
    began = None if settings is None else read(settings, follow=True)
    with Queue(folder, began) as queue:
        if forget or older_than is not None:
            queue.forget(forget, **({} if older_than is None else {"older_than": older_than}))
        asked = queue.ask(number)
        state = {"told": queue.told, "pending": len(queue.pending), "budget": queue.budget}
        over = queue.over
    if as_json:
        designs = [{**own.to_dict(), "text": exact_text(own.design)} for own in asked]
        typer.echo(json_text({"designs": designs, **state, "over": over or None}))
        return
    for own in asked:
        seed = () if own.seed is None else (str(own.seed),)
        typer.echo("\t".join((str(own.id), *seed, exact_text(own.design))))
    if not asked:
        why = over or f"all that may be evaluated now is handed out; {state['pending']} results are awaited"
        typer.echo(f"discodso: no design to hand out: {why}", err=True)


def tell(
    folder: Folder,
    results: Annotated[
        Path,
        Argument(
            help='File of results, - for standard input: {"id": 1, "reward": 0.7}, or "error" in place of '
            '"reward"; a JSON list of these, or one a line.',
            allow_dash=True,
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Take results of designs that were handed out, in any order; they are on the disk when this returns.

    Results that cannot count are named, and the exit code is 1; all others count.
    """
    from discodso.base.files import file_errors, read_plain
    from discodso.run.queue import Queue, results_of

    if str(results) == "-":
        content = sys.stdin.buffer.read()
    else:
        with file_errors(f"cannot read {results}"):
            content = read_plain(results, follow=True)
    given = results_of(content)
    with Queue(folder) as queue:
        told = queue.tell(given)
        state = {"told": queue.told, "pending": len(queue.pending), "budget": queue.budget}
        over, best = queue.over, queue.result.best
    if as_json:
        found: dict[str, Any] = {"taken": told.taken, "repeated": told.repeated, "refused": told.refused}
        found["best"] = None if best is None else best.to_dict()
        typer.echo(json_text({**found, **state, "over": over or None}))
    else:
        again = f", {len(told.repeated)} were told before" if told.repeated else ""
        reward = "" if best is None else f", best reward {best.reward_text()}"
        of = f"{state['told']} of {state['budget']} told, {state['pending']} pending"
        typer.echo(f"{len(told.taken)} results taken{again}; {of}{reward}")
        if over:
            typer.echo(over)
    for words in told.refused:
        typer.echo(f"discodso: {words}", err=True)
    if told.refused:
        raise Exit(EXIT_ERROR)
