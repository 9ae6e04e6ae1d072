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
from discodso.tasks.regression.expression import Expression, input_index
from discodso.tasks.regression.models import FoundEquation
from discodso.tasks.regression.typeset import mathml

EQUATION = "equation.json"
_POINTS = 400  # rows of the data that are kept for plots
_INPUTS = 12  # columns that are kept for plots, those of the equation first
_DEEPEST, _MOST_NODES = 200, 20_000  # of a formula
_NUMBER = (int, float, type(None))  # None where a number was not finite


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
        "complexity": found.complexity,
        "r2": _finite(found.r2) if np.square(data.y - data.y.mean()).sum() > 0 else None,
        "rmse": _finite(float(np.sqrt(np.square(chosen(data.X) - data.y).mean()))),
        "rows": len(data.y),
        "front": [
            {**_finite_numbers(row), "math": mathml(point.expression)}
            for row, point in zip(found.rows, found.front, strict=True)
        ],
        "plot": _plot(chosen, data.X, data.y),
    }
    write_atomically(folder / EQUATION, json.dumps(content, allow_nan=False) + "\n", folders=False)


def read_equation(folder: Path) -> dict[str, Any] | None:
    """What `write_equation` has written, None if there is nothing, or something else."""
    data = read_object(folder / EQUATION)
    try:
        return data if data is not None and _is_whole(data) else None
    except (AttributeError, KeyError, TypeError):  # a part is missing, or something else
        return None


def _is_whole(data: dict[str, Any]) -> bool:
    plot = data["plot"]
    given, curve = plot["given"], plot.get("curve", {"x": [], "y": []})
    inputs = plot.get("inputs", [])
    pairs = [
        (given, plot["predicted"]),
        (curve["x"], curve["y"]),
        *((given, own["values"]) for own in inputs),
    ]
    return (
        _is_formula(data["math"])
        and _are(data.get("columns", []), str)
        and _are(data.get("front", []), dict)
        and all(map(_is_front_row, data.get("front", [])))
        and all(isinstance(own["name"], str) for own in inputs)
        and all(_are(a, *_NUMBER) and _are(b, *_NUMBER) and len(a) == len(b) for a, b in pairs)
    )


def _is_front_row(row: dict[str, Any]) -> bool:
    numbers = type(row["complexity"]) in (int, float) and type(row.get("loss")) in _NUMBER
    return numbers and "expression" in row and _is_formula(row["math"])


def _is_formula(formula: Any) -> bool:
    """Whether a value is MathML as nested lists, of a depth and a size that browsers can lay out."""
    waiting, seen = [(formula, 0)], 0
    while waiting:
        node, depth = waiting.pop()
        seen += 1
        if isinstance(node, str) and depth:
            continue
        if not isinstance(node, list) or not node or not isinstance(node[0], str):
            return False
        if depth > _DEEPEST or seen > _MOST_NODES:
            return False
        waiting += [(child, depth + 1) for child in node[1:]]
    return True


def _are(values: Any, *types: type) -> bool:
    """Whether it is a list of things of some types."""
    return isinstance(values, list) and all(type(value) in types for value in values)


def _plot(chosen: Expression, X: Floats, y: Floats) -> dict[str, Any]:
    """Some rows, from the lowest target to the highest, for plots; for a single input also the curve."""
    rows = np.argsort(y, kind="stable")[thinned(len(y), _POINTS)]
    used = {index for name in chosen.design.tokens if (index := input_index(name)) is not None}
    shown = sorted(range(X.shape[1]), key=lambda i: i not in used)[:_INPUTS]
    plot: dict[str, Any] = {
        "given": _numbers(y[rows]),
        "predicted": _numbers(chosen(X)[rows]),
        "inputs": [
            {"name": chosen.columns[i], "used": i in used, "values": _numbers(X[rows, i])} for i in shown
        ],
    }
    if X.shape[1] == 1:
        line = np.linspace(X.min(), X.max(), 200)
        plot["curve"] = {"x": _numbers(line), "y": _numbers(chosen(line[:, None]))}
    return plot


def _numbers(values: Floats) -> list[float | None]:
    return [_finite(value) for value in values.tolist()]


def _finite(value: float) -> float | None:
    return float(f"{value:.7g}") if math.isfinite(value) else None


def _finite_numbers(row: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
