"""A picture of a fitted equation: predicted against true values, and the front."""

from __future__ import annotations

from pathlib import Path

from discodso.report import figures
from discodso.tasks.regression.data import Table
from discodso.tasks.regression.estimator import DisCoRegressor
from discodso.tasks.regression.expression_export import text
from discodso.tasks.regression.front import front_columns


def draw(model: DisCoRegressor, data: Table, path: Path) -> None:
    """Write the picture; the ending of the path says the format."""
    equation = text(model.expression_, digits=4)
    figures.fit_and_front(
        data.y,
        model.predict(data.X),
        data.target,
        *front_columns(model.candidates_, model.expression_),
        title=f"{data.target} = {equation if len(equation) < 90 else equation[:87] + '...'}",
    ).save(path)
