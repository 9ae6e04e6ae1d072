"""DisCoRegressor in the interface of SRBench: `est`, `model(est, X)` and `eval_kwargs`."""

from __future__ import annotations

from typing import Any

from discodso import DisCoRegressor

est = DisCoRegressor(max_calls=500_000, max_time=3600, random_state=0)


def model(est: DisCoRegressor, X: Any = None) -> str:
    """The equation as a string that SymPy reads; columns have the names that X had in `fit`, else x1, x2, ..."""
    return str(est.sympy())


def pre_train(est: DisCoRegressor, X: Any, y: Any) -> None:
    """Small tables do not need the whole budget."""
    if len(y) < 100:
        est.set_params(max_calls=min(est.max_calls, 200_000))


eval_kwargs: dict[str, Any] = {"test_params": {"max_calls": 2000}, "pre_train": pre_train}
