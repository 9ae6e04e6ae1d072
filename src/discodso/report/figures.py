"""Figures for papers, reports and notebooks, by Matplotlib: one function for each kind of plot.

Each gives a `Plot`, which shows itself in a notebook and saves itself as SVG, PDF or PNG. Nothing here knows of
pyplot, windows or the user's style file.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from discodso.base.errors import DeclarationError
from discodso.base.files import write_atomically
from discodso.run.curves import Curve, Lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which people with any colour vision tell apart, the palest left out.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
REST = "#888888"
DASHES = ("-", "--", "-.", ":")
SIZE = (4.8, 3.2)  # inches: a column and a half of most journals
FORMATS = (".svg", ".pdf", ".png")
_DPI = 200
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with Matplotlib, so all machines draw the same
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "axes.formatter.use_mathtext": True,
    "text.usetex": False,
    "pdf.fonttype": 42,
    "svg.hashsalt": "discodso",
    "figure.facecolor": "white",
    "savefig.bbox": None,
}


def require_format(path: Path) -> None:
    """Refuse a file that no figure is written to, so that this can be known before a long run."""
    if path.suffix.lower() not in FORMATS:
        raise DeclarationError(f"a figure must be a file .svg, .pdf or .png, got {str(path)!r}")


@dataclass(frozen=True, repr=False, eq=False)
class Plot:
    """A figure; the last line of a notebook cell shows it, `save` writes it."""

    figure: Figure

    def __repr__(self) -> str:
        return "<Plot: save(path) writes it as SVG, PDF or PNG; figure is Matplotlib's>"

    def save(self, path: str | Path) -> Plot:
        """Write the figure as SVG, PDF or PNG, as the ending of the path says."""
        path = Path(path)
        require_format(path)
        write_atomically(path, self._bytes(path.suffix.lower()[1:]))
        return self

    def _repr_svg_(self) -> str:
        return self._bytes("svg").decode()

    def _repr_png_(self) -> bytes:
        return self._bytes("png")

    def _bytes(self, kind: str) -> bytes:
        from matplotlib import rc_context

        content = io.BytesIO()
        # The same figure gives the same bytes: no date.
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
        with rc_context(_STYLE), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph")  # an emoji that the font has not is drawn as a box
            self.figure.savefig(content, format=kind, dpi=_DPI, metadata=metadata)
        return content.getvalue()


def learning(curves: Sequence[Curve], title: str = "", what: str = "best reward") -> Plot:
    """Best reward, or what stands for it, against objective calls, as in the paper: mean over runs, interval."""

    def draw(axes: Axes) -> None:
        for number, curve in enumerate(curves):
            look, several = _look(number), len(curve.runs) > 1
            if several and len(curves) == 1:
                for run in curve.runs:
                    axes.step(curve.calls, run, where="post", color=look["color"], linewidth=0.6, alpha=0.4)
            if curve.low is not None and curve.high is not None:
                band: Any = {"step": "post", "color": look["color"], "alpha": 0.18, "linewidth": 0}
                axes.fill_between(curve.calls, curve.low, curve.high, **band)
            label = _plain(curve.label + (f" ({len(curve.runs)} runs)" if several else ""))
            axes.step(curve.calls, curve.mean, where="post", label=label, **look)
        axes.set(xlabel="objective calls", ylabel=what)
        if len(curves) > 1 or any(len(curve.runs) > 1 for curve in curves):
            _legend(axes)

    return _plot(title, draw)


def lines(given: Lines, ylabel: str, title: str = "") -> Plot:
    """Several lines over objective calls: lengths, rewards of batches, token shares; restarts as dotted ones."""

    def draw(axes: Axes) -> None:
        for number, (name, values) in enumerate(zip(given.names, given.values, strict=True)):
            look = {**_look(number), **({"color": REST} if name == "all others" else {})}
            axes.plot(given.calls, values, label=_plain(name), **look)
        for number, calls in enumerate(given.restarts):
            label = "a fresh start" if number == 0 else None
            axes.axvline(calls, color=REST, linewidth=0.8, linestyle=":", label=label)
        axes.set(xlabel="objective calls", ylabel=ylabel)
        _legend(axes)

    return _plot(title, draw)


def values(given: Mapping[str, Lines], title: str = "") -> Plot:
    """Quantiles of the values of each token over time: median, half of them, nine tenths of them."""
    columns = min(3, max(1, len(given)))
    rows = -(-max(1, len(given)) // columns)

    def draw(axes: Axes, number: int, name: str, quantiles: Lines) -> None:
        axes.set_title(_plain(name), fontsize=9)
        low, quarter, median, three, high = quantiles.values
        axes.fill_between(quantiles.calls, low, high, color=COLOURS[0], alpha=0.15, linewidth=0)
        axes.fill_between(quantiles.calls, quarter, three, color=COLOURS[0], alpha=0.3, linewidth=0)
        axes.plot(quantiles.calls, median, color=COLOURS[0])
        known = quantiles.values[np.isfinite(quantiles.values)]
        if known.min(initial=np.inf) > 0 and known.max(initial=0.0) > 100 * known.min(initial=np.inf):
            axes.set_yscale("log")
        if number + columns >= len(given):  # nothing is below
            axes.set_xlabel("objective calls")

    drawn = [partial(draw, number=n, name=name, quantiles=own) for n, (name, own) in enumerate(given.items())]
    size = max(SIZE[0], 2.5 * columns), max(SIZE[1], 2.0 * rows)
    return _plot(title, *drawn, size=size, columns=columns)


def front(complexity: ArrayLike, loss: ArrayLike, chosen: ArrayLike) -> Plot:
    """The accuracy-complexity front; `chosen` is True for the equation that was picked."""
    return _plot("", lambda axes: _draw_front(axes, complexity, loss, chosen))


def goals(points: ArrayLike, names: Sequence[str]) -> Plot:
    """Two of several objectives, a point for each design of a front."""

    def draw(axes: Axes) -> None:
        x, y = np.asarray(points, float).reshape(-1, 2).T
        axes.plot(x, y, "o", color=COLOURS[0], markersize=5)
        axes.set(xlabel=_plain(names[0]), ylabel=_plain(names[1]))

    return _plot("", draw)


def fit(given: ArrayLike, predicted: ArrayLike, target: str = "y") -> Plot:
    """Values by the equation against those of the data."""
    return _plot("", lambda axes: _draw_fit(axes, given, predicted, target), size=(3.6, 3.4))


def fit_and_front(
    given: ArrayLike,
    predicted: ArrayLike,
    target: str,
    complexity: ArrayLike,
    loss: ArrayLike,
    chosen: ArrayLike,
    title: str = "",
) -> Plot:
    """Both side by side."""
    return _plot(
        title,
        lambda axes: _draw_fit(axes, given, predicted, target),
        lambda axes: _draw_front(axes, complexity, loss, chosen),
        size=(9.0, 4.0),
    )


def _draw_front(axes: Axes, complexity: ArrayLike, loss: ArrayLike, chosen: ArrayLike) -> None:
    x, y, picked = np.asarray(complexity, float), np.asarray(loss, float), np.asarray(chosen, bool)
    y = np.maximum(y, 1e-30)
    axes.plot(x, y, "o-", color=REST, markersize=4, linewidth=1, label="front")
    axes.plot(x[picked], y[picked], "o", color=COLOURS[1], markersize=7, label="chosen")
    axes.set(xlabel="complexity", ylabel="loss on the training rows", yscale="log")
    _legend(axes)


def _draw_fit(axes: Axes, given: ArrayLike, predicted: ArrayLike, target: str) -> None:
    x, y = np.asarray(given, float), np.asarray(predicted, float)
    axes.scatter(x, y, s=10, alpha=0.6, color=COLOURS[0], linewidths=0)
    ends = [float(x.min()), float(x.max())]
    axes.plot(ends, ends, color=REST, linewidth=1)
    name = _plain(target)
    axes.set(xlabel=f"{name}, as given", ylabel=f"{name}, by the equation")


# ------------------------------------------------------------------------------------------------ parts


def _plot(
    title: str, *panels: Callable[[Axes], None], size: tuple[float, float] = SIZE, columns: int | None = None
) -> Plot:
    """A figure of panels, each drawn by a function; side by side unless there are fewer columns."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained")
        if title:
            figure.suptitle(_plain(title), fontsize=10)
        columns = columns or len(panels)
        for number, draw in enumerate(panels, start=1):
            draw(figure.add_subplot(-(-len(panels) // columns), columns, number))
    return Plot(figure)


def _legend(axes: Axes) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend()


def _plain(text: str) -> str:
    """Text that is no formula for Matplotlib, however many dollar signs it has."""
    return text.replace("$", r"\$")


def _look(number: int) -> dict[str, Any]:
    """Colour and dashes of one of several lines."""
    dashes = DASHES[number // len(COLOURS) % len(DASHES)]
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": dashes}
