"""Trees that imitate: a small tree is found again, splits and leaves are those of least squares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from discodso.tasks.policies.columns import walk
from discodso.tasks.policies.environments import Interface, describe
from discodso.tasks.policies.growing import Grower, best_threshold, censored_fit
from discodso.tasks.policies.leaves import ActionNumbers, Leaf
from discodso.tasks.policies.making import as_environment
from discodso.tasks.policies.splits import Oblique
from discodso.tasks.policies.tree import DecisionTree, action_of
from discodso.tasks.policies.tree_space import tree_space
from discodso.tasks.policies.vocabulary import Vocabulary

CART = describe(as_environment("CartPole-v1"))
FORCE = describe(as_environment("MountainCarContinuous-v0"))


def grower(interface: Interface = CART, splits: Any = "univariate", linear: bool = False) -> Grower:
    vocabulary = tree_space(interface, splits=splits, linear=linear).vocabulary
    choices = tuple(action for action, _ in interface.action_names)
    return Grower(vocabulary, splits == "pair", splits == "oblique", linear, choices)


def observations(count: int = 3000, width: int = 4) -> Any:
    return np.random.default_rng(0).normal(0, 0.3, (count, width)).astype(np.float32).astype(np.float64)


SMALL = DecisionTree.from_dict(
    {
        "feature": 2,
        "threshold": 0.1,
        "left": {"feature": 3, "threshold": -0.2, "left": {"action": 0}, "right": {"action": 1}},
        "right": {"action": 0},
    }
)


def test_a_small_tree_is_found_again() -> None:
    x = observations()
    said = np.array([[SMALL.act(row)] for row in x], np.float64)
    trees = list(grower().grow(x, said, leaves=20))
    assert len(trees) == 3  # then nothing is left to gain
    found = DecisionTree(trees[-1])
    assert [node[0] for node in found.nodes if not isinstance(node[0], Leaf)] == [
        (2, pytest.approx(0.1, abs=0.002)),
        (3, pytest.approx(-0.2, abs=0.002)),
    ]
    assert [found.act(row) for row in x] == said[:, 0].tolist()


def test_trees_are_those_of_scikit_learn() -> None:
    x = observations(500)
    said = ((x[:, 2] + x[:, 3] ** 2 > 0.05) ^ (x[:, 0] > 0.2)).astype(np.float64)
    *_, nodes = grower().grow(x, said[:, None], leaves=12)
    model = DecisionTreeClassifier(max_leaf_nodes=12, random_state=0).fit(x, said)
    assert [DecisionTree(nodes).act(row) for row in x] == model.predict(x).tolist()


@pytest.mark.parametrize("splits", ["pair", "oblique"])
def test_a_split_on_a_sum_is_found(splits: Any) -> None:
    x = observations()
    said = (x[:, 2] + 0.25 * x[:, 3] < 0.03).astype(np.float64)[:, None]
    *_, nodes = grower(splits=splits).grow(x, said, leaves=2)
    split = nodes[0][0]
    assert isinstance(split, Oblique)
    assert {2, 3} <= {feature for feature, _ in split.terms}
    found = DecisionTree(nodes)
    assert np.mean([found.act(row) == own for row, own in zip(x, said[:, 0], strict=True)]) > 0.97


def test_what_is_far_from_a_split_does_not_turn_it() -> None:
    x = observations()
    x[::5] += [0.0, 0.0, 1.0, 1.0]  # mostly on one side, and in another direction
    said = (x[:, 2] + 0.5 * x[:, 3] < 0.03).astype(np.float64)[:, None]
    *_, nodes = grower(splits="oblique").grow(x, said, leaves=2)
    found = DecisionTree(nodes)
    assert np.mean([found.act(row) == own for row, own in zip(x, said[:, 0], strict=True)]) > 0.99


def test_leaves_of_sums_are_fitted_within_the_bounds_of_actions() -> None:
    x = np.random.default_rng(0).uniform((-1.2, -0.07), (0.6, 0.07), (2000, 2))
    said = np.clip(np.where(x[:, 0] < -0.5, 30 * x[:, 1], 0.3 - x[:, 0]), -1, 1)[:, None]
    trees = list(grower(FORCE, linear=True).grow(x, said, leaves=2))
    found = DecisionTree(trees[-1], numbers=FORCE.numbers)
    assert found.nodes[0][0].threshold == pytest.approx(-0.5, abs=0.03)  # type: ignore[union-attr]
    errors = [abs(float(found.act(row)[0]) - own[0]) for row, own in zip(x, said, strict=True)]
    assert np.quantile(errors, 0.9) < 0.01


def test_leaves_of_numbers_are_means() -> None:
    x = np.random.default_rng(0).uniform((-1.2, -0.07), (0.6, 0.07), (500, 2))
    said = np.where(x[:, 1] < 0, -0.8, 0.4)[:, None] + np.random.default_rng(1).normal(0, 0.05, (500, 1))
    *_, nodes = grower(FORCE).grow(x, said, leaves=2)
    tree = DecisionTree(nodes, numbers=FORCE.numbers)
    sides = [walk(tree.columns, 0, row.tolist()) for row in x]
    for leaf in set(sides):
        own = said[[side == leaf for side in sides]].mean()
        assert nodes[leaf][0].numbers[0] == pytest.approx(own)  # type: ignore[union-attr]
    assert action_of(tree.columns, tree.numbers, [0.0, 0.05])[0] == pytest.approx(0.4, abs=0.02)


def test_numbers_that_are_integers_stay_such() -> None:
    x = np.random.default_rng(0).uniform((-1.2, -0.07), (0.6, 0.07), (300, 2))
    said = np.where(x < 0, 0.0, 3.0)
    said[::20, 0] = 1.0
    numbers = ActionNumbers(("a", "b"), (0.0, 0.0), (3.0, 3.0), (2,), "int64")
    vocabulary = Vocabulary.of(FORCE.feature_names, FORCE.ranges, (), numbers)
    *_, nodes = Grower(vocabulary, False, False, False, (), whole=True).grow(x, said, leaves=4)
    assert {leaf.numbers for leaf, _ in nodes if isinstance(leaf, Leaf)} == {
        (a, b) for a in (0, 3) for b in (0, 3)
    }


@pytest.mark.parametrize("splits", ["pair", "oblique"])
def test_many_features_are_no_burden(splits: Any) -> None:
    x = np.random.default_rng(0).normal(size=(400, 60))
    said = (x[:, 7] + x[:, 40] < 0).astype(np.float64)[:, None]
    names = [f"x{n}" for n in range(60)]
    vocabulary = Vocabulary.of(names, [(-3.0, 3.0)] * 60, ((0, "a"), (1, "b")), splits=splits)
    *_, nodes = Grower(vocabulary, splits == "pair", splits == "oblique", False, (0, 1)).grow(x, said, 2)
    split = nodes[0][0]
    assert isinstance(split, Oblique)
    assert {7, 40} <= {feature for feature, _ in split.terms}


def test_the_best_threshold_is_the_best_of_all() -> None:
    rng = np.random.default_rng(0)
    column, y = rng.integers(0, 9, 60).astype(float), rng.normal(size=(60, 2))
    y[column > 5] += 1

    def error(rows: Any) -> float:
        return float(((y[rows] - y[rows].mean(axis=0)) ** 2).sum())

    gain, threshold = best_threshold(column, np.ones((60, 1)), y, 1)
    cuts = {t: error(column == column) - error(column < t) - error(column >= t) for t in np.arange(0.5, 8)}
    assert gain == pytest.approx(max(cuts.values()))
    assert cuts[threshold] == max(cuts.values())
    line = np.stack([np.ones(60), rng.normal(size=60)], axis=1)
    gain, threshold = best_threshold(column, line, y, 4)

    def left(rows: Any) -> float:
        return float(np.linalg.lstsq(line[rows], y[rows])[1].sum())

    both = left(column < threshold) + left(column >= threshold)
    assert gain == pytest.approx(left(column == column) - both, rel=1e-4)
    assert best_threshold(np.zeros(9), np.ones((9, 1)), y[:9], 1) == (0.0, 0.0)


def test_sums_beyond_the_ends_count_as_the_ends() -> None:
    x = np.stack([np.ones(400), np.linspace(-1, 1, 400)], axis=1)
    y = np.clip(x @ [[0.2], [3.0]], -1, 1)
    assert np.clip(x @ censored_fit(x, y), -1, 1) == pytest.approx(y, abs=0.05)
    plain = np.linalg.lstsq(x, y)[0]
    assert abs(censored_fit(x, y)[1, 0] - 3) < abs(plain[1, 0] - 3) / 4


def test_small_weights_are_left_out_and_the_others_fitted_again() -> None:
    rng = np.random.default_rng(0)
    x = np.hstack([np.ones((500, 1)), rng.uniform(-1, 1, (500, 3))])
    x[:, 3] += 0.5 * x[:, 1]
    y = np.stack([x @ [0.001, 0.3, 0.0, 0.04], x @ [0.0, 0.0, 0.2, -0.3]], axis=1)
    found = censored_fit(x, y, 0.05)
    assert np.flatnonzero(found[:, 0]).tolist() == [0, 1]
    assert found[:2, 0] == pytest.approx(np.linalg.lstsq(x[:, :2], y[:, 0])[0], abs=1e-5)
    assert found[1:, 1] == pytest.approx([0.0, 0.2, -0.3], abs=1e-5)
