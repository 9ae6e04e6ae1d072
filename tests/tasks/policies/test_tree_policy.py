"""Acting with a policy: one observation, batches as stable-baselines3 has them, other environments."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from trees import decision, tree

from discodso import TreePolicy
from discodso.base.errors import DeclarationError
from discodso.base.files import FileError
from discodso.tasks.policies.environments import describe
from discodso.tasks.policies.making import Environment
from discodso.tasks.policies.tree_policy import policy_file

CARTPOLE = ("position", "velocity", "angle", "angular velocity")
BALANCE = TreePolicy.from_dict(
    {"feature": 2, "threshold": 0.0, "left": {"action": 0}, "right": {"action": 1}}
).with_names(Environment("CartPole-v1"), CARTPOLE)


@pytest.mark.parametrize("named", [True, False])
def test_one_observation_has_one_action_and_a_batch_an_array(named: bool) -> None:
    policy = BALANCE if named else BALANCE.with_names(None)
    rows = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    expected = [policy.act(row) for row in rows]
    action, state = policy.predict(rows[0], state=("kept",), episode_start=np.ones(1), deterministic=False)
    assert (action, state) == (expected[0], ("kept",))
    for count in (1, 5):
        actions, _ = policy.predict(rows[:count])
        assert isinstance(actions, np.ndarray)
        assert actions.tolist() == expected[:count]


def test_whole_numbers_without_an_axis_and_dictionaries_are_batches_too() -> None:
    cell = tree(decision(0, 7.5, 1, 2)).with_names(None, ("cell",))
    assert cell.predict(np.int64(8))[0] == 2
    assert cell.predict(np.array([3, 8, 9]))[0].tolist() == [1, 2, 2]
    assert cell.predict(np.array([8]))[0].tolist() == [2]
    assert cell.predict(np.array([8.0], np.float32))[0] == 2  # a single one of a Box of one number
    both = tree(decision(1, 0.5, 0, 1)).with_names(None, ("a", "b"))
    assert both.predict({"a": np.array([3.0]), "b": np.array([1.0])})[0] == 1
    batch = {"a": np.array([[3.0], [4.0]]), "b": np.array([[1.0], [0.0]])}
    assert both.predict(batch)[0].tolist() == [1, 0]
    image = tree(decision(8, 0.5, 0, 1)).with_names(None, tuple("abcdefghi"))
    assert image.predict(np.ones((3, 3)))[0] == 1
    assert image.predict(np.ones((2, 3, 3)))[0].tolist() == [1, 1]
    assert image.predict(np.ones((1, 3, 3)))[0].tolist() == [1]


def test_numbers_of_actions_come_as_rows() -> None:
    found = describe(Environment("Pendulum-v1"))
    assert found.numbers is not None
    sides = {"left": {"action": [-1.5]}, "right": {"action": [0.5]}}
    data = {"tree": {"feature": 0, "threshold": 0.0, **sides}, "numbers": found.numbers.to_dict()}
    push = TreePolicy.from_dict(data).with_names(None, ("cos", "sin", "velocity"))
    one, _ = push.predict(np.array([1.0, 0.0, 0.0], np.float32))
    assert one.shape == (1,)
    many, _ = push.predict(np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]], np.float32))
    assert many.tolist() == [[0.5], [-1.5]]
    assert many.dtype == np.float32


def test_a_loop_over_a_vector_of_environments_has_the_returns_of_evaluate() -> None:
    """As `evaluate_policy` of stable-baselines3 does it: batches of observations, and no word of seeds."""
    seeds = [4, 5, 6]
    envs = [gymnasium.make("CartPole-v1") for _ in seeds]
    seen = [env.reset(seed=seed)[0] for env, seed in zip(envs, seeds, strict=True)]
    totals, over, states = np.zeros(3), np.zeros(3, bool), None
    while not over.all():
        actions, states = BALANCE.predict(
            np.array(seen), states, episode_start=np.zeros(3), deterministic=True
        )
        for place, env in enumerate(envs):
            if not over[place]:
                seen[place], reward, ended, cut, _ = env.step(actions[place])
                totals[place], over[place] = totals[place] + float(reward), ended or cut
    assert totals.tolist() == BALANCE.evaluate(seeds=seeds).tolist()


def test_arguments_change_the_environment_that_a_policy_is_for() -> None:
    """The reward of Sutton and Barto: -1 where the pole falls, which is the end of all episodes here."""
    plain = BALANCE.evaluate(seeds=range(4))
    other = BALANCE.evaluate(seeds=range(4), arguments={"sutton_barto_reward": True})
    assert (plain > 1).all()
    assert (other == -1).all()
    narrow = BALANCE.with_names(
        Environment("CartPole-v1", (("sutton_barto_reward", True),)), CARTPOLE
    ).evaluate(seeds=range(4), arguments={"sutton_barto_reward": False})
    assert narrow.tolist() == plain.tolist()
    with pytest.raises(DeclarationError, match=r"Gymnasium cannot make CartPole-v1.*gravitas"):
        BALANCE.evaluate(seeds=[1], arguments={"gravitas": 1})
    with pytest.raises(DeclarationError, match="arguments are for ids"):
        BALANCE.evaluate(lambda: gymnasium.make("CartPole-v1"), [1], arguments={"gravitas": 1})


@pytest.mark.parametrize("other", ["Acrobot-v1", "MountainCar-v0"])
def test_a_policy_for_another_environment_is_refused_in_a_line(other: str) -> None:
    with pytest.raises(DeclarationError, match=f"the policy is for CartPole-v1, not for {other}"):
        BALANCE.evaluate(other, [1])
    unknown = BALANCE.with_names(None)
    if other == "Acrobot-v1":
        assert len(unknown.evaluate(other, [1])) == 1  # nothing says that it is not
    assert len(BALANCE.evaluate("CartPole-v0", [1])) == 1  # another version of the same
    assert len(BALANCE.evaluate(lambda: gymnasium.make("CartPole-v1"), [1])) == 1


def test_a_policy_that_knows_other_features_is_refused() -> None:
    odd: Any = BALANCE.with_names(Environment("CartPole-v1"), CARTPOLE[:3])
    with pytest.raises(DeclarationError, match="the policy knows 3 features, CartPole-v1 has 4"):
        odd.evaluate(seeds=[1])


def test_the_policy_of_a_folder_is_found(tmp_path) -> None:
    BALANCE.save(tmp_path / "policy.json")
    assert policy_file(tmp_path) == policy_file(tmp_path / "policy.json") == tmp_path / "policy.json"
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match=r"empty has no policy\.json"):
        policy_file(tmp_path / "empty")
