"""Replaying designs: what was allowed at every position, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from spaces import decision_tree, small_open, small_tree_with_priors

from discodso import (
    Choice,
    Design,
    FixedSequence,
    Integer,
    InvalidDesignError,
    OpenSequence,
    Real,
    Space,
    Token,
    Where,
)
from discodso.disco.sampling import sample
from discodso.disco.uniform import UniformStepper
from discodso.space.design import DesignBatch
from discodso.space.replay import replay

MIXED = Space(
    [Token("m", C=Real(0, 1), k=Integer(1, 3), how=Choice("x", "y")), Token("n")], OpenSequence(1, 3)
)
SPACES = {"tree": decision_tree, "open": small_open, "priors": small_tree_with_priors, "mixed": lambda: MIXED}


@pytest.mark.parametrize("name", SPACES)
def test_a_trace_is_what_stepping_through_each_design_alone_shows(name):
    space = SPACES[name]()
    designs = sample(space, UniformStepper(space), 12, np.random.default_rng(1)).designs
    trace = replay(space, designs)
    for row in range(len(designs)):
        prefix = space.start(1)
        for position in range(int(designs.lengths[row])):
            options = space.options(prefix)
            assert np.array_equal(trace.forbidden[position, row], options.forbidden[0])
            assert trace.tokens[position, row] == designs.tokens[row, position]
            assert trace.active[position, row]
            if options.prior is not None:
                assert np.array_equal(trace.prior[position, row], options.prior[0])
            prefix = prefix.advance(designs.tokens[row, [position]], designs.values[row, [position]])
        assert not trace.active[int(designs.lengths[row]) :, row].any()


def test_neighbours_of_a_tree():
    space = small_tree_with_priors()
    names = ["f", "x", "neg", "y", "x"]  # f(x, neg(y), x)
    trace = replay(space, space.encode([Design.of(*names)]))
    shown = [
        [None if k < 0 else space.library.names[k] for k in trace.neighbours[which, :, 0]]
        for which in range(3)
    ]
    assert shown[0] == [None, "f", "x", "neg", "y"]  # before
    assert shown[1] == [None, "f", "f", "neg", "f"]  # above
    assert shown[2] == [None, None, "x", None, "neg"]  # to the left


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t, v, n: (t, v, n - 1), "the design ends with 1 open slot"),
        (lambda t, v, n: (t, np.where(np.isnan(v), v, v + 99), n), "outside"),
        (lambda t, v, n: (t, np.full_like(v, np.nan), n), "value"),
    ],
)
def test_a_design_that_breaks_a_rule_is_refused_with_the_reason(change, words):
    space = decision_tree()
    good = space.encode([Design.of(("x1<", 2.0), "a1", "a2")])
    batch = DesignBatch(space.library, *change(good.tokens, good.values, good.lengths))
    with pytest.raises(InvalidDesignError, match=words):
        replay(space, batch)


def test_integers_and_options_must_be_whole():
    good = MIXED.encode([Design.of(("m", {"C": 0.5, "k": 2, "how": "y"}))])
    replay(MIXED, good)
    for slot in (1, 2):
        values = good.values.copy()
        values[0, 0, slot] = 1.5
        with pytest.raises(InvalidDesignError):
            replay(MIXED, DesignBatch(MIXED.library, good.tokens, values, good.lengths))


def test_a_condition_holds_for_designs_that_were_not_drawn_here():
    tokens = [Token("a"), Token("b")]
    space = Space(tokens, FixedSequence(2), [Where(lambda design: design.tokens[0] == "a")])
    plain = Space(tokens, FixedSequence(2))
    replay(space, plain.encode([Design.of("a", "b")]))
    with pytest.raises(InvalidDesignError, match="does not belong to the space"):
        replay(space, plain.encode([Design.of("b", "a")]))
