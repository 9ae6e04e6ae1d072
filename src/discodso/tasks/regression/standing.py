"""What a search for equations shows while it runs: the best of every complexity, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from discodso.tasks.regression.canonical import canonical
from discodso.tasks.regression.export import text
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.operators import Costs

_ROWS = 14
Standing = tuple[float, float, Expression]  # complexity, loss


def standing_rows(found: Iterable[tuple[Expression, float]], costs: Costs | None) -> list[Standing]:
    """Expressions with their losses in their canonical form, no one that a simpler one fits as well.

    If there are many, those that gain least on the one before are left out.
    """
    rows = [(own.cost(costs), loss, own) for own, loss in ((canonical(e), loss) for e, loss in found)]
    kept: list[Standing] = []
    for row in sorted(rows, key=lambda row: row[:2]):
        if not kept or row[1] < kept[-1][1]:
            kept.append(row)
    while len(kept) > _ROWS:
        gains = [after[1] / max(before[1], 1e-300) for before, after in pairwise(kept)]
        del kept[1 + max(range(len(gains) - 1), key=gains.__getitem__)]
    return kept


def standing_table(rows: Sequence[Standing], target: str, width: int) -> Any:
    """The rows as a table of Rich that is no wider than this."""
    from rich.markup import escape
    from rich.table import Table

    table = Table("complexity", "loss", f"{escape(target)} =", box=None)
    room = max(20, width - 30)
    for complexity, loss, expression in rows:
        words = text(expression, digits=4)
        words = words if len(words) <= room else words[: room - 1] + "\N{HORIZONTAL ELLIPSIS}"
        table.add_row(f"{complexity:g}", f"{loss:.4g}", escape(words))
    return table
