"""Declarations: good ones work, bad ones get one clear line."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
        (lambda: Token("a", range=(math.nan, 1)), "empty"),
        (lambda: Token("a", range=(math.inf, math.inf)), "empty"),
        (lambda: Token("a", range=3), "pair"),
        (lambda: Token("a", range=("x", "y")), "pair"),
        (lambda: Token("a", range=(-1, 1), scale="log"), "positive"),
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
    assert library.parametrised_ids.tolist() == [2, 3]
    assert library.parameter_index.tolist() == [-1, -1, 0, 1]
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
