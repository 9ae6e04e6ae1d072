"""The highest return that an environment can give."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest
from environments import Walk, registered

from discodso.tasks.policies.environments import describe
from discodso.tasks.policies.highest import highest_return
from discodso.tasks.policies.making import as_environment


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("CartPole-v1", {}, 500.0),
        ("CartPole-v0", {}, 200.0),
        ("CartPole-v1", {"sutton_barto_reward": True}, None),
        ("FrozenLake-v1", {}, 1.0),
        ("FrozenLake8x8-v1", {"is_slippery": False}, 1.0),
        ("MountainCar-v0", {}, None),
        ("Acrobot-v1", {}, None),
    ],
)
def test_it_is_known_where_it_is_certain(
    name: str, arguments: dict[str, Any], expected: float | None
) -> None:
    assert highest_return(describe(as_environment(name, arguments))) == expected


@pytest.mark.parametrize(
    ("declared", "expected"),
    [((-1.0, 2.0), 40.0), ((-5.0, -1.0), -1.0), ((0, float("inf")), None), ("?", None)],
)
def test_an_environment_may_declare_the_range_of_its_rewards(declared: Any, expected: float | None) -> None:
    class Declaring(Walk):
        reward_range = declared

    with registered("Declaring-v0", Declaring, max_episode_steps=20) as name:
        assert highest_return(describe(as_environment(name))) == expected


@pytest.mark.parametrize(
    ("wrapper", "expected"),
    [("TransformReward", None), ("NormalizeReward", None), ("FlattenObservation", 500.0)],
)
def test_wrappers_that_may_change_rewards_leave_it_unknown(wrapper: str, expected: float | None) -> None:
    more = {"TransformReward": (lambda reward: 2 * reward,)}.get(wrapper, ())

    def made() -> Any:
        return getattr(gymnasium.wrappers, wrapper)(gymnasium.make("CartPole-v1"), *more)

    assert highest_return(describe(as_environment(made))) == expected
