"""All designs of small spaces, against brute force."""

from __future__ import annotations

import pytest
from enumeration import valid_skeletons
from spaces import SMALL, decision_tree, mixed_sequence

from discodso import (
    DifferentLeaves,
    FixedSequence,
    ForbiddenChild,
    ForbiddenDescendant,
    InversePairs,
    NoNesting,
    OpenSequence,
    Repeat,
    Space,
    Token,
    Tree,
)
from discodso.space.enumeration import all_designs
from discodso.space.replay import replay

LETTERS = [Token("a"), Token("b"), Token("c")]
NODES = [Token("add", 2), Token("sin", 1), Token("exp", 1), Token("x"), Token("y")]
SPACES = {
    **{name: make() for name, make in SMALL.items()},
    "fixed, no rules": Space(LETTERS, FixedSequence(5)),
    "fixed, one design": Space(LETTERS, FixedSequence(3), [Repeat("b", at_least=3)]),
    "fixed, pairs": Space(LETTERS, FixedSequence(6), [InversePairs([("a", "b")]), ForbiddenChild("c", "c")]),
    "open, from nothing on": Space(LETTERS, OpenSequence(0, 4)),
    "open, counted": Space(
        LETTERS, OpenSequence(2, 6), [Repeat("a", at_most=2), ForbiddenDescendant("b", "a")]
    ),
    "tree, no rules": Space(NODES, Tree(1, 6)),
    "tree, rules": Space(
        NODES, Tree(2, 7), [NoNesting(("sin", "exp")), DifferentLeaves(), Repeat("x", 1, 2)]
    ),
}


@pytest.mark.parametrize("name", SPACES)
def test_all_designs_are_those_of_brute_force(name):
    space = SPACES[name]
    designs = all_designs(space, 10**6)
    found = [design.tokens for design in designs]
    assert len(found) == len(set(found))
    assert set(found) == valid_skeletons(space)
    assert found
    replay(space, designs)  # refuses a design that breaks a rule
    assert designs.origin is space
    lengths = designs.lengths.tolist()
    assert lengths == sorted(lengths)  # shorter ones first


@pytest.mark.parametrize("name", SPACES)
def test_a_limit_is_the_number_of_designs(name):
    space = SPACES[name]
    count = len(all_designs(space, 10**6))
    assert all_designs(space, count - 1) is None
    assert all_designs(space, 1) is None or count == 1


def test_the_limit_may_be_met():
    space = SPACES["fixed, no rules"]
    assert len(all_designs(space, 3**5)) == 3**5
    assert all_designs(space, 3**5 - 1) is None
    assert all_designs(Space(LETTERS, FixedSequence(200)), 200_000) is None


@pytest.mark.parametrize("space", [mixed_sequence(), decision_tree()], ids=["sequence", "tree"])
def test_spaces_with_values_are_not_listed(space):
    assert all_designs(space, 10**6) is None
