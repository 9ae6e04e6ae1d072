"""Episodes through Gymnasium, against its own loop."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from control_trees import random_tree
from environments import Walk

from discodso.tasks.policies.columns import Columns
from discodso.tasks.policies.gymnasium_episodes import opened, plain_episode
from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.making import Environment


def test_an_episode_returns_what_the_loop_that_people_write_does():
    (env, episode), plain = opened(Environment("Acrobot-v1")), gymnasium.make("Acrobot-v1")
    policy = random_tree(np.random.default_rng(0), 5, 6, 3)
    x, _ = plain.reset(seed=4)
    total, over = 0.0, False
    while not over:
        x, reward, terminated, truncated, _ = plain.step(policy.act(x))
        total, over = total + float(reward), terminated or truncated
    assert episode is plain_episode
    assert episode(env, policy.columns, 4, 1000) == total


def test_leaves_with_numbers_are_held_within_bounds():
    env, episode = opened(Environment("Pendulum-v1"))
    plain = gymnasium.make("Pendulum-v1")
    plain.reset(seed=1)
    expected = sum(float(plain.step(np.array([2.0], np.float32))[1]) for _ in range(200))
    assert episode(env, Columns.of(((Leaf(0, (7.5,)), 0),)), 1, 1000) == expected


@pytest.mark.parametrize("reward", [None, "much", np.ones(2), np.ones(1)])
def test_a_reward_that_is_no_number_is_told(reward):
    class Paying(Walk):
        def step(self, action):
            observation, _, *others = super().step(action)
            return observation, reward, *others

    with pytest.raises(ValueError, match="the environment gave a reward that is no number, "):
        plain_episode(Paying(), Columns.of(((Leaf(2), 0),)), 0, 9)


def test_an_episode_is_cut_off_where_it_is_told():
    env, episode = opened(Environment("CartPole-v1"))
    assert episode(env, Columns.of(((Leaf(0), 0),)), 3, 5) == 5.0


def test_an_observation_that_is_no_number_ends_it():
    env, episode = opened(Environment("CartPole-v1"))
    broken = gymnasium.wrappers.TransformObservation(env, lambda x: x * np.nan, env.observation_space)
    with pytest.raises(ValueError, match="an observation with NaN, seed 3"):
        episode(broken, Columns.of(((Leaf(0), 0),)), 3, 5)
