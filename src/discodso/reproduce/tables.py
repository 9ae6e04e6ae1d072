"""Tables: our number, the paper's beside it, and the difference; as CSV and as Markdown."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from discodso.base.files import write_atomically
from discodso.base.text_tables import csv_text, markdown


@dataclass(frozen=True)
class Entry:
    """One cell.

    Attributes:
        row, column: where it stands.
        ours: our number, None where there is none.
        spread: of it, as the table's caption says.
        paper: the paper's number, None where it has none.
        quoted: whether the method could not be run here and the paper's number stands alone.
        runs: that our number stands on; None where the caption says it.
    """

    row: str
    column: str
    ours: float | None
    spread: float | None = None
    paper: float | None = None
    quoted: bool = False
    runs: int | None = None

    @property
    def difference(self) -> float | None:
        """Ours less the paper's."""
        return None if self.ours is None or self.paper is None else self.ours - self.paper


def mean(numbers: Sequence[float]) -> float | None:
    """The mean, None of nothing."""
    return statistics.fmean(numbers) if numbers else None


def deviation(numbers: Sequence[float]) -> float | None:
    """The standard deviation, None of less than two."""
    return statistics.stdev(numbers) if len(numbers) > 1 else None


def error(numbers: Sequence[float]) -> float | None:
    """The standard error of the mean, None of less than two."""
    spread = deviation(numbers)
    return None if spread is None else spread / math.sqrt(len(numbers))


def compared(
    rows: Iterable[str],
    columns: Collection[str],
    ours: Callable[[str, str], Sequence[float]],
    paper: Mapping[str, Mapping[str, float]],
    spread: Callable[[Sequence[float]], float | None] = deviation,
    quoted: Collection[str] = (),
    runs: Callable[[str, str], int] | None = None,
) -> list[Entry]:
    """All cells of a table: the mean of our numbers for a row and a column, their spread, the paper's number, and
    how many runs ours stand on.

    Rows that are quoted have no numbers of ours.
    """
    found = []
    for row, column in product(rows, columns):
        own = [] if row in quoted else ours(row, column)
        theirs = paper.get(row, {}).get(column)
        count = None if runs is None or row in quoted else runs(row, column)
        found.append(Entry(row, column, mean(own), spread(own), theirs, row in quoted, count))
    return found


def gap(first: float | None, second: float | None) -> list[float]:
    """The first less the second; nothing where one is missing."""
    return [] if first is None or second is None else [first - second]


def write_table(path: Path, title: str, caption: str, entries: Sequence[Entry], digits: int = 4) -> None:
    """`path` with the endings .csv and .md."""
    heads = ("row", "column", "ours", "spread", "paper", "difference", "runs")
    rows = [(*(getattr(e, key) for key in heads), "yes" if e.quoted else "") for e in entries]
    write_rows(path, (*heads, "quoted"), rows)
    write_atomically(path.with_suffix(".md"), to_markdown(title, caption, entries, digits))


def write_rows(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A CSV file; nothing where a number is missing."""
    write_atomically(path.with_suffix(".csv"), csv_text(header, rows))


def to_markdown(title: str, caption: str, entries: Sequence[Entry], digits: int = 4) -> str:
    """One line for each row; of each column ours, the paper's and the difference."""
    columns = list(dict.fromkeys(entry.column for entry in entries))
    rows = list(dict.fromkeys(entry.row for entry in entries))
    cells = {(entry.row, entry.column): entry for entry in entries}
    quoted = {entry.row for entry in entries if entry.quoted}
    heads = [f"{column}: {kind}" for column in columns for kind in ("ours", "paper", "difference")]
    lines = []
    for row in rows:
        parts: list[str] = []
        for column in columns:
            entry = cells.get((row, column), Entry(row, column, None))
            spread = "" if entry.spread is None else f" ± {entry.spread:.{digits}f}"
            spread += "" if entry.runs is None else f" ({entry.runs})"
            shown = ((entry.ours, "", spread), (entry.paper, "", ""), (entry.difference, "+", ""))
            parts += ["-" if n is None else f"{n:{sign}.{digits}f}{more}" for n, sign, more in shown]
        lines.append([f"{row}{' (quoted)' if row in quoted else ''}", *parts])
    return "\n".join([f"# {title}", "", caption, "", *markdown(["", *heads], lines)]) + "\n"
