"""Data to explain: handed over in Python, or read from a CSV file, where what cannot be used is refused."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.checks import require
from discodso.base.errors import DeclarationError

Rows = tuple[Floats, Floats, Floats]  # X[n, d], y[n], and weights[n]


@dataclass(frozen=True)
class GivenData:
    """Inputs X[n, d], target y[n] and weights[n] of the rows, names of the inputs and of the target."""

    X: Floats
    y: Floats
    weights: Floats
    columns: tuple[str, ...]
    target: str = "y"

    def __post_init__(self) -> None:
        with np.errstate(over="ignore"):
            finite = bool(np.isfinite(self.y @ self.y))
        require("y", f"up to {np.abs(self.y).max():.3g}", finite, "numbers whose squares are finite")


def read_table(path: str | Path, target: str, ignore: tuple[str, ...] = ()) -> GivenData:
    """Read a CSV file with a header; every column but the target and those to ignore is an input."""
    header, rows = _read(Path(path))
    for name in (target, *ignore):
        if name not in header:
            raise DeclarationError(f"{path} has no column {name!r}; it has {', '.join(header)}")
    columns = tuple(name for name in header if name != target and name not in ignore)
    if not columns:
        raise DeclarationError(f"{path} has no column beside the target {target!r}")
    cells = [(line, name, row[header.index(name)]) for line, row in rows for name in (*columns, target)]
    values = np.array([_number(path, *cell) for cell in cells]).reshape(len(rows), -1)
    return GivenData(values[:, :-1], values[:, -1], np.ones(len(values)), columns, target)


def gathered(data: GivenData) -> Rows:
    """Equal rows as one with the sum of their weights, none without weight, in an order that does not depend on
    how they came: repeating a row is weighing it, to the last bit."""
    weighed = data.weights > 0
    rows, place = np.unique(np.column_stack((data.X, data.y))[weighed], axis=0, return_inverse=True)
    total = np.bincount(place.ravel(), weights=data.weights[weighed]).astype(np.float64)
    order = np.random.default_rng(0).permutation(len(rows))  # the first of sorted rows are no fair sample
    return rows[order, :-1], rows[order, -1], total[order]


def _read(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [(number, row) for number, row in enumerate(csv.reader(file), start=1) if any(row)]
    except FileNotFoundError:
        raise DeclarationError(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DeclarationError(f"{path} cannot be read as CSV: {error}") from None
    if not lines:
        raise DeclarationError(f"{path} is empty; expected a header line and rows of numbers")
    header = [name.strip() for name in lines[0][1]]
    if len(set(header)) != len(header) or not all(header):
        got = ", ".join(header)
        raise DeclarationError(f"{path}: column names must be distinct and not empty, got {got}")
    if len(lines) == 1:
        raise DeclarationError(f"{path} has a header but no rows")
    for number, row in lines[1:]:
        if len(row) != len(header):
            raise DeclarationError(f"{path}, line {number}: {len(row)} cells, expected {len(header)}")
    return header, lines[1:]


def _number(path: str | Path, line: int, column: str, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DeclarationError(
            f"{path}, line {line}, column {column!r}: {cell!r} is not a finite number; "
            "fill or drop the row, or leave the column out with --ignore"
        )
    return value
