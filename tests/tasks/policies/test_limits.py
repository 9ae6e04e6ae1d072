"""Limits on the depth of trees and on their features, and what features cost."""

from __future__ import annotations

import math

import numpy as np
import pytest
from imagined import INTERFACE, SEEDS, Imagined, call_seeds_of, designs_of
from trees import decision, tree

from discodso import search_policy
from discodso.base.errors import DeclarationError
from discodso.tasks.policies.limits import features_of, prices_of
from discodso.tasks.policies.objective import TreeObjective
from discodso.tasks.policies.tree import Forest
from discodso.tasks.policies.tree_policy import TreePolicy
from discodso.tasks.policies.tree_space import tree_space
from discodso.testing import check_constraint


@pytest.mark.parametrize(("depth", "features", "splits"), [(2, None, "univariate"), (None, 1, "univariate"),
                                                           (3, 2, "univariate"), (3, 2, "pair")])  # fmt: skip
def test_trees_keep_to_their_limits_and_go_up_to_them(depth, features, splits) -> None:
    space = tree_space(INTERFACE, max_nodes=31, splits=splits, max_depth=depth, max_features=features)
    for constraint in space.constraints:
        check_constraint(constraint, space)
    designs = designs_of(300, space=space)
    trees = [TreePolicy(space.vocabulary.nodes(design)) for design in designs]
    used = features_of(Forest.of(trees), 4).sum(axis=1)
    assert max(own.depth for own in trees) <= (depth or 99)
    assert used.max() <= (features or 3)
    if depth is not None:
        assert max(own.depth for own in trees) == depth
    if features is not None:
        assert used.max() == features
    assert not any(space.violations(design) for design in designs)


def test_what_breaks_a_limit_is_named() -> None:
    deep = tree(decision(0, 0.5, decision(2, 0.0, 5, 6), 7))
    free = tree_space(INTERFACE)
    design = free.vocabulary.design(deep.nodes)
    assert not free.violations(design)
    assert "MaxDepth" in str(tree_space(INTERFACE, max_depth=1).violations(design))
    assert "MaxFeatures" in str(tree_space(INTERFACE, max_features=1).violations(design))
    assert not tree_space(INTERFACE, max_depth=2, max_features=2).violations(design)


def test_sums_of_more_features_than_there_may_be_are_refused() -> None:
    with pytest.raises(DeclarationError, match=r"^max_features: 'mix <' looks at 3 features, more than 2"):
        tree_space(INTERFACE, splits="oblique", max_features=2)
    tree_space(INTERFACE, splits="oblique", max_features=2, together=("height", "heat"))


def test_features_of_trees_are_those_of_decisions_sums_and_leaves() -> None:
    sums = {"weights": {"0": 1.0, "3": -2.0}, "threshold": 0.5, "left": {"action": 1}, "right": {"action": 2}}
    forest = [tree(1), tree(decision(2, 0.0, 1, decision(0, 1.0, 1, 2))), TreePolicy.from_dict(sums)]
    found = features_of(Forest.of(forest), 4)
    assert [np.flatnonzero(row).tolist() for row in found] == [[], [0, 2], [0, 3]]


def test_prices_are_paid_once_for_each_feature_of_a_tree() -> None:
    designs, call_seeds = designs_of(40), call_seeds_of(40)
    prices = (3.0, 0.0, 10.0, 0.5)
    free = TreeObjective(INTERFACE, tree_space(INTERFACE, 15), Imagined(np.arange(40)), SEEDS, 8, None)
    paid = TreeObjective(
        INTERFACE, tree_space(INTERFACE, 15), Imagined(np.arange(40)), SEEDS, 8, None, prices=prices
    )
    for row, design in enumerate(designs):
        used = {name for name in design.tokens if name.endswith("<")}
        price = sum({"height <": 3.0, "speed <": 10.0, "heat <": 0.5}[name] for name in used)
        difference = free(designs, call_seeds).rewards[row] - paid(designs, call_seeds).rewards[row]
        assert difference == pytest.approx(price)


def test_prices_have_names_or_numbers() -> None:
    assert prices_of({"speed": 2, "0": 0.5}, INTERFACE.feature_names).tolist() == [0.5, 0.0, 2.0, 0.0]
    with pytest.raises(DeclarationError, match="no feature 'tail'; the features are height"):
        prices_of({"tail": 1.0}, INTERFACE.feature_names)
    with pytest.raises(DeclarationError, match="speed must cost 0 or more"):
        prices_of({"speed": -1.0}, INTERFACE.feature_names)


def test_a_search_with_prices_finds_a_tree_that_does_without_and_reports_the_return() -> None:
    own = {"budget": 400, "episodes": 8, "seed": 0, "test_seeds": range(20), "max_nodes": 7}
    prices = {"angle": 1000.0, "1": 1000.0}
    found = search_policy("CartPole-v1", **own, feature_prices=prices, max_depth=2)
    assert found.policy.depth <= 2
    assert not features_of(Forest.of([found.policy]), 4)[0, 1:3].any()
    assert found.finalists[0].price == 0
    assert found.test_mean > 0  # the return, whatever was paid
    worths = [finalist.worth for finalist in found.finalists]
    assert worths == sorted(worths, reverse=True)
    for finalist in found.finalists:
        assert finalist.price == 1000 * features_of(Forest.of([finalist.policy]), 4)[0, 1:3].sum()
        assert math.isclose(finalist.worth, finalist.mean - finalist.price)
