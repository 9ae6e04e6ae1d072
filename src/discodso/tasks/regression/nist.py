"""NIST's nonlinear regression tables (Statistical Reference Datasets), with certified parameters and residuals.

`nist.json` has a table in each element: measured or made by NIST, the model that NIST fitted, its certified
parameters, and the certified residual sum of squares. A formula has names b1, b2, ... for the parameters. The
target of Nelson is the logarithm of the published one, as its model has it.

A search is judged by its residuals beside the certified ones and by its length: `law_judge.judge_fit`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np

from discodso.base.arrays import Floats


@dataclass(frozen=True, eq=False)
class NistData:
    """Rows, and the model that NIST fitted to them.

    Attributes:
        number, name: its place by the alphabet, from 1; even ones only show.
        formula: the model, with parameters b1, b2, ...
        parameters: certified.
        residuals: certified sum of their squares.
        tokens: of the model, each constant counted once.
        columns: names of the inputs.
        X, y: float[n, d] and float[n].
    """

    number: int
    name: str
    formula: str
    parameters: tuple[float, ...]
    residuals: float
    tokens: int
    columns: tuple[str, ...]
    X: Floats
    y: Floats
    set: str = "nist"

    @property
    def tuned(self) -> bool:
        """Whether settings may be chosen by it."""
        return self.number % 2 == 1

    def data(self, noise: float = 0.0, seed: int = 0) -> tuple[Floats, Floats]:
        """X and y, in an order of their own for each seed; noise is theirs, none is added."""
        order = np.random.default_rng(seed).permutation(len(self.y))
        return self.X[order], self.y[order]


@cache
def nist() -> tuple[NistData, ...]:
    """All tables, in the order of their names."""
    text = resources.files("discodso.tasks.regression").joinpath("nist.json").read_text(encoding="utf-8")
    return tuple(
        NistData(
            number,
            own["name"],
            own["formula"],
            tuple(own["parameters"]),
            own["rss"],
            own["tokens"],
            tuple(own["columns"]),
            np.array(own["X"], dtype=np.float64).T.copy(),
            np.array(own["y"], dtype=np.float64),
        )
        for number, own in enumerate(json.loads(text), start=1)
    )
