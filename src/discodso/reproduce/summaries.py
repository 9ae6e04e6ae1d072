"""What is kept of runs that have ended, in a few small files: whoever has these need not run them again.

A file `summaries/EXPERIMENT/CASE/METHOD.json` has the settings once, and of each seed what the artefacts need.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from discodso.base.errors import SettingsError
from discodso.base.files import read_object, write_atomically
from discodso.run.history import HistoryRow
from discodso.run.settings import RunSettings, parse

_ROWS = 25  # of a history at most
_KEPT = ("calls", "cost", "seconds", "best", "mean", "mean_length")  # of a row
_LIMITS = ("seed", "budget", "time_limit")  # settings of [run] that differ from run to run


def read_summary(file: Path, settings: RunSettings) -> dict[str, Any] | None:
    """What is kept of a run with these settings; None if there is nothing, or the run had another budget."""
    found = read_object(file)
    own = None if found is None else found["runs"].get(str(settings.plan.seed))
    if found is None or own is None:
        return None
    before = {**found["settings"], "run": {**found["settings"]["run"], "budget": settings.plan.budget}}
    # Options that are newer than the file are their default there.
    if _shared(parse(before, str(file))) != _shared(settings):
        raise SettingsError(f"{file} is of runs with other settings; give another folder as --out")
    summary: dict[str, Any] = own
    return summary if summary["budget"] == settings.plan.budget else None


def write_summary(file: Path, settings: RunSettings, summary: dict[str, Any]) -> None:
    """Add what is to be kept of a run."""
    found = read_object(file) or {"settings": _shared(settings), "runs": {}}
    found["runs"][str(settings.plan.seed)] = {"budget": settings.plan.budget, **summary}
    runs = ",\n".join(
        f"{json.dumps(seed)}: {json.dumps(found['runs'][seed])}" for seed in sorted(found["runs"], key=int)
    )
    write_atomically(file, f'{{"settings": {json.dumps(found["settings"])},\n"runs": {{\n{runs}\n}}}}\n')


def thinned(history: Sequence[HistoryRow]) -> list[list[float | None]]:
    """`_KEPT` of a few rows, the first and the last among them."""
    count = len(history)
    steps = range(_ROWS) if count > 1 else range(min(count, 1))
    chosen = dict.fromkeys(round(step * (count - 1) / (_ROWS - 1)) for step in steps)
    return [[_short(getattr(history[at], name)) for name in _KEPT] for at in chosen]


def history_of(rows: Sequence[Sequence[Any]]) -> tuple[HistoryRow, ...]:
    """The rows of a thinned history; what was not kept is None."""
    nothing: Any = dict.fromkeys(("batch_best", "quantile", "entropy", "max_length"))
    return tuple(HistoryRow(failures=0, **nothing, **dict(zip(_KEPT, row, strict=True))) for row in rows)


def _short(number: float | None) -> float | None:
    return None if number is None else round(number, 6)


def _shared(settings: RunSettings) -> dict[str, Any]:
    """The settings that runs of one file have in common, as they come back from a file."""
    record: dict[str, Any] = json.loads(json.dumps(parse(settings.record()).record()))
    record["run"] = {name: value for name, value in record["run"].items() if name not in _LIMITS}
    return record
