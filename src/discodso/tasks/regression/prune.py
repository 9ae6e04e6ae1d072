"""Shorter versions of an expression: parts that carry nothing are cut out, and the constants fitted again by least
squares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np
from scipy import optimize

from discodso.base.arrays import Floats
from discodso.space.design import Design, Part
from discodso.tasks.regression.data import Rows
from discodso.tasks.regression.evaluator import compiled
from discodso.tasks.regression.expression import CONST, Expression
from discodso.tasks.regression.expression_space import Fit
from discodso.tasks.regression.losses import scaled_error, squared_loss
from discodso.tasks.regression.options import REALS, Range

_TRIED_WITH_FIT = 6


def shorter(expression: Expression) -> Iterator[Expression]:
    """Every expression with one subtree replaced by one of its operands, or by a constant."""
    items = list(expression.design)
    ends = _ends(expression)
    for start, end in enumerate(ends):
        if end - start == 1:
            continue
        pieces: list[list[Part]] = [[Part(CONST, 1.0)]]
        child = start + 1
        while child < end:
            pieces.append(items[child : ends[child]])
            child = ends[child]
        for piece in pieces:
            names, values = zip(*items[:start], *piece, *items[end:], strict=True)
            yield replace(expression, design=Design(names, values))


def _ends(expression: Expression) -> list[int]:
    """For each position, where the subtree that begins there ends."""
    ends = [0] * len(expression)
    for position in range(len(expression) - 1, -1, -1):
        operator = expression.operator(expression.design.tokens[position])
        end = position + 1
        for _ in range(operator.arity if operator else 0):
            end = ends[end]
        ends[position] = end
    return ends


def prune(
    expression: Expression,
    rows: Rows,
    const_range: Range = REALS,
    max_calls: int = 10_000,
    most: float = np.inf,
    agrees: Callable[[Expression], bool] = lambda expression: True,
) -> tuple[list[Expression], int]:
    """Cut greedily, one subtree at a time; returns every stage, longest first, and the calls made.

    It ends when the error is more than `most` times what it was. Versions that do not agree are passed over.
    """
    X, y, weights = rows
    stages: list[Expression] = []
    calls = 0
    limit = most * squared_loss(expression, *rows) + 1e-300 if np.isfinite(most) else np.inf
    while len(expression) > 3:
        rated = []
        for cut in shorter(expression):
            if calls == max_calls:
                return stages, calls
            if not agrees(cut):
                continue
            calls += 1
            # After the best line through its predictions: a guess of what a fit of the constants will give.
            rated.append((scaled_error(cut(X), y, weights), len(cut), cut))
        found: list[tuple[float, Expression]] = []
        for _, _, cut in sorted(rated, key=lambda entry: entry[:2])[:_TRIED_WITH_FIT]:
            fitted, used = fit_constants(cut, rows, const_range, max(0, min(40, max_calls - calls - 1)))
            calls += used
            found.append((squared_loss(fitted, *rows), fitted))
        if not found:
            break
        loss, best = min(found, key=lambda entry: entry[0])
        if not np.isfinite(loss):
            break
        stages.append(best)
        expression = best
        if loss > limit:
            break
    return stages, calls


class _EnoughError(Exception):
    """No calls are left."""


def fit_constants(
    expression: Expression, rows: Rows, const_range: Range = REALS, max_calls: int = 200
) -> tuple[Expression, int]:
    """Least squares from where the constants are; the result never fits worse. The weights sum to 1.

    Returns the expression and the calls made, at most `max_calls`; as in a search, a Jacobian counts as one.
    Operators of one's own have no derivative: there SciPy takes differences, and all that it evaluates counts.
    """
    if not len(expression.constants) or max_calls < 1:
        return expression, 0
    if expression.operators:
        return _by_differences(expression, rows, const_range, max_calls)
    X, y, weights = rows
    program, batch = compiled(expression, const_range)
    columns = np.ascontiguousarray(np.asarray(X, dtype=np.float64).T)
    fitted = Fit(program, columns, y, weights).refine(batch, np.array([max_calls]), least_gain=1e-9)
    return replace(expression, design=fitted.designs[0]), int(fitted.calls[0])


def _by_differences(
    expression: Expression, rows: Rows, const_range: Range, max_calls: int
) -> tuple[Expression, int]:
    X, y, weights = rows
    calls, root = 0, np.sqrt(weights)
    best, least = expression.constants, np.inf

    def residuals(constants: Floats) -> Floats:
        nonlocal calls, best, least
        if calls == max_calls:
            raise _EnoughError
        calls += 1
        predicted = expression.with_constants(constants)(X)
        if not np.isfinite(predicted).all():
            return np.full(len(y), 1e100)
        found = np.clip(root * (predicted - y), -1e100, 1e100)
        error = float(np.square(found).sum())
        if error < least:
            best, least = np.array(constants), error
        return found

    low, high = const_range
    inside = np.clip(expression.constants, np.nextafter(low, np.inf), np.nextafter(high, -np.inf))
    with np.errstate(all="ignore"), suppress(_EnoughError, ValueError, np.linalg.LinAlgError):
        residuals(expression.constants)
        optimize.least_squares(residuals, inside, bounds=(low, high), x_scale="jac")
    return expression.with_constants(best), calls
