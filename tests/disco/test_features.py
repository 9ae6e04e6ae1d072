"""Features of designs are what their definition says, for every kind of value and shape."""

from __future__ import annotations

import numpy as np
import pytest
from spaces import decision_tree, small_open, small_tree, valued_sequence

from discodso import Choice, Design, Integer, OpenSequence, Real, Space, Token
from discodso.disco import features as module
from discodso.disco.features import features

MIXED = Space(
    [
        Token("svc", C=Real(1e-3, 1e3, log=True), kernel=Choice("rbf", "poly", "linear")),
        Token("best", k=Integer(1, 9)),
        Token("none"),
        Token("free", range=(-np.inf, np.inf)),
    ],
    OpenSequence(1, 4),
)


def encoded(*designs):
    return MIXED.encode([Design.of(*design) for design in designs])


@pytest.mark.parametrize("space", [MIXED, small_open(), small_tree(), decision_tree(), valued_sequence()])
def test_a_row_depends_on_its_design_only(space):
    designs = space.sample(60, seed=1)
    parts = [features(space, designs.select(slice(at, at + 7))) for at in range(0, 60, 7)]
    for whole, *pieces in zip(features(space, designs), *parts, strict=True):
        assert np.array_equal(whole, np.concatenate(pieces))


@pytest.mark.parametrize("space", [MIXED, small_open(), small_tree(), decision_tree(), valued_sequence()])
def test_each_token_weighs_one_in_every_block(space):
    designs = space.sample(50, seed=1)
    for block in features(space, designs):
        assert block.sum(axis=1) == pytest.approx(designs.lengths)
        assert (block >= 0).all()


def test_close_values_are_close_and_options_are_equally_far():
    def distance(one, other):
        first, second = (np.concatenate(features(MIXED, encoded([d])), axis=1) for d in (one, other))
        return float(((first - second) ** 2).sum())

    def svc(c, kernel):
        return ("svc", {"C": c, "kernel": kernel})

    start = svc(1.0, "rbf")
    near, far = distance(start, svc(1.5, "rbf")), distance(start, svc(300.0, "rbf"))
    assert 0 < near < far
    assert distance(start, svc(1.0, "poly")) == pytest.approx(distance(start, svc(1.0, "linear")))
    assert distance(("best", 2), ("best", 3)) < distance(("best", 2), ("best", 8))
    assert distance(("free", -1.0), ("free", -1.2)) < distance(("free", -1.0), ("free", 5.0))


def test_only_the_second_block_is_blind_to_order():
    by_place, anywhere, after = features(MIXED, encoded(["none", ("best", 3)], [("best", 3), "none"]))
    assert np.array_equal(anywhere[0], anywhere[1])
    assert not np.array_equal(by_place[0], by_place[1])
    assert not np.array_equal(after[0], after[1])


def test_the_neighbour_in_a_tree_is_the_parent():
    space = small_tree()
    for design in space.sample(30, seed=2):
        batch = space.encode([design])
        above, _ = module._neighbours(space, batch)
        parents, stack = [], []
        for name in design.tokens:
            while stack and stack[-1][1] == 0:
                stack.pop()
            parents.append(stack[-1][0] if stack else len(space.library))
            if stack:
                stack[-1][1] -= 1
            arity = space.library.tokens[space.library.id(name)].arity
            if arity:
                stack.append([space.library.id(name), arity])
        assert above[0, : len(parents)].tolist() == parents


def test_wide_blocks_are_folded(monkeypatch):
    designs = MIXED.sample(20, seed=0)
    monkeypatch.setattr(module, "_MOST", 16)
    for block in features(MIXED, designs):
        assert block.shape[1] <= 32
        assert block.sum(axis=1) == pytest.approx(designs.lengths)
