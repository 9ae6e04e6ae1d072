"""States of checkpoints: parts by name, random streams, batches of designs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from spaces import small_open, valued_sequence

from discodso import State
from discodso.disco.sampling import sample
from discodso.disco.uniform import UniformStepper
from discodso.space.state import batch_arrays, batch_of, generator_state, restore_generator


def test_parts_come_back_under_their_names():
    inner = State({"x": np.arange(3)}, {"n": 1})
    whole = State.of_parts({"a": inner, "ab": State({"x": np.zeros(2)}, {"n": 2})})
    assert whole.part("a").data == {"n": 1}
    assert list(whole.part("a").arrays) == ["x"]
    assert whole.part("ab").arrays["x"].tolist() == [0, 0]
    nested = State.of_parts({"outer": whole})
    assert nested.part("outer").part("a").arrays["x"].tolist() == [0, 1, 2]
    with pytest.raises(KeyError):
        whole.part("b")


def test_a_part_takes_the_place_of_the_one_of_its_name_alone():
    whole = State.of_parts({"a": State({"x": np.ones(1), "y": np.ones(1)}), "ab": State({"x": np.ones(1)})})
    changed = whole.with_part("a", State({"x": np.zeros(1)}, {"new": True}))
    assert set(changed.arrays) == {"a/x", "ab/x"}
    assert changed.part("a").data == {"new": True}
    assert set(whole.arrays) == {"a/x", "a/y", "ab/x"}


def test_a_random_stream_goes_on_where_it_stood():
    rng = np.random.default_rng(5)
    rng.integers(0, 2**32, 3, dtype=np.uint32)  # leaves half a number behind
    kept = json.loads(json.dumps(generator_state(rng)))
    expected = rng.integers(0, 2**32, 5, dtype=np.uint32).tolist(), rng.normal(size=3).tolist()
    other = np.random.default_rng(9)
    restore_generator(other, kept)
    assert (other.integers(0, 2**32, 5, dtype=np.uint32).tolist(), other.normal(size=3).tolist()) == expected


@pytest.mark.parametrize("space", [small_open(), valued_sequence()], ids=["open", "valued"])
def test_designs_come_back(space):
    designs = sample(space, UniformStepper(space), 20, np.random.default_rng(0)).designs
    again = batch_of(space, batch_arrays(designs))
    assert list(again) == list(designs)


@pytest.mark.parametrize(
    "change",
    [
        {"tokens": lambda a: a + 99},
        {"tokens": lambda a: a - 9},
        {"tokens": lambda a: a.astype(np.int32)},
        {"values": lambda a: a[:, :-1]},
        {"lengths": lambda a: a + 99},
        {"lengths": lambda a: a - 99},
        {"lengths": lambda a: a[1:]},
    ],
)
def test_arrays_that_are_no_designs_are_refused(change):
    space = valued_sequence()
    arrays = batch_arrays(sample(space, UniformStepper(space), 4, np.random.default_rng(0)).designs)
    arrays |= {key: alter(arrays[key]) for key, alter in change.items()}
    with pytest.raises(ValueError, match="no designs of the space"):
        batch_of(space, arrays)
