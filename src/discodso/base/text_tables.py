"""Tables as text: CSV and Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as CSV; nothing where a value is None.

    A text that a spreadsheet would take for a formula gets an apostrophe before it, which makes it a text there.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([_no_formula(cell) for cell in row] for row in (header, *rows))
    return text.getvalue()


def _no_formula(cell: object) -> object:
    if not isinstance(cell, str) or not cell.startswith(_FORMULA) or len(cell) == 1:
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table in Markdown."""
    first, *rest = ("|" + "".join(f" {cell} |" if cell else " |" for cell in row) for row in (head, *rows))
    return [first, "|---" * len(head) + "|", *rest]
