"""Variations of designs: they keep what the script keeps, and always belong to the space."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spaces import decision_tree, small_open, symbolic

from discodso import Design, DisCo, FixedSequence, Space, Token, preset
from discodso.disco.archive import Archive, Pool
from discodso.disco.network import Policy
from discodso.disco.proposers.variation import (
    Variation,
    change_token,
    cross,
    hoist,
    insert,
    replace_part,
    vary,
    vary_value,
    vary_values,
)
from discodso.disco.sampling import sample
from discodso.disco.scripts import FRESH, Scripts, script_of, spans
from discodso.disco.settings import ArchiveSettings, NetworkSettings, VariationSettings
from discodso.space.replay import replay

OPERATORS = (vary_values, vary_value, replace_part, cross, change_token, insert, hoist)
SPACES = {
    "expressions": symbolic(),
    "trees": decision_tree(),
    "open sequence": small_open(),
    "fixed sequence": Space(
        [Token("a", range=(0, 1)), Token("b", range=(-2, 3)), Token("c")], FixedSequence(6)
    ),
}


def realised(space, scripts, seed=0):
    policy = Policy(space, NetworkSettings(), np.random.default_rng(0))
    rng = np.random.default_rng(seed)
    return sample(space, policy.stepper(), len(scripts), rng, scripts=scripts).designs


def as_script(space, design):
    return script_of(space.encode([design]), 0)


def drawn(space, count, seed=0):
    return DisCo(space, preset("paper"), seed=seed).ask(count)


@pytest.mark.parametrize("name", SPACES)
def test_a_plain_script_gives_its_design(name):
    space = SPACES[name]
    designs = drawn(space, 200, 1)
    as_they_are = Scripts.of(space, [script_of(designs, row) for row in range(len(designs))])
    assert list(realised(space, as_they_are)) == list(designs)


@pytest.mark.parametrize("name", SPACES)
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), single=st.sampled_from([0.0, 0.5, 1.0]))
def test_variations_belong_to_the_space(name, seed, single):
    space = SPACES[name]
    parents = drawn(space, 20, seed % 7)
    varied = realised(space, vary(space, parents, 60, np.random.default_rng(seed), single), seed)
    replay(space, varied)  # refuses a design that breaks a rule
    for design in varied:
        assert space.violations(design) == []


def test_moved_values_stay_near_and_the_tokens_stay():
    space = SPACES["trees"]
    design = max(drawn(space, 100, 0), key=len)
    own = as_script(space, design)
    rng = random.Random(0)
    varied = realised(space, Scripts.of(space, [vary_values(space, own, own, rng) for _ in range(300)]))
    same = [d for d in varied if d.tokens == design.tokens]  # a threshold that moves may forbid one below it
    assert len(same) > 200
    changed = [sum(a != b for a, b in zip(d.values, design.values, strict=True)) for d in same]
    assert min(changed) >= 1
    assert np.mean(changed) < len([v for v in design.values if v is not None])


def test_a_single_value_moves_a_little_or_anywhere_within_its_range():
    tokens = [Token("a", range=(0, 1)), Token("b", range=(1e-6, 1e6), scale="log"), Token("c")]
    space = Space(tokens, FixedSequence(5))
    design = Design.of(("a", 0.01), ("b", 1e-5), "c", ("a", 0.02), ("b", 1e-4))
    own, rng = as_script(space, design), random.Random(0)
    varied = realised(space, Scripts.of(space, [vary_value(space, own, own, rng) for _ in range(800)]))
    assert all(d.tokens == design.tokens for d in varied)
    moved = [[at for at in range(5) if d.values[at] != design.values[at]] for d in varied]
    assert all(len(places) == 1 for places in moved)
    counts = [moved.count([at]) for at in range(5)]
    assert counts[2] == 0
    assert min(counts[:2] + counts[3:]) > 150
    far = {"a": [], "b": []}  # in the upper half of the range, the logarithmic one by its logarithm
    for d, (at,) in zip(varied, moved, strict=True):
        far[d.tokens[at]].append(d.values[at] > {"a": 0.5, "b": 1.0}[d.tokens[at]])
    for own_far in far.values():
        assert 0.2 < np.mean(own_far) < 0.3  # half of those that go anywhere, which are half


def test_a_single_value_without_bounds_moves_a_little():
    space = Space([Token("a", range=(-np.inf, np.inf)), Token("b", range=(0, np.inf))], FixedSequence(2))
    own, rng = as_script(space, Design.of(("a", 0.5), ("b", 0.5))), random.Random(0)
    scripts = Scripts.of(space, [vary_value(space, own, own, rng) for _ in range(200)])
    assert (np.abs(scripts.values[:, :2] - 0.5) < 2).all()


def test_the_share_of_single_moves_is_kept():
    space = Space([Token("a", range=(0, 1))], FixedSequence(12))
    parents = drawn(space, 1, 0)
    kept = set(parents[0].values)
    shares = []
    for single in (0.0, 0.5, 1.0):
        scripts = vary(space, parents, 2000, np.random.default_rng(0), single)
        fresh = (scripts.tokens == FRESH).any(axis=1)
        moved = np.array([sum(v not in kept for v in row[:12] if v == v) for row in scripts.values[..., 0]])
        shares.append(np.mean(moved[~fresh & (moved > 0)] == 1))
    assert shares[0] < 0.15
    assert 0.4 < shares[1] < 0.6
    assert shares[2] > 0.9


def test_a_fresh_part_is_drawn_and_the_rest_kept():
    space = SPACES["expressions"]
    design = Design.of("add", "sin", "x1", "x2")
    own = as_script(space, design)
    script = [own[0], (FRESH, (np.nan,), (0.0,)), own[3]]
    varied = realised(space, Scripts.of(space, [script] * 200))
    assert all(d.tokens[0] == "add" for d in varied)
    kept = [d.tokens[-1] == "x2" for d in varied]  # unless the whole is too short or too long with it
    assert np.mean(kept) > 0.7
    assert len({d.tokens for d in varied}) > 20


def test_spans_are_the_subtrees():
    space = SPACES["expressions"]
    script = as_script(space, Design.of("add", "sin", "x1", "mul", "x1", "x2"))
    assert spans(space, script) == [6, 2, 1, 3, 1, 1]


def test_a_token_that_may_not_stand_is_drawn_anew():
    space = SPACES["expressions"]  # no trigonometric function within another
    own = as_script(space, Design.of("sin", "x1"))
    nested = [own[0], own[0], own[1]]
    varied = realised(space, Scripts.of(space, [nested] * 50))
    assert all(d.tokens[0] == "sin" for d in varied)
    assert all(not space.violations(d) for d in varied)


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_changes_designs(operator):
    space = SPACES["trees"]
    parents = [d for d in drawn(space, 60, 3) if len(d) >= 5]
    rng = random.Random(0)
    scripts = [operator(space, as_script(space, d), as_script(space, parents[0]), rng) for d in parents]
    varied = realised(space, Scripts.of(space, scripts))
    assert sum(a != b for a, b in zip(varied, parents, strict=True)) > len(parents) / 2


def test_scripts_of_different_lengths_are_joined_and_empty_ones_leave_all_to_the_network():
    space = SPACES["fixed sequence"]
    whole = drawn(space, 3)
    begun = Scripts.of(space, [[(space.library.id("a"), 0.25, 0.0)]] * 3)
    as_they_are = Scripts.of(space, [script_of(whole, row) for row in range(len(whole))])
    joined = Scripts.joined(space, [begun, as_they_are], 200)
    assert len(joined) == 206
    found = list(realised(space, joined))
    assert {(d.tokens[0], d.values[0]) for d in found[:3]} == {("a", 0.25)}
    assert found[3:6] == list(whole)
    policy = Policy(space, NetworkSettings(), np.random.default_rng(0))
    free = sample(space, policy.stepper(), 206, np.random.default_rng(0)).designs
    assert found[6:] == list(free)[6:]


def test_nothing_is_varied_before_there_are_two_designs():
    space, rng = SPACES["trees"], np.random.default_rng(0)
    variation = Variation(space, VariationSettings())
    archive = Archive.begin(space, ArchiveSettings(size=5))
    assert variation.propose(archive, 5, rng) is None
    designs = drawn(space, 40)
    for count, wanted in ((1, None), (2, 7)):
        one = archive.add(Pool(designs.select(slice(count)), np.arange(float(count)), np.ones(count)), 0)
        assert len(one) == count
        proposed = variation.propose(one, 7, rng)
        assert (None if proposed is None else len(proposed)) == wanted
