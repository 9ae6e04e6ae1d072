"""An expression as text, as people write it."""

from __future__ import annotations

from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.operators import Operator

_SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(5)


def text(expression: Expression, digits: int = 6) -> str:
    """Infix with as few brackets as possible, and the names of the columns."""

    def number(value: float) -> tuple[str, int]:
        shown = f"{value:.{digits}g}"
        return shown, _SIGN if shown.startswith("-") else _ATOM

    def bracket(part: tuple[str, int], least: int) -> str:
        return part[0] if part[1] >= least else f"({part[0]})"

    def apply(operator: Operator, *parts: tuple[str, int]) -> tuple[str, int]:
        match operator.name:
            case "add":
                return f"{bracket(parts[0], _SUM)} + {bracket(parts[1], _PRODUCT)}", _SUM
            case "sub":
                return f"{bracket(parts[0], _SUM)} - {bracket(parts[1], _PRODUCT)}", _SUM
            case "mul":
                return f"{bracket(parts[0], _PRODUCT)} * {bracket(parts[1], _SIGN)}", _PRODUCT
            case "div":
                return f"{bracket(parts[0], _PRODUCT)} / {bracket(parts[1], _POWER)}", _PRODUCT
            case "pow":
                return f"{bracket(parts[0], _ATOM)}^{bracket(parts[1], _ATOM)}", _POWER
            case "n2" | "n3" | "n4":
                return f"{bracket(parts[0], _ATOM)}^{operator.name[1]}", _POWER
            case "neg":
                return f"-{bracket(parts[0], _POWER)}", _SIGN
            case "inv":
                return f"1 / {bracket(parts[0], _POWER)}", _PRODUCT
        return f"{operator.name}({', '.join(part[0] for part in parts)})", _ATOM

    return expression.fold(lambda index: (expression.columns[index], _ATOM), number, apply)[0]
