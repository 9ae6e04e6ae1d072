"""An expression as a differentiable function of torch tensors."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import torch

from discodso.base.errors import DeclarationError
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.operators import OPERATORS

_TORCH: MappingProxyType[str, Callable[..., Any]] = MappingProxyType(
    {
        "add": torch.add,
        "sub": torch.sub,
        "mul": torch.mul,
        "div": torch.div,
        "pow": torch.pow,
        "neg": torch.neg,
        "abs": torch.abs,
        "inv": torch.reciprocal,
        "n2": lambda a: a * a,
        "n3": lambda a: a * a * a,
        "n4": lambda a: (a * a) * (a * a),
        **{name: getattr(torch, name) for name in ("sin", "cos", "tan", "tanh", "exp", "log", "sqrt")},
    }
)


def torch_function(expression: Expression) -> Callable[..., torch.Tensor]:
    """A differentiable function of one tensor for each column."""
    for name in expression.design.tokens:
        own = expression.operator(name)
        if own is not None and own is not OPERATORS.get(name):
            raise DeclarationError(f"operator {name!r} is your own, and torch has no function for it")

    def predict(*columns: torch.Tensor) -> torch.Tensor:
        expression.require_columns(len(columns))
        zero = sum((column * 0 for column in columns), start=torch.zeros((), dtype=columns[0].dtype))
        value: torch.Tensor = expression.fold(
            lambda index: columns[index],
            lambda number: torch.as_tensor(number, dtype=columns[0].dtype),
            lambda operator, *operands: _TORCH[operator.name](*operands),
        )
        return value.expand(zero.shape)

    return predict
