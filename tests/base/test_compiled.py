"""Compiled functions: once for the kinds of their arguments, and not for Python where they are inner ones."""

import numpy as np
import pytest

from discodso.base.compiled import compiled


@compiled(inner=True, cache=False)
def total(x, squared, count):
    found = 0.0
    for j in range(count):
        found += x[j] * x[j] if squared else x[j]
    return found


@compiled(cache=False)
def both(x):
    return total(x, True, 2) + 100 * total(x, squared=False, count=len(x))


def test_constants_as_arguments_make_no_versions_of_a_function():
    assert both(np.array([1.0, 2.0, 3.0])) == 5 + 600
    assert len(total.signatures) == len(both.signatures) == 1


def test_an_inner_function_is_not_for_python():
    both(np.ones(2))
    with pytest.raises(TypeError, match="total is for compiled functions only"):
        total(np.ones(2), True, 2)
