"""Skeletons and units: whether rules look at values decides how they are filled, not what comes of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from method_runs import SPACES
from spaces import mixed_sequence, symbolic

from discodso import Constraint, Design, Space, Token, Tree
from discodso.disco.sampling import sample
from discodso.disco.uniform import UniformStepper
from discodso.space import skeletons
from discodso.space.constraints import DifferentLeaves
from discodso.space.skeletons import fill, skeleton_space, units_of


class Walked(Constraint):
    """Forbids nothing, but may look at values for all one knows."""

    def forbidden(self, prefix):
        return prefix.forbid_nothing()


class Declared(Walked):
    sees_values = False


def drawn(space):
    return replace(space.sample(40), origin=None)


@pytest.mark.parametrize("space", [symbolic(), mixed_sequence()])
def test_the_short_way_and_the_walk_agree(space, monkeypatch):
    own = replace(space, constraints=(*space.constraints, Walked()))
    declared = replace(space, constraints=(*space.constraints, Declared()))
    designs = drawn(space)
    short, long = (skeletons.units_of(each, designs) for each in (declared, own))
    np.testing.assert_allclose(short, long, rtol=1e-9)
    for each, units in ((declared, short), (own, long)):
        again, feasible = skeletons.fill(each, designs, units)
        assert feasible.all()
        np.testing.assert_allclose(again.values, designs.values, rtol=1e-9)
    monkeypatch.setattr(skeletons, "_walk", None)  # only the short way does without it
    skeletons.units_of(declared, designs)
    with pytest.raises(TypeError):
        skeletons.units_of(own, designs)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(sorted(SPACES)), st.integers(0, 10_000))
def test_units_give_the_designs_back(where, seed):
    space = SPACES[where]()
    designs = sample(space, UniformStepper(space), 20, np.random.default_rng(seed)).designs
    again, feasible = fill(space, designs, units_of(space, designs))
    assert feasible.all()
    assert np.allclose(again.values, designs.values, rtol=1e-9, atol=1e-12, equal_nan=True)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(sorted(SPACES)), st.integers(0, 10_000))
def test_any_units_that_are_feasible_keep_the_bounds(where, seed):
    space, rng = SPACES[where](), np.random.default_rng(seed)
    bare = skeleton_space(space)
    skeletons = sample(bare, UniformStepper(bare), 20, rng).designs
    units = rng.choice([0.0, 1.0, 0.5, rng.random()], (*skeletons.tokens.shape, 1))
    designs, feasible = fill(space, skeletons, units)
    for row in np.flatnonzero(feasible).tolist():
        assert space.violations(designs[row]) == []
    for row in np.flatnonzero(~feasible).tolist():
        assert space.violations(designs[row]) != []


def test_a_space_without_values_spares_leaves_that_carried_one():
    tokens = [Token("add", 2), Token("x"), Token("const", range=(0, 1))]
    bare = skeleton_space(Space(tokens, Tree(3, 3), [DifferentLeaves()]))
    assert bare.violations(Design.of("add", "const", "const")) == []
    assert bare.violations(Design.of("add", "x", "x")) != []
