"""DisCoRegressor in the interface of SRBench: `est`, `model(est, X)` and `eval_kwargs`."""

from __future__ import annotations

from typing import Any

from discodso import DisCoRegressor

est = DisCoRegressor(budget=500_000, time_limit=3600, random_state=0)


def model(est: DisCoRegressor, X: Any = None) -> str:
    """The equation as a string that SymPy reads; columns have the names that X had in `fit`, else x1, x2, ..."""
    return str(est.sympy())


def pre_train(est: DisCoRegressor, X: Any, y: Any) -> None:
    """Small tables do not need the whole budget."""
    if len(y) < 100:
        est.set_params(budget=min(est.budget, 200_000))


eval_kwargs: dict[str, Any] = {"test_params": {"budget": 2000}, "pre_train": pre_train}
