"""Leaves: their JSON, and what is refused."""

from __future__ import annotations

import pytest
from mixed_trees import NUMBERS, mixed_policies, mixed_space

from discodso.base.errors import InvalidDesignError
from discodso.tasks.policies.leaves import ActionNumbers
from discodso.tasks.policies.tree_policy import TreePolicy


def test_trees_of_numbers_come_back_from_json(tmp_path):
    for policy in mixed_policies(mixed_space(), 20, 0):
        policy.save(tmp_path / "policy.json")
        again = TreePolicy.load(tmp_path / "policy.json")
        assert again == policy
        assert again.numbers == NUMBERS


WHOLE = {"tree": {"action": [0.5, 2.0]}, "numbers": NUMBERS.to_dict()}
REFUSED = {
    "no numbers": ({"tree": {"action": [1.0]}}, "or every leaf numbers, which say what they are"),
    "a choice among numbers": ({**WHOLE, "tree": {"action": 1}}, "as many numbers as its actions"),
    "too few": ({**WHOLE, "tree": {"action": [1.0]}}, "as many numbers as its actions"),
    "no number": ({**WHOLE, "tree": {"action": [1.0, "x"]}}, "list of finite numbers"),
    "weights": ({**WHOLE, "tree": {"action": [1.0, 2.0], "weights": [{}]}}, "as long as action"),
    "weight": (
        {**WHOLE, "tree": {"action": [1.0, 2.0], "weights": [{"a": 1}, {}]}},
        "no number of a feature",
    ),
    "zero": ({**WHOLE, "tree": {"action": [1.0, 2.0], "weights": [{"0": 0}, {}]}}, "finite number but 0"),
    "ends": ({**WHOLE, "numbers": {**NUMBERS.to_dict(), "low": [2.0, 0.0]}}, "finite and in order"),
    "shape": ({**WHOLE, "numbers": {**NUMBERS.to_dict(), "shape": [3]}}, "shape of numbers"),
    "type": ({**WHOLE, "numbers": {**NUMBERS.to_dict(), "dtype": "object"}}, "dtype of numbers"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_tree_of_numbers_is_refused(case):
    data, message = REFUSED[case]
    with pytest.raises(InvalidDesignError, match=message):
        TreePolicy.from_dict(data)


def test_numbers_come_back_from_json():
    assert ActionNumbers.from_dict(NUMBERS.to_dict()) == NUMBERS
