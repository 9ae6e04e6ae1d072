"""What a search of trees begins with: every form acts as before, and what does not fit is refused in a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from discodso import PolicySearch, TreePolicy, resume, search_policy
from discodso.base.errors import DiscodsoError, SettingsError
from discodso.run.settings import read
from discodso.run.start import start
from discodso.tasks.policies.columns import walk
from discodso.tasks.policies.environments import describe
from discodso.tasks.policies.making import Environment, as_environment
from discodso.tasks.policies.starts import design_of, designs_from, fitted_tree
from discodso.tasks.policies.tree import DecisionTree
from discodso.tasks.policies.tree_space import tree_space

CART = describe(as_environment("CartPole-v1"))
QUICK: dict[str, Any] = {"budget": 40, "episodes": 4, "racing": False, "test_seeds": range(2)}


def observations(count: int = 2000, width: int = 4) -> Any:
    return np.random.default_rng(0).normal(0, 0.3, (count, width)).astype(np.float32)


@pytest.fixture(scope="module")
def classifier() -> DecisionTreeClassifier:
    x = observations()
    return DecisionTreeClassifier(max_leaf_nodes=9, random_state=0).fit(
        x, x[:, 2] + 0.5 * x[:, 3] ** 2 > 0.02
    )


def test_a_fitted_classifier_and_its_tree_act_alike(classifier: DecisionTreeClassifier) -> None:
    tree = fitted_tree(classifier)
    x = np.vstack([observations(5000), np.repeat(classifier.tree_.threshold[:, None], 4, axis=1)])
    x = x.astype(np.float32)
    assert [tree.act(row) for row in x] == classifier.predict(x).astype(int).tolist()


def test_its_design_acts_alike_too(classifier: DecisionTreeClassifier) -> None:
    space = tree_space(CART, resolution=1e-9)
    design = design_of(fitted_tree(classifier), space, CART)
    tree, x = DecisionTree(space.vocabulary.nodes(design)), observations(5000)
    assert not space.violations(design)
    assert [tree.act(row) for row in x] == classifier.predict(x).astype(int).tolist()


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_fitted_regressor_has_leaves_of_numbers(outputs: int) -> None:
    x = observations()
    y = np.stack([np.tanh(x[:, 0]), x[:, 1] > 0], axis=1)[:, :outputs]
    model = DecisionTreeRegressor(max_leaf_nodes=12, random_state=0).fit(x, y)
    tree = fitted_tree(model)
    found = [tree.nodes[walk(tree.columns, 0, row.tolist())][0].numbers for row in x]
    assert np.array_equal(np.array(found), model.predict(x).reshape(len(x), -1))


def test_a_classifier_of_several_actions_has_leaves_of_numbers() -> None:
    x = observations()
    y = np.stack([x[:, 0] > 0.1, 2 * (x[:, 1] > 0) + (x[:, 2] > 0)], axis=1).astype(int)
    model = DecisionTreeClassifier(max_leaf_nodes=12, random_state=0).fit(x, y)
    tree = fitted_tree(model)
    found = [tree.nodes[walk(tree.columns, 0, row.tolist())][0].numbers for row in x]
    assert np.array_equal(np.array(found), model.predict(x))


def cart(*thresholds: float) -> dict[str, Any]:
    """A chain of decisions on the angle, whose range is -0.418 to 0.418, with actions by turns."""
    node: dict[str, Any] = {"action": len(thresholds) % 2}
    for place, threshold in reversed(list(enumerate(thresholds))):
        node = {"feature": 2, "threshold": threshold, "left": {"action": place % 2}, "right": node}
    return node


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((-0.1, 0.1), (-0.1, 0.1)),
        ((-9.0, 0.1), (CART.ranges[2][0], 0.1)),  # type: ignore[index]
        ((0.1, 0.1001), (0.1, 0.1 + 0.01 * (CART.ranges[2][1] - CART.ranges[2][0]))),  # type: ignore[index]
    ],
)
def test_thresholds_move_into_their_ranges_and_apart(given: Any, expected: Any) -> None:
    space = tree_space(CART)
    design = design_of(DecisionTree.from_dict(cart(*given)), space, CART)
    assert [value for _, value in design if value is not None] == pytest.approx(list(expected), rel=1e-12)
    assert not space.violations(design)


def test_a_decision_without_room_gives_way() -> None:
    def tree(inside: Any) -> DecisionTree:
        middle = {"feature": 2, "threshold": 0.009, "left": inside, "right": {"action": 1}}
        return DecisionTree.from_dict(
            {"feature": 2, "threshold": 0.0, "left": {"action": 1}, "right": middle}
        )

    space = tree_space(CART)
    near = {"feature": 3, "threshold": 0.0, "left": {"action": 0}, "right": {"action": 1}}
    crowded = tree({"feature": 2, "threshold": 0.001, "left": near, "right": {"action": 0}})
    found = DecisionTree(space.vocabulary.nodes(design_of(crowded, space, CART)))
    assert found.to_dict() == tree({"action": 0}).to_dict()  # most of what is between 0 and 0.009


@pytest.mark.parametrize(("threshold", "below"), [(2.0, 1), (2.3, 2), (2.5, 2), (2.7, 2), (3.0, 2)])
def test_thresholds_of_integers_part_the_same_numbers(threshold: float, below: int) -> None:
    taxi = describe(as_environment("Blackjack-v1"))
    tree = DecisionTree.from_dict(
        {"feature": 1, "threshold": threshold, "left": {"action": 0}, "right": {"action": 1}}
    )
    space = tree_space(taxi)
    made = DecisionTree(space.vocabulary.nodes(design_of(tree, space, taxi)))
    assert [made.act([0.0, float(x), 0.0]) for x in range(1, 6)] == [0] * below + [1] * (5 - below)


@pytest.mark.parametrize("splits", ["pair", "oblique"])
def test_sums_act_alike_up_to_rounding(splits: Any) -> None:
    space = tree_space(CART, splits=splits)
    data = {
        "weights": {"2": 1.0, "3": -0.3},
        "threshold": 0.02,
        "left": {"action": 0},
        "right": {"action": 1},
    }
    tree = DecisionTree.from_dict(data)
    made = DecisionTree(space.vocabulary.nodes(design_of(tree, space, CART)))
    x = observations(3000)
    assert [made.act(row) for row in x] == [tree.act(row) for row in x]


def large(depth: int, feature: int = 2, low: float = -0.4, high: float = 0.4) -> dict[str, Any]:
    middle = (low + high) / 2
    if depth == 0:
        return {"action": round(100 * low) % 2}
    below, beyond = large(depth - 1, feature, low, middle), large(depth - 1, feature, middle, high)
    if depth == 1:
        below, beyond = {"action": 0}, {"action": 1}
    return {"feature": feature, "threshold": middle, "left": below, "right": beyond}


ANGLE = {"feature": 2, "threshold": 0.0, "left": {"action": 0}, "right": {"action": 1}}
OBLIQUE = {
    "weights": {"2": 1.0, "3": 0.3},
    "threshold": 0.0,
    "left": {"action": 0},
    "right": {"action": 1},
}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (3, "start_from must be a TreePolicy, the path of a policy.json"),
        ("missing.json", "cannot read missing.json"),
        ({**ANGLE, "feature": 7}, "looks at 8 features, but CartPole-v1 has 4"),
        ({**ANGLE, "right": {"action": 2}}, "has action 2, but CartPole-v1 has 0 to 1"),
        (OBLIQUE, 'has decisions on sums that this run has not; set splits to "oblique" or "pair"'),
        ({"action": 1}, "does the same whatever it sees"),
        (large(5), "has 63 nodes, more than max_nodes=31; allow that many, or give it as the teacher"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_line(given: Any, words: str) -> None:
    if isinstance(given, dict):
        given = TreePolicy.from_dict(given)
    with pytest.raises(DiscodsoError, match=words) as caught:
        designs_from(given, CART, tree_space(CART))
    assert "\n" not in str(caught.value)


def test_policies_of_other_environments_and_other_actions_are_refused() -> None:
    space = tree_space(CART)
    other = TreePolicy.from_dict(ANGLE).with_names(Environment("Acrobot-v1"))
    with pytest.raises(DiscodsoError, match="is a policy for Acrobot-v1, not for CartPole-v1"):
        designs_from(other, CART, space)
    wide = TreePolicy.from_dict(ANGLE).with_names(None, tuple("abcdef"))
    with pytest.raises(DiscodsoError, match="looks at 6 features, but CartPole-v1 has 4"):
        designs_from(wide, CART, space)
    numbers = DecisionTreeRegressor(max_leaf_nodes=3).fit(observations(), observations()[:, 0])
    with pytest.raises(
        DiscodsoError, match="actions that are 1 numbers, but those of CartPole-v1 are choices"
    ):
        designs_from(numbers, CART, space)


def test_a_search_starts_from_any_of_them_and_is_resumed_without(
    classifier: DecisionTreeClassifier, tmp_path: Path
) -> None:
    """Balancing by the angle and its velocity is perfect: a search that starts there has nothing left to find."""
    perfect = TreePolicy.from_dict(
        {
            "feature": 2,
            "threshold": 0.0167507,
            "left": {"feature": 3, "threshold": 0.407984, "left": {"action": 0}, "right": {"action": 1}},
            "right": {"action": 1},
        }
    )
    perfect.save(tmp_path / "policy.json")
    mixed: Any = [tmp_path / "policy.json", classifier, perfect]
    found = search_policy("CartPole-v1", **QUICK, start_from=mixed, out=tmp_path / "a")
    assert found.search.best is not None
    assert found.search.best.reward == 500.0
    assert "designs = 2" in (tmp_path / "a" / "settings.toml").read_text()
    (tmp_path / "policy.json").unlink()
    again = resume(tmp_path / "a", budget=80)
    once = search_policy("CartPole-v1", **{**QUICK, "budget": 80}, start_from=[classifier, perfect])
    assert {scored.design for scored in again.search.top} == {scored.design for scored in once.search.top}
    (tmp_path / "a" / "top.json").unlink()  # the winner is left
    from_folder = search_policy("CartPole-v1", **QUICK, start_from=str(tmp_path / "a"))
    assert from_folder.search.best.reward == 500.0


def test_sums_of_an_earlier_run_mean_the_same_in_other_ranges(tmp_path: Path) -> None:
    own = {**QUICK, "splits": "oblique", "common_episodes": True, "seed": 3}
    before = search_policy("CartPole-v1", **own, out=tmp_path / "a")
    after = search_policy("CartPole-v1", **own, start_from=tmp_path / "a", ranges={"position": (-4, 4)})
    assert before.search.best is not None
    assert after.search.best is not None
    assert after.search.best.reward >= before.search.best.reward


def test_settings_files_and_commands_name_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pumping = {"feature": 1, "threshold": 0.001, "left": {"action": 0}, "right": {"action": 2}}
    TreePolicy.from_dict(pumping).save("policy.json")
    task = 'kind = "policy"\nenvironment = "MountainCar-v0"\nepisodes = 2\nmax_nodes = 5\ntest_seeds = [0, 1]'
    sources = 'start_from = ["policy.json"]\nteacher = "policy.json"'
    Path("run.toml").write_text(f"[task]\n{task}\n{sources}\n[run]\nbudget = 20\n")
    found: PolicySearch = start(read(Path("run.toml")), out="run").found
    assert found.begun["start_from"] == [found.begun["teacher"]] == ["policy.json"]
    assert found.begun["designs"] == 2  # what was given, and what was learned from it
    assert read(Path("run/settings.toml")).begun == found.begun
    Path("policy.json").unlink()
    assert resume("run", budget=40).begun == found.begun
    Path("bad.toml").write_text(f"[task]\n{task}\n[run]\nbudget = 20\nbegun = 3\n")
    with pytest.raises(SettingsError, match=r"run\.begun must be a table"):
        read(Path("bad.toml"))
