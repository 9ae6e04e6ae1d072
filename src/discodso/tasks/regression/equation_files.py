"""What a regression adds to the folder of its run: equation.json, for reports and other programs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.files import read_object, write_atomically
from discodso.run.curves import thinned
from discodso.tasks.regression.export import latex, text
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.models import FoundEquation
from discodso.tasks.regression.typeset import mathml

EQUATION = "equation.json"
_POINTS = 400  # rows of the data that are kept for a plot


def write_equation(folder: Path, found: FoundEquation, calls: int) -> None:
    """Write the chosen equation, the front, and some rows of the data with what the equation makes of them.

    `calls` are those of the search that it was chosen from.
    """
    chosen, data = found.expression, found.data
    content = {
        "calls": calls,
        "target": data.target,
        "columns": list(chosen.columns),
        "expression": text(chosen),
        "latex": latex(chosen),
        "math": mathml(chosen),
        "r2": _finite(found.r2) if np.square(data.y - data.y.mean()).sum() > 0 else None,
        "rows": len(data.y),
        "front": [
            {**_finite_numbers(row), "math": mathml(point.expression)}
            for row, point in zip(found.rows, found.front, strict=True)
        ],
        "plot": _plot(chosen, data.X, data.y),
    }
    write_atomically(folder / EQUATION, json.dumps(content, allow_nan=False) + "\n")


def read_equation(folder: Path) -> dict[str, Any] | None:
    """What `write_equation` has written, None if there is nothing, or something else."""
    data = read_object(folder / EQUATION)
    if data is None:
        return None
    front, columns = data.get("front", []), data.get("columns", [])
    good = (
        _is_formula(data.get("math"))
        and isinstance(columns, list)
        and all(isinstance(name, str) for name in columns)
        and isinstance(front, list)
        and all(map(_is_front_row, front))
        and _is_plot(data.get("plot"))
    )
    return data if good else None


def _is_front_row(row: Any) -> bool:
    if not isinstance(row, dict) or not _are_numbers([row.get("complexity", ""), row.get("loss")]):
        return False
    return row["complexity"] is not None and "expression" in row and _is_formula(row.get("math"))


def _is_formula(node: Any, depth: int = 0) -> bool:
    """Whether a value is MathML as nested lists."""
    inside = isinstance(node, list) and bool(node) and isinstance(node[0], str) and depth < 400
    return inside and all(isinstance(child, str) or _is_formula(child, depth + 1) for child in node[1:])


def _is_plot(plot: Any) -> bool:
    if not isinstance(plot, dict):
        return False
    given, curve = plot.get("given"), plot.get("curve", {"x": [], "y": []})
    ends = (curve.get("x"), curve.get("y")) if isinstance(curve, dict) else (None, None)
    pairs: list[tuple[Any, Any]] = [(given, plot.get("predicted")), (given, plot.get("input", given)), ends]
    return all(_are_numbers(a) and _are_numbers(b) and len(a) == len(b) for a, b in pairs)


def _are_numbers(values: Any) -> bool:
    """Whether it is a list of numbers, or of None where a number was not finite."""
    return isinstance(values, list) and all(value is None or type(value) in (int, float) for value in values)


def _plot(chosen: Expression, X: Floats, y: Floats) -> dict[str, Any]:
    """Points for a plot of the fit; for a single input also the curve."""
    rows = np.argsort(y, kind="stable")[thinned(len(y), _POINTS)]
    plot: dict[str, Any] = {"given": _numbers(y[rows]), "predicted": _numbers(chosen(X)[rows])}
    if X.shape[1] == 1:
        line = np.linspace(X.min(), X.max(), 200)
        plot["input"] = _numbers(X[rows, 0])
        plot["curve"] = {"x": _numbers(line), "y": _numbers(chosen(line[:, None]))}
    return plot


def _numbers(values: Floats) -> list[float | None]:
    return [_finite(value) for value in values.tolist()]


def _finite(value: float) -> float | None:
    return float(f"{value:.7g}") if math.isfinite(value) else None


def _finite_numbers(row: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
