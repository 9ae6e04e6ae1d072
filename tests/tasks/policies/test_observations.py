"""Observations as lists of numbers."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from discodso.tasks.policies.observations import features, flat

SPACES = {
    "box": spaces.Box(-1, 1, (2, 2)),
    "number": spaces.Discrete(4, start=2),
    "numbers": spaces.MultiDiscrete([2, 5]),
    "bits": spaces.MultiBinary((2, 2)),
    "pair": spaces.Tuple([spaces.Discrete(3), spaces.Box(-1, 1, (2,))]),
    "names": spaces.Dict(
        {"z": spaces.Discrete(2), "a": spaces.Dict({"c": spaces.Box(0, 9, (1,)), "b": spaces.MultiBinary(2)})}
    ),
}


@pytest.mark.parametrize("kind", SPACES)
def test_numbers_lie_within_the_bounds_of_their_features(kind):
    space = SPACES[kind]
    space.seed(0)
    known = features(space)
    for _ in range(50):
        numbers = flat(space.sample())
        assert len(numbers) == len(known)
        for number, own in zip(numbers, known, strict=True):
            assert own.low <= number <= own.high
            assert not own.whole or number == round(number)


def test_features_of_a_dictionary_have_the_names_of_its_keys_in_order():
    assert [own.name for own in features(SPACES["names"])] == ["a b 0", "a b 1", "a c", "z"]
    assert flat({"z": 1, "a": {"c": np.array([7.5]), "b": np.array([0, 1])}}) == [0, 1, 7.5, 1]
    assert flat({"a": {"b": np.array([0, 1]), "c": np.array([7.5])}, "z": 1}) == [0, 1, 7.5, 1]


def test_cells_of_a_table_are_numbered_by_their_places():
    table = spaces.Dict({"image": spaces.Box(0, 255, (2, 1, 2), np.uint8), "one": spaces.Box(0, 1, (1, 1))})
    known = features(table)
    assert [own.name for own in known] == ["image 0 0 0", "image 0 0 1", "image 1 0 0", "image 1 0 1", "one"]
    assert [own.whole for own in known] == [True] * 4 + [False]


def test_plain_numbers_have_no_names():
    assert {own.name for own in features(SPACES["box"])} == {""}
    assert [own.name for own in features(SPACES["pair"])] == ["x0", "x1 0", "x1 1"]
