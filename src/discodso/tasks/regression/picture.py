"""A picture of a fitted equation: predicted against true values, and the front."""

from __future__ import annotations

from pathlib import Path

import matplotlib

from discodso.errors import DeclarationError
from discodso.tasks.regression.data import Table
from discodso.tasks.regression.estimator import DisCoRegressor
from discodso.tasks.regression.export import text


def draw(model: DisCoRegressor, data: Table, path: Path) -> None:
    """Write the picture; the ending of the path says the format."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    predicted = model.predict(data.X)
    left.scatter(data.y, predicted, s=14, alpha=0.6, color="tab:blue")
    ends = [float(data.y.min()), float(data.y.max())]
    left.plot(ends, ends, color="0.4", linewidth=1)
    left.set(xlabel=f"{data.target}, as given", ylabel=f"{data.target}, by the equation")
    complexity = [c.complexity for c in model.candidates_]
    losses = [max(c.loss, 1e-30) for c in model.candidates_]
    right.plot(complexity, losses, "o-", color="0.6", label="front")
    chosen = [i for i, row in enumerate(model.front_rows_) if row["chosen"]]
    right.plot(
        [complexity[i] for i in chosen], [losses[i] for i in chosen], "o", color="tab:red", label="chosen"
    )
    right.set(xlabel="complexity", ylabel="loss on the training rows", yscale="log")
    right.legend()
    equation = text(model.expression_, digits=4)
    figure.suptitle(
        f"{data.target} = {equation if len(equation) < 110 else equation[:107] + '...'}", fontsize=10
    )
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:
        raise DeclarationError(f"the picture {path} cannot be written: {error}") from None
    finally:
        plt.close(figure)
