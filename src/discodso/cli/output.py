"""Printing results, and the exit codes that go with them."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Exit

from discodso.base.terminal import safe_console, visible

if TYPE_CHECKING:
    from rich.table import Table

    from discodso.cli.command_options import Watching
    from discodso.run.kinds import Kind, Outcome
    from discodso.run.result import Scored
    from discodso.space.design import Design

EXIT_ERROR, EXIT_INTERRUPTED = 1, 130

_ON_FRONT = 20  # designs of a front that are shown


def json_text(data: Any) -> str:
    """For programs; what JSON has no number for (an infinite loss, an open range) is null."""
    return json.dumps(_finite(data), allow_nan=False)


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def callbacks_for(watching: Watching) -> list[Any]:
    """What watches a run of the command line."""
    from discodso.run.callbacks import JsonLines, RichProgress, TensorBoard

    chosen: list[Any] = [] if watching.as_json else [RichProgress()]
    if watching.events is not None:
        chosen.append(JsonLines(watching.events))
    if watching.tensorboard is not None:
        chosen.append(TensorBoard(watching.tensorboard))
    return chosen


def print_lines(lines: Sequence[Any], *, error: bool = False) -> None:
    """Print text and tables of Rich, on standard error if asked to; a line of text is never broken.

    All that a command says goes through here, JSON and errors apart: a terminal takes no orders from a file.
    """
    console = safe_console(stderr=error)
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=isinstance(line, str))


def show_outcome(kind: Kind, outcome: Outcome, as_json: bool, out: Path | None) -> None:
    """Print what came of a run, in the way of its kind of task."""
    from rich.console import Console

    if outcome.note:
        print(f"discodso: {visible(outcome.note)}; the checkpoint before it was used", file=sys.stderr)
    if as_json:
        print(json_text(outcome.result.to_dict() if kind.data is None else kind.data(outcome)))
        return
    if out is not None and kind.last:
        print_lines([f"all of it is in {out}"], error=True)
    print_lines(_lines(outcome) if kind.lines is None else kind.lines(outcome, Console().width))


def _lines(outcome: Outcome) -> list[Any]:
    """The best designs and the counts of a run."""
    from discodso.run.goals import feasibility_words

    result = outcome.result
    counts = f"{result.calls} objective calls, {result.failure_count} failed"
    if result.feasible_count is not None:
        counts += f", {feasibility_words(result.feasible_count, result.broken)}"
    last = f"{counts}, {result.seconds:.1f} s: {result.sentence}"
    if not result.top:
        return ["No evaluation succeeded.", last]
    if result.front:
        table = best_table(result.top, outcome.space.render, objectives=result.objectives)
        volume = "" if result.hypervolume is None else f", hypervolume {result.hypervolume:.6g}"
        return [table, f"{len(result.front)} on the front{volume}", last]
    best = "No design met all requirements."
    if result.best is not None:
        when = f"at call {result.best.call}" if result.best.call else "known before the run"
        best = f"best reward {result.best.reward_text('.6f')} {when}"
    return [best_table(result.top, outcome.space.render, ".6f"), best, last]


def best_table(
    designs: Sequence[Scored],
    render: Callable[[Design], str],
    form: str = ".6g",
    objectives: Sequence[str] = (),
) -> Table:
    """The best five of some designs; of several objectives twenty of the front, evenly."""
    from rich.markup import escape
    from rich.table import Table

    if objectives and designs and designs[0].feasible:
        table = Table(*map(escape, objectives), "call", "design", title="the front", title_justify="left")
        rows = {round(place * (len(designs) - 1) / (_ON_FRONT - 1)) for place in range(_ON_FRONT)}
        for scored in (designs[row] for row in sorted(rows)):
            goals = (f"{goal:{form}}" for goal in scored.goals)
            table.add_row(*goals, str(scored.call), escape(render(scored.design)))
        return table
    table = Table("reward", "call", "design", title="best designs", title_justify="left")
    for scored in designs[:5]:
        table.add_row(scored.reward_text(form), scored.call_text, escape(render(scored.design)))
    return table


def leave(outcome: Outcome) -> None:
    """Exit codes: 130 after Ctrl-C, 1 for a run that broke down or found nothing."""
    from discodso.run.result import StopReason

    result = outcome.result
    if result.stop is StopReason.INTERRUPTED:
        raise Exit(EXIT_INTERRUPTED)
    broken = (StopReason.TRAINING, StopReason.DEAD_END, StopReason.EXECUTOR)
    if result.stop in broken or (result.best is None and outcome.found is None):
        raise Exit(EXIT_ERROR)


def shortened(text: str, width: int) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= width else text[: width - 1] + "…"
