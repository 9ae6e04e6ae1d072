"""An expression as a MATLAB function of a matrix."""

from __future__ import annotations

from discodso.tasks.regression.export.source import (
    ATOM,
    POWER,
    Part,
    Source,
    at_least,
    comment,
    inputs,
    whole,
)
from discodso.tasks.regression.export.text_form import text
from discodso.tasks.regression.expression import Expression


class _Matlab(Source):
    times, over = " .* ", " ./ "

    def pi(self) -> Part:
        return "pi", ATOM

    def power(self, base: Part, exponent: Part) -> Part:
        return f"{at_least(base, ATOM)}.^{whole(exponent) or at_least(exponent, ATOM)}", POWER


def matlab_source(expression: Expression, name: str = "predict") -> str:
    """A MATLAB function of x[n, d], for a file of its own; complex where the formula is undefined."""
    names = [f"x(:, {i + 1})" for i in range(len(expression.columns))]
    body = _Matlab(expression, names).body()
    body = body if "x(:" in body else f"{body} + zeros(size(x, 1), 1)"
    return (
        f"function y = {name}(x)\n% {comment(text(expression))}\n% inputs: {inputs(names, expression)}\n"
        f"y = {body};\nend\n"
    )
