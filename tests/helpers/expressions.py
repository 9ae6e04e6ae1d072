"""Random expressions, and rows where their values are no matter of rounding."""

from __future__ import annotations

import numpy as np

from discodso.disco.sampling import sample
from discodso.disco.uniform import UniformStepper
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.expression_space import RegressionSpace
from discodso.tasks.regression.operators import OPERATORS

EVERYTHING = RegressionSpace(
    library=(*OPERATORS, "1", "2.5", "const"), min_length=1, max_length=24, const_range=(-3, 3)
)


def drawn(seed, space=EVERYTHING):
    built = space.build(3)
    design = sample(built, UniformStepper(built), 1, np.random.default_rng(seed)).designs[0]
    return Expression(design, ("a", "b", "c"))


def tame_values(expression, X, rng):
    """Values, and rows where no step overflows and a hair's breadth beside it is nearly the same value."""

    def steps(constants, rows):
        finite = np.ones(len(rows), bool)

        def apply(operator, *operands):
            values = operator.function(*operands)
            finite[:] &= np.isfinite(values) & (np.abs(values) < 1e8)
            # Nothing so small that its reciprocal, or the digits of a sum, are lost.
            finite[:] &= (np.abs(values) > 1e-8) | (values == 0)
            return values

        with np.errstate(all="ignore"):
            column, number = (lambda i: rows[:, i]), (lambda value: np.full(len(rows), value))
            return expression.with_constants(constants).fold(column, number, apply), finite

    values, sure = steps(expression.constants, X)
    with np.errstate(all="ignore"):
        for _ in range(4):
            moved = expression.constants * (1 + 1e-10 * rng.normal(size=len(expression.constants)))
            beside, finite = steps(moved, X * (1 + 1e-10 * rng.normal(size=X.shape)))
            sure &= finite & (np.abs(beside - values) <= 1e-7 * (1e-2 + np.abs(values)))
    return values, sure
