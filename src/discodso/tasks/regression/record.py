"""What a regression adds to the folder of its run: equation.json, for reports and other programs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discodso.arrays import Floats
from discodso.curves import thinned
from discodso.files import write_atomically
from discodso.tasks.regression.export import latex, text
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.front import Candidate, as_rows
from discodso.tasks.regression.typeset import mathml

EQUATION = "equation.json"
_POINTS = 400  # rows of the data that are kept for a plot


def write_equation(
    folder: Path,
    chosen: Expression,
    front: Sequence[Candidate],
    target: str,
    X: Floats,
    y: Floats,
) -> None:
    """Write the chosen equation, the front, and some rows of the data with what the equation makes of them."""
    predicted = chosen(X)
    residual, spread = float(np.square(predicted - y).sum()), float(np.square(y - y.mean()).sum())
    content = {
        "target": target,
        "columns": list(chosen.columns),
        "expression": text(chosen),
        "latex": latex(chosen),
        "math": mathml(chosen),
        "r2": _finite(1 - residual / spread) if spread > 0 else None,
        "rows": len(y),
        "front": [
            {**_finite_numbers(row), "math": mathml(candidate.expression)}
            for row, candidate in zip(as_rows(front, chosen), front, strict=True)
        ],
        **_plot(chosen, X, y, predicted),
    }
    write_atomically(folder / EQUATION, json.dumps(content, allow_nan=False) + "\n")


def _plot(chosen: Expression, X: Floats, y: Floats, predicted: Floats) -> dict[str, Any]:
    """Points for a plot of the fit; for a single input also the curve."""
    order = np.argsort(y, kind="stable")
    rows = order[thinned(len(y), _POINTS)]
    plot: dict[str, Any] = {"given": _numbers(y[rows]), "predicted": _numbers(predicted[rows])}
    if X.shape[1] == 1:
        line = np.linspace(X.min(), X.max(), 200)
        plot["input"] = _numbers(X[rows, 0])
        plot["curve"] = {"x": _numbers(line), "y": _numbers(chosen(line[:, None]))}
    return {"plot": plot}


def _numbers(values: Floats) -> list[float | None]:
    return [_finite(value) for value in values.tolist()]


def _finite(value: float) -> float | None:
    return float(f"{value:.7g}") if math.isfinite(value) else None


def _finite_numbers(row: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
