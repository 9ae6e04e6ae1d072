"""The command show: what a run has found and how it stands, also while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from discodso.cli.options import AsJson
from discodso.cli.output import best_table, json_text, print_lines, shortened

if TYPE_CHECKING:
    from discodso.report.folders import RunRecord


def as_data(run: RunRecord) -> dict[str, Any]:
    """How a run stands, for JSON."""
    from discodso.run.folder import first_failures

    ended = run.status == "ended"
    kind = run.kind
    return {
        "folder": str(run.path),
        "task": run.settings.get("task"),
        "budget": run.budget,
        "status": run.status,
        "stop": run.top.get("stop") if ended else None,
        "stop_sentence": run.top.get("stop_sentence") if ended else None,
        "batches": len(run.history),
        "last": run.history[-1].to_dict() if run.history else None,
        "top": [scored.to_dict() for scored in run.designs],
        **({} if kind.summary is None else {kind.name: kind.summary(run.ending)[0]}),
        "failures": first_failures(run.top),
    }


def show(folder: Annotated[Path, Argument(help="Folder of a run.")], as_json: AsJson = False) -> None:
    """Print what a run has found and how it stands, also while it runs."""
    from discodso.report.folders import read_run

    run = read_run(folder)
    if as_json:
        print(json_text(as_data(run)))
    else:
        print_lines(_lines(run))


def _lines(run: RunRecord) -> list[Any]:
    from discodso.run.folder import first_failures

    lines: list[Any] = [f"{run.path}: {run.title}"]
    if run.history:
        last = run.history[-1]
        best = "none" if last.best is None else f"{last.best:.6g}"
        spent = f"{last.calls} of {run.budget} objective calls in {last.seconds:.1f} s"
        lines.append(f"{spent}, {last.failures} failed, best reward {best}")
    else:
        lines.append("no batch has been evaluated yet")
    if run.designs:
        lines.append(best_table(run.designs, lambda design: shortened(str(design), 200)))
    if run.kind.summary is not None and (found := run.kind.summary(run.ending)[1]):
        lines.append(found)
    for failure in first_failures(run.top)[:1]:
        lines.append(f"the first failure: the objective {failure['reason']}")
    states = {"running": "it is running", "ended": f"it has ended: {run.top.get('stop_sentence')}"}
    stopped = f"it is not running and has not ended; go on with it by `discodso resume {run.path}`"
    return [*lines, states.get(run.status, stopped)]
