"""Reading a table of numbers from a CSV file; what cannot be used is refused with the place where it stands."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.errors import DeclarationError


@dataclass(frozen=True)
class DataTable:
    """Inputs X[n, d] with the names of their columns, and the target y[n] with its own."""

    X: Floats
    y: Floats
    columns: tuple[str, ...]
    target: str


def read_table(path: str | Path, target: str, ignore: tuple[str, ...] = ()) -> DataTable:
    """Read a CSV file with a header; every column but the target and those to ignore is an input."""
    header, rows = _read(Path(path))
    for name in (target, *ignore):
        if name not in header:
            raise DeclarationError(f"{path} has no column {name!r}; it has {', '.join(header)}")
    columns = tuple(name for name in header if name != target and name not in ignore)
    if not columns:
        raise DeclarationError(f"{path} has no column beside the target {target!r}")
    wanted = (*columns, target)
    places = [header.index(name) for name in wanted]
    values = np.array([_numbers(path, line, row, places, header) for line, row in rows])
    return DataTable(values[:, :-1], values[:, -1], columns, target)


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
        raise DeclarationError(
            f"{path}: column names must be distinct and not empty, got {', '.join(header)}"
        )
    if len(lines) == 1:
        raise DeclarationError(f"{path} has a header but no rows")
    for number, row in lines[1:]:
        if len(row) != len(header):
            raise DeclarationError(f"{path}, line {number}: {len(row)} cells, expected {len(header)}")
    return header, lines[1:]


def _numbers(
    path: str | Path, line: int, row: list[str], places: list[int], header: list[str]
) -> list[float]:
    found = []
    for place in places:
        try:
            value = float(row[place])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise DeclarationError(
                f"{path}, line {line}, column {header[place]!r}: {row[place]!r} is not a finite number; "
                "fill or drop the row, or leave the column out with --ignore"
            )
        found.append(value)
    return found
