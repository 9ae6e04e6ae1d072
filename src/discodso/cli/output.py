"""Printing results, and the exit codes that go with them."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from discodso.run.kinds import Kind, Outcome
    from discodso.run.result import Result
    from discodso.space.space import Space

EXIT_ERROR, EXIT_INTERRUPTED = 1, 130


def json_text(data: Any) -> str:
    """For programs; what JSON has no number for (an infinite loss, an open range) is null."""
    return json.dumps(_finite(data), allow_nan=False)


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def callbacks_for(as_json: bool, events: Path | None, tensorboard: Path | None) -> list[Any]:
    """What watches a run of the command line."""
    from discodso.run.callbacks import JsonLines, RichProgress, TensorBoard

    chosen: list[Any] = [] if as_json else [RichProgress()]
    if events is not None:
        chosen.append(JsonLines(events))
    if tensorboard is not None:
        chosen.append(TensorBoard(tensorboard))
    return chosen


def introduce(lines: Sequence[Any]) -> None:
    """Show what a kind of task has to say before its search begins."""
    from rich.console import Console

    _print(Console(stderr=True), lines)


def _print(console: Console, lines: Sequence[Any]) -> None:
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=isinstance(line, str))


def show_outcome(kind: Kind, outcome: Outcome, as_json: bool, out: Path | None) -> None:
    """Print what came of a run, in the way of its kind of task."""
    from rich.console import Console

    if outcome.note:
        print(f"discodso: {outcome.note}; the checkpoint before it was used", file=sys.stderr)
    if as_json:
        print(json_text(outcome.result.to_dict() if kind.data is None else kind.data(outcome)))
        return
    if out is not None and kind.last:
        Console(stderr=True).print(f"all of it is in {out}", highlight=False, soft_wrap=True)
    console = Console()
    if kind.lines is None:
        _show_result(outcome.result, outcome.space, console)
    else:
        _print(console, kind.lines(outcome, console.width))


def leave(outcome: Outcome) -> None:
    """Exit codes: 130 after Ctrl-C, 1 for a run that broke down or found nothing."""
    from discodso.run.result import StopReason

    result = outcome.result
    if result.stop is StopReason.INTERRUPTED:
        raise typer.Exit(EXIT_INTERRUPTED)
    broken = (StopReason.TRAINING, StopReason.DEAD_END, StopReason.EXECUTOR)
    if result.stop in broken or (result.best is None and outcome.found is None):
        raise typer.Exit(EXIT_ERROR)


def _show_result(result: Result, space: Space, console: Console) -> None:
    from rich.table import Table

    if result.best is None:
        console.print("No evaluation succeeded.")
    else:
        table = Table("reward", "call", "design", title="best designs", title_justify="left")
        for scored in result.top[:5]:
            table.add_row(scored.reward_text(".6f"), str(scored.call), space.render(scored.design))
        console.print(table)
        best = result.best.reward_text(".6f")
        console.print(f"best reward {best} at call {result.best.call}", highlight=False)
    console.print(
        f"{result.calls} objective calls, {result.failure_count} failed, {result.seconds:.1f} s: "
        f"{result.sentence}",
        highlight=False,
        soft_wrap=True,
        markup=False,
    )


def shortened(text: str, width: int) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= width else text[: width - 1] + "…"
