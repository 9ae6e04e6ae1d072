"""Designs as people write them."""

from __future__ import annotations

import pytest
from spaces import decision_tree, small_fixed, small_open, symbolic

from discodso import Choice, Integer, InvalidDesignError, OpenSequence, Real, Space, Token, Tree
from discodso.space.design_text import design_of_text

PIPELINE = Space(
    [
        Token("scale", how=Choice("standard", "min-max, both", 2, None)),
        Token("best", k=Integer(1, 20)),
        Token("best of all", x=Real(0, 1)),
        Token("svc", C=Real(1e-3, 1e3, log=True), gamma=Real(1e-5, 10, log=True)),
        Token("(odd)"),
    ],
    OpenSequence(1, 6),
)
FOREST = Space(
    [Token("f", 2, x=Real(0, 9), how=Choice("a", "b")), Token("g", 1), Token("1"), Token("12")], Tree(1, 9)
)


@pytest.mark.parametrize(
    "space", [PIPELINE, FOREST, symbolic(), decision_tree(), small_fixed(), small_open()]
)
def test_what_is_printed_can_be_read(space):
    for design in space.sample(50, seed=1):
        exact = design_of_text(design.to_json(), space)
        assert exact == design
        for text in (space.render(design), str(design)):
            again = design_of_text(text, space)
            assert again.tokens == design.tokens
            assert space.render(again) == space.render(design)  # but for the digits


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("scale(how=standard) svd(C=1)", "has no token 'svd'; did you mean 'svc'., at character 21"),
        ("svc(C=1)", r"svc needs a value 'gamma', as svc\(C=..., gamma=...\)"),
        ("svc(1, 2)", r"svc takes its values as svc\(C=..., gamma=...\)"),
        ("svc(C=x, gamma=1)", "C of svc must be a finite number, got 'x'"),
        ("scale(how=maximal)", "how of scale must be one of 'standard', .*, got 'maximal'"),
        ("best", r"best needs its values in brackets, as best\(k=...\)"),
        ("best(k=3", "best takes its values as"),
        ("best(k=3))", "a bracket closes that was not opened"),
        ('{"tokens": 3}', "a design in JSON is an object with the keys"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(text, words):
    with pytest.raises(InvalidDesignError, match=words):
        design_of_text(text, PIPELINE)


@pytest.mark.parametrize(
    ("text", "words"),
    [("g(1, 12)", "g has 1 children, not 2"), ("g(g(1)", "the bracket behind g is not closed")],
)
def test_children_are_counted(text, words):
    with pytest.raises(InvalidDesignError, match=words):
        design_of_text(text, FOREST)
