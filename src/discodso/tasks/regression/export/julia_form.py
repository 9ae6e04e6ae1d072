"""An expression as a Julia function of one value, or vector, for each column."""

from __future__ import annotations

from discodso.tasks.regression.export.source import (
    ATOM,
    POWER,
    Part,
    Source,
    at_least,
    comment,
    identifiers,
    inputs,
    whole,
)
from discodso.tasks.regression.export.text_form import text
from discodso.tasks.regression.expression import Expression


class _Julia(Source):
    def pi(self) -> Part:
        return "pi", ATOM

    def power(self, base: Part, exponent: Part) -> Part:
        return f"{at_least(base, ATOM)}^{whole(exponent) or at_least(exponent, ATOM)}", POWER


def julia_source(expression: Expression, name: str = "predict") -> str:
    """A Julia function that is applied to every row; a DomainError where the formula is undefined."""
    names = identifiers(expression.columns)
    body = _Julia(expression, names).body()
    return (
        f"# {comment(text(expression))}\n# inputs: {inputs(names, expression)}\n"
        f"{name}({', '.join(names)}) = @. {body}\n"
    )
