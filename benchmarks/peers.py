"""pyoperon as the benchmarks run it, and the paper's reward for predictions of any model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from discodso.base.arrays import Floats


def operon(X: Floats, y: Floats, symbols: Iterable[str], seed: int, calls: int) -> Any:
    """A fitted model: so many evaluations on one thread, expressions of at most 32 nodes."""
    from pyoperon.sklearn import SymbolicRegressor

    return SymbolicRegressor(
        allowed_symbols=",".join(sorted(symbols)),
        optimizer_iterations=5,
        max_length=32,
        generations=10_000,
        max_evaluations=calls,
        n_threads=1,
        random_state=seed,
    ).fit(X, y)


def reward(predicted: Any, y: Floats) -> float:
    """The paper's 1 / (1 + NMSE), 0 where a prediction is not finite."""
    values = np.asarray(predicted, dtype=np.float64)
    if not np.isfinite(values).all():
        return 0.0
    with np.errstate(over="ignore"):
        return float(1 / (1 + np.mean((values - y) ** 2) / np.var(y)))
