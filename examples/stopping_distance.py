"""From a table with noise to a law: how far does a car go before it stops?

The table has 200 rows of speed (m/s), reaction time (s), friction and distance (m), made by

    distance = speed * reaction_time + speed^2 / (2 * 9.81 * friction)

with 1 % of noise. Run it with

    python examples/stopping_distance.py --budget 100000 --plot stopping_distance.png
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from discodso import DisCoRegressor
from discodso.tasks.regression.data import read_table

TABLE = Path(__file__).parent / "data" / "stopping_distance.csv"


def main(arguments: list[str] | None = None) -> float:
    """Fit, show the front and the equation in several languages; returns R2 on rows that were kept back."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args(arguments)
    table = read_table(TABLE, "distance")
    # Kept back for the end: the search sees the other rows only.
    kept_back = np.arange(len(table.y)) % 5 == 0
    model = DisCoRegressor(budget=options.budget, random_state=options.seed, column_names=table.columns)
    model.fit(table.X[~kept_back], table.y[~kept_back])
    for row in model.front_rows_:
        mark = "->" if row["chosen"] else "  "
        print(f"{mark} {row['complexity']:4.0f}  {row['loss']:10.4g}  {row['expression']}")
    score = float(model.score(table.X[kept_back], table.y[kept_back]))
    print(f"\ndistance = {model}\nsimplified: {model.sympy(simplify=True)}\nLaTeX: {model.latex(4)}")
    print(f"R2 on rows that the search never saw: {score:.5f}\n")
    print(model.export("python"))
    if options.plot:
        model.plot_fit(table.X, table.y, options.plot)
        print(f"picture: {options.plot}")
    return score


if __name__ == "__main__":
    main()
