"""DisCoRegressor: symbolic regression as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, check_random_state, validate_data

from discodso.base.arrays import Floats
from discodso.base.checks import is_integer, require, require_one_of
from discodso.base.errors import DeclarationError
from discodso.base.files import FileError
from discodso.base.options import parameters_of, require_nothing_left, taken, with_options
from discodso.disco.method import MethodSettings
from discodso.disco.presets import PRESETS, Preset
from discodso.report import figures
from discodso.run.callbacks import RichProgress, is_watched
from discodso.run.plan import Plan
from discodso.run.settings import RunSettings
from discodso.run.start import settings_of, start
from discodso.tasks.regression import export
from discodso.tasks.regression.data import GivenData
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.front import as_rows, front_columns
from discodso.tasks.regression.front_tables import as_frame, html_front, latex_equation, latex_table
from discodso.tasks.regression.model_files import SavedModel, read_models, write_models
from discodso.tasks.regression.models import FoundEquation
from discodso.tasks.regression.options import BUDGET, ModelOptions, RegressionOptions


class DisCoRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Find an equation y = f(X), or one for each column of y.

    Attributes:
        expression_: the chosen `Expression`; `str(model)`, `sympy()`, `latex()` and `export` translate it.
        equations_: the front as a pandas DataFrame, or as `front_rows_`, a list of dictionaries, without pandas.
        front_points_: the front as `FrontPoint` objects.
        calls_: objective calls spent, at most `budget` for each target; a Jacobian counts as one.
        result_, space_: the `Result` of the search, and the space that was searched; not in a loaded model.
        complete_: cost of operators and inputs up to which every expression was tried, with any coefficients.
        parts_: the unknown functions of a template, as expressions, and its constants; not in a loaded model.
        target_names_: names of the targets.
        models_: where y has several columns, a fitted estimator for each; what is one thing otherwise is a list.
    """

    expression_: Any  # an Expression, or a list of them for several targets
    front_points_: Any
    front_rows_: list[dict[str, Any]]
    calls_: int
    target_names_: tuple[str, ...]
    models_: list[DisCoRegressor]

    @with_options(ModelOptions)
    def __init__(
        self,
        *,
        budget: int = BUDGET,
        time_limit: float | None = None,
        patience: int | None = None,
        preset: Preset = "default",
        method: MethodSettings | None = None,
        column_names: tuple[str, ...] | None = None,
        warm_start: bool = False,
        guesses: tuple[str, ...] = (),
        random_state: Any = None,
        out: Any = None,
        verbose: bool | None = None,
        **options: Any,
    ) -> None:
        """Say how to search.

        Args:
            budget: objective calls to spend, on the search and on the choice of a model.
            time_limit: seconds to spend, on the search and on the choice of a model; None for no limit.
            patience: end the search after so many calls without a better equation; None for no such end. What
                fits to the last digits always ends it.
            preset: settings of the method by name, "default", "paper" or "paper-scaled"; see `preset`.
            method: settings of the method, in place of a preset.
            column_names: names of the inputs, where X has none of its own.
            warm_start: begin with the equations of the last fit.
            guesses: equations to begin with, as text, such as "2 * speed + 1"; their constants are fitted.
            random_state: seed.
            verbose: show the best equations by complexity on standard error while the search runs; by default
                where that is a terminal, and in a notebook.
            out: folder for the run of the search, new or empty; `resume` goes on with what is there.
        {options}
        """
        self.budget = budget
        self.time_limit = time_limit
        self.patience = patience
        self.preset = preset
        self.method = method
        self.column_names = column_names
        self.warm_start = warm_start
        self.guesses = guesses
        self.random_state = random_state
        self.out = out
        self.verbose = verbose
        given = taken(ModelOptions, options)
        require_nothing_left("DisCoRegressor", options, ModelOptions)
        for parameter in parameters_of(ModelOptions):
            setattr(self, parameter.name, given.get(parameter.name, parameter.default))

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DisCoRegressor:
        """Search for an equation; X[n, d] and y[n] must be finite numbers. For y[n, k] there are k searches."""
        return self._fitted(X, y, sample_weight, resume=False)

    def resume(self, X: Any, y: Any, sample_weight: Any = None) -> DisCoRegressor:
        """Go on with the run in `out`, on the same data; `budget` may have grown."""
        require("out", self.out, self.out is not None, "the folder of the run to go on with")
        return self._fitted(X, y, sample_weight, resume=True)

    def _fitted(self, X: Any, y: Any, sample_weight: Any, resume: bool) -> DisCoRegressor:
        shape = _shape(y)
        if len(shape) == 2 and shape[1] > 1:
            return self._fitted_each(X, y, sample_weight, resume)
        self.__dict__.pop("models_", None)
        return self._run(X, y, sample_weight, resume)

    def _fitted_each(self, X: Any, y: Any, sample_weight: Any, resume: bool) -> DisCoRegressor:
        names = _target_names(y)
        _, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        before = getattr(self, "models_", []) if self.warm_start else []
        models = before if len(before) == len(names) else [clone(self) for _ in names]
        jobs = ModelOptions(n_jobs=self.n_jobs).jobs
        together = min(jobs, len(names))
        seeds = [self._seed() for _ in names]
        for place, model in enumerate(models):
            out = None if self.out is None else Path(self.out) / f"target-{place + 1}"
            others = set(names) - {names[place]}
            units = {column: unit for column, unit in (self.units or {}).items() if column not in others}
            model.set_params(**self.get_params(deep=False)).set_params(out=out, units=units)
            if together > 1:  # they would write over one another
                model.set_params(n_jobs=jobs // together, verbose=False)

        def run(place: int) -> None:
            model, name = models[place], names[place]
            model.set_params(random_state=seeds[place])
            model._run(X, y[:, place], sample_weight, resume, name)
            model.set_params(**self.get_params(deep=False))

        with ThreadPoolExecutor(together) as pool:
            list(pool.map(run, range(len(names))) if together > 1 else map(run, range(len(names))))
        self._gather(models)
        return self

    def _gather(self, models: list[DisCoRegressor]) -> None:
        """Keep fitted models, one for each target."""
        self.models_ = models
        for name in ("result_", "space_", "parts_", "complete_", "expression_", "front_points_"):
            setattr(self, name, [getattr(model, name, None) for model in models])
        self.calls_ = sum(model.calls_ for model in models)
        self.target_names_ = tuple(model.target_names_[0] for model in models)
        rows = ((name, model.front_rows_) for name, model in zip(self.target_names_, models, strict=True))
        self.front_rows_ = [{"target": name, **row} for name, own in rows for row in own]

    def _run(
        self, X: Any, y: Any, sample_weight: Any, resume: bool, target: str | None = None
    ) -> DisCoRegressor:
        names = [parameter.name for parameter in parameters_of(ModelOptions)]
        options = RegressionOptions(table="", target="y", **{name: getattr(self, name) for name in names})
        require_one_of("preset", self.preset, PRESETS)
        is_flag = self.verbose is None or isinstance(self.verbose, (bool, np.bool_))
        require("verbose", self.verbose, is_flag, "True, False, or None for where people look")
        data = self._data(X, y, sample_weight, target or _target_names(y)[0])
        before: FoundEquation | None = getattr(self, "_found", None) if self.warm_start else None
        plan = Plan(self.budget, self._seed(), time_limit=self.time_limit, patience=self.patience)
        kept = before.kept if before and self.template is None else ()
        kept = (*(Expression.parse(guess, data.columns).design for guess in self.guesses), *kept)
        settings = RunSettings(options, plan, self.method, self.preset, initial_designs=kept, given=data)
        if resume:
            # The batch size follows the budget that the run began with, so its method is that of the folder.
            begun = settings_of(self.out, self.budget, self.time_limit)
            settings = replace(settings, plan=begun.plan, method=begun.method)
        watched = is_watched() if self.verbose is None else self.verbose
        callback = RichProgress(leave=True) if watched else None
        outcome = start(settings, out=self.out, resume=resume, callback=callback)
        found: FoundEquation = outcome.found
        self.result_, self.space_ = outcome.result, outcome.space
        self.parts_, self.complete_ = dict(found.parts), found.complete
        self.expression_, self.front_points_, self.calls_ = found.expression, found.front, found.calls
        self.front_rows_ = found.rows
        self.target_names_ = (data.target,)
        if self.warm_start:
            self._found = found
        return self

    def _seed(self) -> int:
        """A number that a resumed run can begin with."""
        given = self.random_state
        is_number = isinstance(given, (int, np.integer))
        return int(given if is_number else check_random_state(given).randint(2**31 - 1))

    def _data(self, X: Any, y: Any, sample_weight: Any, target: str) -> GivenData:
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if not weights.sum() > 0:
            raise ValueError("sample_weight must not be all zero")
        names = getattr(self, "feature_names_in_", self.column_names)
        columns = tuple(f"x{i + 1}" for i in range(X.shape[1])) if names is None else tuple(map(str, names))
        if len(columns) != X.shape[1]:
            raise ValueError(f"column_names has {len(columns)} names, but X has {X.shape[1]} features")
        return GivenData(X, y, weights, columns, target)

    def predict(self, X: Any, index: int | None = None) -> Floats:
        """Values [n] on the rows of X, or [n, k] for k targets; NaN or infinite where the equation is undefined.

        `index` takes an equation of the front by its row in `equations_`, in place of the chosen one.
        """
        check_is_fitted(self)
        if index is not None:
            self._require_one_target("predict with an index")
            require("index", index, is_integer(index), "the number of a row of equations_")
            count = len(self.front_points_)
            require("index", index, -count <= index < count, f"below {count}, the length of the front")
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        if hasattr(self, "models_"):
            return np.column_stack([expression(rows) for expression in self.expression_])
        expression: Expression = self.expression_ if index is None else self.front_points_[index].expression
        return expression(rows)

    @property
    def equations_(self) -> Any:
        """The front as a data frame, by rising complexity."""
        check_is_fitted(self)
        return as_frame(self.front_rows_)

    def __str__(self) -> str:
        if hasattr(self, "models_"):
            pairs = zip(self.target_names_, self.expression_, strict=True)
            return "\n".join(f"{name} = {export.text(expression)}" for name, expression in pairs)
        return export.text(self.expression_) if hasattr(self, "expression_") else repr(self)

    def _repr_latex_(self) -> str | None:
        """The equation typeset, for notebooks."""
        if not hasattr(self, "expression_"):
            return None
        pairs = zip(self.target_names_, self._listed(self.expression_), strict=True)
        return "$$" + r" \\ ".join(latex_equation(*pair) for pair in pairs) + "$$"

    def _repr_html_(self) -> str:
        """The equation and its front, for notebooks; before a fit, the parameters."""
        if not hasattr(self, "expression_"):
            return str(estimator_html_repr(self))
        fronts = self._listed(self.front_points_)
        found = zip(fronts, self._listed(self.expression_), self.target_names_, strict=True)
        return "".join(html_front(*own) for own in found)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        latex = self._repr_latex_()
        shown = {"text/plain": str(self), "text/html": self._repr_html_()}
        return shown if latex is None else {**shown, "text/latex": latex}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _listed(self, own: Any) -> list[Any]:
        return list(own) if hasattr(self, "models_") else [own]

    def _require_one_target(self, what: str) -> None:
        check_is_fitted(self)
        if hasattr(self, "models_"):
            names = ", ".join(self.target_names_)
            raise DeclarationError(f"{what} needs one target, but there are {names}; use one of models_")

    def save(self, path: str | Path) -> None:
        """Write the model as JSON, without pickle; `DisCoRegressor.load` reads it.

        Parameters that are functions or objects, `out` and the result of the search are left out; operators of
        one's own are refused.
        """
        check_is_fitted(self)
        models = getattr(self, "models_", [self])
        saved = [SavedModel(m.target_names_[0], m.expression_, m.front_points_, m.calls_) for m in models]
        parameters = {key: value for key, value in self.get_params(deep=False).items() if key != "out"}
        write_models(Path(path), saved, parameters, getattr(self, "feature_names_in_", None))

    @classmethod
    def load(cls, path: str | Path) -> DisCoRegressor:
        """A model that `save` has written; nothing of the file is executed."""
        saved, parameters, names = read_models(Path(path))
        unknown = sorted(set(parameters) - set(cls._get_param_names()))
        if unknown:
            raise FileError(f"{path} has parameters that this version does not know: {', '.join(unknown)}")
        models = []
        for own in saved:
            model = cls(**parameters)
            model.expression_, model.front_points_, model.calls_ = own.expression, own.front, own.calls
            model.front_rows_, model.target_names_ = as_rows(own.front, own.expression), (own.target,)
            models.append(model)
        whole = models[0] if len(models) == 1 else cls(**parameters)
        if whole not in models:
            whole._gather(models)
        for model in (whole, *models):
            model.n_features_in_ = len(saved[0].expression.columns)
            if names is not None:
                model.feature_names_in_ = np.array(names, dtype=object)
        return whole

    def plot_front(self, path: str | Path | None = None) -> figures.Plot:
        """The accuracy-complexity front; written as SVG, PDF or PNG where a path is given."""
        self._require_one_target("plot_front")
        plot = figures.front(*front_columns(self.front_rows_))
        return plot if path is None else plot.save(path)

    def plot_fit(self, X: Any, y: Any, path: str | Path | None = None) -> figures.Plot:
        """Values by the equation against those of data; written where a path is given."""
        self._require_one_target("plot_fit")
        plot = figures.fit(y, self.predict(X))
        return plot if path is None else plot.save(path)

    def sympy(self, *, simplify: bool = False) -> Any:
        """The equation as a SymPy object, raw or simplified."""
        return self._translated(export.simplified if simplify else export.to_sympy)

    def latex(self, digits: int = 6) -> Any:
        """The equation in LaTeX."""
        return self._translated(lambda expression: export.latex(expression, digits))

    def latex_table(self, digits: int = 4) -> str:
        """The front as a table in LaTeX, for the package booktabs."""
        self._require_one_target("latex_table")
        return latex_table(self.front_points_, self.expression_, self.target_names_[0], digits)

    def export(self, language: str) -> Any:
        """The equation in another form: "python", "c", "text" and the others of `tasks.regression.export`."""
        check_is_fitted(self)
        require_one_of("language", language, tuple(export.FORMATS))
        return self._translated(lambda expression: export.export(expression, language))

    def _translated(self, translate: Callable[[Expression], Any]) -> Any:
        """What a translation makes of the equation, or a list for several targets."""
        check_is_fitted(self)
        if hasattr(self, "models_"):
            return [translate(expression) for expression in self.expression_]
        return translate(self.expression_)


def _shape(y: Any) -> tuple[int, ...]:
    return tuple(y.shape if hasattr(y, "shape") else np.asarray(y).shape)


def _target_names(y: Any) -> tuple[str, ...]:
    """Names that data frames and series bring along, else y, or y1, y2, ..."""
    given, shape = [str(name) for name in getattr(y, "columns", ())], _shape(y)
    if len(shape) == 2 and shape[1] > 1:
        return tuple(given if len(given) == shape[1] else [f"y{i + 1}" for i in range(shape[1])])
    name = given[0] if given else getattr(y, "name", None)
    return (name if isinstance(name, str) and name else "y",)
