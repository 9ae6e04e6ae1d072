"""Polishing the constants of expressions with SciPy: after a search, and of the best designs during one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from discodso.arrays import Floats
from discodso.design import Design, DesignBatch
from discodso.disco import DisCo
from discodso.method import Metrics
from discodso.state import State
from discodso.tasks.regression.evaluator import affine
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.front import FrontKeeper
from discodso.tasks.regression.operators import Operator


def polish(
    expression: Expression,
    X: Floats,
    y: Floats,
    weights: Floats,
    const_range: tuple[float, float] = (-np.inf, np.inf),
    max_calls: int = 200,
    scaled: bool = False,
) -> tuple[Expression, int]:
    """Least squares over the constants from where they are; the result never fits worse.

    With `scaled` the error is that of the best a + b f(x). Returns the expression and how often it was evaluated.
    """
    start = expression.constants
    if not len(start):
        return expression, 0
    calls = 0
    root = np.sqrt(weights)

    def residuals(constants: Floats) -> Floats:
        nonlocal calls
        calls += 1
        predicted = expression.with_constants(constants)(X)
        if not np.isfinite(predicted).all():
            return np.full(len(y), 1e100)
        if scaled:
            offset, slope = affine(predicted, y, weights)
            predicted = offset + slope * predicted
        return np.clip(root * (predicted - y), -1e100, 1e100)

    low, high = const_range
    inside = np.clip(start, np.nextafter(low, np.inf), np.nextafter(high, -np.inf))
    with np.errstate(all="ignore"):
        before = float(np.square(residuals(start)).sum())
        try:
            found = optimize.least_squares(
                residuals, inside, bounds=(low, high), x_scale="jac", max_nfev=max_calls
            )
        except (ValueError, np.linalg.LinAlgError):
            return expression, calls
        after = float(np.square(residuals(found.x)).sum())
    better = np.isfinite(found.x).all() and after < before
    return (expression.with_constants(found.x) if better else expression), calls


class PolishingDisCo:
    """DisCo that is also told the best designs of every batch with polished constants.

    A method like any other: one batch is asked for, and of its best designs those whose skeleton is new are
    polished. Their evaluations are counted in `polish_calls`, apart from the objective calls of the search.

    Args:
        disco: the method inside.
        keeper: rates designs and remembers the front.
        each: how many designs of a batch to polish.
    """

    def __init__(
        self,
        disco: DisCo,
        keeper: FrontKeeper,
        operators: tuple[Operator, ...],
        const_range: tuple[float, float],
        each: int = 5,
    ) -> None:
        self.disco = disco
        self.keeper = keeper
        self.batch_size = disco.batch_size
        self.polish_calls = 0
        self._operators = operators
        self._const_range = const_range
        self._each = each
        self._seen: dict[tuple[str, ...], float] = {}

    def ask(self, size: int | None = None) -> DesignBatch:
        """Designs of the method inside."""
        return self.disco.ask(size)

    def tell(
        self, designs: Sequence[Design], rewards: ArrayLike, weights: ArrayLike | None = None
    ) -> Metrics | None:
        """Tell them, and the polished ones with them."""
        told = np.array(rewards, dtype=np.float64)
        polished = self._polished(designs, told)
        if not polished:
            return self.disco.tell(designs, told)
        batch = self.disco.space.encode(polished)
        self.polish_calls += len(batch)
        both = DesignBatch.concatenate((self.disco.space.encode(designs), batch))
        return self.disco.tell(both, np.concatenate((told, self.keeper(batch))))

    def state(self) -> State:
        """Of the method inside, and which skeletons were polished from where."""
        seen = [[list(skeleton), reward] for skeleton, reward in self._seen.items()]
        own = State({}, {"polish_calls": self.polish_calls, "seen": seen})
        return State.of_parts({"disco": self.disco.state(), "polishing": own})

    def restore(self, state: State) -> None:
        """Go on from a state."""
        self.disco.restore(state.part("disco"))
        own = state.part("polishing").data
        self.polish_calls = int(own["polish_calls"])
        self._seen = {tuple(skeleton): float(reward) for skeleton, reward in own["seen"]}

    def _polished(self, designs: Sequence[Design], rewards: Floats) -> list[Design]:
        fit = self.keeper.fit
        found: list[Design] = []
        columns = tuple(f"x{i + 1}" for i in range(len(fit.columns)))
        for row in np.argsort(-rewards, kind="stable").tolist():
            if len(found) == self._each or not np.isfinite(rewards[row]):
                break
            design = designs[row]
            # A skeleton is tried again only from a start that is clearly better than the last one.
            if all(v is None for v in design.values) or self._seen.get(design.skeleton, -1.0) >= rewards[row]:
                continue
            expression, calls = polish(
                Expression(design, columns, self._operators),
                fit.columns.T,
                fit.target,
                fit.weights,
                self._const_range,
                max_calls=30,
                scaled=fit.scaled,
            )
            self.polish_calls += calls
            self._seen[design.skeleton] = 1.0 if expression.design != design else float(rewards[row])
            if expression.design != design:
                found.append(expression.design)
        return found
