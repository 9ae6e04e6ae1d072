"""Counting, listing and describing a space."""

from __future__ import annotations

import itertools

import pytest

from discodso import (
    ChildTypes,
    Choice,
    Constraint,
    DeadEndError,
    DeclarationError,
    EndsWith,
    FixedSequence,
    Follows,
    ForbiddenChild,
    Integer,
    LeadsTo,
    Needs,
    OpenSequence,
    Real,
    Repeat,
    Space,
    StartsWith,
    Sum,
    Token,
    Tree,
    UniformArity,
    Where,
)
from discodso.space.enumeration import all_designs

LETTERS = [Token(name) for name in "abc"]


@pytest.mark.parametrize(
    "space",
    [
        Space(LETTERS, FixedSequence(3)),
        Space(LETTERS, OpenSequence(0, 4), [ForbiddenChild("a", "a"), Repeat("b", 1, 2)]),
        Space(LETTERS, OpenSequence(2, 5), [StartsWith("a"), EndsWith(("b", "c"))]),
        Space([Token("f", 2), Token("g", 1), *LETTERS], Tree(1, 5), [ForbiddenChild("g", "g")]),
    ],
)
def test_count_and_list_agree_with_all_designs(space):
    designs = all_designs(space, 10_000)
    assert designs is not None
    wanted = sorted(design.tokens for design in designs)
    listed = list(space.enumerate())
    assert sorted(listed) == wanted
    assert [len(tokens) for tokens in listed] == sorted(len(tokens) for tokens in wanted)
    assert space.count() == len(wanted)
    assert space.count(3) == sum(len(tokens) <= 3 for tokens in wanted)


def test_counts_are_exact_however_large():
    assert Space(LETTERS, OpenSequence(1, 40)).count() == sum(3**n for n in range(1, 41))
    assert Space([Token("a", x=Real(0, 1)), Token("b")], FixedSequence(64)).count() == 2**64


def test_listing_is_lazy():
    space = Space(LETTERS, OpenSequence(1, 1000))
    assert list(itertools.islice(space.enumerate(), 5)) == [("a",), ("b",), ("c",), ("a", "a"), ("a", "b")]


class Odd(Constraint):
    """A rule that no table knows."""

    sees_values = False

    def forbidden(self, prefix):
        return prefix.forbid_nothing()


def test_what_cannot_be_counted_says_so():
    space = Space(LETTERS, OpenSequence(1, 30), [Odd()])
    assert space.count(4) == 3 + 9 + 27 + 81
    with pytest.raises(DeclarationError, match="give max_length"):
        space.count()


def test_a_description_names_everything():
    space = Space(
        [
            Token("svc", C=Real(1e-3, 1e3, log=True), kernel=Choice("rbf", "poly")),
            Token("kbest", k=Integer(1, 20)),
        ],
        OpenSequence(1, 3),
        [EndsWith("svc")],
        [UniformArity()],
    )
    text = space.describe()
    assert repr(text) == text  # a terminal shows it without quotes
    for words in (
        "C: a number from 0.001 to 1000, by its logarithm",
        "kernel: one of 'rbf', 'poly'",
        "k: an integer from 1 to 20",
        "EndsWith(tokens=('svc',))",
        "UniformArity()",
        "svc(C=",
    ):
        assert words in text
    assert text._repr_html_().startswith("<pre>")
    assert "with 2 children" in Space([Token("f", 2), Token("x")], Tree()).describe(0)


@pytest.mark.parametrize(
    ("shape", "rules", "never"),
    [
        (OpenSequence(1, 4), [Needs("a", "a")], ("a",)),
        (OpenSequence(1, 4), [Follows("a", "b"), Repeat("b", at_most=0)], ("a", "b")),
        (FixedSequence(3), [LeadsTo("a", ("b", "c")), EndsWith("b"), Sum("x", at_most=0.5)], ("c",)),
        (OpenSequence(1, 4), [Follows("a", "b")], ()),
        (OpenSequence(1, 4), [], ()),
    ],
)
def test_tokens_that_no_design_can_have_are_named(shape, rules, never):
    space = Space([Token("a"), Token("b"), Token("c", x=Real(1, 2))], shape, rules)
    assert space.never_used == never
    assert (f"no design can have: {', '.join(never)}" in space.describe(0)) == bool(never)
    assert set(never) == {"a", "b", "c"} - {name for skeleton in space.enumerate() for name in skeleton}


def test_tokens_of_trees_that_no_design_can_have_are_named():
    tokens = [Token("f", 2), Token("g", 1), Token("x"), Token("y")]
    rules = [ChildTypes("f", 0, {"g"}), ForbiddenChild("f", "g")]
    assert Space(tokens, Tree(1, 7), rules).never_used == ("f",)
    assert Space(tokens, Tree(1, 7), rules[:1]).never_used == ()
    assert Space([Token("f", 2), Token("x")], Tree(1, 2)).never_used == ("f",)


def test_skeletons_of_sums_have_room_for_some_values():
    tokens = [Token("a", x=Real(2, 3)), Token("b", x=Real(0, 1))]
    for space, wanted in (
        (Space(tokens, OpenSequence(1, 4), [Sum("x", at_least=8)]), 12),
        (Space(tokens, FixedSequence(4), [Sum("x", at_most=7)]), 15),
    ):
        assert space.count() == len(list(space.enumerate())) == wanted


def test_trees_are_counted_however_many():
    tokens = [Token("add", 2), Token("mul", 2), Token("sin", 1), Token("x"), Token("c")]
    by_size = [0, 2]  # two leaves
    for size in range(2, 33):
        splits = sum(by_size[left] * by_size[size - 1 - left] for left in range(1, size - 1))
        by_size.append(by_size[size - 1] + 2 * splits)
    assert Space(tokens, Tree(1, 32)).count() == sum(by_size)
    assert Space(tokens, Tree(1, 32)).count(5) == sum(by_size[:6])


def test_a_space_without_designs_is_described_and_says_why():
    space = Space(LETTERS, FixedSequence(1), [Where(lambda design: False, called="never")])
    assert "do not meet Where(never)" in space.describe()
    with pytest.raises(DeadEndError, match=r"only 0 of 2 designs.*Where\(never\)"):
        space.sample(n=2)
