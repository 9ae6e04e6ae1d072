"""Faults that were found by trying to break rules and values, and do not come back."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discodso import (
    AnyOrder,
    Choice,
    Constraint,
    DeclarationError,
    Design,
    DisCo,
    EndsWith,
    FixedSequence,
    Follows,
    ForbiddenChild,
    Integer,
    InvalidDesignError,
    OpenSequence,
    Real,
    Space,
    Sum,
    Task,
    Token,
    search,
)

AB = [Token("a"), Token("b")]


def numbers(*values):
    return Design.of(*(("a", {"x": value}) for value in values))


def test_a_rule_may_name_the_end_token():
    space = Space(AB, OpenSequence(1, 3), [ForbiddenChild("b", "end")])
    assert space.count() == 1 + 2 + 4
    assert all(design.tokens[-1] == "a" for design in space.sample(50))
    with pytest.raises(InvalidDesignError):
        DisCo(space, budget=50).tell([Design.of("a", "b")], [1.0])
    with pytest.raises(DeclarationError, match="cannot name the end token"):
        Space(AB, OpenSequence(1, 3), [Follows("end", "a")])


def test_sums_reach_their_limits():
    space = Space([Token("a", x=Real(0, 1))], FixedSequence(4), [Sum("x", at_most=2)])
    assert space.violations(numbers(1, 1, 0, 0)) == []
    result = search(Task(space, lambda d: d[0].x + d[1].x - d[2].x - d[3].x), budget=600, seed=0)
    assert result.best.reward == pytest.approx(2, abs=1e-3)
    assert not any(row.redrawn for row in result.history)
    fractions = Space([Token("a", x=Real(0, 1))], FixedSequence(3), [Sum("x", at_least=1, at_most=1)])
    for design in fractions.sample(100):
        assert sum(part.x for part in design) == pytest.approx(1, abs=1e-8)
    assert fractions.violations(numbers(0.5, 0.25, 0.25)) == []
    assert len(Space([Token("a", x=Real(1, 2))], FixedSequence(3), [Sum("x", at_most=3)]).sample(3)) == 3


def test_sums_forgive_rounding_and_are_named():
    space = Space([Token("a", x=Real(0, 1))], FixedSequence(3), [Sum("x", at_most=0.6)])
    for values in ((0.3, 0.2, 0.1), (0.1, 0.2, 0.3)):
        assert space.violations(numbers(*values)) == []
    found = space.violations(numbers(0.3, 0.3, 0.3))
    assert found
    assert all("Sum(" in violation.rule for violation in found)


def test_a_sum_over_an_infinite_range_goes_with_other_rules():
    tokens = [Token("a", v=Real(-math.inf, math.inf)), Token("b")]
    space = Space(tokens, FixedSequence(3), [EndsWith("b"), Sum("v", at_most=5)])
    for design in space.sample(50):
        assert sum(part.v for part in design if part.name == "a") <= 5 + 1e-6
        assert not space.violations(design)


def test_a_value_cannot_hide_an_attribute():
    with pytest.raises(DeclarationError, match="cannot be called 'values'"):
        Token("a", values=Real(0, 1))


def test_an_option_without_the_name_of_its_value_says_how():
    with pytest.raises(InvalidDesignError, match="give options by the name of the value"):
        Design.of(("scale", "minmax"))
    space = Space([Token("scale", how=Choice("standard", "minmax"))], FixedSequence(2))
    for design in space.sample(5):
        assert Design.of(*design) == design


def test_a_space_of_integers_and_options_is_exhausted():
    tokens = [Token("a", c=Choice(None, 1, "x"), n=Integer(1, 2)), Token("b")]
    result = search(Task(Space(tokens, OpenSequence(1, 2)), lambda design: 1.0), budget=300, seed=0)
    assert result.calls == 56
    assert "all 56 designs of the space are evaluated" in result.sentence


class NotTheOptionBefore(Constraint):
    def forbidden(self, prefix):
        return prefix.forbid_nothing()

    def forbidden_options(self, prefix):
        before = prefix.value("c")[:, -1:] if prefix.position else np.full((len(prefix), 1), np.nan)
        return {(name, "c"): before == np.arange(count) for name, count in (("a", 1), ("b", 3))}


def test_tokens_may_have_different_numbers_of_options():
    tokens = [Token("a", c=Choice("x")), Token("b", c=Choice("x", "y", "z"))]
    space = Space(tokens, FixedSequence(2), [NotTheOptionBefore()])
    result = search(Task(space, lambda design: 1.0), budget=60, seed=0)
    assert result.calls == 16 - 6  # pairs whose options have other numbers


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Space(AB, FixedSequence(2)).sample(-1), "n must be an integer >= 0"),
        (lambda: Space(AB, FixedSequence(2)).count("x"), "max_length must be an integer"),
        (lambda: AnyOrder(["a", "b"]), "one by one"),
    ],
)
def test_wrong_arguments_get_one_line(call, words):
    with pytest.raises(DeclarationError, match=words):
        call()
