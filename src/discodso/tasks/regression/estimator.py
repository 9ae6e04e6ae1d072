"""DisCoRegressor: symbolic regression as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, check_random_state, validate_data

from discodso.base.arrays import Floats
from discodso.base.checks import require, require_integer, require_number, require_one_of
from discodso.disco.disco import DisCoSettings
from discodso.disco.method import Method
from discodso.disco.presets import Preset, preset
from discodso.report import figures
from discodso.run.folder import SETTINGS
from discodso.run.plan import Limits, Plan
from discodso.run.result import Result
from discodso.run.search import continue_search, start_search
from discodso.run.settings import RunSettings, read
from discodso.run.task import Task
from discodso.space.space import Space
from discodso.tasks.regression import expression_export as export
from discodso.tasks.regression.equation_files import write_equation
from discodso.tasks.regression.evaluator import Program
from discodso.tasks.regression.expression import CONST, Expression
from discodso.tasks.regression.expression_space import Fit, RegressionSpace
from discodso.tasks.regression.front import FrontKeeper, as_rows, front_columns
from discodso.tasks.regression.models import SHARE_OF_CALLS, gathered, kept_expressions, make_model

LIBRARY = ("add", "sub", "mul", "div", "sin", "cos", "exp", "log", "sqrt", "n2", CONST)
SELECTIONS = ("auto", "accuracy", "validation", "complexity")


@dataclass(frozen=True)
class _Continue:
    """Settings that go on with a method that has already learned."""

    method: Method

    def build(self, space: Space, seed: Any) -> Method:
        return self.method


@dataclass(frozen=True)
class _Running:
    """How one fit runs: `before` are the settings of a run to go on with, `seed` that of the whole fit."""

    before: RunSettings | None
    plan: Plan | None
    record: Mapping[str, Any] | None
    callback: Any
    seed: Any


class DisCoRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Find an equation y = f(X).

    Args:
        library: operators (names or `Operator` objects of one's own), numbers, and "const".
        max_calls: objective calls to spend, on the search and on the choice of a model.
        max_time: seconds to spend on the search; None for no limit.
        max_length: longest traversal.
        const_range: where constants may lie.
        need_input, no_constant_subtrees, no_inverses, max_constants: see `RegressionSpace`.
        metric: "nmse", "nrmse", "mae", "r2", or a function of (y, prediction, weights) to a reward.
        polish: fit constants by least squares, of the best designs of every batch, and try after the search what
            can be cut out of the best expression.
        scaled: search for the f whose best a + b f(x) fits; a and b then become constants of the equation.
        selection: how to choose a model: "auto" by what is to be expected of it (see docs/regression.md), or from
            the front by "accuracy", "validation" (a held-out quarter of the rows) or "complexity", which is also
            what "auto" means for metrics that are not of the squared error.
        must_extrapolate: whether the model must also be good, and finite, on data twice as wide as those given.
        preset: settings of the method by name, "default" or "paper"; see `preset`.
        settings: of the method, in place of a preset.
        column_names: names of the inputs, where X has none of its own.
        warm_start: go on from the last fit instead of starting anew.
        threads: of the evaluator.
        random_state: seed.
        out: folder for the run of the search, new or empty; `resume` goes on with what a lost process left there.

    Attributes:
        expression_: the chosen `Expression`; `str(model)`, `sympy()`, `latex()` and `export` translate it.
        front_: the front as a pandas DataFrame, or as `front_rows_`, a list of dictionaries, without pandas.
        candidates_: the front as `Candidate` objects.
        calls_: objective calls spent, at most `max_calls`; a Jacobian counts as one.
        result_, space_: the `Result` of the search, and the space that was searched.
    """

    def __init__(
        self,
        library: tuple[Any, ...] = LIBRARY,
        *,
        max_calls: int = 100_000,
        max_time: float | None = None,
        max_length: int = 32,
        const_range: tuple[float, float] = (-np.inf, np.inf),
        need_input: bool = False,
        no_constant_subtrees: bool = True,
        no_inverses: bool = True,
        max_constants: int | None = None,
        metric: Any = "nmse",
        polish: bool = True,
        scaled: bool = True,
        selection: str = "auto",
        must_extrapolate: bool = True,
        preset: Preset = "default",
        settings: DisCoSettings | None = None,
        column_names: tuple[str, ...] | None = None,
        warm_start: bool = False,
        threads: int = 1,
        random_state: Any = None,
        out: Any = None,
    ) -> None:
        self.library = library
        self.max_calls = max_calls
        self.max_time = max_time
        self.max_length = max_length
        self.const_range = const_range
        self.need_input = need_input
        self.no_constant_subtrees = no_constant_subtrees
        self.no_inverses = no_inverses
        self.max_constants = max_constants
        self.metric = metric
        self.polish = polish
        self.scaled = scaled
        self.selection = selection
        self.must_extrapolate = must_extrapolate
        self.preset = preset
        self.settings = settings
        self.column_names = column_names
        self.warm_start = warm_start
        self.threads = threads
        self.random_state = random_state
        self.out = out

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DisCoRegressor:
        """Search for an equation; X[n, d] and y[n] must be finite numbers."""
        return self.fit_run(X, y, sample_weight)

    def resume(self, X: Any, y: Any, sample_weight: Any = None) -> DisCoRegressor:
        """Go on with the run in `out`, on the same data; `max_calls` may have grown."""
        return self.fit_run(X, y, sample_weight, resume=True)

    def fit_run(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        resume: bool = False,
        plan: Plan | None = None,
        record: Mapping[str, Any] | None = None,
        callback: Any = None,
    ) -> DisCoRegressor:
        """`fit` or `resume`, with what a settings file may ask for besides.

        Args:
            plan: further limits and intervals; budget and time limit are those of the estimator.
            record: settings for the folder.
            callback: watches the search.
        """
        require_integer("max_calls", self.max_calls, 1)
        if self.max_time is not None:
            require_number("max_time", self.max_time, above=0)
        require_one_of("selection", self.selection, SELECTIONS)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        with np.errstate(over="ignore"):
            finite = bool(np.isfinite(y @ y))
        require("y", f"up to {np.abs(y).max():.3g}", finite, "numbers whose squares are finite")
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if not weights.sum() > 0:
            raise ValueError("sample_weight must not be all zero")
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = (
                [f"x{i + 1}" for i in range(X.shape[1])] if self.column_names is None else self.column_names
            )
        columns = tuple(map(str, names))
        if len(columns) != X.shape[1]:
            raise ValueError(f"column_names has {len(columns)} names, but X has {X.shape[1]} features")
        before = None
        if resume:
            require("out", self.out, self.out is not None, "the folder of the run to go on with")
            before = read(Path(self.out) / SETTINGS)
        base = self.random_state if before is None else before.plan.seed
        if self.out is not None and not isinstance(base, (int, np.integer)):
            base = check_random_state(base).randint(2**31 - 1)  # a number that a resumed run can begin with
        rng = check_random_state(base)
        given = X, y
        X, y, weights = gathered(X, y, weights)
        training = self._training_rows(len(y), rng)
        running = _Running(before, plan, record, callback, base)
        seed = int(rng.randint(2**31 - 1))
        keeper = self._search(X[training], y[training], weights[training], seed, running)
        self._select(keeper, columns, X, y, weights / weights.sum(), training)
        if self.out is not None:
            target = str((record or {}).get("task", {}).get("target", "y"))
            write_equation(Path(self.out), self.expression_, self.candidates_, target, *given)
        return self

    def _training_rows(self, count: int, rng: Any) -> Any:
        chosen = np.ones(count, dtype=bool)
        if self.selection == "validation" and count >= 4:
            chosen[rng.permutation(count)[: count // 4]] = False
        return chosen

    def _search(self, X: Floats, y: Floats, weights: Floats, seed: int, running: _Running) -> FrontKeeper:
        description = self._space()
        space = description.build(X.shape[1])
        own = tuple(o for o in description.operators if o.code < 0)
        if not weights.sum() > 0:
            weights = np.ones(len(y))
        scaled = self.scaled and self._squared
        fit = Fit.of(Program.of(space.library, own), X, y, weights, self.metric, self.threads, scaled)
        keeper = FrontKeeper(space, fit)
        settings = self._method(running.before)
        before = getattr(self, "_disco", None) if self.warm_start else None
        if before is not None and before.space.library == space.library:
            # The space of before is an equal one; designs must come from the very one that the method has.
            keeper.space = before.space
            keeper.best.update(getattr(self, "_front_before", {}))
            disco = before
        else:
            disco = settings.build(space, seed)
        task = Task(
            keeper.space,
            batch_objective=keeper,
            name="regression",
            refine=keeper.refine if self.polish and self._squared else None,
        )
        self.result_ = self._run(task, disco, settings, seed, running)
        self.space_ = keeper.space
        self.calls_ = self.result_.calls
        if self.warm_start:
            self._disco, self._front_before = disco, dict(keeper.best)
        return keeper

    def _run(
        self, task: Task, method: Method, settings: DisCoSettings, seed: int, running: _Running
    ) -> Result:
        plan = running.plan or (running.before.plan if running.before else Plan(Limits(self.max_calls)))
        left = int(SHARE_OF_CALLS * self.max_calls)  # for the choice
        limits = replace(plan.limits, budget=self.max_calls - left, time_limit=self.max_time)
        plan = replace(plan, limits=limits, seed=seed)
        if running.before is not None:
            limited = running.before.with_limits(self.max_calls, self.max_time)
            result, _ = continue_search(
                self.out, task, _Continue(method), plan, callback=running.callback, record=limited.record()
            )
            return result
        record: dict[str, Any] = {"task": {"kind": "python", "name": type(self).__name__}}
        if self.out is not None:
            record |= {**(running.record or {}), "method": {"kind": "disco", **asdict(settings)}}
            record["run"] = {**plan.to_record(), "seed": int(running.seed), "budget": self.max_calls}
        return start_search(
            task, _Continue(method), plan, callback=running.callback, out=self.out, record=record
        )

    def _space(self) -> RegressionSpace:
        return RegressionSpace(
            library=tuple(self.library),
            min_length=1,
            max_length=self.max_length,
            const_range=self.const_range,
            need_input=self.need_input,
            no_constant_subtrees=self.no_constant_subtrees,
            no_inverses=self.no_inverses,
            max_constants=self.max_constants,
        )

    def _method(self, before: RunSettings | None) -> DisCoSettings:
        if before is not None and isinstance(before.method, DisCoSettings):
            return before.method  # the batch size follows the budget that the run began with
        if self.settings is not None:
            return self.settings
        return preset(self.preset, refines=self.polish and self._squared, budget=self.max_calls)

    def _select(
        self,
        keeper: FrontKeeper,
        columns: tuple[str, ...],
        X: Floats,
        y: Floats,
        weights: Floats,
        training: Any,
    ) -> None:
        """Make a model of what the search has kept."""
        own = tuple(o for o in self._space().operators if o.code < 0)
        seen = X[training], y[training], _normalised(weights, training)
        unseen = None if training.all() else (X[~training], y[~training], _normalised(weights, ~training))
        model = make_model(
            kept_expressions(keeper, columns, own, seen),
            seen,
            unseen,
            room=self.max_calls - self.calls_,
            selection="complexity" if self.selection == "auto" and not self._squared else self.selection,
            loss=self._loss,
            polished=self.polish and self._squared,
            widen=self.must_extrapolate,
            const_range=self.const_range,
        )
        self.calls_ += model.calls
        self.expression_, self.candidates_ = model.expression, model.front
        self.front_rows_ = as_rows(self.candidates_, self.expression_)
        self.front_ = _as_frame(self.front_rows_)

    @property
    def _squared(self) -> bool:
        """Whether the metric is one of the squared error, which least squares serves."""
        return not callable(self.metric) and self.metric != "mae"

    def _loss(self, expression: Expression, X: Floats, y: Floats, weights: Floats) -> float:
        predicted = expression(X)
        if not np.isfinite(predicted).all():
            return float("inf")
        if callable(self.metric):
            return 1.0 - float(self.metric(y, predicted, weights))
        sizes = np.abs(predicted - y) if self.metric == "mae" else np.square(predicted - y)
        return float(sizes @ weights)

    def predict(self, X: Any) -> Floats:
        """Values of the equation on the rows of X; NaN or infinite where it is undefined."""
        check_is_fitted(self)
        return self.expression_(validate_data(self, X, dtype=np.float64, reset=False))

    def __str__(self) -> str:
        return export.text(self.expression_) if hasattr(self, "expression_") else repr(self)

    def plot_front(self, path: str | Path | None = None) -> figures.Plot:
        """The accuracy-complexity front; written as SVG, PDF or PNG where a path is given."""
        check_is_fitted(self)
        plot = figures.front(*front_columns(self.candidates_, self.expression_))
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

    def export(self, language: str) -> str:
        """Source code of the equation: "python", "c" or "text"."""
        check_is_fitted(self)
        require_one_of("language", language, ("python", "c", "text"))
        if language == "text":
            return export.text(self.expression_)
        write = export.python_source if language == "python" else export.c_source
        return write(self.expression_)


def _normalised(weights: Floats, rows: Any) -> Floats:
    share = weights[rows]
    return share / share.sum() if share.sum() > 0 else np.full(len(share), 1 / max(len(share), 1))


def _as_frame(rows: list[dict[str, Any]]) -> Any:
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows)
