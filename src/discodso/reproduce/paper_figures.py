"""Figures in the paper's form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from discodso.base.arrays import Floats
from discodso.report.figures import Plot
from discodso.reproduce.jobs import Record
from discodso.reproduce.tables import deviation, mean, write_rows
from discodso.run.curves import Track

_POINTS = 200  # of a curve
_STEEP = 15  # percent of all points, the lowest, that may lie outside a panel
_ROOM = 0.08


@dataclass(frozen=True)
class MeanCurve:
    """Best reward so far, over the runs of one method.

    Attributes:
        x: float[n], calls or episodes.
        mean, spread: float[n], NaN where not all runs have a reward.
        runs: how many.
    """

    x: Floats
    mean: Floats
    spread: Floats
    runs: int


def curve(
    records: Sequence[Record], by: Literal["calls", "episodes"], spread: Literal["error", "deviation"]
) -> MeanCurve:
    """The mean over some runs, up to where the first of them ends."""
    tracks = []
    for record in records:
        rows = [row for row in record.history if row.best is not None]
        reached = [float(row.calls if by == "calls" else row.cost or 0.0) for row in rows]
        tracks.append(Track(np.array(reached), np.array([row.best for row in rows], float)))
    end = min((float(track.calls[-1]) for track in tracks if len(track.calls)), default=1.0)
    grid = np.linspace(0.0, end, _POINTS + 1)[1:]
    best = np.array([track.at(grid) for track in tracks]).reshape(len(tracks), len(grid))
    around = best.std(axis=0, ddof=1) if len(tracks) > 1 else np.zeros(len(grid))
    share = np.sqrt(max(len(tracks), 1)) if spread == "error" else 1.0
    return MeanCurve(grid, best.mean(axis=0), around / share, len(tracks))


def write_curves(
    path: Path, keys: tuple[str, ...], lines: Mapping[tuple[Any, ...], MeanCurve], by: str, spread: str
) -> None:
    """All points of some curves as CSV; each curve has a value for every key."""
    rows = [
        (*key, line.runs, *point)
        for key, line in lines.items()
        for point in zip(line.x, line.mean, line.spread, strict=True)
    ]
    write_rows(path, (*keys, "runs", by, "mean best", spread), rows)


def colours(names: Iterable[str]) -> dict[str, Any]:
    """One colour for each method, the same in all figures of a set."""
    import matplotlib

    palette = matplotlib.colormaps["tab20"]
    distinct = enumerate(dict.fromkeys(names))
    return {name: palette(2 * number % 20 + (2 * number >= 20)) for number, name in distinct}


def draw_curves(
    path: Path, panels: Mapping[str, Mapping[tuple[str, str], MeanCurve]], xlabel: str, ylabel: str
) -> None:
    """Panels of curves by method and line style, with their spread as a band."""
    chosen = colours(name for panel in panels.values() for name, _ in panel)
    figure, axes = _canvas(len(panels), columns=2)
    for axis, (title, panel) in zip(axes, panels.items(), strict=True):
        for (name, style), line in panel.items():
            label = name if style == "-" else None
            axis.plot(line.x, line.mean, style, color=chosen[name], label=label, linewidth=1.4)
            # A method whose first batch is its last has no line.
            axis.plot(line.x[-1:], line.mean[-1:], "o", color=chosen[name], markersize=3.5)
            low, high = line.mean - line.spread, line.mean + line.spread
            axis.fill_between(line.x, low, high, color=chosen[name], alpha=0.15, linewidth=0)
        axis.set_ylim(*_heights(panel.values()))
        axis.set(title=title, xlabel=xlabel, ylabel=ylabel)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize="small", frameon=False)
    Plot(figure).save(path.with_suffix(".png"))


def _heights(lines: Iterable[MeanCurve]) -> tuple[float, float]:
    """Where the curves are told apart: the steep beginnings of some would press all others into one line."""
    means = np.concatenate([np.zeros(0), *(line.mean for line in lines)])
    means = means[np.isfinite(means)]
    if not len(means):
        return 0.0, 1.0
    low, high = np.percentile(means, (_STEEP, 100))
    room = _ROOM * (high - low) or 1.0
    return float(low - room), float(high + room)


def draw_bars(path: Path, panels: Mapping[str, Mapping[str, Sequence[float]]]) -> None:
    """Panels of bars by method: the mean of its numbers, with their deviation."""
    chosen = colours(name for panel in panels.values() for name in panel)
    figure, axes = _canvas(len(panels), columns=len(panels))
    for axis, (title, panel) in zip(axes, panels.items(), strict=True):
        known = {name: numbers for name, numbers in panel.items() if numbers}
        at, means = np.arange(len(known)), [mean(numbers) for numbers in known.values()]
        spreads = [deviation(numbers) or 0.0 for numbers in known.values()]
        axis.barh(at, means, xerr=spreads, color=[chosen[name] for name in known])
        axis.set_yticks(at, list(known))
        axis.invert_yaxis()
        axis.set_xlabel(title)
    Plot(figure).save(path.with_suffix(".png"))


def draw_lengths(path: Path, lengths: Mapping[str, Sequence[int]], longest: int) -> None:
    """A histogram of lengths for each method."""
    chosen = colours(lengths)
    figure, axes = _canvas(len(lengths), columns=3, height=2.2)
    for axis, (name, found) in zip(axes, lengths.items(), strict=True):
        axis.hist(found, bins=np.arange(0.5, longest + 1.5), color=chosen[name])
        axis.set_title(name, fontsize="small")
        axis.set_xlabel("length of the traversal")
    Plot(figure).save(path.with_suffix(".png"))


def draw_functions(path: Path, x: Floats, functions: Mapping[str, Floats], xlabel: str) -> None:
    """Functions of one variable, a panel each."""
    figure, axes = _canvas(len(functions), columns=len(functions))
    for axis, (name, y) in zip(axes, functions.items(), strict=True):
        axis.plot(x, y, linewidth=1.2)
        axis.set(title=name, xlabel=xlabel)
    Plot(figure).save(path.with_suffix(".png"))


def _canvas(count: int, columns: int, height: float = 3.4) -> tuple[Any, list[Any]]:
    """A figure, and the axes of so many panels."""
    from matplotlib.figure import Figure

    rows = -(-count // columns)
    figure = Figure(figsize=(5.2 * columns, height * rows + 0.8), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for axis in axes[count:]:
        axis.remove()
    return figure, axes[:count]
