"""From folders to a file: the report, and the same plots as figures for papers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from discodso.base.files import FileError, write_atomically
from discodso.report import figures
from discodso.report.folders import RunRecord, by_method, by_task, read_run
from discodso.report.page import page
from discodso.report.page_data import page_data
from discodso.run.curves import token_values

_LABELS = {
    "rewards": "reward",
    "lengths": "tokens in a design",
    "proposers": "share of the next batch",
    "tokens": "share of all tokens",
}


def write_report(folders: Sequence[str | Path], out: str | Path | None = None) -> Path:
    """Write the report of some run folders as one HTML file; gives its path.

    Args:
        folders: `out` of the runs; they may be of several seeds, methods and tasks.
        out: file to write; report.html in the folder of a single run, or in the current one, by default.
    """
    paths = [Path(folder) for folder in folders]
    if not paths:
        raise FileError("name at least one run folder")
    path = Path(out) if out is not None else (paths[0] if len(paths) == 1 else Path()) / "report.html"
    content = page(page_data([read_run(folder) for folder in paths]))
    write_atomically(path, content)
    return path


def write_figures(folders: Sequence[str | Path], out: str | Path, kind: str = "pdf") -> list[Path]:
    """Write the plots of a report as files of Matplotlib into a folder; gives their paths."""
    plots: dict[str, figures.Plot] = {}
    tasks = by_task([read_run(Path(folder)) for folder in folders])
    for number, own in enumerate(tasks.values(), 1):
        groups = by_method(own)
        start = f"{number}-" if len(tasks) > 1 else ""
        what = groups[0].leading.measure
        plots[f"{start}learning"] = figures.learning([group.curve for group in groups], what=what)
        for place, group in enumerate(groups, 1):
            begin = start + (f"{place}-" if len(groups) > 1 else "")
            plots |= {f"{begin}{name}": plot for name, plot in _plots(group.leading)}
    paths = [Path(out) / f"{name}.{kind}" for name in plots]
    for path, plot in zip(paths, plots.values(), strict=True):
        plot.save(path)
    return paths


def _plots(run: RunRecord) -> Iterator[tuple[str, figures.Plot]]:
    """The plots of one run by name."""
    for name, lines in run.lines.items():
        if lines.names:
            yield name, figures.lines(lines, _LABELS[name])
    if values := token_values(run.history):
        yield "values", figures.values(values)
    own = run.kind.page(run.ending)
    if run.objectives and run.designs:
        points = [scored.goals[:2] for scored in run.designs if scored.feasible]
        yield "front", figures.goals(points, run.objectives[:2])
    if "front" in own:
        points = own["front"]["points"]
        complexity, loss, chosen = ([point[key] for point in points] for key in ("x", "y", "chosen"))
        yield "front", figures.front(complexity, loss, chosen)
    plot = own.get("best", {}).get("plot") or {"given": (), "predicted": ()}
    known = [(a, b) for a, b in zip(plot["given"], plot["predicted"], strict=True) if b is not None]
    if known:
        given, predicted = zip(*known, strict=True)
        yield "fit", figures.fit(given, predicted, str(own["best"]["target"]))
