"""Columns: walking them, in Python and compiled, does what the tree in JSON says."""

from __future__ import annotations

import numpy as np
import pytest
from mixed_trees import NUMBERS, any_points, mixed_policies, mixed_space, naive
from numba import njit

from discodso.tasks.policies.columns import Columns, fill_action, mark_used, walk
from discodso.tasks.policies.tree import Forest

SPACES = {
    "oblique, linear": (mixed_space(), NUMBERS),
    "pairs, constant": (mixed_space("pair", linear=False), NUMBERS),
    "oblique, choices": (mixed_space("oblique", None), None),
}


@njit
def _compiled(columns, root, x, low, high, actions, leaves):
    for row in range(x.shape[0]):
        leaves[row] = walk(columns, root, x[row])
        fill_action(columns, leaves[row], x[row], low, high, actions[row])


@pytest.mark.parametrize("kind", SPACES)
def test_all_ways_of_walking_agree_with_the_tree_in_json(kind):
    space, numbers = SPACES[kind]
    rng = np.random.default_rng(0)
    policies = mixed_policies(space, 60, 1, numbers)
    forest = Forest.of(policies)
    low, high = (np.array(end) for end in ((numbers.low, numbers.high) if numbers else ((), ())))
    for place, policy in enumerate(policies):
        x = any_points(rng, 30, wild=True)
        data, columns = policy.to_dict(), forest.columns_of(place)
        actions, leaves = np.empty((30, len(numbers or ()))), np.empty(30, np.int64)
        _compiled(forest.columns, forest.offset[place], x, low, high, actions, leaves)
        for row in range(30):
            point = x[row].tolist()
            expected = naive(data, point, numbers)
            assert forest.offset[place] + walk(columns, 0, point) == leaves[row]
            if numbers is None:
                assert policy.act(x[row]) == expected == forest.columns.jump[leaves[row]]
            else:
                assert policy.act(x[row]).tolist() == expected == actions[row].tolist()


@pytest.mark.parametrize("kind", SPACES)
def test_columns_and_nodes_are_inverse(kind):
    space, numbers = SPACES[kind]
    policies = mixed_policies(space, 40, 2, numbers)
    forest = Forest.of(policies)
    for place, policy in enumerate(policies):
        assert Columns.of(policy.nodes).nodes() == policy.nodes
        assert forest.columns_of(place).nodes() == policy.nodes


def test_used_features_are_those_of_splits_and_leaves():
    for policy in mixed_policies(mixed_space(nodes=5), 60, 3):
        used = np.zeros(3, np.int64)
        mark_used(policy.columns, 0, len(policy), used)
        named = str(policy.to_dict())
        expected = ["'feature': 0", "'feature': 1", "'feature': 2"]
        for feature in range(3):
            assert used[feature] == (expected[feature] in named or f"'{feature}':" in named)
