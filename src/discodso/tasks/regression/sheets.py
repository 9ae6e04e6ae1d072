"""Tables from files: CSV and its kin, Parquet, Excel and JSON lines; the ending of the name says which."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol
from zipfile import ZipFile

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.errors import DeclarationError
from discodso.base.files import MOST_BYTES
from discodso.tasks.regression.text_sheets import TextSheet, read_bytes, refuse_cell, refuse_text

_SPARSE = 10_000_000  # empty cells that a table may have beside those that it holds
_INDEX = re.compile(r"__index_level_\d+__")


class Sheet(Protocol):
    """A table whose numbers are read when they are asked for."""

    @property
    def header(self) -> list[str]:
        """Names of the columns."""

    def numbers(self, places: Sequence[int]) -> Floats:
        """Columns by their places, as numbers [n, len(places)]; what is no finite number is refused."""


@dataclass(frozen=True)
class TypedSheet:
    """A table whose cells have types.

    Attributes:
        columns: the cells of each column, as a list or an array.
        row: name of the row at a place, such as "line 3".
    """

    path: Path
    header: list[str]
    columns: Sequence[Any]
    row: Callable[[int], str]

    def numbers(self, places: Sequence[int]) -> Floats:
        """Columns by their places, as numbers [n, len(places)]."""
        columns = [self.columns[i] for i in places]
        try:
            found: Floats = np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])
        except (TypeError, ValueError):
            found = np.column_stack([[_number(cell) for cell in column] for column in columns])
        bad = ~np.isfinite(found)
        if bad.any():
            names = [self.header[i] for i in places]
            refuse_text(self.path, names, columns, found.T.tolist())
            row, column = np.argwhere(bad)[0].tolist()
            refuse_cell(f"{self.path}, {self.row(row)}", names[column], columns[column][row])
        return found


def open_sheet(path: Path) -> Sheet:
    """The table of a file."""
    if not path.exists():
        raise DeclarationError(f"there is no file {path}")
    ending = path.with_suffix("").suffix if path.suffix.lower() == ".gz" else path.suffix
    reader = _READERS.get(ending.lower())
    if reader is None:
        return TextSheet(path)
    sheet = reader(path)
    if not sheet.header:
        raise DeclarationError(f"{path} is empty; expected columns with names, and rows of numbers")
    if not len(sheet.columns[0]):
        raise DeclarationError(f"{path} has columns but no rows")
    return sheet


def _parquet(path: Path) -> TypedSheet:
    pyarrow, parquet = _of_extra("pyarrow", "Parquet"), _of_extra("pyarrow.parquet", "Parquet")
    try:
        table = parquet.read_table(BytesIO(read_bytes(path)))
    except (OSError, ValueError, KeyError, pyarrow.ArrowException) as error:
        raise DeclarationError(f"{path} cannot be read as Parquet: {_line(error)}") from None
    known = pyarrow.types
    columns = [
        # Integers with gaps become floats with NaN, and so does all that is a number.
        column.to_numpy()
        if known.is_integer(column.type) or known.is_floating(column.type)
        else column.to_pylist()
        for column in table.columns
    ]
    # pandas keeps an index that is no plain count, such as that of shuffled rows, under a name of its own.
    kept = [i for i, name in enumerate(table.column_names) if not _INDEX.fullmatch(name)]
    if len(kept) < len(columns):
        warnings.warn(f"{path}: the index that pandas has kept is left out", stacklevel=4)
    header = [str(table.column_names[i]) for i in kept]
    return TypedSheet(path, header, [columns[i] for i in kept], lambda place: f"row {place + 1}")


def _excel(path: Path) -> TypedSheet:
    openpyxl = _of_extra("openpyxl", "Excel")
    try:
        content = BytesIO(read_bytes(path))
        with ZipFile(content) as parts:
            size = sum(part.file_size for part in parts.infolist())
        if size > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES:,} bytes once unpacked")
        book = openpyxl.load_workbook(content, read_only=True, data_only=True)
        rows, room = [], size + _SPARSE
        for number, row in enumerate(book.active.iter_rows(values_only=True), start=1):
            rows.append((number, row))
            room -= len(row)
            if room < 0:
                raise ValueError("nearly all of its cells are empty")
    except DeclarationError:
        raise
    except Exception as error:  # openpyxl lets through whatever a damaged archive makes of its parts
        raise DeclarationError(f"{path} cannot be read as Excel: {_line(error)}") from None
    rows = [(number, row) for number, row in rows if any(cell is not None for cell in row)]
    if not rows:
        return TypedSheet(path, [], [], str)
    used = [i for i in range(len(rows[0][1])) if any(i < len(row) and row[i] is not None for _, row in rows)]
    header = ["" if rows[0][1][i] is None else str(rows[0][1][i]).strip() for i in used]
    columns = [[row[i] if i < len(row) else None for _, row in rows[1:]] for i in used]
    numbers = [number for number, _ in rows[1:]]
    return TypedSheet(path, header, columns, lambda place: f"row {numbers[place]}")


def _json_lines(path: Path) -> TypedSheet:
    rows: list[tuple[int, dict[str, Any]]] = []
    content = read_bytes(path)
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise DeclarationError(f'{path}, line {number}: no JSON object such as {{"x": 1, "y": 2}}')
        rows.append((number, row))
    header = list(dict.fromkeys(name for _, row in rows for name in row))
    if len(header) * len(rows) > len(content) + _SPARSE:
        raise DeclarationError(
            f"{path}: its {len(rows):,} rows have {len(header):,} different names; most rows lack most of them"
        )
    columns = [[row.get(name) for _, row in rows] for name in header]
    return TypedSheet(path, header, columns, lambda place: f"line {rows[place][0]}")


def _old_excel(path: Path) -> TypedSheet:
    raise DeclarationError(f"{path}: tables of this kind are not read; save it as .xlsx or .csv")


_READERS: dict[str, Callable[[Path], TypedSheet]] = {
    ".parquet": _parquet,
    ".pq": _parquet,
    ".xlsx": _excel,
    ".xlsm": _excel,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".xls": _old_excel,
    ".ods": _old_excel,
}


def _of_extra(module: str, kind: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        package, how = module.split(".")[0], "pip install 'discodso[tables]'"
        raise DeclarationError(f"{kind} files need {package}; install it with {how}") from None


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
