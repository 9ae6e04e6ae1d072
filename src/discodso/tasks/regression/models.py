"""From the expressions that a search has kept to a model: rewritten, cut down, rated and chosen."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from discodso.base.arrays import Floats
from discodso.space.design import Design
from discodso.tasks.regression import model_choice as choice
from discodso.tasks.regression.canonical import canonical
from discodso.tasks.regression.data import GivenData, Rows
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.front import FrontKeeper, FrontPoint, as_rows, undominated
from discodso.tasks.regression.losses import affine, squared_loss
from discodso.tasks.regression.operators import Costs
from discodso.tasks.regression.options import REALS, Range
from discodso.tasks.regression.precision import snapped
from discodso.tasks.regression.prune import fit_constants, prune

Loss = Callable[[Expression, Floats, Floats, Floats], float]
_SHARE_OF_CALLS = 0.05  # of a budget, that is left for this
_LEAST_CALLS = 60
# For each kept expression, at most: scale, loss, leave-one-out error, and as much again for cutting down.
_CALLS_EACH = 4
_ROUNDS = 3  # of cutting down what was chosen, and choosing again
_STAGES = 30  # of that, at most
_MOST = 1.2  # times the error of what was chosen: what fits worse need not be cut further


@dataclass(frozen=True)
class Model:
    """What comes of a search.

    Attributes:
        expression: the chosen one.
        front: the accuracy-complexity front with the chosen expression in it, by rising complexity.
        calls: objective calls that were spent on it.
    """

    expression: Expression
    front: list[FrontPoint]
    calls: int


@dataclass(frozen=True)
class FoundEquation(Model):
    """A model that a run has found; its calls are those of the search and of the choice.

    Attributes:
        data: that it was found on.
        kept: the best designs of every complexity that the search had kept.
        parts: the unknown functions and the constants of a template, by name.
        complete: cost of operators and inputs up to which every expression was tried, with any coefficients; 0 if
            none was.
    """

    data: GivenData
    kept: tuple[Design, ...]
    parts: Mapping[str, Expression | float] = field(default_factory=dict)
    complete: int = 0

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The front as plain data."""
        return as_rows(self.front, self.expression)

    @property
    def complexity(self) -> float:
        """Of the chosen expression, as its front has it."""
        own = (p.complexity for p in self.front if p.expression.design == self.expression.design)
        return next(own, self.expression.complexity)

    @property
    def r2(self) -> float:
        """The share of the variance that it explains, on all rows."""
        residual = float(np.square(self.expression(self.data.X) - self.data.y).sum())
        spread = float(np.square(self.data.y - self.data.y.mean()).sum())
        return 1 - residual / spread if spread > 0 else float(residual == 0)


def calls_for_choice(budget: int) -> int:
    """Of a budget, what is left for the choice of a model."""
    return min(max(int(_SHARE_OF_CALLS * budget), _LEAST_CALLS), budget // 2)


def kept_expressions(
    keeper: FrontKeeper, columns: tuple[str, ...], seen: Rows, room: int
) -> tuple[list[Expression], int]:
    """The expressions of a keeper, with scale and offset where it has rated a + b f, and the calls that took.

    There are no more than `room` calls are enough for: each needs one for scale and offset, one for its loss, and
    one for its leave-one-out error. The best of every complexity come first.
    """
    own = tuple(keeper.fit.program.own.values())
    found = [Expression(design, columns, own) for design in keeper.designs[: room // _CALLS_EACH]]
    X, y, weights = seen
    if keeper.fit.scaled:
        with np.errstate(all="ignore"):  # what is not finite has no slope
            lines = [affine(f(X), y, weights) for f in found]
        found = [f.scaled(*line) if line[1] else f for f, line in zip(found, lines, strict=True)]
    # A constant is always a model, so that there is one even if nothing else was finite.
    constant = Expression.parse(repr(float(weights @ y)), columns)
    return [*found, constant], len(found) if keeper.fit.scaled else 0


def make_model(
    found: list[Expression],
    seen: Rows,
    unseen: Rows | None = None,
    *,
    room: int,
    selection: str = "auto",
    loss: Loss = squared_loss,
    refines: bool = True,
    widen: bool = True,
    const_range: Range = REALS,
    costs: Costs | None = None,
    rewrites: bool = True,
    agrees: Callable[[Expression], bool] = lambda expression: True,
) -> Model:
    """Choose from expressions, with no more than `room` objective calls.

    Args:
        seen: the data of the search; weights of both sum to 1.
        unseen: held-out data, for the selection "validation"; the chosen expression is fitted to both at the end.
        selection: "auto" for `model_choice.choose`, or one of those of `choose_by_rule`.
        loss: what is minimised.
        refines: whether that is the squared error, so that constants may be fitted to it.
        widen: whether the model must be good outside the data.
        rewrites: whether expressions may be cut down, and their constants be fitted and snapped, one by one.
        costs: of tokens, by which complexity is counted; None for the number of tokens.
        agrees: whether an expression may be considered, as units have it.
    """
    short = list(dict.fromkeys(map(canonical, found)))
    short = [e for e in short if agrees(e)] or short
    # The losses of constants follow from the variance.
    constants = [e for e in short if len(e) == 1 and len(e.constants)]
    rest = [e for e in short if e not in constants][:room]
    losses = {e: loss(e, *seen) for e in (*rest, *constants)}
    calls = len(rest)
    if refines and rewrites:
        best = min(losses, key=lambda e: (losses[e], len(e)))
        stages, used = prune(best, seen, const_range, min(room // 4, max(room - calls, 0)), agrees=agrees)
        calls += used
        for stage in map(canonical, stages):
            if stage not in losses and calls < room:
                losses[stage] = loss(stage, *seen)
                calls += 1
    points = [FrontPoint(e, e.cost(costs), value) for e, value in losses.items() if math.isfinite(value)]
    points.sort(key=lambda p: (p.loss, p.complexity))
    both = seen if unseen is None else _joined(seen, unseen)
    if unseen is not None:
        points = [replace(p, validation_loss=loss(p.expression, *unseen)) for p in points]
        calls += len(points)
    elif refines:
        first = undominated(points)
        points = [*first, *(p for p in points if p not in first)]
        count = min(max(room - calls, 0), len(points))
        points[:count] = [choice.with_leave_one_out_error(p, *seen) for p in points[:count]]
        calls += count
    if widen:
        points = [choice.marked_finite(p, both[0]) for p in points]
    chosen = _chosen(points, seen, unseen, selection, widen)
    if refines and rewrites and unseen is None and selection == "auto":
        points, chosen, used = _cut_down(
            points, chosen, seen, const_range, room - calls, widen, costs, agrees
        )
        calls += used
    expression = chosen.expression
    if refines and rewrites and unseen is not None:
        expression, used = fit_constants(expression, both, const_range, max_calls=max(room - calls, 0))
        calls += used
        if chosen.finite and not choice.marked_finite(replace(chosen, expression=expression), both[0]).finite:
            expression = chosen.expression
    elif refines and rewrites and selection == "auto":
        simple, used = snapped(expression, *both, const_range, max(room - calls, 0))
        calls += used
        # A constant with a unit stays, even if it is 1.
        expression = simple if agrees(simple) or not agrees(expression) else expression
    last = replace(chosen, expression=expression, complexity=expression.cost(costs))
    others = [p for p in points if p is not chosen and _beside(p, last)]
    return Model(expression, undominated([last, *others]), calls)


def _cut_down(
    points: list[FrontPoint],
    chosen: FrontPoint,
    seen: Rows,
    const_range: Range,
    room: int,
    widen: bool,
    costs: Costs | None,
    agrees: Callable[[Expression], bool],
) -> tuple[list[FrontPoint], FrontPoint, int]:
    """Choose again among all and shorter versions of what was chosen, until that stands; and the calls it took."""
    calls = 0
    for _ in range(_ROUNDS):
        left = room - calls
        most_calls = max(left - 2 * _STAGES, 0)
        stages, used = prune(chosen.expression, seen, const_range, most_calls, _MOST, agrees)
        known = {p.expression for p in points}
        most = min(_STAGES, max(left - used, 0) // 2)
        new = [e for e in dict.fromkeys(map(canonical, stages)) if e not in known][:most]
        found = [FrontPoint(e, e.cost(costs), squared_loss(e, *seen)) for e in new]
        found = [choice.with_leave_one_out_error(p, *seen) for p in found]
        calls += used + 2 * len(found)
        if not found:
            break
        points = [*points, *(choice.marked_finite(p, seen[0]) if widen else p for p in found)]
        before, chosen = chosen, choice.choose(points, *seen, widen=widen)
        if chosen is before:
            break
    return points, chosen, calls


def _chosen(
    points: list[FrontPoint], seen: Rows, unseen: Rows | None, selection: str, widen: bool
) -> FrontPoint:
    if selection == "auto":
        return choice.choose(points, *seen, widen=widen)
    front = undominated(points)
    if not any(p.finite for p in front):
        front = undominated([p for p in points if p.finite]) or front
    # The relative standard error of a mean of n squared normal errors: less is no difference.
    tolerance = math.sqrt(2 / max(1, 0 if unseen is None else len(unseen[1])))
    return choice.choose_by_rule(front, selection, tolerance)


def _beside(point: FrontPoint, chosen: FrontPoint) -> bool:
    """Whether a point may stand on a front with the chosen one."""
    simpler = point.complexity < chosen.complexity and point.loss > chosen.loss
    return simpler or (point.complexity > chosen.complexity and point.loss < chosen.loss)


def _joined(seen: Rows, unseen: Rows) -> Rows:
    """Both, each row with as much weight as it had."""
    X, y = (np.concatenate(parts) for parts in zip(seen[:2], unseen[:2], strict=True))
    weights = np.concatenate([len(rows[1]) * rows[2] for rows in (seen, unseen)])
    return X, y, weights / weights.sum()
