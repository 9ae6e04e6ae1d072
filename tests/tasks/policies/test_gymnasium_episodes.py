"""The quick LunarLander against Gymnasium's, episode by episode."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import numpy as np
import pytest
from control_trees import random_tree

from discodso.tasks.policies import gymnasium_episodes
from discodso.tasks.policies.columns import Columns
from discodso.tasks.policies.gymnasium_episodes import lander_episode, opened, plain_episode
from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.making import Environment, make
from discodso.tasks.policies.tree_policy import TreePolicy

LANDER = Environment("LunarLander-v3")
FOUND = sorted((Path(__file__).parents[3] / "results/policies").glob("LunarLander*/policy.json"))


def trees(count):
    """Random ones, whose thresholds lie where the lander flies, and those that were found."""
    rng = np.random.default_rng(0)
    drawn = [random_tree(rng, int(rng.integers(1, 8)), 8, 4) for _ in range(count)]
    return drawn + [TreePolicy.load(path) for path in FOUND]


def test_returns_equal_gymnasiums_to_the_last_bit():
    (env, quick), plain = opened(LANDER), make(LANDER)
    returns, seeds = [], [0, 7, 2**30 + 5]
    for policy in trees(20):
        tree = policy.columns
        for seed in seeds:
            returns.append(quick(env, tree, seed, 1000))
            assert returns[-1] == plain_episode(plain, tree, seed, 1000), (policy, seed)
    assert quick is lander_episode
    assert len(FOUND) >= 2
    assert len(set(returns)) > 25
    assert max(returns) > 200 > -400 > min(returns)  # landed and crashed


@pytest.mark.slow
def test_returns_of_many_episodes_equal_gymnasiums():
    plain = make(LANDER)
    for policy in trees(150):
        tree = policy.columns
        for seed in range(10):
            expected = plain_episode(plain, tree, seed, 1000)
            assert lander_episode(plain.unwrapped, tree, seed, 1000) == expected, (policy, seed)


def test_an_episode_is_cut_off_where_it_is_told():
    env = gymnasium.make("LunarLander-v3")
    env.reset(seed=3)
    expected = sum(float(env.step(2)[1]) for _ in range(20))
    assert lander_episode(env.unwrapped, Columns.of(((Leaf(2), 0),)), 3, 20) == expected


def test_only_the_plain_environment_is_quick(monkeypatch):
    assert opened(Environment("CartPole-v1"))[1] is plain_episode
    assert opened(Environment("LunarLander-v3", (("enable_wind", True),)))[1] is plain_episode
    changed = gymnasium.spec("LunarLander-v3")
    monkeypatch.setattr(changed, "kwargs", {"gravity": -3.0})
    monkeypatch.setattr(gymnasium, "spec", lambda name: changed)
    assert opened(LANDER)[1] is plain_episode


def test_another_gymnasium_is_noticed(monkeypatch):
    from gymnasium.envs.box2d import lunar_lander

    gymnasium_episodes._is_exact.cache_clear()
    original = lunar_lander.LunarLander.step

    def step(self, action):
        observation, reward, *rest = original(self, action)
        return observation, reward + (1e-9 if action == 1 else 0.0), *rest

    monkeypatch.setattr(lunar_lander.LunarLander, "step", step)
    assert opened(LANDER)[1] is plain_episode
    monkeypatch.undo()
    gymnasium_episodes._is_exact.cache_clear()
    assert opened(LANDER)[1] is lander_episode
