"""A picture of a fitted equation: predicted against true values, and the front."""

from __future__ import annotations

from pathlib import Path

from discodso.report import figures
from discodso.tasks.regression.export import text
from discodso.tasks.regression.front import front_columns
from discodso.tasks.regression.kind import FoundEquation


def draw(found: FoundEquation, path: Path) -> None:
    """Write the picture; the ending of the path says the format."""
    data, equation = found.data, text(found.expression, digits=4)
    figures.fit_and_front(
        data.y,
        found.expression(data.X),
        data.target,
        *front_columns(found.candidates, found.expression),
        title=f"{data.target} = {equation if len(equation) < 90 else equation[:87] + '...'}",
    ).save(path)
