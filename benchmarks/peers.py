"""pyoperon as the benchmarks run it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

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
