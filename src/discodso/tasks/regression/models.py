"""From the expressions that a search has kept to a model: simplified, cut down, rated and chosen."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from discodso.base.arrays import Floats
from discodso.tasks.regression.evaluator import affine
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.front import Candidate, FrontKeeper, choose, marked_finite, undominated
from discodso.tasks.regression.model_choice import choose_model, cross_validated
from discodso.tasks.regression.operators import Operator
from discodso.tasks.regression.polish import polish
from discodso.tasks.regression.prune import prune
from discodso.tasks.regression.simplify import simplified

Data = tuple[Floats, Floats, Floats]  # X[n, d], y[n], and weights[n] that sum to 1
Loss = Callable[[Expression, Floats, Floats, Floats], float]
SHARE_OF_CALLS = 0.05  # of a budget, that is left for this
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
    front: list[Candidate]
    calls: int


def gathered(X: Floats, y: Floats, weights: Floats) -> Data:
    """Equal rows as one with the sum of their weights, none without weight, in an order that does not depend on
    how they came: repeating a row is weighing it, to the last bit."""
    table = np.column_stack((X, y))[weights > 0]
    rows, place = np.unique(table, axis=0, return_inverse=True)
    total = np.bincount(place.ravel(), weights=weights[weights > 0]).astype(np.float64)
    order = np.random.default_rng(0).permutation(len(rows))  # the first of sorted rows are no fair sample
    return rows[order, :-1], rows[order, -1], total[order]


def squared_loss(expression: Expression, X: Floats, y: Floats, weights: Floats) -> float:
    """Mean squared error, infinite if a prediction is not finite."""
    predicted = expression(X)
    with np.errstate(over="ignore"):
        return float(weights @ np.square(predicted - y)) if np.isfinite(predicted).all() else math.inf


def kept_expressions(
    keeper: FrontKeeper, columns: tuple[str, ...], operators: tuple[Operator, ...], seen: Data
) -> list[Expression]:
    """The expressions of a keeper, with scale and offset where it has rated a + b f."""
    found = [Expression(design, columns, operators) for design in keeper.designs]
    if keeper.fit.scaled:
        found = [_with_scale(expression, *seen) for expression in found]
    _, y, weights = seen
    # A constant is always a model, so that there is one even if nothing else was finite.
    return [*found, Expression.parse(repr(float(weights @ y)), columns)]


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
        selection: "auto" for `choose_model`, or one of those of `choose`.
        loss: what is minimised.
        polished: whether that is the squared error, so that constants may be fitted to it.
        widen: whether the model must be good outside the data.
    """
    calls = 0
    short = list(dict.fromkeys(simplified(expression) for expression in found))
    if polished:
        best = min(short, key=lambda e: (loss(e, *seen), len(e)))
        stages, calls = prune(best, *seen, const_range, room // 4)
        short = list(dict.fromkeys([*short, *(simplified(stage) for stage in stages)]))
    rated = [Candidate(e, complexity(e), loss(e, *seen)) for e in short]
    rated = sorted((c for c in rated if math.isfinite(c.loss)), key=lambda c: (c.loss, c.complexity))
    if unseen is not None:
        rated = [replace(c, validation_loss=loss(c.expression, *unseen)) for c in rated]
    elif polished:
        first = undominated(rated)
        rated = [*first, *(c for c in rated if c not in first)]
        count = min(max(room - calls, 0), len(rated))
        rated = [*(cross_validated(c, *seen) for c in rated[:count]), *rated[count:]]
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
        expression, used = polish(expression, *whole, const_range, max_calls=max(room - calls, 0))
        calls += used
        if chosen.finite and not marked_finite(replace(chosen, expression=expression), wide).finite:
            expression = chosen.expression
    front = [replace(c, expression=expression) if c is chosen else c for c in front]
    return Model(expression, front, calls)


def _cut_down(
    rated: list[Candidate],
    chosen: Candidate,
    seen: Data,
    const_range: tuple[float, float],
    room: int,
    widen: bool,
) -> tuple[list[Candidate], Candidate, int]:
    """Choose again among all and shorter versions of what was chosen, until that stands; and the calls it took."""
    calls = 0
    for _ in range(_ROUNDS):
        left = room - calls
        stages, used = prune(chosen.expression, *seen, const_range, max(left - _STAGES, 0), most=_MOST)
        known = {c.expression for c in rated}
        new = [e for e in dict.fromkeys(map(simplified, stages)) if e not in known][:_STAGES]
        found = [Candidate(e, complexity(e), squared_loss(e, *seen)) for e in new]
        found = [cross_validated(c, *seen) for c in found]
        calls += used + len(found)
        if not found:
            break
        rated = [*rated, *(marked_finite(c, seen[0]) if widen else c for c in found)]
        before, chosen = chosen, choose_model(rated, *seen, widen=widen)
        if chosen is before:
            break
    return rated, chosen, calls


def _chosen(
    rated: list[Candidate], seen: Data, unseen: Data | None, selection: str, widen: bool
) -> Candidate:
    if selection == "auto":
        return choose_model(rated, *seen, widen=widen)
    front = undominated(rated)
    if not any(c.finite for c in front):
        front = undominated([c for c in rated if c.finite]) or front
    # The relative standard error of a mean of n squared normal errors: less is no difference.
    tolerance = math.sqrt(2 / max(1, 0 if unseen is None else len(unseen[1])))
    return choose(front, selection, tolerance)


def _beside(candidate: Candidate, chosen: Candidate) -> bool:
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
