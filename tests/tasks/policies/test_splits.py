"""Splits: how they are written."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discodso.tasks.policies.splits import Split, comparisons


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), st.integers(2, 6))
def test_rounded_thresholds_differ_if_the_thresholds_do_and_are_close(values, digits):
    thresholds = [*values, *(np.nextafter(v, 2 * v + 1) for v in values[:2])]
    texts = comparisons(tuple((Split(0, float(threshold)), 2) for threshold in thresholds), digits)
    shown = [text.removeprefix("< ") for text in texts]
    for a, text in zip(thresholds, shown, strict=True):
        assert float(text) == pytest.approx(a, rel=0.51 * 10.0 ** (1 - digits))
        assert text != "-0"
        for b, other in zip(thresholds, shown, strict=True):
            assert (a == b) == (text == other)
