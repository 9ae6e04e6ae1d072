"""Designs print, compare, hash, and survive JSON."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spaces import decision_tree, small_open, symbolic

from discodso import Design, DesignBatch, InvalidDesignError
from discodso.disco.sampling import sample
from discodso.disco.uniform import UniformStepper


@given(
    st.lists(st.tuples(st.text(), st.none() | st.floats(allow_nan=False, allow_infinity=False)), max_size=8)
)
def test_json_there_and_back_is_lossless(items):
    design = Design(tuple(n for n, _ in items), tuple(v for _, v in items))
    again = Design.from_json(design.to_json())
    assert again == design
    assert hash(again) == hash(design)
    assert [math.copysign(1, v) for v in again.values if v is not None] == [
        math.copysign(1, v) for v in design.values if v is not None
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "[]",
        "{}",
        '{"tokens": ["a"]}',
        '{"tokens": "a", "values": [null]}',
        '{"tokens": [1], "values": [null]}',
        '{"tokens": ["a"], "values": ["1"]}',
        '{"tokens": ["a"], "values": [true]}',
        '{"tokens": ["a"], "values": [NaN]}',
        '{"tokens": ["a"], "values": [1e999]}',
        '{"tokens": ["a"], "values": []}',
        '{"tokens": ["a"], "values": [null], "extra": 1}',
        '{"tokens": ["a"], "values": [' + "9" * 400 + "]}",
        "[" * 100_000,
    ],
)
def test_malformed_json_is_refused_with_one_line(text):
    with pytest.raises(InvalidDesignError) as caught:
        Design.from_json(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Design.of(("v", "0.5")), "must be a finite number, got '0.5'"),
        (lambda: Design.of(("v", math.nan)), "must be a finite number, got nan"),
        (lambda: Design.of(("v", True)), "must be a finite number"),
        (lambda: Design.of(3), "expected a name or a pair"),
        (lambda: Design.of(("v", 1, 2)), "expected a name or a pair"),
        (lambda: Design.of([("v", 0.5)]), "expected a name or a pair"),
        (lambda: Design((3,), (None,)), "are names, got 3"),
        (lambda: Design("ab", (None, None)), "must be a tuple"),
    ],
)
def test_a_design_of_wrong_parts_is_refused(make, words):
    with pytest.raises(InvalidDesignError, match=words):
        make()


def test_lists_and_numpy_numbers_are_made_plain():
    design = Design(["v"], [np.float32(0.5)])
    assert design == Design.of(("v", 0.5))
    assert hash(design) == hash(Design.of(("v", 0.5)))
    assert type(design.values[0]) is float
    assert Design.from_json(Design.of(("v", np.int64(2))).to_json()) == Design.of(("v", 2.0))


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    )
)
def test_any_other_json_is_refused(data):
    with pytest.raises(InvalidDesignError):
        Design.from_json(json.dumps(data))


def test_printing_uses_the_traversal_of_the_paper_and_render_nests():
    design = Design.of("add", "cos", "x2", "mul", ("const", 3.14), "sin", "x1")
    assert str(design) == "⟨add, cos, x2, mul, const(3.14), sin, x1⟩"
    assert symbolic().render(design) == "add(cos(x2), mul(const(3.14), sin(x1)))"
    assert small_open().render(Design.of("b", "c")) == "b c"


def test_a_design_of_a_tree_space_knows_its_children_and_prints_nested():
    space, given = symbolic(), Design.of("add", "cos", "x2", "mul", ("const", 3.14), "sin", "x1")
    design = space.encode([given])[0]
    assert str(design) == space.render(given)
    assert design.children == ((1, 3), (2,), (), (4, 5), (), (6,), ())
    assert (design, hash(design), repr(design)) == (given, hash(given), repr(given))
    assert design.to_dict() == given.to_dict()
    again = pickle.loads(pickle.dumps(design))
    assert (again, again.arities) == (design, design.arities)
    assert given.children is None
    assert small_open().sample(1)[0].children is None


@pytest.mark.parametrize("tokens", [("add", "x"), ("x", "x"), ("add", "x", "x", "x"), ()])
def test_what_is_no_whole_tree_has_no_children(tokens):
    design = Design.of(*tokens).as_tree({"add": 2, "x": 0})
    assert design.children is None
    assert "inline-block" in design._repr_html_() or not tokens
    assert str(design) == f"⟨{', '.join(tokens)}⟩"


def test_equality_hash_and_iteration():
    one, two = Design.of("a", ("v", 1.0)), Design.of("a", ("v", 1.0))
    assert one == two
    assert len({one, two, Design.of("a", ("v", 2.0))}) == 2
    assert list(one) == [("a", None), ("v", 1.0)]
    assert len(one) == 2
    assert one.skeleton == ("a", "v")


@pytest.mark.parametrize("space", [symbolic(), decision_tree(), small_open()])
def test_batches_decode_and_encode_to_the_same_designs(space):
    batch = sample(space, UniformStepper(space), 50, np.random.default_rng(0)).designs
    designs = list(batch)
    again = space.encode(designs)
    assert list(again) == designs
    assert again.lengths.tolist() == batch.lengths.tolist()
    assert batch.design_lengths().tolist() == [len(d) for d in designs]
    assert list(batch[10:20]) == designs[10:20]
    assert batch[-1] == designs[-1]
    joined = DesignBatch.concatenate((batch.select(slice(0, 3)), again))
    assert list(joined) == designs[:3] + designs
    keys = joined.keys()
    assert keys[:3] == keys[3:6]
    assert len(set(keys)) == len(set(designs))


@pytest.mark.parametrize("space", [symbolic(), decision_tree(), small_open()])
def test_designs_take_their_keys_along(space):
    def fresh(batch):
        return DesignBatch(batch.library, batch.tokens, batch.values, batch.lengths)

    batch = sample(space, UniformStepper(space), 30, np.random.default_rng(1)).designs
    batch.keys(), batch.skeletons(2)
    short = batch.select(np.flatnonzero(batch.lengths < batch.lengths.max()))
    mask = np.arange(30) % 3 == 0
    for rows in (slice(3, 9), slice(None, None, -1), np.array([5, 5, -1]), mask, [2, 0]):
        some = batch.select(rows)
        joined = DesignBatch.concatenate((batch.select(slice(0, 0)), some, short))
        for made in (some, joined, pickle.loads(pickle.dumps(joined))):
            assert made.keys() == fresh(made).keys()
            assert made.skeletons(2) == fresh(made).skeletons(2)
            assert made.skeletons() == fresh(made).skeletons()
    assert len(pickle.dumps(batch)) == len(pickle.dumps(batch.select(slice(None))))
    assert pickle.dumps(batch) == pickle.dumps(replace(batch))


def test_a_batch_shows_its_first_designs():
    drawn = small_open().sample(12)
    assert repr(drawn).startswith(f"DesignBatch of 12: {drawn[0]}, {drawn[1]}, ")
    assert "and 2 more" in drawn._repr_html_()
