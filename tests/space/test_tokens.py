"""Declarations: good ones work, bad ones get one clear line."""

from __future__ import annotations

import copy
import math
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spaces import decision_tree

from discodso import DeclarationError, FixedSequence, Library, OpenSequence, Space, Token, Tree


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda: Token(""), "name"),
        (lambda: Token(3), "name"),
        (lambda: Token("a", -1), "arity"),
        (lambda: Token("a", 1.5), "arity"),
        (lambda: Token("a", range=(1, 1)), "empty"),
        (lambda: Token("a", range=(2, 1)), "empty"),
        (lambda: Token("a", range=(math.nan, 1)), "of numbers"),
        (lambda: Token("a", range=(math.inf, math.inf)), "empty"),
        (lambda: Token("a", range=3), "pair"),
        (lambda: Token("a", range="01"), "pair"),
        (lambda: Token("a", range={3, 1}), "pair"),
        (lambda: Token("a", range=(0, 10**400)), "pair"),
        (lambda: Token("a", range=(-1e308, 1e308)), "too wide"),
        (lambda: Token("a", range=("x", "y")), "pair"),
        (lambda: Token("a", range=(-1, 1), scale="log"), "positive"),
        (lambda: Token("a", range=(1e300, 1e300 * (1 + 4e-16)), scale="log"), "too narrow"),
        (lambda: Token("a", range=(0, 1), scale="log"), "positive"),
        (lambda: Token("a", scale="log"), "range"),
        (lambda: Token("a", range=(0, 1), scale="cubic"), "scale"),
        (lambda: Token("a", complexity=math.inf), "complexity"),
        (lambda: Library([]), "at least one"),
        (lambda: Library([Token("a"), "b"]), "Token"),
        (lambda: Library([Token("a"), Token("b"), Token("a")]), "distinct.*a"),
        (lambda: Space([Token("add", 2)], Tree()), "leaf"),
        (lambda: Space([Token("add", 2), Token("x")], FixedSequence(3)), "arity 0.*add"),
        (lambda: Space([Token("end")], OpenSequence()), "end"),
        (lambda: Space([Token("a")], "tree"), "shape"),
        (lambda: Tree(0, 5), "min_length"),
        (lambda: Tree(6, 5), "min_length"),
        (lambda: Tree(1, 5.5), "max_length"),
        (lambda: FixedSequence(0), "length"),
        (lambda: OpenSequence(-1, 5), "min_length"),
        (lambda: Library([Token("sin"), Token("cos")]).id("sine"), "did you mean 'sin'"),
    ],
)
def test_bad_declarations_get_one_clear_line(declare, words):
    with pytest.raises(DeclarationError, match=words) as caught:
        declare()
    assert "\n" not in str(caught.value)


def test_library_tables():
    library = Library(
        [Token("add", 2), Token("x"), Token("c", range=(-1, 3)), Token("d", range=(0, math.inf))]
    )
    assert library.arity.tolist() == [2, 0, 0, 0]
    assert [(column.token, column.slot, column.name) for column in library.columns] == [
        (2, 0, "value"),
        (3, 0, "value"),
    ]
    assert library.column_of.tolist() == [[-1], [-1], [0], [1]]
    assert library.members(["x", "c"]).tolist() == [False, True, True, False]
    assert library == Library(library.tokens)
    assert hash(library) == hash(Library(library.tokens))
    assert library != Library(library.tokens[:3])


@given(st.floats(0, 1))
def test_finite_ranges_become_the_unit_interval_linearly_or_by_the_logarithm(share):
    library = Library([Token("v", range=(-3, 5)), Token("w", range=(1e-9, 1e-3), scale="log")])
    token = np.array([0, 1])
    value = library.coordinates.to_value(token, np.array([share, share]))
    np.testing.assert_allclose(value, [-3 + 8 * share, 10 ** (-9 + 6 * share)], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(library.coordinates.to_z(token, value), share, atol=1e-12)


def test_ranges_with_one_finite_end_count_from_it():
    tokens = [Token("v", range=(1000, math.inf)), Token("w", range=(-math.inf, -7))]
    library = Library([*tokens, Token("u", range=(10, math.inf), scale="log")])
    z = library.coordinates.to_z(np.array([0, 1, 2]), np.array([1002.0, -8.0, 10 * math.e]))
    np.testing.assert_allclose(z, [2, -1, 1])


def test_values_on_a_logarithmic_scale_stay_finite_and_positive():
    library = Library(
        [Token("v", range=(0, math.inf), scale="log"), Token("w", range=(1, math.inf), scale="log")]
    )
    token = np.array([0, 0, 1])
    values = library.coordinates.to_value(token, np.array([-2000.0, 2000.0, 2000.0]))
    assert np.isfinite(values).all()
    assert (values > 0).all()
    assert np.isfinite(library.coordinates.to_z(token, values)).all()
    assert library.low[0] > 0


def test_libraries_and_spaces_survive_pickling_with_their_hash():
    """For people who send tasks to other processes; in another process strings hash otherwise."""
    space = decision_tree()
    code = (
        "import pickle, sys; space = pickle.load(sys.stdin.buffer);"
        "from discodso import Library; assert space.library == Library(space.library.tokens);"
        "assert hash(space.library) == hash(Library(space.library.tokens)); assert hash(space) is not None"
    )
    run = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    subprocess.run(run, input=pickle.dumps(space), env=environment, check=True)
    assert copy.deepcopy(space) == space


def test_numpy_integers_are_integers():
    assert type(FixedSequence(np.int64(3)).length) is int
    assert type(Tree(np.int32(1), np.int64(9)).max_length) is int


def test_infinite_ranges_keep_their_units():
    library = Library(
        [
            Token("v", range=(-math.inf, math.inf)),
            Token("w", range=(0, math.inf)),
            Token("u", range=(0, math.inf), scale="log"),
        ]
    )
    z = library.coordinates.to_z(np.array([0, 1, 2]), np.array([-4.0, 4.0, math.e]))
    np.testing.assert_allclose(z, [-4, 4, 1])
    ends = library.coordinates.to_z(np.array([2, 2]), np.array([0.0, math.inf]))
    assert ends.tolist() == [-math.inf, math.inf]
