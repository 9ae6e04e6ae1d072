"""An expression as a function of NumPy arrays, or of torch tensors."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from discodso.base.errors import DeclarationError
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.operators import OPERATORS

_BY_TORCH: MappingProxyType[str, Callable[..., Any]] = MappingProxyType(
    {
        "inv": torch.reciprocal,
        "n2": lambda a: a * a,
        "n3": lambda a: a * a * a,
        "n4": lambda a: (a * a) * (a * a),
        **{name: getattr(torch, name) for name in OPERATORS if name not in ("inv", "n2", "n3", "n4")},
    }
)


def numpy_function(expression: Expression) -> Callable[..., Any]:
    """A function of one array for each column, any equal shapes."""

    def predict(*columns: Any) -> Any:
        expression.require_columns(len(columns))
        arrays = np.broadcast_arrays(*(np.asarray(column, dtype=np.float64) for column in columns))
        return expression(np.stack([a.ravel() for a in arrays], axis=1)).reshape(arrays[0].shape)

    return predict


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
            lambda operator, *operands: _BY_TORCH[operator.name](*operands),
        )
        return value.expand(zero.shape)

    return predict
