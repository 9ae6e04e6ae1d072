"""An expression as a function of NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from discodso.tasks.regression.expression import Expression


def numpy_function(expression: Expression) -> Callable[..., Any]:
    """A function of one array for each column, any equal shapes."""

    def predict(*columns: Any) -> Any:
        expression.require_columns(len(columns))
        arrays = [np.asarray(column, dtype=np.float64) for column in columns]
        with np.errstate(all="ignore"):
            value = expression.fold(
                lambda index: arrays[index],
                np.float64,
                lambda operator, *operands: operator.function(*operands),
            )
        return np.broadcast_to(value, np.broadcast_shapes(*(a.shape for a in arrays))).copy()

    return predict
