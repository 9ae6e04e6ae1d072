"""Tables that are text: a header line and lines of numbers, with any separator and any decimal sign.

NumPy reads the numbers. Only where it cannot, cells are taken one by one, to name the one that is wrong.
"""

from __future__ import annotations

import csv
import gzip
import math
import re
import warnings
import zlib
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.errors import DeclarationError
from discodso.base.files import MOST_BYTES, read_plain

_SEPARATORS = ("\t", ";", "|", ",", " ")  # a blank stands for any number of blanks and tabs
_SAMPLE = 20  # rows by which a separator is known
_NAMED = 20  # columns in a message
_BLANKS = re.compile(r"[ \t]+")
_SAID = re.compile(r'"?sep=(.)"?\s*')  # as Excel has it in a first line
_NO_NUMBERS = {"", "nan", "na", "n/a", "null", "none", "inf", "-inf", "+inf", "infinity", "-infinity"}
Row = tuple[int, list[str]]  # number of its line, and cells


class TextSheet:
    """A table as text: `header`, and `numbers` of some of its columns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = _text(path).split("\n")
        named = _SAID.fullmatch(self._lines[0])
        self._lines[:1] = [""] if named else self._lines[:1]
        self._separator = named[1] if named else self._likely_separator()
        first = next(self._rows(), None)
        if first is None:
            raise DeclarationError(f"{path} is empty; expected a header line and rows of numbers")
        self._first, cells = first
        self.header = [name.strip() for name in cells]
        if len(self.header) > 1 and not self.header[-1] and self._all_lines_end_open():
            self._lines = [line.rstrip(" ")[:-1] for line in self._lines]
            self.header.pop()
        if next(self._body(), None) is None:
            raise DeclarationError(f"{path} has a header but no rows")

    def numbers(self, places: Sequence[int]) -> Floats:
        """Columns by their places, as numbers [n, len(places)]."""
        lines = self._lines[self._first :]
        found = self._fast(lines, places)
        if found is None and self._separator != ",":
            body = "\n".join(lines)
            if "," in body and "." not in body:
                found = self._fast(body.replace(",", ".").split("\n"), places)
                if found is not None:
                    self._say_decimal_commas()
        return self._slow(places) if found is None else found

    def _fast(self, lines: list[str], places: Sequence[int]) -> Floats | None:
        """All at once; None unless every line has its cells, and every cell is a finite number."""
        width, wanted = len(self.header), set(places)
        # A short text stands for what is not wanted, so that the cells of every line are counted.
        kinds = [(f"c{i}", "f8" if i in wanted else "U1") for i in range(width)]
        plain = len(places) == width
        try:
            read: Any = np.loadtxt(
                lines,
                dtype=np.float64 if plain else np.dtype(kinds),
                delimiter=None if self._separator == " " else self._separator,
                quotechar='"',
                comments=None,
                ndmin=2 if plain else 1,
            )
        except ValueError:
            return None
        if plain and read.shape[1] != width:
            return None
        columns = [read[:, i] if plain else read[f"c{i}"] for i in places]
        found: Floats = np.column_stack(columns)
        return found if np.isfinite(found).all() else None

    def _slow(self, places: Sequence[int]) -> Floats:
        """Cell by cell: the first that is no number is named."""
        rows = list(self._body())
        for number, row in rows:
            if len(row) != len(self.header):
                expected = f"{len(row)} cells, expected {len(self.header)}"
                raise DeclarationError(f"{self._path}, line {number}: {expected}")
        columns = [[row[i].strip() for _, row in rows] for i in places]
        if self._separator != "," and any("," in cell for column in columns for cell in column):
            columns = self._with_points(columns, rows, places)
        values = [list(map(_number, column)) for column in columns]
        refuse_text(self._path, [self.header[i] for i in places], columns, values)
        for place, (number, _) in enumerate(rows):
            for i, column, own in zip(places, columns, values, strict=True):
                if not math.isfinite(own[place]):
                    refuse_cell(f"{self._path}, line {number}", self.header[i], column[place])
        return np.array(values, dtype=np.float64).T

    def _with_points(
        self, columns: list[list[str]], rows: list[Row], places: Sequence[int]
    ) -> list[list[str]]:
        pointed = any("." in cell for column in columns for cell in column if _is_number(cell))
        for i, column in zip(places, columns, strict=True):
            for (number, _), cell in zip(rows, column, strict=True):
                # A comma for thousands would be misread, so nothing is guessed.
                if "," in cell and _is_number(cell.replace(",", "")) and (pointed or "." in cell):
                    raise DeclarationError(
                        f"{self._path}, line {number}, column {self.header[i]!r}: {cell!r} has a comma, but there "
                        "are decimal points, too; write all numbers with one decimal sign and none for thousands"
                    )
        self._say_decimal_commas()
        swapped = [[cell.replace(",", ".") for cell in column] for column in columns]
        return [
            [new if _is_number(new) else old for new, old in zip(after, before, strict=True)]
            for after, before in zip(swapped, columns, strict=True)
        ]

    def _say_decimal_commas(self) -> None:
        warnings.warn(f"{self._path}: commas in numbers were read as decimal points", stacklevel=4)

    def _body(self) -> Iterator[Row]:
        return islice(self._rows(), 1, None)

    def _rows(self, separator: str | None = None) -> Iterator[Row]:
        """Rows that are not empty, the header first, with the numbers of their lines."""
        separator = self._separator if separator is None else separator
        lines: Iterator[str] = (f"{line}\n" for line in self._lines)
        if separator == " ":
            lines = (_BLANKS.sub(" ", line.strip()) for line in lines)
        reader = csv.reader(lines, delimiter=separator)
        try:
            for row in reader:
                if any(cell.strip() for cell in row):
                    yield reader.line_num, row
        except csv.Error as error:
            raise DeclarationError(f"{self._path} cannot be read as CSV: {error}") from None

    def _likely_separator(self) -> str:
        """The one by which the most of the first rows have as many cells as the header."""

        def agreeing(separator: str) -> int:
            try:
                first, *rest = (len(row) for _, row in islice(self._rows(separator), _SAMPLE))
            except (ValueError, DeclarationError):
                return 0
            return 0 if first == 1 else 1 + sum(count == first for count in rest)

        best = max(_SEPARATORS, key=agreeing)  # of equal ones the first
        return best if agreeing(best) else ","

    def _all_lines_end_open(self) -> bool:
        """Whether every line ends with a separator, as some instruments write it."""
        sign = self._separator
        return all(line.rstrip(" ").endswith(sign) for line in self._lines if line.strip())


def refuse_text(
    path: Path, names: Sequence[str], columns: Sequence[Sequence[object]], values: Sequence[Sequence[float]]
) -> None:
    """Refuse columns without a single number, all of them in one line."""
    found = []
    for name, cells, numbers in zip(names, columns, values, strict=True):
        words = [str(cell) for cell in cells if cell is not None and str(cell).lower() not in _NO_NUMBERS]
        if words and not any(map(math.isfinite, numbers)):
            found.append((name, words[0]))
    if found:
        listed = ", ".join(f"{name!r:.60} ({word!r:.40})" for name, word in found[:_NAMED])
        listed += f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        how = " ".join(f"--ignore {name!r:.60}" for name, _ in found[:_NAMED])
        plural = "columns hold" if len(found) > 1 else "a column holds"
        raise DeclarationError(f"{path}: {plural} text, not numbers: {listed}; leave out with {how}")


def refuse_cell(place: str, column: str, cell: object) -> None:
    """Refuse a cell that is no number, at its place."""
    raise DeclarationError(
        f"{place}, column {column!r:.80}: {str(cell)!r:.60} is not a finite number; "
        "fill or drop the row, or leave the column out with --ignore"
    )


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked if it is packed by gzip."""
    try:
        content = read_plain(path, follow=True)
        if not content.startswith(b"\x1f\x8b"):
            return content
        with gzip.GzipFile(fileobj=BytesIO(content)) as packed:
            content = packed.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise DeclarationError(
                f"{path} has more than {MOST_BYTES:,} bytes once unpacked, too much to be read"
            )
        return content
    except FileNotFoundError:
        raise DeclarationError(f"there is no file {path}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise DeclarationError(f"{path} cannot be read: {error}") from None


def _text(path: Path) -> str:
    content = read_bytes(path)
    wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))  # Excel's "Unicode text"
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        what = f"byte {error.start + 1} is none"
        raise DeclarationError(f"{path} cannot be read as text in UTF-8 ({what}); save it as UTF-8") from None
    if "\0" in text:
        raise DeclarationError(f"{path} cannot be read as text: it has zero bytes; expected CSV")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan


def _is_number(cell: str) -> bool:
    return math.isfinite(_number(cell))
