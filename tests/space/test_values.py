"""What a token may carry: encoding into arrays and back, and values by name."""

from __future__ import annotations

import math
import pickle
import sys

import numpy as np
import pytest

from discodso import Choice, DeclarationError, Integer, InvalidDesignError, Real
from discodso.space.values import Values, checked_range


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (Real(0, 1), [0.25, 3, np.float32(0.5)], ["0.25", True, None, math.nan, math.inf]),
        (Integer(1, 9), [3, 3.0, np.int64(4), -7], [3.5, "3", True, None, math.nan]),
        (Choice("a", 2, None, 0.5), ["a", 2, None, 0.5], ["b", 3, math.nan]),
    ],
)
def test_values_are_numbers_in_arrays_and_come_back(kind, good, bad):
    for value in good:
        number = kind.encode(value)
        assert type(number) is float
        assert kind.decode(number) == value
    assert [kind.encode(value) for value in bad] == [None] * len(bad)


def test_ends_and_options_become_plain():
    assert type(Real(np.float32(0), 1).low) is float
    assert type(Integer(np.int64(1), 3).low) is int
    assert type(Choice(np.int64(1), "a").options[0]) is int
    assert (Choice("a", "b", "c").low, Choice("a", "b", "c").high) == (0, 2)
    assert repr(Choice("a", 1)) == "Choice('a', 1)"
    assert Choice(*range(20)).expected == "one of 0, 1, 2, 3, 4, 5, 6, 7, ..."


def test_true_and_one_are_one_option():
    with pytest.raises(DeclarationError, match="True is there twice"):
        Choice(1, True)


@pytest.mark.parametrize(
    ("low", "high", "log", "words"),
    [
        (1, 1, False, "empty"),
        (math.inf, math.inf, False, "empty"),
        (math.nan, 1, False, "of numbers"),
        (-1e308, 1e308, False, "too wide for float64"),
        (0, 5, True, "positive lower end"),
        (1e300, math.nextafter(1e300, math.inf), True, "too narrow"),
        (None, 5, False, "pair"),
        (10**400, 5, False, "pair"),
    ],
)
def test_ranges_that_cannot_be_are_refused(low, high, log, words):
    with pytest.raises(DeclarationError, match=f"^x .*{words}"):
        checked_range("x", low, high, log)


def test_a_logarithmic_range_without_an_end_begins_at_the_smallest_float():
    assert checked_range("x", 0, math.inf, True) == (sys.float_info.min, math.inf)
    assert checked_range("x", -math.inf, 3, False) == (-math.inf, 3.0)


def test_values_by_name_are_like_a_dictionary_that_can_be_hashed():
    values = Values({"C": np.float64(0.5), "kernel": "rbf"})
    assert values == {"kernel": "rbf", "C": 0.5}
    assert type(values["C"]) is float
    assert hash(values) == hash(Values({"kernel": "rbf", "C": 0.5}))
    assert list(values) == ["C", "kernel"]
    assert repr(values) == "Values(C=0.5, kernel='rbf')"
    assert pickle.loads(pickle.dumps(values)) == values
    with pytest.raises(InvalidDesignError, match="the value C must be a finite number"):
        Values({"C": math.inf})
    with pytest.raises(InvalidDesignError, match="names of values are strings"):
        Values({3: 1.0})
