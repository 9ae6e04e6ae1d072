"""Data to explain: handed over in Python, or read from a file, where what cannot be used is refused."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.checks import did_you_mean, require
from discodso.base.errors import DeclarationError
from discodso.tasks.regression.sheets import open_sheet

_UNNAMED = re.compile(r"Unnamed: \d+")  # as pandas calls it
_SMALLEST_TARGET = 1e-140
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
        largest = float(np.abs(self.y).max())
        require("y", f"up to {largest:.3g}", finite, "numbers whose squares are finite")
        seen = largest == 0 or largest > _SMALLEST_TARGET
        require(
            "y",
            f"up to {largest:.3g}",
            seen,
            "numbers whose squares are not lost: multiply by a power of ten",
        )


def read_table(path: str | Path, target: str, ignore: tuple[str, ...] = ()) -> GivenData:
    """Read a table: CSV with any separator, TSV, Parquet, Excel or JSON lines, perhaps packed by gzip.

    Every column but the target and those to ignore is an input, except for a column without a name that only
    counts the rows, which is left out with a warning.
    """
    sheet = open_sheet(Path(path))
    header = sheet.header
    for name in (target, *ignore):
        if name not in header:
            if all(map(_is_number, header)):
                how = "add a line with the names of the columns above it"
                raise DeclarationError(f"{path} begins with numbers; {how}")
            listed = ", ".join(filter(None, header[:50])) + (", ..." if len(header) > 50 else "")
            hint = did_you_mean(name, header[:1000])
            raise DeclarationError(f"{path} has no column {name!r:.80}; it has {listed:.1000}{hint:.200}")
    if len(set(header)) != len(header):
        counts = Counter(header)
        twice = ", ".join(sorted(name[:80] for name in counts if counts[name] > 1)[:20])
        raise DeclarationError(f"{path}: column names must be distinct, but these are there twice: {twice}")
    left_out = {target, *ignore}
    places = [i for i, name in enumerate(header) if name not in left_out]
    values = sheet.numbers([*places, header.index(target)])
    kept = _without_counts(path, header, places, values)
    columns = tuple(header[places[i]] for i in kept)
    if not columns:
        raise DeclarationError(f"{path} has no column beside the target {target!r}")
    return GivenData(values[:, kept], values[:, -1], np.ones(len(values)), columns, target)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _without_counts(
    path: str | Path, header: Sequence[str], places: Sequence[int], values: Floats
) -> list[int]:
    """Columns of values but one without a name that counts the rows, from 0 or 1."""
    kept, rows = [], np.arange(len(values))
    for i, place in enumerate(places):
        name, column = header[place], values[:, i]
        unnamed = not name or _UNNAMED.fullmatch(name)
        if unnamed and (np.array_equal(column, rows) or np.array_equal(column, rows + 1)):
            said = f"{path}: column {place + 1} has no name and counts the rows; it is left out"
            warnings.warn(said, stacklevel=3)
        elif not name:
            how = "give it one, or leave it out with --ignore ''"
            raise DeclarationError(f"{path}: column {place + 1} has no name; {how}")
        else:
            kept.append(i)
    return kept


def gathered(data: GivenData) -> Rows:
    """Equal rows as one with the sum of their weights, none without weight, in an order that does not depend on
    how they came: repeating a row is weighing it, to the last bit."""
    weighed = data.weights > 0
    rows, place = np.unique(np.column_stack((data.X, data.y))[weighed], axis=0, return_inverse=True)
    total = np.bincount(place.ravel(), weights=data.weights[weighed]).astype(np.float64)
    order = np.random.default_rng(0).permutation(len(rows))  # the first of sorted rows are no fair sample
    return rows[order, :-1], rows[order, -1], total[order]
