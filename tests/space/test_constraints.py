"""Constraints against their definitions, on every traversal of small random spaces."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from enumeration import obeys, reachable_skeletons, valid_skeletons
from hypothesis import given, settings
from hypothesis import strategies as st
from spaces import symbolic

from discodso import (
    Constraint,
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
    OpenSequence,
    Repeat,
    Required,
    SoftLength,
    Space,
    Token,
    Tree,
    UniformArity,
)
from discodso.disco.sampling import sample
from discodso.disco.uniform import UniformStepper


@st.composite
def libraries(draw, shape):
    arities = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3)) if shape is Tree else []
    leaves = draw(st.integers(1, 3))
    names = [f"t{i}" for i in range(len(arities) + leaves)]
    numeric = draw(st.lists(st.booleans(), min_size=len(names), max_size=len(names)))
    return [
        Token(name, arity, range=(0.0, 1.0) if number else None)
        for name, arity, number in zip(names, [*arities, *[0] * leaves], numeric, strict=True)
    ]


@st.composite
def rules(draw, names, tree):
    some = st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True).map(tuple)
    pairs = st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), min_size=1, max_size=2)
    kinds = [
        st.builds(NoNesting, some),
        st.builds(ForbiddenChild, some, some),
        st.builds(ForbiddenDescendant, some, some),
        st.builds(InversePairs, pairs),
        st.builds(
            lambda tokens, least, more: Repeat(tokens, least, None if more is None else least + more),
            some,
            st.integers(0, 2),
            st.none() | st.integers(0, 2),
        ),
    ]
    if tree:
        kinds += [st.builds(ForbiddenSiblings, pairs), st.just(DifferentLeaves())]
    return draw(st.lists(st.one_of(kinds), max_size=3))


@st.composite
def spaces(draw, longest=5):
    shape = draw(st.sampled_from([Tree, FixedSequence, OpenSequence]))
    tokens = draw(libraries(shape))
    least = draw(st.integers(0 if shape is OpenSequence else 1, longest))
    most = draw(st.integers(least, longest)) if longest > least else least
    form = FixedSequence(max(most, 1)) if shape is FixedSequence else shape(least, max(most, least, 1))
    constraints = draw(rules([t.name for t in tokens], shape is Tree))
    try:
        return Space(tokens, form, constraints)
    except DeadEndError as error:
        return error


@settings(max_examples=300)
@given(spaces())
def test_sampling_reaches_exactly_the_valid_designs(space):
    """Nothing forbidden can be drawn, and nothing valid is lost, whatever the constraints."""
    if isinstance(space, DeadEndError):
        return
    reached, _ = reachable_skeletons(space)
    assert reached == valid_skeletons(space)


@settings(max_examples=300)
@given(spaces(longest=12), st.integers(0, 2**32 - 1))
def test_random_spaces_give_valid_designs_or_name_the_constraints_of_a_dead_end(space, seed):
    message, drawn, rules = "", (), ()
    try:
        if isinstance(space, DeadEndError):
            raise space
        rules = [rule.name for rule in space.rules]
        drawn = sample(space, UniformStepper(space), 40, np.random.default_rng(seed)).designs
    except DeadEndError as error:
        message = str(error)
    assert bool(message) != bool(len(drawn))
    if message:
        assert " forbids " in message or " contradict each other" in message
        assert not rules or any(f"{name} forbids " in message for name in rules)
    for design in drawn:
        assert not space.violations(design)
        assert all(obeys(rule, space, design.tokens) for rule in space.constraints)
        assert all(v is None or 0 <= v <= 1 for v in design.values)


class NotBesideItself(Constraint, sees_values=False):
    """A rule of one's own, which cannot look ahead."""

    def forbidden(self, prefix):
        return prefix.sibling[:, None] == np.arange(len(prefix.library))


def test_a_dead_end_names_the_constraints_that_made_it():
    tokens = [Token("add", 2), Token("x"), Token("y")]
    rules = [ForbiddenChild("add", ("x", "add")), NotBesideItself()]
    space = Space(tokens, Tree(3, 7), rules)
    with pytest.raises(DeadEndError) as caught:
        sample(space, UniformStepper(space), 10, np.random.default_rng(0))
    message = str(caught.value)
    assert "⟨add, y⟩" in message
    assert "ForbiddenChild" in message
    assert "NotBesideItself" in message
    assert "NoNesting" not in message


def test_a_space_without_any_design_is_refused_at_declaration():
    with pytest.raises(DeadEndError, match="Length"):
        Space([Token("add", 2), Token("x")], Tree(4, 4))  # binary trees have odd lengths
    with pytest.raises(DeadEndError, match="Repeat"):
        Space([Token("a"), Token("b")], FixedSequence(3), [Repeat("a", at_least=4)])


def allowed_after(space, *names):
    prefix = space.start(1)
    for name in names:
        token = space.library.id(name)
        value = 0.5 if space.library.parametrised[token] else np.nan
        prefix = prefix.advance(np.array([token]), np.array([value]))
    return {space.library.names[k] for k in np.flatnonzero(~space.options(prefix).forbidden[0])}


def test_the_trigonometry_example_of_the_paper():
    """⟨+, x1, cos, ÷, 1⟩: sin and cos are constrained because they would be descendants of cos."""
    space = symbolic()
    allowed = allowed_after(space, "add", "x1", "cos", "div", "one")
    assert allowed == set(space.library.names) - {"sin", "cos"}
    assert "sin" in allowed_after(space, "add", "cos", "x1")  # not below the cosine any more


def test_the_length_examples_of_the_paper():
    """⟨sin⟩ may not end with length 2; at the limit only leaves fit."""
    space = symbolic(4, 7)
    assert allowed_after(space, "exp") == {"add", "sub", "mul", "div", "sin", "cos", "exp", "log"}
    assert allowed_after(space, "add", "add", "add") == {"x1", "x2", "one", "const"}
    assert "add" in allowed_after(space, "add", "add")
    assert "exp" in allowed_after(space, "add", "add", "x1")
    assert allowed_after(space, "add", "add", "add", "x1") == {"x1", "x2", "one", "const"}


def test_constraints_see_values():
    class Ascending(Constraint):
        """No token may follow a value above 0.8."""

        def forbidden(self, prefix):
            mask = prefix.forbid_nothing()
            if prefix.position:
                high = prefix.values[:, -1] > 0.8
                mask[high, prefix.library.id("v")] = True
            return mask

    space = Space([Token("v", range=(0, 1)), Token("d")], FixedSequence(6), [Ascending()])
    drawn = sample(space, UniformStepper(space), 500, np.random.default_rng(0)).designs
    follows = [
        (a, b)
        for design in drawn
        for (_, a), (name, b) in itertools.pairwise(design)
        if a is not None and name == "v"
    ]
    assert follows
    assert max(a for a, _ in follows) <= 0.8
    assert space.violations(Design.of(("v", 0.9), ("v", 0.1), "d", "d", "d", "d"))[0].rule == "Ascending"


def test_soft_length_moves_lengths_towards_its_centre():
    tokens = [Token("add", 2), Token("neg", 1), Token("x")]

    def lengths(priors):
        space = Space(tokens, Tree(1, 40), priors=priors)
        return sample(space, UniformStepper(space), 2000, np.random.default_rng(0)).designs.lengths

    plain, soft = lengths(()), lengths((SoftLength(15, 3),))
    assert abs(soft.mean() - 15) < abs(plain.mean() - 15)
    assert soft.std() < plain.std()
    tight = lengths((SoftLength(15, 0.5),))
    assert abs(tight.mean() - 15) < 1.5


def test_uniform_arity_makes_arities_equally_likely():
    tokens = [*(Token(f"b{i}", 2) for i in range(6)), Token("u", 1), Token("x"), Token("y")]
    space = Space(tokens, Tree(1, 30), priors=[UniformArity()])
    first = sample(space, UniformStepper(space), 9000, np.random.default_rng(0)).designs.tokens[:, 0]
    shares = np.bincount(space.library.arity[first], minlength=3) / 9000
    np.testing.assert_allclose(shares, 1 / 3, atol=0.02)


def test_hopeless_designs_with_many_children_are_reported():
    space = Space([Token("f", 5), Token("x")], Tree(1, 7))
    assert "Length" in space.violations(Design.of(*["f"] * 6))[0].rule


def test_counts_beyond_the_length_cost_nothing_and_absurd_tables_are_refused():
    Space([Token("a"), Token("b")], FixedSequence(32), [Repeat("a", at_most=10**8)])
    with pytest.raises(DeadEndError, match="Repeat"):
        Space([Token("a"), Token("b")], FixedSequence(32), [Repeat("a", at_least=10**8)])
    with pytest.raises(DeclarationError, match="lower max_length"):
        Space([Token("add", 2), Token("x")], Tree(1, 2000), [Repeat("x", at_most=900)])


def test_required_is_at_least_one():
    assert Required("x") == Repeat("x", at_least=1)


TOKENS = [Token("add", 2), Token("x"), Token("y")]


@pytest.mark.parametrize(
    "declare",
    [
        lambda: Space(TOKENS, Tree(), [NoNesting("ad")]),
        lambda: Space(TOKENS, Tree(), [ForbiddenChild("add", "z")]),
        lambda: Space(TOKENS, Tree(), [ForbiddenDescendant("z", "x")]),
        lambda: Space(TOKENS, Tree(), [ForbiddenSiblings([("x", "z")])]),
        lambda: Space(TOKENS, Tree(), [InversePairs([("z", "x")])]),
        lambda: Space(TOKENS, Tree(), [Repeat("z", 1)]),
    ],
)
def test_a_constraint_that_names_an_unknown_token_is_refused(declare):
    with pytest.raises(DeclarationError, match="has no token") as caught:
        declare()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("declare", "word"),
    [
        (lambda: NoNesting(()), "at least one"),
        (lambda: Repeat("x", 3, 2), "at_most"),
        (lambda: Repeat("x", -1), "at_least"),
        (lambda: ForbiddenSiblings(["xy", "x"]), "pairs"),
        (lambda: InversePairs([]), "pair"),
        (lambda: SoftLength(3, 0), "spread"),
        (lambda: Space([Token("a")], FixedSequence(2), [DifferentLeaves()]), "Tree"),
        (lambda: Space([Token("a")], FixedSequence(2), ["a"]), "Constraint"),
    ],
)
def test_bad_constraints_are_refused(declare, word):
    with pytest.raises(DeclarationError, match=word):
        declare()


def test_names_and_pairs_in_a_set_have_one_order():
    """The mark of a space, by which `resume` knows it, must not depend on the order of a set."""
    letters = [chr(ord("a") + k) for k in range(26)]
    assert NoNesting(set(letters)) == NoNesting(letters)
    assert InversePairs(set(itertools.pairwise(letters))).pairs[0] == ("a", "b")
    assert InversePairs([{"y", "x"}]).pairs == (("x", "y"),)
