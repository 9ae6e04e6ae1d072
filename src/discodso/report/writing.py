"""From folders to a file: the report, and the same plots as figures for papers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    written: list[Path] = []
    place = Path(out)

    def keep(name: str, plot: figures.Plot) -> None:
        written.append(place / f"{name}.{kind}")
        plot.save(written[-1])

    runs = [read_run(Path(folder)) for folder in folders]
    tasks = by_task(runs)
    for number, own in enumerate(tasks.values(), 1):
        groups = by_method(own)
        start = f"{number}-" if len(tasks) > 1 else ""
        keep(f"{start}learning", figures.learning([group.curve for group in groups]))
        for place_of, group in enumerate(groups, 1):
            begin = start + (f"{place_of}-" if len(groups) > 1 else "")
            _keep_run(begin, group.leading, keep)
    return written


def _keep_run(begin: str, run: RunRecord, keep: Callable[[str, figures.Plot], None]) -> None:
    for name, lines in run.lines.items():
        if lines.names:
            keep(f"{begin}{name}", figures.lines(lines, _LABELS[name]))
    if values := token_values(run.history):
        keep(f"{begin}values", figures.values(values))
    own = run.kind.page(run.ending)
    if "front" in own:
        points = own["front"]["points"]
        complexity, loss, chosen = ([point[key] for point in points] for key in ("x", "y", "chosen"))
        keep(f"{begin}front", figures.front(complexity, loss, chosen))
    plot = own.get("best", {}).get("plot")
    if plot is not None:
        known = [(a, b) for a, b in zip(plot["given"], plot["predicted"], strict=True) if b is not None]
        if known:
            given, predicted = zip(*known, strict=True)
            keep(f"{begin}fit", figures.fit(given, predicted, str(own["best"]["target"])))
