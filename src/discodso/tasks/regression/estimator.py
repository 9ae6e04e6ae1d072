"""DisCoRegressor: symbolic regression as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, check_random_state, validate_data

from discodso.base.arrays import Floats
from discodso.base.checks import require, require_one_of
from discodso.base.options import parameters_of, require_nothing_left, taken, with_options
from discodso.disco.method import MethodSettings
from discodso.disco.presets import Preset
from discodso.report import figures
from discodso.run.plan import Plan
from discodso.run.settings import RunSettings
from discodso.run.start import settings_of, start
from discodso.tasks.regression import export
from discodso.tasks.regression.data import GivenData
from discodso.tasks.regression.front import front_columns
from discodso.tasks.regression.models import FoundEquation
from discodso.tasks.regression.options import BUDGET, ModelOptions, RegressionOptions


class DisCoRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Find an equation y = f(X).

    Attributes:
        expression_: the chosen `Expression`; `str(model)`, `sympy()`, `latex()` and `export` translate it.
        front_: the front as a pandas DataFrame, or as `front_rows_`, a list of dictionaries, without pandas.
        front_points_: the front as `FrontPoint` objects.
        calls_: objective calls spent, at most `budget`; a Jacobian counts as one.
        result_, space_: the `Result` of the search, and the space that was searched.
    """

    @with_options(ModelOptions)
    def __init__(
        self,
        *,
        budget: int = BUDGET,
        time_limit: float | None = None,
        preset: Preset = "default",
        method: MethodSettings | None = None,
        column_names: tuple[str, ...] | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        out: Any = None,
        **options: Any,
    ) -> None:
        """Say how to search.

        Args:
            budget: objective calls to spend, on the search and on the choice of a model.
            time_limit: seconds to spend on the search; None for no limit.
            preset: settings of the method by name, "default" or "paper"; see `preset`.
            method: settings of the method, in place of a preset.
            column_names: names of the inputs, where X has none of its own.
            warm_start: begin with the equations of the last fit.
            random_state: seed.
            out: folder for the run of the search, new or empty; `resume` goes on with what is there.
        {options}
        """
        self.budget = budget
        self.time_limit = time_limit
        self.preset = preset
        self.method = method
        self.column_names = column_names
        self.warm_start = warm_start
        self.random_state = random_state
        self.out = out
        given = taken(ModelOptions, options)
        require_nothing_left("DisCoRegressor", options, ModelOptions)
        for parameter in parameters_of(ModelOptions):
            setattr(self, parameter.name, given.get(parameter.name, parameter.default))

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DisCoRegressor:
        """Search for an equation; X[n, d] and y[n] must be finite numbers."""
        return self._run(X, y, sample_weight, resume=False)

    def resume(self, X: Any, y: Any, sample_weight: Any = None) -> DisCoRegressor:
        """Go on with the run in `out`, on the same data; `budget` may have grown."""
        require("out", self.out, self.out is not None, "the folder of the run to go on with")
        return self._run(X, y, sample_weight, resume=True)

    def _run(self, X: Any, y: Any, sample_weight: Any, resume: bool) -> DisCoRegressor:
        names = [parameter.name for parameter in parameters_of(ModelOptions)]
        options = RegressionOptions(table="", target="y", **{name: getattr(self, name) for name in names})
        require_one_of("preset", self.preset, ("default", "paper"))
        data = self._data(X, y, sample_weight)
        base = self.random_state
        if not isinstance(base, (int, np.integer)):
            base = check_random_state(base).randint(2**31 - 1)  # a number that a resumed run can begin with
        before: FoundEquation | None = getattr(self, "_found", None) if self.warm_start else None
        plan, kept = Plan(self.budget, int(base), time_limit=self.time_limit), before.kept if before else ()
        settings = RunSettings(options, plan, self.method, self.preset, initial_designs=kept, given=data)
        if resume:
            # The batch size follows the budget that the run began with, so its method is that of the folder.
            begun = settings_of(self.out, self.budget, self.time_limit)
            settings = replace(settings, plan=begun.plan, method=begun.method)
        outcome = start(settings, out=self.out, resume=resume)
        found: FoundEquation = outcome.found
        self.result_, self.space_ = outcome.result, outcome.space
        self.expression_, self.front_points_, self.calls_ = found.expression, found.front, found.calls
        self.front_rows_ = found.rows
        self.front_ = _as_frame(self.front_rows_)
        if self.warm_start:
            self._found = found
        return self

    def _data(self, X: Any, y: Any, sample_weight: Any) -> GivenData:
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if not weights.sum() > 0:
            raise ValueError("sample_weight must not be all zero")
        names = getattr(self, "feature_names_in_", self.column_names)
        columns = tuple(f"x{i + 1}" for i in range(X.shape[1])) if names is None else tuple(map(str, names))
        if len(columns) != X.shape[1]:
            raise ValueError(f"column_names has {len(columns)} names, but X has {X.shape[1]} features")
        return GivenData(X, y, weights, columns)

    def predict(self, X: Any) -> Floats:
        """Values of the equation on the rows of X; NaN or infinite where it is undefined."""
        check_is_fitted(self)
        return self.expression_(validate_data(self, X, dtype=np.float64, reset=False))

    def __str__(self) -> str:
        return export.text(self.expression_) if hasattr(self, "expression_") else repr(self)

    def plot_front(self, path: str | Path | None = None) -> figures.Plot:
        """The accuracy-complexity front; written as SVG, PDF or PNG where a path is given."""
        check_is_fitted(self)
        plot = figures.front(*front_columns(self.front_rows_))
        return plot if path is None else plot.save(path)

    def plot_fit(self, X: Any, y: Any, path: str | Path | None = None) -> figures.Plot:
        """Values by the equation against those of data; written where a path is given."""
        plot = figures.fit(y, self.predict(X))
        return plot if path is None else plot.save(path)

    def sympy(self, *, simplify: bool = False) -> Any:
        """The equation as a SymPy object, raw or simplified."""
        check_is_fitted(self)
        return export.simplified(self.expression_) if simplify else export.to_sympy(self.expression_)

    def latex(self, digits: int = 6) -> str:
        """The equation in LaTeX."""
        check_is_fitted(self)
        return export.latex(self.expression_, digits)

    def export(self, language: str) -> Any:
        """The equation in another form: "python", "c", "text" and the others of `tasks.regression.export`."""
        check_is_fitted(self)
        require_one_of("language", language, tuple(export.FORMATS))
        return export.export(self.expression_, language)


def _as_frame(rows: list[dict[str, Any]]) -> Any:
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows)
