"""An expression as a function of NumPy arrays, or of torch tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from discodso.base.errors import DeclarationError
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.operators import OPERATORS

if TYPE_CHECKING:
    from torch import Tensor


def numpy_function(expression: Expression) -> Callable[..., Any]:
    """A function of one array for each column, any equal shapes."""

    def predict(*columns: Any) -> Any:
        _require_all(expression, columns)
        arrays = np.broadcast_arrays(*(np.asarray(column, dtype=np.float64) for column in columns))
        return expression(np.stack([a.ravel() for a in arrays], axis=1)).reshape(arrays[0].shape)

    return predict


@cache
def _by_torch() -> dict[str, Callable[..., Any]]:
    import torch

    return {
        **{name: getattr(torch, name) for name in OPERATORS if hasattr(torch, name)},
        "inv": torch.reciprocal,
        "n2": lambda a: a * a,
        "n3": lambda a: a * a * a,
        "n4": lambda a: (a * a) * (a * a),
    }


def torch_function(expression: Expression) -> Callable[..., Tensor]:
    """A differentiable function of one tensor for each column."""
    import torch  # here, since a search for equations does without

    for operator in filter(None, map(expression.operator, expression.design.tokens)):
        if not operator.is_built_in:
            raise DeclarationError(
                f"operator {operator.name!r} is your own, and torch has no function for it"
            )

    def predict(*columns: Tensor) -> Tensor:
        _require_all(expression, columns)
        zero = sum((column * 0 for column in columns), start=torch.zeros((), dtype=columns[0].dtype))
        value: Tensor = expression.fold(
            lambda index: columns[index],
            lambda number: torch.as_tensor(number, dtype=columns[0].dtype),
            lambda operator, *operands: _by_torch()[operator.name](*operands),
        )
        return value.expand(zero.shape)

    return predict


def _require_all(expression: Expression, columns: tuple[Any, ...]) -> None:
    if len(columns) != len(expression.columns):
        raise DeclarationError(f"the expression has {len(expression.columns)} columns, got {len(columns)}")
