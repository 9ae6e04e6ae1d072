"""Typed children and the look ahead in trees, against a list of all trees."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discodso import (
    ChildTypes,
    DeadEndError,
    DeclarationError,
    Design,
    DifferentLeaves,
    FixedSequence,
    ForbiddenChild,
    ForbiddenDescendant,
    ForbiddenSiblings,
    InversePairs,
    NoNesting,
    Real,
    Repeat,
    Space,
    Token,
    Tree,
)
from discodso.disco.sampling import sample
from discodso.disco.uniform import UniformStepper
from discodso.space.enumeration import all_designs

ARITY = {"f": 2, "g": 1, "h": 2, "x": 0, "y": 0}
LONGEST = 6
some = st.sets(st.sampled_from(sorted(ARITY)), min_size=1, max_size=3).map(lambda names: tuple(sorted(names)))
inner = st.sampled_from(["f", "g", "h"])


def trees(size):
    """All nested trees of a size: (name, child, ...)."""
    for name, arity in ARITY.items():
        for children in forests(size - 1, arity):
            yield (name, *children)


def forests(size, count):
    if not count:
        if not size:
            yield ()
        return
    for first in range(1, size + 1):
        for tree in trees(first):
            for others in forests(size - first, count - 1):
                yield (tree, *others)


def flat(tree):
    return (tree[0], *(name for child in tree[1:] for name in flat(child)))


def nodes(tree, above=()):
    """Each node with its ancestors' names, its parent, number and the sibling to the left."""
    yield tree, above, None, 0, None
    yield from _below(tree, above)


def _below(tree, above):
    left = None
    for number, child in enumerate(tree[1:]):
        yield child, (*above, tree[0]), tree[0], number, left
        yield from _below(child, (*above, tree[0]))
        left = child[0]


EVERY = {flat(tree): tree for size in range(1, LONGEST + 1) for tree in trees(size)}


def typed(parent, child, allowed):
    child = None if child >= ARITY[parent] else child

    def holds(tree):
        return all(
            p != parent or (child is not None and n != child) or node[0] in allowed
            for node, _, p, n, _ in nodes(tree)
        )

    return ChildTypes(parent, child, allowed), holds


def no_child(own, other):
    return ForbiddenChild(
        own, other
    ), lambda t: not any(p in own and n[0] in other for n, _, p, _, _ in nodes(t))


def no_descendant(own, other):
    def holds(tree):
        return not any(set(above) & set(own) and node[0] in other for node, above, _, _, _ in nodes(tree))

    return ForbiddenDescendant(own, other), holds


def once(own):
    return NoNesting(own), no_descendant(own, own)[1]


def inverses(a, b):
    return InversePairs([(a, b)]), lambda t: not any({p, n[0]} == {a, b} for n, _, p, _, _ in nodes(t) if p)


def apart(a, b):
    return ForbiddenSiblings(
        [(a, b)]
    ), lambda t: not any({s, n[0]} == {a, b} for n, _, _, _, s in nodes(t) if s)


def different():
    return DifferentLeaves(), lambda t: not any(s == n[0] and s in "xy" for n, _, _, _, s in nodes(t) if s)


def repeat(own, least, more):
    def holds(tree):
        return least <= sum(name in own for name in flat(tree)) <= least + more

    return Repeat(own, least, None if more > 3 else least + more), holds


types = st.builds(typed, inner, st.integers(0, 2), some)
rules = st.one_of(
    types,
    st.builds(no_child, some, some),
    st.builds(no_descendant, some, some),
    st.builds(once, some),
    st.builds(inverses, st.sampled_from("fgh"), st.sampled_from("fgh")),
    st.builds(apart, st.sampled_from("fgxy"), st.sampled_from("fgxy")),
    st.builds(different),
    st.builds(repeat, some, st.integers(0, 3), st.one_of(st.integers(0, 2), st.just(LONGEST))),
    st.builds(repeat, some, st.just(0), st.integers(0, 2)),
)
shapes = st.tuples(st.integers(1, LONGEST), st.integers(1, LONGEST)).map(lambda pair: Tree(*sorted(pair)))


@settings(max_examples=150, deadline=None)
@given(st.lists(rules, min_size=1, max_size=4), shapes)
def test_trees_are_exactly_those_that_keep_all_rules(chosen, shape):
    wanted = {
        tokens
        for tokens, tree in EVERY.items()
        if shape.min_length <= len(tokens) <= shape.max_length and all(holds(tree) for _, holds in chosen)
    }
    tokens, constraints = [Token(name, arity) for name, arity in ARITY.items()], [rule for rule, _ in chosen]
    if not wanted:
        with pytest.raises(DeadEndError, match="no design can begin"):
            Space(tokens, shape, constraints)
        return
    space = Space(tokens, shape, constraints)
    found = all_designs(space, 100_000)
    assert found is not None
    assert {design.tokens for design in found} == wanted
    assert space.count() == len(wanted)
    drawn = sample(space, UniformStepper(space), 20, np.random.default_rng(0))
    assert drawn.redrawn == 0  # there is never a dead end
    assert {design.tokens for design in drawn.designs} <= wanted


def test_a_grammar_of_rules():
    """Conditions stand over actions, thresholds only below what is compared."""
    space = Space(
        [
            Token("if", 3),
            Token("less", 2),
            Token("price"),
            Token("mean", days=Real(2, 50)),
            Token("buy"),
            Token("hold"),
        ],
        Tree(1, 20),
        [
            ChildTypes("if", 0, "less"),
            ChildTypes("if", 1, ("if", "buy", "hold")),
            ChildTypes("if", 2, ("if", "buy", "hold")),
            ChildTypes("less", None, ("price", "mean")),
        ],
    )
    for design in space.sample(200):
        assert not space.violations(design)
    again = pickle.loads(pickle.dumps(space))
    assert [d.tokens for d in again.sample(20, 3)] == [d.tokens for d in space.sample(20, 3)]
    (wrong,) = space.violations(Design.of("if", "less", "price", "price", "price", "hold"))
    assert "ChildTypes" in wrong.rule


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (lambda: ChildTypes("f", 2, "x"), "'f' has 2 children"),
        (lambda: ChildTypes("x", None, "x"), "'x' has no children"),
        (lambda: ChildTypes("f", -1, "x"), "child must be an integer >= 0"),
        (lambda: ChildTypes("f", 0, "z"), "no token 'z'"),
        (lambda: ChildTypes("f", 0, ()), "names of tokens, strings, and at least one"),
    ],
)
def test_mistakes_in_types_are_refused(rule, words):
    with pytest.raises(DeclarationError, match=words):
        Space([Token(name, arity) for name, arity in ARITY.items()], Tree(), [rule()])


def test_types_need_a_tree():
    with pytest.raises(DeclarationError, match="needs a space of shape Tree"):
        Space([Token("a"), Token("b")], FixedSequence(2), [ChildTypes("a", 0, "b")])


NODES = [Token("if", 2), Token("x"), Token("y")]


@pytest.mark.parametrize(
    ("tokens", "shape", "constraints", "words"),
    [
        (NODES, Tree(3, 9), [ChildTypes("if", None, ("if", "x")), Repeat("y", 1)], "ChildTypes.* and Repeat"),
        (
            NODES,
            Tree(3, 9),
            [Repeat("x", at_most=1), Repeat("y", at_most=1), Repeat("if", at_least=2)],
            "contradict each other",
        ),
        (
            [Token("a", 2), Token("b", 1), Token("c")],
            Tree(4, 9),
            [NoNesting(("a", "b"))],
            "NoNesting.* and Length.* contradict",
        ),
    ],
)
def test_contradictions_in_trees_are_refused(tokens, shape, constraints, words):
    with pytest.raises(DeadEndError, match=f"no design can begin: .*{words}"):
        Space(tokens, shape, constraints)


def test_counts_that_are_too_large_are_left_out_and_said():
    tokens = [Token("f", 2), Token("g", 1), *(Token(name) for name in "uvwxyz")]
    many = [Repeat(name, at_least=3, at_most=9) for name in "uvwxyz"]
    space = Space(tokens, Tree(1, 60), [NoNesting("g"), *many])
    assert 0 < len(space.left_out) < 6
    assert "too many to look ahead" in space.describe(0)
    for design in space.sample(3):
        assert not space.violations(design)


def test_rules_with_too_many_contexts_are_said():
    """Thirteen functions that must not stand within themselves: above a slot is one of 2^13 sets of them."""
    names = [f"f{n}" for n in range(13)]
    tokens = [*(Token(name, 1) for name in names), Token("x")]
    rules = [NoNesting(name) for name in names]
    few, many = (Space(tokens[-count:], Tree(count, 2 * count), rules[-count + 1 :]) for count in (9, 14))
    assert few.left_out == ()
    assert many.left_out == tuple(rules)
    assert "too many to look ahead" in many.describe(0)
    assert not any(many.violations(design) for design in many.sample(20))
