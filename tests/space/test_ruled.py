"""The rules of a space together: what may come next, and what a rule of one's own must return."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from spaces import decision_tree

from discodso import (
    Choice,
    Constraint,
    DeadEndError,
    DeclarationError,
    FixedSequence,
    ForbiddenChild,
    Integer,
    OpenSequence,
    Prior,
    Real,
    Repeat,
    Space,
    Token,
)
from discodso.space.ruled import Options

AB = [Token("a"), Token("b")]


class Returns(Constraint, sees_values=False):
    """A rule that returns what it is given."""

    def __init__(self, answer, options=None):
        self.answer, self.options = answer, options or {}

    def forbidden(self, prefix):
        return self.answer

    def forbidden_options(self, prefix):
        return self.options


class Logits(Prior):
    def __init__(self, answer):
        self.answer = answer

    def logits(self, prefix):
        return self.answer


NOTHING = np.zeros((1, 2), np.bool_)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"constraints": [Returns([[False, False]])]}, r"must return an array bool\[B, K\].*got list"),
        ({"constraints": [Returns(np.zeros((1, 2)))]}, r"got float64\[1, 2\]"),
        ({"constraints": [Returns(np.zeros((1, 3), np.bool_))]}, r"of shape \[1, 2\], got bool\[1, 3\]"),
        ({"constraints": [Returns(NOTHING, [1])]}, "forbidden_options must return a dictionary"),
        ({"constraints": [Returns(NOTHING, {("b", "k"): NOTHING})]}, "'k' of 'b' is no Choice"),
        ({"constraints": [Returns(NOTHING, {("a", "how"): NOTHING[:, :1]})]}, r"of shape \[1, 2\]"),
        ({"priors": [Logits(np.full((1, 2), np.inf))]}, "logit that is not finite; use a Constraint"),
        ({"constraints": [Logits(NOTHING)]}, "constraints must be Constraint objects"),
        ({"priors": 3}, "priors must be a list of Prior objects"),
        ({"bounds": 3}, "bounds must be a Bounds object"),
    ],
)
def test_what_a_rule_must_not_return_is_refused_in_one_line(rules, words):
    tokens = [Token("a", how=Choice("x", "y")), Token("b", k=Integer(1, 3))]
    with pytest.raises(DeclarationError, match=words) as caught:
        Space(tokens, FixedSequence(1), **rules)
    assert "\n" not in str(caught.value)


def test_masks_of_all_rules_are_joined_and_logits_added():
    first, second = np.array([[True, False]]), np.array([[0.5, -1.0]])
    space = Space(AB, FixedSequence(1), [Returns(first)], [Logits(second), Logits(second)])
    options = space.options(space.start(1))
    assert options.forbidden.tolist() == [[True, False]]
    assert options.prior.tolist() == [[1.0, -2.0]]


def test_a_token_whose_options_are_all_barred_is_forbidden():
    tokens = [Token("a", how=Choice("x", "y")), Token("b")]
    for mask, forbidden in ((np.array([[True, False]]), False), (np.array([[True, True]]), True)):
        space = Space(tokens, FixedSequence(1), [Returns(NOTHING, {("a", "how"): mask})])
        options = space.options(space.start(1))
        assert options.forbidden[0, 0] == forbidden
        taken = np.zeros(1, np.int64), np.zeros((1, 1))  # "a" with "x"
        assert options.refused(space.library, *taken).tolist() == [True]
        assert options.refused(space.library, taken[0], taken[1] + 1).tolist() == [forbidden]


def test_options_without_masks_refuse_what_is_forbidden():
    library = Space(AB, FixedSequence(1)).library
    options = Options(np.array([[True, False], [True, False]]), None, np.empty((2, 2)), np.empty((2, 2)))
    assert options.refused(library, np.array([0, 1]), np.full((2, 1), np.nan)).tolist() == [True, False]


def test_no_beginning_names_the_fewest_rules():
    rules = [Repeat("a", at_least=2), ForbiddenChild("a", "b"), Repeat("b", at_least=2)]
    words = (
        r"no design can begin: Repeat\([^)]*\), [^)]*\) and Repeat\([^)]*\), [^)]*\) contradict each other"
    )
    with pytest.raises(DeadEndError, match=words):
        Space(AB, OpenSequence(1, 3), rules)


def test_a_space_is_pickled_without_its_tables_and_makes_them_again():
    space = decision_tree()
    prefix = space.start(1)
    before = space.options(prefix)
    again = pickle.loads(pickle.dumps(space))
    assert not {"library", "grammar", "_look_ahead"} & set(vars(again))
    after = again.options(again.start(1))
    assert np.array_equal(before.forbidden, after.forbidden)
    assert np.array_equal(before.low, after.low, equal_nan=True)


def test_bounds_are_fixed_where_nothing_moves_them():
    tokens = [Token("v", x=Real(0, 1)), Token("w")]
    assert Space(tokens, FixedSequence(2)).has_fixed_ranges
    assert not decision_tree().has_fixed_ranges
