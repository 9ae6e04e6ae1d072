"""From the expressions that a search has kept to a model: rewritten, cut down, rated and chosen."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from discodso.base.arrays import Floats
from discodso.tasks.regression.constants_fit import fit_constants
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.front import (
    FrontKeeper,
    FrontPoint,
    choose_by_rule,
    marked_finite,
    undominated,
)
from discodso.tasks.regression.losses import affine, squared_loss
from discodso.tasks.regression.model_choice import choose_model, with_leave_one_out_error
from discodso.tasks.regression.operators import Operator
from discodso.tasks.regression.prune import prune
from discodso.tasks.regression.rewriting import rewritten

Data = tuple[Floats, Floats, Floats]  # X[n, d], y[n], and weights[n] that sum to 1
Loss = Callable[[Expression, Floats, Floats, Floats], float]
SHARE_OF_CALLS = 0.05  # of a budget, that is left for this
_LEAST_CALLS = 60
_CALLS_EACH = (
    4  # kept expressions, at most: scale, loss, leave-one-out error, and as much again for cutting down
)
_ROUNDS = 3  # of cutting down what was chosen, and choosing again
_STAGES = 30  # of that, at most
_MOST = 1.2  # times the error of what was chosen: what fits worse need not be cut further


@dataclass(frozen=True)
class Model:
    """What comes of a search.

    Attributes:
        expression: the chosen one.
        front: the accuracy-complexity front with the chosen candidate in it, by rising complexity.
        calls: objective calls that were spent on it.
    """

    expression: Expression
    front: list[FrontPoint]
    calls: int


def gathered(X: Floats, y: Floats, weights: Floats) -> Data:
    """Equal rows as one with the sum of their weights, none without weight, in an order that does not depend on
    how they came: repeating a row is weighing it, to the last bit."""
    table = np.column_stack((X, y))[weights > 0]
    rows, place = np.unique(table, axis=0, return_inverse=True)
    total = np.bincount(place.ravel(), weights=weights[weights > 0]).astype(np.float64)
    order = np.random.default_rng(0).permutation(len(rows))  # the first of sorted rows are no fair sample
    return rows[order, :-1], rows[order, -1], total[order]


def calls_for_choice(budget: int) -> int:
    """Of a budget, what is left for the choice of a model."""
    return min(max(int(SHARE_OF_CALLS * budget), _LEAST_CALLS), budget // 2)


def kept_expressions(
    keeper: FrontKeeper, columns: tuple[str, ...], operators: tuple[Operator, ...], seen: Data, room: int
) -> tuple[list[Expression], int]:
    """The expressions of a keeper, with scale and offset where it has rated a + b f, and the calls that took.

    There are no more than `room` calls are enough for: each needs one for scale and offset, one for its loss, and
    one for its leave-one-out error. The best of every complexity come first.
    """
    designs = keeper.designs[: room // _CALLS_EACH]
    found = [Expression(design, columns, operators) for design in designs]
    if keeper.fit.scaled:
        found = [_with_scale(expression, *seen) for expression in found]
    _, y, weights = seen
    # A constant is always a model, so that there is one even if nothing else was finite.
    constant = Expression.parse(repr(float(weights @ y)), columns)
    return [*found, constant], len(found) if keeper.fit.scaled else 0


def make_model(
    found: list[Expression],
    seen: Data,
    unseen: Data | None = None,
    *,
    room: int,
    selection: str = "auto",
    loss: Loss = squared_loss,
    polished: bool = True,
    widen: bool = True,
    const_range: tuple[float, float] = (-math.inf, math.inf),
) -> Model:
    """Choose from expressions, with no more than `room` objective calls.

    Args:
        seen: the data of the search.
        unseen: held-out data, for the selection "validation"; the chosen expression is fitted to both at the end.
        selection: "auto" for `choose_model`, or one of those of `choose_by_rule`.
        loss: what is minimised.
        polished: whether that is the squared error, so that constants may be fitted to it.
        widen: whether the model must be good outside the data.
    """
    short = list(dict.fromkeys(rewritten(expression) for expression in found))
    constants = [
        e for e in short if len(e) == 1 and len(e.constants)
    ]  # whose losses follow from the variance
    rest = [e for e in short if e not in constants][:room]
    losses = {e: loss(e, *seen) for e in (*rest, *constants)}
    short, calls = [*rest, *constants], len(rest)
    if polished:
        best = min(short, key=lambda e: (losses[e], len(e)))
        stages, used = prune(best, *seen, const_range, min(room // 4, max(room - calls, 0)))
        calls += used
        for stage in map(rewritten, stages):
            if stage not in losses and calls < room:
                losses[stage] = loss(stage, *seen)
                calls += 1
    rated = [FrontPoint(e, complexity(e), value) for e, value in losses.items()]
    rated = sorted((c for c in rated if math.isfinite(c.loss)), key=lambda c: (c.loss, c.complexity))
    if unseen is not None:
        rated = [replace(c, validation_loss=loss(c.expression, *unseen)) for c in rated]
        calls += len(rated)
    elif polished:
        first = undominated(rated)
        rated = [*first, *(c for c in rated if c not in first)]
        count = min(max(room - calls, 0), len(rated))
        rated = [*(with_leave_one_out_error(c, *seen) for c in rated[:count]), *rated[count:]]
        calls += count
    wide = seen[0] if unseen is None else np.concatenate((seen[0], unseen[0]))
    if widen:
        rated = [marked_finite(c, wide) for c in rated]
    chosen = _chosen(rated, seen, unseen, selection, widen)
    if polished and unseen is None and selection == "auto":
        rated, chosen, used = _cut_down(rated, chosen, seen, const_range, room - calls, widen)
        calls += used
    front = undominated([c for c in rated if c is chosen or _beside(c, chosen)])
    expression = chosen.expression
    if unseen is not None and polished:
        whole = _joined(seen, unseen)
        expression, used = fit_constants(expression, *whole, const_range, max_calls=max(room - calls, 0))
        calls += used
        if chosen.finite and not marked_finite(replace(chosen, expression=expression), wide).finite:
            expression = chosen.expression
    front = [replace(c, expression=expression) if c is chosen else c for c in front]
    return Model(expression, front, calls)


def _cut_down(
    rated: list[FrontPoint],
    chosen: FrontPoint,
    seen: Data,
    const_range: tuple[float, float],
    room: int,
    widen: bool,
) -> tuple[list[FrontPoint], FrontPoint, int]:
    """Choose again among all and shorter versions of what was chosen, until that stands; and the calls it took."""
    calls = 0
    for _ in range(_ROUNDS):
        left = room - calls
        stages, used = prune(chosen.expression, *seen, const_range, max(left - 2 * _STAGES, 0), most=_MOST)
        known = {c.expression for c in rated}
        most = min(_STAGES, max(left - used, 0) // 2)
        new = [e for e in dict.fromkeys(map(rewritten, stages)) if e not in known][:most]
        found = [FrontPoint(e, complexity(e), squared_loss(e, *seen)) for e in new]
        found = [with_leave_one_out_error(c, *seen) for c in found]
        calls += used + 2 * len(found)
        if not found:
            break
        rated = [*rated, *(marked_finite(c, seen[0]) if widen else c for c in found)]
        before, chosen = chosen, choose_model(rated, *seen, widen=widen)
        if chosen is before:
            break
    return rated, chosen, calls


def _chosen(
    rated: list[FrontPoint], seen: Data, unseen: Data | None, selection: str, widen: bool
) -> FrontPoint:
    if selection == "auto":
        return choose_model(rated, *seen, widen=widen)
    front = undominated(rated)
    if not any(c.finite for c in front):
        front = undominated([c for c in rated if c.finite]) or front
    # The relative standard error of a mean of n squared normal errors: less is no difference.
    tolerance = math.sqrt(2 / max(1, 0 if unseen is None else len(unseen[1])))
    return choose_by_rule(front, selection, tolerance)


def _beside(candidate: FrontPoint, chosen: FrontPoint) -> bool:
    """Whether a candidate may stand on a front with the chosen one."""
    simpler = candidate.complexity < chosen.complexity and candidate.loss > chosen.loss
    return simpler or (candidate.complexity > chosen.complexity and candidate.loss < chosen.loss)


def complexity(expression: Expression) -> float:
    """The sum over its tokens."""
    tokens = expression.design.tokens
    return float(sum(o.complexity if (o := expression.operator(name)) else 1.0 for name in tokens))


def _with_scale(expression: Expression, X: Floats, y: Floats, weights: Floats) -> Expression:
    """The best a + b f for an f that was rated by it."""
    predicted = expression(X)
    if not np.isfinite(predicted).all():
        return expression
    offset, slope = affine(predicted, y, weights)
    return expression.scaled(offset, slope) if slope else expression


def _joined(seen: Data, unseen: Data) -> Data:
    """Both, each row with as much weight as it had."""
    sizes = len(seen[1]), len(unseen[1])
    weights = np.concatenate((sizes[0] * seen[2], sizes[1] * unseen[2]))
    return np.concatenate((seen[0], unseen[0])), np.concatenate((seen[1], unseen[1])), weights / weights.sum()
