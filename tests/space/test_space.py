"""A space says which rule a design breaks, and where."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from spaces import decision_tree, small_fixed, small_open, small_tree, symbolic

from discodso import (
    Constraint,
    DeclarationError,
    Design,
    FixedSequence,
    ForbiddenChild,
    InvalidDesignError,
    OpenSequence,
    Prior,
    Repeat,
    Required,
    SoftLength,
    Space,
    Token,
    Tree,
    Where,
)


@pytest.mark.parametrize(
    ("space", "design", "position", "words"),
    [
        (symbolic(), Design.of("sin", "cos", "add", "x1", "x2"), 1, "NoNesting"),
        (symbolic(), Design.of("sin", "x1"), 1, "Length"),
        (symbolic(), Design.of("add", "x1", "x2", "x1", "x2"), 2, "Length"),
        (symbolic(), Design.of("add", "add", "x1", "x2"), 4, "1 open slot"),
        (small_tree(), Design.of("add", "x", "x"), 2, "DifferentLeaves"),
        (small_fixed(), Design.of("b", "b", "b", "b"), 3, "Repeat"),
        (small_fixed(), Design.of("a", "b", "b"), 3, "open slot"),
        (small_open(), Design.of("b", "a", "a", "c"), 2, "ForbiddenChild"),
        (decision_tree(), Design.of(("x1<", 6.0), "a1", "a2"), 0, "outside"),
        (decision_tree(), Design.of(("x1<", 2.0), ("x1<", 3.0), "a1", "a2", "a1"), 1, "outside"),
    ],
)
def test_violations_name_the_rule_and_the_position(space, design, position, words):
    found = [v for v in space.violations(design) if v.position == position]
    assert found
    assert any(words in str(v) for v in found)


def test_a_valid_design_has_no_violations():
    assert symbolic().violations(Design.of("add", "sin", "x1", ("const", 2.0))) == []
    assert decision_tree().violations(Design.of(("x1<", 2.0), "a1", "a2")) == []
    assert small_open().violations(Design.of("b", "c")) == []


@pytest.mark.parametrize(
    ("design", "words"),
    [
        (Design.of("plus", "x1", "x2"), "has no token"),
        (Design.of("add", ("x1", 2.0), "x2"), "takes no value"),
        (Design.of("add", "const", "x2"), "needs a value"),
        ("sin", "expected a Design"),
    ],
)
def test_designs_with_unknown_tokens_or_wrong_values_are_refused(design, words):
    with pytest.raises(InvalidDesignError, match=words):
        symbolic().encode([design])


def test_designs_of_other_spaces_and_too_long_ones_are_refused():
    with pytest.raises(InvalidDesignError, match="another library"):
        symbolic().encode(small_fixed().encode([Design.of("a", "b", "c", "c")]))
    with pytest.raises(InvalidDesignError, match="more than the longest"):
        small_fixed().encode([Design.of(*"abcabc")])
    with pytest.raises(InvalidDesignError, match="implied"):
        small_open().encode([Design.of("b", "c", "end")])


def test_violations_do_not_blame_rules_that_hold():
    """A design that is too short breaks the length, not the counts."""
    tokens = [Token("x"), Token("add", 2), Token("c", range=(0, 1))]
    space = Space(tokens, Tree(3, 7), [Repeat("c", at_most=3), Required("x")])
    assert [v.rule for v in space.violations(Design.of("x"))] == ["Length(minimum=3, maximum=7)"]


def test_a_library_of_an_open_sequence_serves_other_shapes_without_its_end_token():
    sequence = small_open()
    assert Space(sequence.tokens, FixedSequence(2)).library.names == ("a", "b", "c")
    assert Space(sequence.tokens, OpenSequence(1, 3)).library.names == ("a", "b", "c", "end")


class ReturnsNone(Constraint):
    def forbidden(self, prefix):
        return None


class ReturnsNumbers(Constraint):
    def forbidden(self, prefix):
        return np.zeros((len(prefix), len(prefix.library)), int)


class Infinite(Prior):
    def logits(self, prefix):
        return np.full((len(prefix), len(prefix.library)), -np.inf)


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda: Space([Token("a")], FixedSequence(2), [ReturnsNone()]), "ReturnsNone must return.*NoneType"),
        (
            lambda: Space([Token("a")], FixedSequence(2), [ReturnsNumbers()]),
            "ReturnsNumbers must return.*int64",
        ),
        (lambda: Space([Token("a")], FixedSequence(2), priors=[Infinite()]), "Infinite gave a logit"),
        (lambda: Space([Token("a")], FixedSequence(2), priors=[SoftLength(3, 1e-200)]), "SoftLength"),
        (lambda: Space([Token("a")], FixedSequence(2), Required("a")), "constraints must be a list"),
        (lambda: Space([Token("a")], FixedSequence(2), None), "constraints must be a list"),
        (lambda: Space(Token("a"), FixedSequence(2)), "tokens must be a list"),
        (lambda: Space([Token("a")], FixedSequence(2), [ForbiddenChild("a", Token("a"))]), "names of tokens"),
        (lambda: Space([Token("a")], FixedSequence(10**7)), "at most 10000"),
    ],
)
def test_bad_rules_and_arguments_are_refused_with_one_line(declare, words):
    with pytest.raises(DeclarationError, match=words) as caught, np.errstate(all="ignore"):
        declare()
    assert "\n" not in str(caught.value)


def test_complexity_adds_up():
    assert symbolic().complexity(Design.of("add", "sin", "x1", ("const", 2.0))) == 4


# ------------------------------------------------------------------------------------------------------ marks


class Limit:
    """A condition that is an object."""

    def __call__(self, design):
        return len(design) < 5


def letters(*conditions) -> Space:
    return Space([Token("a"), Token("b")], OpenSequence(1, 5), conditions)


def test_conditions_are_told_apart_by_their_code():
    conditions = [
        lambda design: True,
        lambda design: False,
        lambda design: len(design) > 2,
        lambda design: len(design) > 3000,
        lambda design: any(design) > 2,
        lambda design: "a" in design.tokens,
        lambda design: "a" in design.values,
        lambda design: all(token == "a" for token in design.tokens),
        lambda design: all(token == "b" for token in design.tokens),
        lambda design: all(token in {"a", "b"} for token in design.tokens),
        Limit(),
        len,
    ]
    marks = [letters(Where(condition)).mark for condition in conditions]
    assert len(set(marks)) == len(marks)
    assert letters(Where(lambda d: len(d) > 2)).mark == marks[2]
    assert letters(Where(Limit())).mark == marks[-2]
    named = [letters(Where(condition, called="same")).mark for condition in conditions]
    assert len({*named, *marks}) == 1 + len(marks)


def test_the_mark_of_a_condition_stays_when_it_is_used_and_in_another_process():
    code = (
        "from discodso import OpenSequence, Space, Token, Where\n"
        "keeps = Where(lambda design: all(t in {'a', 'b', 'c', 'd', 'e'} for t in design.tokens))\n"
        "space = Space([Token('a'), Token('b')], OpenSequence(1, 5), [keeps])\n"
        "first = space.mark\n"
        "space.sample(2000)\n"
        "print(first, space.mark)\n"
    )
    found = set()
    for seed in "012":
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        found |= set(done.stdout.split())
    assert len(found) == 1
