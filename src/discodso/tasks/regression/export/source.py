"""What the source code forms share: templates, names that a language takes, comments that nothing can leave."""

from __future__ import annotations

import keyword
import re
from types import MappingProxyType

from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.operators import OPERATORS, Operator


def source(expression: Expression, templates: MappingProxyType[str, str], names: list[str]) -> str:
    """The formula in brackets, by a template for each operator, and a call for operators of one's own."""

    def apply(operator: Operator, *operands: str) -> str:
        template = templates.get(operator.name) if operator is OPERATORS.get(operator.name) else None
        return template.format(*operands) if template else f"{operator.name}({', '.join(operands)})"

    def number(value: float) -> str:
        return f"({value!r})" if value < 0 else repr(value)

    return expression.fold(lambda index: names[index], number, apply)


def identifiers(columns: tuple[str, ...]) -> list[str]:
    """Column names as identifiers of Python and C, all different."""
    taken: list[str] = []
    reserved = {
        *keyword.kwlist,
        "math",
        "abs",
        "double",
        "float",
        "int",
        "const",
        "return",
        "x",
        "predict",
        *OPERATORS,
    }
    for name in columns:
        base = re.sub(r"\W", "_", name, flags=re.ASCII) or "x"
        base = f"x_{base}" if base[0].isdigit() or base in reserved or base.startswith("_") else base
        candidate, count = base, 2
        while candidate in taken:
            candidate, count = f"{base}_{count}", count + 1
        taken.append(candidate)
    return taken


def comment(words: str) -> str:
    """Text that cannot end the comment or docstring it stands in."""
    return re.sub(r"[\r\n\\]", " ", words).replace("*/", "* /").replace('"""', "'''").strip('"')
