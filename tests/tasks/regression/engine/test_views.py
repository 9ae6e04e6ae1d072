"""Where a target is densest, if it has long tails."""

import numpy as np
import pytest

from discodso.tasks.regression.engine.views import centre


@pytest.mark.parametrize("seed", range(5))
def test_an_offset_of_a_product_of_many_factors_is_found(seed):
    rng = np.random.default_rng(seed)
    product = np.exp(3 * rng.standard_normal(1000)) * rng.choice([-1, 1], 1000)
    assert centre(32 + product) == pytest.approx(32, abs=0.1)
    assert centre(product) == 0.0


def test_other_targets_have_no_centre():
    rng = np.random.default_rng(0)
    assert centre(5 + rng.standard_normal(1000)) == 0.0
    assert centre(np.exp(3 * rng.standard_normal(1000))) == 0.0  # one tail only
    assert centre(np.full(50, 2.0)) == 0.0
