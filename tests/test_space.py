"""A space says which rule a design breaks, and where."""

from __future__ import annotations

import pytest
from spaces import decision_tree, small_fixed, small_open, small_tree, symbolic

from discodso import Design, InvalidDesignError


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
        (Design.of("sin", ("const", float("nan"))), "not finite"),
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


def test_complexity_adds_up():
    assert symbolic().complexity(Design.of("add", "sin", "x1", ("const", 2.0))) == 4
