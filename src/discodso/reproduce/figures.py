"""Figures in the paper's form."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.files import write_atomically
from discodso.reproduce.jobs import Record

_POINTS = 200  # of a curve
_STEEP = 15  # percent of all points, the lowest, that may lie outside a panel
_ROOM = 0.08


@dataclass(frozen=True)
class Curve:
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
) -> Curve:
    """The mean over some runs, up to where the first of them ends."""
    seen = []
    for record in records:
        rows = [row for row in record.history if row.best is not None]
        seen.append(
            (
                np.array([row.calls if by == "calls" else (row.cost or 0.0) for row in rows], float),
                np.array([row.best for row in rows], float),
            )
        )
    end = min((float(x[-1]) for x, _ in seen if len(x)), default=1.0)
    grid = np.linspace(0.0, end, _POINTS + 1)[1:]
    best = np.full((len(seen), len(grid)), np.nan)
    for number, (x, y) in enumerate(seen):
        at = np.searchsorted(x, grid, side="right") - 1
        best[number] = np.where(at >= 0, y[np.maximum(at, 0)] if len(y) else np.nan, np.nan)
    deviation = best.std(axis=0, ddof=1) if len(seen) > 1 else np.zeros(len(grid))
    share = np.sqrt(max(len(seen), 1)) if spread == "error" else 1.0
    return Curve(grid, best.mean(axis=0), deviation / share, len(seen))


def colours(names: Sequence[str]) -> dict[str, Any]:
    """One colour for each method, the same in all figures of a set."""
    import matplotlib

    palette = matplotlib.colormaps["tab20"]
    return {name: palette(2 * number % 20 + (2 * number >= 20)) for number, name in enumerate(names)}


def draw_curves(
    path: Path,
    panels: Mapping[str, Mapping[tuple[str, str], Curve]],
    xlabel: str,
    ylabel: str,
    columns: int = 2,
) -> None:
    """Panels of curves by method and line style, with their spread as a band."""
    methods = list(dict.fromkeys(name for panel in panels.values() for name, _ in panel))
    chosen = colours(methods)
    rows = -(-len(panels) // columns)
    figure, axes = _canvas(columns, rows)
    for axis, (title, panel) in zip(axes, panels.items(), strict=False):
        for (name, style), line in panel.items():
            label = name if style == "-" else None
            axis.plot(line.x, line.mean, style, color=chosen[name], label=label, linewidth=1.4)
            # A method whose first batch is its last has no line.
            axis.plot(line.x[-1:], line.mean[-1:], "o", color=chosen[name], markersize=3.5)
            axis.fill_between(
                line.x,
                line.mean - line.spread,
                line.mean + line.spread,
                color=chosen[name],
                alpha=0.15,
                linewidth=0,
            )
        axis.set_ylim(*_heights(panel.values()))
        axis.set_title(title)
        axis.set_xlabel(xlabel)
        axis.set_ylabel(ylabel)
    for axis in axes[len(panels) :]:
        axis.remove()
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize="small", frameon=False)
    save(figure, path)


def _heights(lines: Iterable[Curve]) -> tuple[float, float]:
    """Where the curves are told apart: the steep beginnings of some would press all others into one line."""
    means = np.concatenate([np.zeros(0), *(line.mean for line in lines)])
    means = means[np.isfinite(means)]
    if not len(means):
        return 0.0, 1.0
    low, high = np.percentile(means, (_STEEP, 100))
    room = _ROOM * (high - low) or 1.0
    return float(low - room), float(high + room)


def draw_bars(path: Path, panels: Mapping[str, Mapping[str, tuple[float, float]]]) -> None:
    """Panels of bars by method, with their spread."""
    names = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    chosen = colours(names)
    figure, axes = _canvas(len(panels), 1)
    for axis, (title, panel) in zip(axes, panels.items(), strict=True):
        at = np.arange(len(panel))
        heights = [height for height, _ in panel.values()]
        axis.barh(
            at, heights, xerr=[spread for _, spread in panel.values()], color=[chosen[n] for n in panel]
        )
        axis.set_yticks(at, list(panel))
        axis.invert_yaxis()
        axis.set_xlabel(title)
    save(figure, path)


def draw_lengths(path: Path, lengths: Mapping[str, Sequence[int]], longest: int) -> None:
    """A histogram of lengths for each method."""
    chosen = colours(list(lengths))
    columns = 3
    figure, axes = _canvas(columns, -(-len(lengths) // columns), height=2.2)
    for axis, (name, found) in zip(axes, lengths.items(), strict=False):
        axis.hist(found, bins=np.arange(0.5, longest + 1.5), color=chosen[name])
        axis.set_title(name, fontsize="small")
        axis.set_xlabel("length of the traversal")
    for axis in axes[len(lengths) :]:
        axis.remove()
    save(figure, path)


def draw_functions(path: Path, x: Floats, functions: Mapping[str, Floats], xlabel: str) -> None:
    """Functions of one variable, a panel each."""
    figure, axes = _canvas(len(functions), 1)
    for axis, (name, y) in zip(axes, functions.items(), strict=True):
        axis.plot(x, y, linewidth=1.2)
        axis.set_title(name)
        axis.set_xlabel(xlabel)
    save(figure, path)


def _canvas(columns: int, rows: int, height: float = 3.4) -> tuple[Any, list[Any]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2 * columns, height * rows + 0.8), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    return figure, list(axes.ravel())


def save(figure: Any, path: Path) -> None:
    """`path` with the ending .png, whole or not at all."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110)
    write_atomically(path.with_suffix(".png"), picture.getvalue())
