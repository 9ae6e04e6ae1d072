"""Splits: how they are written, and what they leave open below them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixed_trees import NUMBERS, any_points, mixed_policies, mixed_space

from discodso.tasks.policies.splits import Oblique, Split, comparisons


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


def test_sums_are_written_as_people_write_them():
    split = Oblique(((0, 1.0), (2, -0.25), (3, -1.0)), 0.5)
    assert split.subject("a b c d".split().__getitem__, 3) == "a - 0.25 * c - d"
    assert Oblique(((0, -1.0), (1, 1234.5678)), 0.5).subject("ab".__getitem__, 3) == "-a + 1.23e+03 * b"


@given(st.integers(0, 2**32 - 1))
def test_a_sum_goes_to_a_side_that_it_says_it_never_does_for_no_observation(seed):
    rng = np.random.default_rng(seed)
    split = Oblique(
        tuple((n, float(w)) for n, w in enumerate(rng.choice([-1, -0.3, 1, 2.5], 3))), float(rng.normal())
    )
    ends = rng.normal(size=(3, 2)).round(1)
    known = {n: (min(pair), max(pair)) for n, pair in enumerate(ends.tolist()) if rng.random() < 0.8}
    known = {n: (low if rng.random() < 0.8 else -np.inf, high if rng.random() < 0.8 else np.inf)
             for n, (low, high) in known.items() if low < high}  # fmt: skip
    left, right = split.sides(known)
    for _ in range(300):
        x = []
        for n in range(3):
            low, high = known.get(n, (-np.inf, np.inf))
            inner = [low, np.nextafter(high, -np.inf), (max(low, -9) + min(high, 9)) / 2]
            x.append(rng.choice([*inner, np.inf, np.nan] if high == np.inf else inner))
        if all(known.get(n, (-np.inf, 0))[0] <= v or np.isnan(v) for n, v in enumerate(x)):
            total = 0.0
            for feature, weight in split.terms:
                total += weight * float(x[feature])
            assert (left if total < split.threshold else right) is not None


@pytest.mark.parametrize("numbers", [NUMBERS, None])
def test_a_pruned_tree_with_sums_acts_the_same(numbers):
    rng = np.random.default_rng(0)
    shorter = 0
    for policy in mixed_policies(mixed_space("pair", numbers, False), 100, 4, numbers):
        pruned = policy.pruned()
        shorter += len(pruned) < len(policy)
        for x in any_points(rng, 40, wild=True):
            assert np.array_equal(pruned.act(x), policy.act(x))
    assert shorter > 3
