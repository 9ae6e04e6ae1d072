"""Mistakes in declarations get one clear line each, when they are made."""

from __future__ import annotations

import math

import pytest

from discodso import (
    ChildTypes,
    Choice,
    DeadEndError,
    DeclarationError,
    Design,
    DiscodsoError,
    FixedSequence,
    Follows,
    Integer,
    InvalidDesignError,
    OpenSequence,
    Real,
    Repeat,
    SoftLength,
    Space,
    Sum,
    Token,
    Tree,
    Where,
)

SVC = Token("svc", C=Real(0.1, 10), kernel=Choice("rbf", "poly"), degree=Integer(1, 5))
SPACE = Space([SVC, Token("plain", range=(0, 1)), Token("end_model")], OpenSequence(1, 4))
MISTAKES = {
    "a range upside down": (lambda: Real(3, 1), "low must be below high"),
    "a range of words": (lambda: Real("a", 1), "pair (low, high) of numbers"),
    "the logarithm of a negative number": (lambda: Real(-1, 1, log=True), "positive lower end"),
    "a flag that is none": (lambda: Real(0, 1, log="yes"), "log must be True or False"),
    "integer bounds that are not integers": (lambda: Integer(0.5, 3), "must be integers"),
    "integers upside down": (lambda: Integer(4, 2), "low is above high"),
    "integers without an end": (lambda: Integer(1, math.inf), "must be integers"),
    "integers by the logarithm from 0 on": (lambda: Integer(0, 9, log=True), "positive lower end"),
    "no options": (lambda: Choice(), "at least one option"),
    "options in a list": (lambda: Choice(["a", "b"]), "one by one"),
    "options in a range": (lambda: Choice(range(3)), "one by one"),
    "a range to nowhere": (lambda: Real(math.nan, 1), r"must be a pair (low, high) of numbers, got (nan, 1"),
    "a value without a name": (lambda: Token("t", Real(0, 1)), "give values by name: Token('t', x=Real("),
    "a range without a name": (lambda: Token("t", (0, 1)), "by name: Token('t', range=(0, 1))"),
    "values in a dictionary": (lambda: Token("t", {"C": Real(0, 1)}), "by name: Token('t', **{'C': Real("),
    "a rule about a token itself": (lambda: Follows(SVC, "plain"), "takes names of tokens"),
    "a function as a rule": (
        lambda: Space([SVC], FixedSequence(1), [lambda design: True]),
        "for a function Where(function)",
    ),
    "a prior among the rules": (
        lambda: Space([SVC], FixedSequence(1), [SoftLength(1, 1)]),
        "(priors go into priors=[...])",
    ),
    "a rule against the limits on the length": (
        lambda: Space([Token("f", 1), Token("x")], Tree(2, 3), [ChildTypes("f", 0, "f")]),
        "and Length(minimum=2, maximum=3) contradict each other",
    ),
    "a second child where there is one": (
        lambda: Space([Token("f", 1), Token("x")], Tree(), [ChildTypes("f", 1, "x")]),
        "'f' has 1 child; they are counted from 0, got 1",
    ),
    "an option twice": (lambda: Choice("a", "b", "a"), "'a' is there twice"),
    "an option that JSON cannot keep": (
        lambda: Choice(object(), "a"),
        "strings, finite numbers, booleans or None",
    ),
    "a value that is a pair": (lambda: Token("t", x=(0, 1)), "must be a Real, Integer or Choice"),
    "a range and values": (lambda: Token("t", range=(0, 1), x=Real(0, 1)), "not both"),
    "a value called like the token's name": (
        lambda: Token("t", **{"my value": Real(0, 1)}),
        "cannot be called",
    ),
    "a token without a name": (lambda: Token("", x=Real(0, 1)), "non-empty string"),
    "two tokens of one name": (lambda: Space([SVC, SVC], FixedSequence(1)), "occurs more than once"),
    "a rule about an unknown token": (
        lambda: Space([SVC], FixedSequence(1), [Follows("svc", "scv")]),
        "did you mean 'svc'",
    ),
    "a sum of an unknown value": (
        lambda: Space([SVC], FixedSequence(2), [Sum("c", at_most=1)]),
        "called 'c'",
    ),
    "a sum of options": (
        lambda: Space([SVC], FixedSequence(2), [Sum("kernel", at_most=1)]),
        "called 'kernel'",
    ),
    "a condition that is no function": (lambda: Where(True), "function of a design"),
    "a condition that forgets to return": (
        lambda: Space([SVC], FixedSequence(1), [Where(lambda design: None, called="odd")]).sample(),
        "Where(odd) must return True or False, got None for",
    ),
    "children in a sequence": (
        lambda: Space([Token("f", 2, x=Real(0, 1))], FixedSequence(2)),
        "use shape Tree",
    ),
    "a tree without leaves": (lambda: Space([Token("f", 2)], Tree()), "at least one leaf"),
    "rules that contradict each other": (
        lambda: Space([SVC], FixedSequence(1), [Repeat("svc", 2, 3)]),
        "no design can begin",
    ),
    "a name of a value that is not there": (
        lambda: SPACE.library.place("svc", "gamma"),
        "it has C, kernel, degree",
    ),
    "a design with a value too few": (
        lambda: encode(("svc", {"C": 1.0, "kernel": "rbf"})),
        "needs a value 'degree'",
    ),
    "a design with a value too many": (
        lambda: encode(("svc", {"C": 1.0, "kernel": "rbf", "degree": 2, "p": 3})),
        "has no value 'p'",
    ),
    "a design with one number for three values": (lambda: encode(("svc", 1.0)), "by name: C, kernel, degree"),
    "an option that is none": (
        lambda: encode(("svc", {"C": 1.0, "kernel": "linear", "degree": 2})),
        "must be one of 'rbf', 'poly', got 'linear'",
    ),
    "half an integer": (
        lambda: encode(("svc", {"C": 1.0, "kernel": "rbf", "degree": 2.5})),
        "degree of token 'svc' must be an integer, got 2.5",
    ),
    "a value where there is none": (lambda: encode(("end_model", 1.0)), "takes no value"),
}


def encode(*parts):
    return SPACE.encode([Design.of(*parts)])


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_clear_line(name):
    make, words = MISTAKES[name]
    with pytest.raises((DeclarationError, InvalidDesignError, DeadEndError)) as caught:
        make()
    assert isinstance(caught.value, DiscodsoError)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_part_that_lacks_a_value_says_which_it_has():
    (part,) = Design.of(("svc", {"C": 1.0, "kernel": "rbf", "degree": 2}))
    with pytest.raises(AttributeError, match="svc has no value 'gamma'; it has C, kernel, degree"):
        part.gamma  # noqa: B018
    with pytest.raises(KeyError, match="no value 'gamma'"):
        part["gamma"]


def test_values_outside_their_range_are_named():
    (found,) = SPACE.violations(Design.of(("svc", {"C": 99.0, "kernel": "rbf", "degree": 2})))
    assert "C 99 lies outside [0.1, 10]" in str(found)
