"""Tables as text: CSV and Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as CSV; nothing where a value is None."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table in Markdown."""
    first, *rest = ("|" + "".join(f" {cell} |" if cell else " |" for cell in row) for row in (head, *rows))
    return [first, "|---" * len(head) + "|", *rest]
