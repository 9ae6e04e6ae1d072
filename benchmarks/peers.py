"""Other programs as the benchmarks run them: pyoperon and gplearn."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.errors import InvalidDesignError
from discodso.space.design import Design
from discodso.tasks.regression.evaluator import evaluate, jacobian
from discodso.tasks.regression.expression import CONST, Expression

_SINGLE = 1e-5  # what a build of single precision leaves of a perfect fit


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


@dataclass(frozen=True)
class Foreign:
    """What another program has found.

    Attributes:
        function: of X[n, d].
        length: nodes as that program counts them.
        text: as it writes it.
        expression: the same over scaled columns, which SymPy may write shorter.
    """

    function: Callable[[Floats], Any]
    length: int
    text: str
    expression: Expression | None = None

    def __call__(self, X: Any, /) -> Floats:
        """Values on the rows, float[n]."""
        with np.errstate(all="ignore"):
            return np.asarray(self.function(np.asarray(X)), dtype=np.float64)

    def __len__(self) -> int:
        return self.length


def operon_as_it_is(X: Floats, y: Floats, symbols: Iterable[str], seed: int, calls: int) -> Foreign:
    """pyoperon with its own settings: one objective, no local search, expressions of at most 50 nodes."""
    from pyoperon.sklearn import SymbolicRegressor

    model = SymbolicRegressor(
        allowed_symbols=",".join(sorted(symbols)),
        generations=10_000,
        max_evaluations=calls,
        n_threads=1,
        random_state=seed,
    ).fit(X, y)
    return _found_by_operon(model, X, y, np.ones(X.shape[1]), 1.0)


def operon_at_its_best(
    X: Floats, y: Floats, symbols: Iterable[str], seed: int, calls: int, noise: float
) -> Foreign:
    """pyoperon as someone would run it who knows it well, with as many evaluations.

    Columns and target are scaled to a size of 1; two objectives, fit and length; local search; the model is chosen
    by description length with the noise given, as a share of the deviation of the targets.
    """
    from pyoperon.sklearn import SymbolicRegressor

    scales, size = _sizes(X), float(np.std(y)) or 1.0
    model = SymbolicRegressor(
        allowed_symbols=",".join(sorted(symbols)),
        objectives=["r2", "length"],
        optimizer_iterations=5,
        max_length=32,
        generations=10_000,
        max_evaluations=calls,
        uncertainty=[max(noise, _SINGLE)],
        n_threads=1,
        random_state=seed,
    ).fit(X / scales, y / size)
    return _found_by_operon(model, X / scales, y / size, scales, size)


def _found_by_operon(model: Any, X: Floats, y: Floats, scales: Floats, size: float) -> Foreign:
    """Its constants, refined in double precision, since it computes in single precision.

    An intercept that changes nothing is dropped. Nodes are counted as it does: the weight of a variable is free.
    """
    names = [f"x{k + 1}" for k in range(X.shape[1])]
    length, words = int(model.stats_["model_length"]), model.get_model_string(model.model_, 15, names)
    own = float(np.sum(np.square(model.predict(X).astype(np.float64) - y)))
    try:
        found, dropped, loss = _refined(Expression.parse(words, names), X, y)
        if loss <= own or not np.isfinite(own):
            return Foreign(lambda rows: size * found(rows / scales), length - 2 * dropped, words, found)
    except InvalidDesignError:  # a number that it could not write
        pass
    return Foreign(lambda rows: size * model.predict(rows / scales), length, words)


def gplearn(X: Floats, y: Floats, seed: int, calls: int) -> Foreign:
    """gplearn with a thousand programs a generation, scaled columns, and one function more than its own.

    It looks for the largest correlation, and offset and slope are solved at the end.
    """
    from gplearn.functions import make_function
    from gplearn.genetic import SymbolicRegressor

    def exponential(values: Any) -> Any:
        with np.errstate(over="ignore"):
            return np.where(np.abs(values) < 100, np.exp(np.clip(values, -100, 100)), 0.0)

    exp = make_function(function=exponential, name="exp", arity=1, wrap=False)
    scales, size = _sizes(X), float(np.std(y)) or 1.0
    model = SymbolicRegressor(
        population_size=1000,
        generations=max(calls // 1000, 1),
        function_set=(*"add sub mul div sqrt log sin cos neg inv".split(), exp),
        metric="pearson",
        stopping_criteria=1 - 1e-13,
        random_state=seed,
    ).fit(X / scales, y / size)
    program, target = model._program, y / size
    values = model.predict(X / scales)
    slope = float(values @ target / (values @ values or 1.0))
    offset = 0.0
    alone = float(np.sum(np.square(slope * values - target)))
    line = np.polynomial.polynomial.polyfit(values, target, 1) if np.ptp(values) > 0 else [target.mean(), 0.0]
    loss = float(np.sum(np.square(line[0] + line[1] * values - target)))
    if alone > _as_good(loss, target):
        offset, slope = float(line[0]), float(line[1])
    length = len(program.program) + (2 if offset else 0) + (2 if abs(slope - 1) > 1e-9 else 0)
    names = [f"x{k + 1}" for k in range(X.shape[1])]
    words = re.sub(r"X(\d+)", lambda match: names[int(match[1])], str(program))
    return Foreign(
        lambda rows: size * (offset + slope * model.predict(rows / scales)),
        length,
        f"{offset:g} + {slope:g} * {words}",
        Expression.parse(f"{offset!r} + {slope!r} * {words}" if offset else f"{slope!r} * {words}", names),
    )


def _sizes(X: Floats) -> Floats:
    """The median size of each column, float[d]; 1 if that is 0."""
    sizes: Floats = np.median(np.abs(X), axis=0)
    return np.where(sizes > 0, sizes, 1.0)


def _as_good(loss: float, y: Floats) -> float:
    """How large a sum of squares may be to count as good as another, with a constant less."""
    return loss * (1 + 4 / len(y)) + 1e-12 * float(np.sum(np.square(y)))


def _refined(expression: Expression, X: Floats, y: Floats) -> tuple[Expression, bool, float]:
    """Constants by least squares; an outermost sum with a constant is dropped if that is as good, and True."""
    first, loss = _least_squares(expression, X, y)
    tokens, values = expression.design.tokens, expression.design.values
    if tokens[:2] != ("add", CONST):
        return first, False, loss
    rest = replace(expression, design=Design(tokens[2:], values[2:]))
    second, other = _least_squares(rest, X, y)
    return (second, True, other) if other <= _as_good(loss, y) else (first, False, loss)


def _least_squares(expression: Expression, X: Floats, y: Floats) -> tuple[Expression, float]:
    from scipy.optimize import least_squares

    def residuals(values: Floats) -> Floats:
        gaps = evaluate(expression.with_constants(values), X) - y
        return np.where(np.isfinite(gaps), np.clip(gaps, -1e100, 1e100), 1e100)

    def slopes(values: Floats) -> Floats:
        return np.nan_to_num(jacobian(expression.with_constants(values), X).T, posinf=1e100, neginf=-1e100)

    start = expression.constants
    if len(start) == 0:
        return expression, float(np.sum(np.square(residuals(start))))
    with np.errstate(all="ignore"):
        found = least_squares(
            residuals, start, slopes, x_scale="jac", xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=50
        )
    return expression.with_constants(found.x), float(2 * found.cost)
