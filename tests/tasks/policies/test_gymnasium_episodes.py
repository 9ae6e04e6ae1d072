"""The quick LunarLander against Gymnasium's, episode by episode."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import numpy as np
import pytest
from control_trees import random_tree
from environments import Walk
from mixed_trees import naive

from discodso.tasks.policies import gymnasium_episodes
from discodso.tasks.policies.columns import Columns
from discodso.tasks.policies.environments import describe
from discodso.tasks.policies.gymnasium_episodes import lander_episode, opened, plain_episode
from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.making import Environment, as_environment, make
from discodso.tasks.policies.tree_policy import TreePolicy
from discodso.tasks.policies.tree_space import tree_space

LANDER = Environment("LunarLander-v3")
FOUND = sorted((Path(__file__).parents[3] / "results/policies").glob("LunarLander*/policy.json"))


def trees(count):
    """Random ones, whose thresholds lie where the lander flies, and those that were found."""
    rng = np.random.default_rng(0)
    drawn = [random_tree(rng, int(rng.integers(1, 8)), 8, 4) for _ in range(count)]
    found = [TreePolicy.load(path) for path in FOUND]
    return drawn + [policy for policy in found if policy.environment == LANDER]


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


def test_sums_return_what_gymnasium_does():
    (env, quick), plain = opened(LANDER), make(LANDER)
    space = tree_space(describe(LANDER), 15, splits="oblique")
    returns = []
    for number, design in enumerate(space.sample(12, 3)):
        tree = Columns.of(space.vocabulary.nodes(design))
        returns.append(quick(env, tree, number, 1000))
        assert returns[-1] == plain_episode(plain, tree, number, 1000), number
    assert len(set(returns)) == 12


def test_numbers_return_what_a_plain_loop_does():
    lander = as_environment("LunarLander-v3", {"continuous": True})
    found = describe(lander)
    space = tree_space(found, 15, splits="pair", linear=True)
    plain = make(lander)
    for number, design in enumerate(space.sample(4, 3)):
        policy = TreePolicy(space.vocabulary.nodes(design), lander, numbers=found.numbers)
        observation, _ = plain.reset(seed=number)
        total, over = 0.0, False
        while not over:
            action = naive(policy.to_dict(), observation.astype(float).tolist(), found.numbers)
            observation, reward, terminated, truncated, _ = plain.step(np.array(action, np.float32))
            total, over = total + float(reward), terminated or truncated
        assert policy.evaluate(seeds=[number]).tolist() == [total]


@pytest.mark.parametrize("reward", [None, "much", np.ones(2), np.ones(1)])
def test_a_reward_that_is_no_number_is_told(reward):
    class Paying(Walk):
        def step(self, action):
            observation, _, *others = super().step(action)
            return observation, reward, *others

    with pytest.raises(ValueError, match="the environment gave a reward that is no number, "):
        plain_episode(Paying(), Columns.of(((Leaf(2), 0),)), 0, 9)


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
