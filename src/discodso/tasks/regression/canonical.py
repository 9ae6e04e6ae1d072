"""The shortest expression that is found for what an expression says: its normal form as an `Expression` again."""

from __future__ import annotations

from dataclasses import replace

from discodso.space.design import Design
from discodso.tasks.regression.arrangement import arrangement, tokens
from discodso.tasks.regression.expression import Expression


def canonical(expression: Expression) -> Expression:
    """An expression that is no longer, and equal up to rounding wherever this one is defined.

    Numbers of the design that are no constants stay so; constants stay free to be fitted again.
    """
    for _ in range(2):  # what is shorter may show more to merge
        try:
            short = replace(expression, design=Design.of(*tokens(arrangement(expression, brackets=0))))
        except RecursionError:  # nested too deeply
            return expression
        if len(short) >= len(expression):
            return short if len(short) == len(expression) else expression
        expression = short
    return expression
