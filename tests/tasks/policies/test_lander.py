"""The compiled LunarLander is Gymnasium's to the last bit, and is not used where it would not be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from control_trees import random_tree
from mixed_trees import naive

from discodso.tasks.policies.environments import check_fits, describe
from discodso.tasks.policies.episodes import _count_visits, node_shares
from discodso.tasks.policies.gymnasium_episodes import plain_episode
from discodso.tasks.policies.lander import Lander, settings_of
from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.making import Environment, as_environment, make
from discodso.tasks.policies.simulators import simulator_for
from discodso.tasks.policies.splits import Oblique, Split
from discodso.tasks.policies.tree import Forest
from discodso.tasks.policies.tree_policy import TreePolicy
from discodso.tasks.policies.tree_space import tree_space

FOUND = sorted((Path(__file__).parents[3] / "results/policies").glob("LunarLander-v3*/policy.json"))
DISCRETE = Environment("LunarLander-v3")
WINDY = Environment("LunarLander-v3", (("enable_wind", True), ("gravity", -8.5), ("wind_power", 12)))
CONTINUOUS = Environment("LunarLanderContinuous-v3")
BOTH = Environment("LunarLander-v3", (("continuous", True), ("enable_wind", True), ("turbulence_power", 0.7)))
ALL = (DISCRETE, WINDY, CONTINUOUS, BOTH)

# What a person would write: how far to turn and when to brake, as sums of features.
TURN = ((0, 0.5), (2, 1.0), (4, -1.0), (5, -1.0))
BRAKE = ((1, 0.5), (3, 0.5))


@pytest.fixture(autouse=True)
def fresh_simulators():
    simulator_for.cache_clear()
    yield
    simulator_for.cache_clear()


def trees_for(environment, count, seed=0):
    """Any shapes where there are choices, and sums near sensible ones that land."""
    rng, found = np.random.default_rng(seed), []
    env = make(environment)
    numbers = check_fits(env, environment).numbers
    env.close()
    for number in range(count):
        turn = tuple((n, float(w * rng.normal(1, 0.3))) for n, w in TURN)
        brake = tuple((n, float(w * rng.normal(1, 0.3))) for n, w in BRAKE)
        if numbers is None and number % 2:
            found.append(random_tree(rng, int(rng.integers(0, 32)), 8, 4))
        elif numbers is None:
            low, high = Oblique(turn, -0.05), Oblique(turn, 0.05)
            sides = ((low, 2), (Leaf(1), 0), (high, 2), (Leaf(0), 0), (Leaf(3), 0))
            hover = (Split(6, 0.5), 1 + len(sides)), *sides, (Leaf(int(rng.integers(0, 3))), 0)
            found.append(TreePolicy(((Oblique(brake, -0.03), 2), (Leaf(2), 0), *hover)))
        else:
            side = tuple((n, -8.0 * w) for n, w in turn)
            main = tuple((n, -10.0 * w) for n, w in brake)
            landed = (Split(7, 0.5), 2), (Leaf(0, (-0.3, 0.1), (main, side)), 0), (Leaf(0, (-1.0, 0.0)), 0)
            found.append(TreePolicy(landed, numbers=numbers))
    return found


def trees_of_all_kinds(environment, count, seed):
    """Those above; then of each kind in turn, of all sizes: with single features, sums of two and of all, numbers
    that are fixed and that are sums; and large ones with thresholds among what is seen, which act erratically."""
    interface, rng = describe(environment), np.random.default_rng(seed)
    found = trees_for(environment, count // 2, seed)
    for number in range(count - len(found)):
        splits = ("univariate", "pair", "oblique")[number % 3]
        nodes = (7, 31, 61, 401)[number // 3 % 4]
        space = tree_space(interface, nodes, splits=splits, linear=number % 2 == 0)
        (design,) = space.sample(1, int(rng.integers(2**31)))
        found.append(TreePolicy(space.vocabulary.nodes(design), numbers=interface.numbers))
        if interface.numbers is None and number % 4 == 0:
            found[-1] = erratic(rng, 300)
    return found


def erratic(rng, decisions):
    """A tree whose actions are as good as random."""
    nodes = list(random_tree(rng, decisions, 8, 4).nodes)
    seen = [(Split(node.feature, float(rng.normal(0, 0.3))), jump) if isinstance(node, Split) else (node, jump)
            for node, jump in nodes]  # fmt: skip
    return TreePolicy(tuple(seen))


def expected_returns(environment, trees, seeds, max_steps=1000):
    """float[trees, seeds], by Gymnasium."""
    env = make(environment)
    found = [[plain_episode(env, policy.columns, seed, max_steps, policy.numbers) for seed in seeds]
             for policy in trees]  # fmt: skip
    env.close()
    return np.array(found)


def compiled_returns(simulator, trees, seeds):
    tree, start = (index.ravel() for index in np.indices((len(trees), len(seeds))))
    found, reasons = simulator.returns(Forest.of(trees), tree, np.array(seeds)[start])
    assert not reasons
    return found.reshape(len(trees), len(seeds))


@pytest.mark.parametrize("environment", ALL, ids=["discrete", "windy", "continuous", "both"])
def test_returns_are_those_of_gymnasium(environment):
    trees, seeds = trees_for(environment, 14), [0, 1, 2**30, 2**40]
    if environment == DISCRETE:
        trees += [policy for policy in map(TreePolicy.load, FOUND) if policy.numbers is None]
        assert len(FOUND) >= 2
    expected = expected_returns(environment, trees, seeds)
    simulator = simulator_for(environment)
    assert isinstance(simulator.kernel, Lander)
    assert np.array_equal(compiled_returns(simulator, trees, seeds), expected)
    assert len(np.unique(expected)) > 40
    assert expected.max() > 0 > -200 > expected.min()  # came down well, and crashed
    assert np.array_equal(compiled_returns(replace(simulator, threads=3), trees, seeds), expected)
    pooled = replace(simulator, pool=simulator.starts(range(2)))
    assert np.array_equal(pooled.returns(Forest.of(trees), np.arange(6), np.arange(6) % 2)[0],
                          [expected[m, m % 2] for m in range(6)])  # fmt: skip


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


@pytest.mark.slow
@pytest.mark.parametrize("environment", ALL, ids=["discrete", "windy", "continuous", "both"])
def test_a_thousand_seeds_return_what_gymnasium_does(environment):
    """Every seed with eight trees, eighty in all: of all kinds and sizes, erratic and sensible."""
    trees = trees_of_all_kinds(environment, 80, seed=1)
    simulator = simulator_for(environment)
    for first in range(0, 1000, 100):
        seeds, some = range(first, first + 100), trees[first // 100 :: 10]
        expected = expected_returns(environment, some, seeds)
        assert np.array_equal(compiled_returns(simulator, some, seeds), expected)


def test_an_episode_is_cut_off_where_it_is_told():
    policy = TreePolicy(((Leaf(2), 0),))
    simulator = replace(simulator_for(DISCRETE), max_steps=20)
    assert compiled_returns(simulator, [policy], [3]) == expected_returns(DISCRETE, [policy], [3], 20)


def test_visits_are_what_a_count_in_python_gives():
    for policy in trees_for(DISCRETE, 4):
        visits, seeds = np.zeros(len(policy), np.int64), range(3)
        _count_visits(policy, DISCRETE, np.array(seeds), visits)
        leaves = [place for place, (node, _) in enumerate(policy.nodes) if isinstance(node, Leaf)]
        assert np.array_equal(node_shares(policy, DISCRETE, seeds)[leaves], (visits / visits.sum())[leaves])


def test_a_tree_returns_the_same_in_any_company():
    """More episodes than there are worlds, which are then used again."""
    trees, rng = trees_for(DISCRETE, 6), np.random.default_rng(0)
    simulator = simulator_for(DISCRETE)
    alone = np.array([[compiled_returns(simulator, [policy], [seed])[0, 0] for seed in range(5)]
                      for policy in trees])  # fmt: skip
    tree, seeds = rng.integers(0, 6, 300), rng.integers(0, 5, 300)
    assert np.array_equal(simulator.returns(Forest.of(trees), tree, seeds)[0], alone[tree, seeds])


def test_only_gymnasiums_own_with_arguments_that_are_known_is_compiled(monkeypatch):
    assert settings_of(Environment("CartPole-v1")) is None
    assert settings_of(Environment("LunarLander-v3", wrappers=("FlattenObservation",))) is None
    assert settings_of(Environment("LunarLander-v3", (("max_episode_steps", 100),))) is None
    assert settings_of(Environment("LunarLander-v3", (("gravity", "low"),))) is None
    assert settings_of(DISCRETE) == (False, np.float32(-10), False, 15.0, 1.5)
    assert settings_of(BOTH) == (True, np.float32(-10), True, 15.0, 0.7)
    changed = gymnasium.spec("LunarLander-v3")
    monkeypatch.setattr(changed, "entry_point", "elsewhere:LunarLander")
    monkeypatch.setattr(gymnasium, "spec", lambda name: changed)
    assert settings_of(DISCRETE) is None


def test_another_gymnasium_is_noticed(monkeypatch):
    from gymnasium.envs.box2d import lunar_lander

    policy = trees_for(DISCRETE, 1)[0]
    original = lunar_lander.LunarLander.step

    def step(self, action):
        observation, reward, *rest = original(self, action)
        return observation, reward + (1e-9 if action == 1 else 0.0), *rest

    monkeypatch.setattr(lunar_lander.LunarLander, "step", step)
    with pytest.warns(UserWarning, match="the compiled LunarLander-v3 differs .*through Gymnasium"):
        assert simulator_for(DISCRETE) is None
    found = policy.evaluate(DISCRETE, range(2))
    assert np.array_equal(found, expected_returns(DISCRETE, [policy], range(2))[0])


def test_another_mass_is_noticed():
    """By one bit, of any of the bodies."""
    kernel = simulator_for(DISCRETE).kernel
    for body in range(3):
        changed = kernel.shapes.bodies.copy()
        changed[body, 0] = np.nextafter(changed[body, 0], np.float32(1e9))
        assert not replace(kernel, shapes=kernel.shapes._replace(bodies=changed)).is_exact()
