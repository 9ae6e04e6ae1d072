"""The compiled environments are Gymnasium's to the last bit, and are not used where they would not be."""

from __future__ import annotations

import itertools
import math
import multiprocessing
import platform
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from numba import njit
from trees import decision, naive_action, plain_return, random_tree, sensible_tree, tree

from discodso.tasks.policies import _simulators, simulators
from discodso.tasks.policies._simulators import Maths
from discodso.tasks.policies.columns import walk
from discodso.tasks.policies.environments import describe
from discodso.tasks.policies.episodes import _count_visits, node_shares
from discodso.tasks.policies.gymnasium_episodes import plain_episode
from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.making import Environment
from discodso.tasks.policies.simulators import KINDS, gymnasium_maths, loop_address, simulator_for
from discodso.tasks.policies.splits import Oblique
from discodso.tasks.policies.tree import Forest
from discodso.tasks.policies.tree_policy import TreePolicy

RANGES = {
    "CartPole-v1": ([(-2.4, 2.4), (-2.0, 2.0), (-0.2, 0.2), (-2.0, 2.0)], range(2)),
    "MountainCar-v0": ([(-1.2, 0.6), (-0.07, 0.07)], range(3)),
    "Acrobot-v1": ([(-1.0, 1.0)] * 4 + [(-8.0, 8.0), (-15.0, 15.0)], range(3)),
}
IDS, NUMBERS = tuple(RANGES), tuple(name for name in KINDS if name not in RANGES)
ENTRY = {name: entry for name, (_, entry) in KINDS.items()}


@njit
def powers_of_two(x, two):
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = _simulators.power_of_two(x[i], two)
    return out


@njit
def cosines(x, loop):
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = _simulators.cosine(x[i], loop)
    return out


@njit
def sines(x, loop):
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = _simulators.sine(x[i], loop)
    return out


@pytest.fixture(autouse=True)
def fresh_simulators():
    """Simulators are checked once in a process; here each test begins anew."""
    simulator_for.cache_clear()
    yield
    simulator_for.cache_clear()


def sample_of_trees(environment, count, seed):
    """Half of the trees anything, half near a good one."""
    rng = np.random.default_rng(seed)
    ranges, actions = RANGES[environment]
    return [
        random_tree(rng, ranges, actions) if i % 2 else sensible_tree(rng, environment) for i in range(count)
    ]


def compiled_returns(environment, trees, seeds, threads=1):
    """float[trees, seeds]."""
    simulator = simulator_for(Environment(environment))
    assert simulator is not None
    tree_of, start = (index.ravel() for index in np.indices((len(trees), len(seeds))))
    running = replace(simulator, threads=threads)
    found, _ = running.returns(Forest.of(trees), tree_of, np.array(seeds)[start])
    return found.reshape(len(trees), len(seeds))


def gymnasium_returns(environment, trees, seeds):
    env = gymnasium.make(environment, disable_env_checker=True)
    found = [[plain_return(env, policy.to_dict(), seed) for seed in seeds] for policy in trees]
    env.close()
    return np.array(found)


# ------------------------------------------------------------------------------------- against Gymnasium


@pytest.mark.parametrize(("environment", "distinct"), list(zip(IDS, (30, 20, 20), strict=True)))
def test_returns_are_those_of_gymnasium(environment, distinct):
    """Thresholds on different sides of a state by one bit would sooner or later change a return."""
    trees, seeds = sample_of_trees(environment, 20, seed=1), range(5)
    expected = gymnasium_returns(environment, trees, seeds)
    assert len(np.unique(expected)) >= distinct
    assert np.array_equal(compiled_returns(environment, trees, seeds), expected)


def sums_near_good_ones(environment, count, seed):
    """Trees of one to three sums, near sensible ones where there are choices; else with linear leaves."""
    interface = describe(Environment(environment))
    rng, size = np.random.default_rng(seed), len(interface.feature_names)
    near = {"CartPole-v1": (0.1, 0.3, 1.0, 0.6), "MountainCar-v0": (0.001, 1.0)}
    centre = np.array(near.get(environment, [0.0] * (size - 2) + [1.0, 0.4]))
    numbers = interface.numbers

    def leaf(action):
        if numbers is None:
            return Leaf(action)
        weights = [tuple((n, float(w)) for n, w in enumerate(rng.normal(0, 3, size)) if rng.random() < 0.7)]
        return Leaf(0, (float(rng.normal()),), tuple(weights) if rng.random() < 0.7 else ())

    def part(depth):
        if depth == 0:
            return None
        weights = centre * rng.normal(1, 0.5, size) + 0.02 * rng.normal(size=size) * centre.max()
        terms = tuple(enumerate(weights.tolist()))
        bottom = sorted(interface.action_names)[-1][0] if numbers is None else 0
        first, last = (bottom, 0) if environment == "Acrobot-v1" else (0, bottom)
        inner = part(depth - 1) or ((leaf(first), 0),)
        at = float(rng.normal(0, 0.02))
        return ((Oblique(terms, at), 1 + len(inner)), *inner, (leaf(last), 0))

    return [TreePolicy(part(int(rng.integers(1, 4))), numbers=numbers) for _ in range(count)]


@pytest.mark.parametrize("environment", KINDS)
def test_sums_and_numbers_return_what_gymnasium_does(environment):
    """Oblique splits and linear leaves in the compiled loops, against `act` and `step`, seed by seed."""
    trees, seeds = sums_near_good_ones(environment, 12, seed=1), range(4)
    env = gymnasium.make(environment, disable_env_checker=True)
    expected = np.array([[plain_episode(env, policy.columns, seed, 10_000, policy.numbers) for seed in seeds]
                         for policy in trees])  # fmt: skip
    assert len(np.unique(expected)) >= 8
    assert np.array_equal(compiled_returns(environment, trees, seeds), expected)
    assert np.array_equal(compiled_returns(environment, trees, seeds, threads=3), expected)
    simulator = simulator_for(Environment(environment))
    pooled = replace(simulator, pool=simulator.starts(seeds))
    assert np.array_equal(pooled.returns(Forest.of(trees), np.arange(4), np.arange(4))[0], np.diag(expected))
    for policy in trees[:3]:
        visits = np.zeros(len(policy), np.int64)
        _count_visits(policy, Environment(environment), np.array(seeds), visits)
        leaves = [place for place, (node, _) in enumerate(policy.nodes) if isinstance(node, Leaf)]
        assert np.array_equal(
            node_shares(policy, environment, seeds)[leaves], (visits / visits.sum())[leaves]
        )


def _gymnasium_part(job):
    return gymnasium_returns(*job)


@pytest.mark.slow
@pytest.mark.parametrize("environment", IDS)
def test_three_hundred_trees_have_the_returns_of_gymnasium(environment):
    """Anything from 1 to 31 nodes, and 60 sensible trees more, whose returns vary."""
    rng, seeds = np.random.default_rng(2), range(1000, 1030)
    trees = [random_tree(rng, *RANGES[environment]) for _ in range(300)]
    assert {len(policy) for policy in trees} == set(range(1, 32, 2))
    trees += [sensible_tree(rng, environment) for _ in range(60)]
    jobs = [(environment, trees[i : i + 10], seeds) for i in range(0, len(trees), 10)]
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        expected = np.concatenate(list(pool.map(_gymnasium_part, jobs)))
    assert len(np.unique(expected)) >= 80
    assert np.array_equal(compiled_returns(environment, trees, seeds), expected)


def bits(array):
    return np.ascontiguousarray(array, np.float64).view(np.int64)


def trajectory(environment, actions, seed):
    """States, observations, rewards and ends by Gymnasium, past every end, and the same by the simulator."""
    env = gymnasium.make(environment).unwrapped
    env.reset(seed=seed)
    theirs = []
    for action in actions.tolist():
        given = np.array([action], np.float32) if environment in NUMBERS else action
        with warnings.catch_warnings():  # CartPole says once that it is over
            warnings.simplefilter("ignore")
            observation, reward, over, _, _ = env.step(given)
        theirs.append((np.array(env.state, np.float64), observation.astype(np.float64), reward, over))
    env.close()
    simulator = simulator_for(Environment(environment))
    starts = simulator.starts([seed])
    state, seen, ours = starts.states[0], starts.observations[0], []
    for at, action in enumerate(actions.tolist()):
        given = float(np.float32(action)), at == 0, np.ones(len(seen), np.int64), gymnasium_maths()
        found = _simulators.step(simulator.kernel.kind, state, seen, *given)
        ours.append((state.copy(), seen.copy(), *found))
    return tuple([np.array(column) for column in zip(*rows, strict=True)] for rows in (theirs, ours))


@pytest.mark.parametrize("environment", NUMBERS)
@pytest.mark.parametrize("hold", [1, 40])
def test_long_trajectories_of_numbers_have_the_same_bits(environment, hold):
    """Bounds among the actions; the pendulum turns round many times, the car stands at both ends of its range."""
    rng, high = np.random.default_rng(hold), gymnasium.make(environment).action_space.high[0]
    for seed in range(4):
        actions = rng.choice([-1.0, 1.0, *rng.uniform(-1, 1, 4)], 3000).repeat(hold)[:3000] * high
        theirs, ours = trajectory(environment, actions, seed)
        for expected, found in zip(theirs, ours, strict=True):
            assert np.array_equal(bits(found), bits(expected))
    # Acting along with the velocity takes them to their limits.
    actions = np.where(np.arange(6000) % 120 < 60, high, -high)
    theirs, ours = trajectory(environment, actions, 9)
    for expected, found in zip(theirs, ours, strict=True):
        assert np.array_equal(bits(found), bits(expected))
    x = ours[0][:, 0]
    assert np.ptp(x) > 1.7


@pytest.mark.parametrize("environment", IDS)
@pytest.mark.parametrize("hold", [1, 25])
def test_long_trajectories_have_the_same_bits(environment, hold):
    """Random actions, each held for a while; CartPole goes on far beyond its end, where angles are large."""
    rng = np.random.default_rng(hold)
    length = 300 if environment == "CartPole-v1" else 3000
    for seed in range(8 if environment == "CartPole-v1" else 2):
        actions = np.repeat(rng.integers(0, len(RANGES[environment][1]), length), hold)[:length]
        theirs, ours = trajectory(environment, actions, seed)
        for place in (0, 1, 3):  # rewards beyond an end are nobody's
            assert np.array_equal(bits(ours[place]), bits(theirs[place]))
        assert len(np.unique(ours[0][:, 0])) > length // 20  # it did move


@pytest.mark.parametrize("environment", KINDS)
def test_episodes_start_where_gymnasium_resets_to(environment):
    simulator = simulator_for(Environment(environment))
    seeds = [0, 1, 12345, 2**31, 2**40]
    starts = simulator.starts(seeds)
    env = gymnasium.make(environment)
    assert starts.seeds == tuple(seeds)
    assert np.array_equal(starts.observations, [env.reset(seed=seed)[0] for seed in seeds])
    assert simulator.max_steps == env.spec.max_episode_steps


@pytest.mark.parametrize("environment", IDS)
def test_two_threads_return_what_one_does(environment):
    trees, seeds = sample_of_trees(environment, 30, seed=3), range(20)
    alone = compiled_returns(environment, trees, seeds)
    assert np.array_equal(compiled_returns(environment, trees, seeds, threads=2), alone)
    assert np.array_equal(compiled_returns(environment, trees, seeds, threads=3), alone)
    assert len(np.unique(alone)) > 10
    for some in (1, 2, 3):
        few = compiled_returns(environment, trees[:some], seeds[:1], threads=4)
        assert np.array_equal(few, alone[:some, :1])


@pytest.mark.parametrize("environment", IDS)
def test_a_tree_returns_the_same_in_any_company_and_order(environment):
    trees = sample_of_trees(environment, 12, seed=4)
    simulator = simulator_for(Environment(environment))
    forest, pool = Forest.of(trees), replace(simulator, pool=simulator.starts(range(6)))
    expected = compiled_returns(environment, trees, range(6))
    rng = np.random.default_rng(0)
    tree_of, start = rng.integers(0, 12, 200), rng.integers(0, 6, 200)
    for running in (simulator, pool):
        assert np.array_equal(running.returns(forest, tree_of, start)[0], expected[tree_of, start])


@pytest.mark.parametrize("environment", IDS)
def test_visits_are_what_a_count_in_python_gives(environment):
    seeds = range(3)
    trees = [policy for policy in sample_of_trees(environment, 8, seed=5) if len(policy) > 1]
    env = gymnasium.make(environment, disable_env_checker=True)
    for policy in trees:
        counted = np.zeros(len(policy), np.int64)
        parents = {child: node for node, *children in policy.decisions() for child in children}
        for seed in seeds:
            observation, _ = env.reset(seed=seed)
            over = False
            while not over:
                node = walk(policy.columns, 0, observation.astype(np.float64))
                observation, _, terminated, truncated, _ = env.step(policy.nodes[node][0].action)
                over = terminated or truncated
                while node is not None:
                    counted[node] += 1
                    node = parents.get(node)
        assert np.array_equal(node_shares(policy, environment, seeds), counted / counted[0])


# ------------------------------------------------------------------------------------- elementary functions


def test_squares_are_those_of_the_c_library_and_not_always_products():
    rng = np.random.default_rng(0)
    ordinary = rng.uniform(-30, 30, 1_500_000)
    wide = np.ldexp(rng.uniform(1, 2, 500_000), rng.integers(-500, 500, 500_000))
    tiny = np.ldexp(rng.uniform(1, 2, 100_000), rng.integers(-1074, -480, 100_000))
    special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        5e-324,
        2.2250738585072014e-308,
        1.3407807929942596e154,
        math.inf,
        math.nan,
    ]
    x = np.concatenate([ordinary, wide, tiny, special])
    expected = np.array([math.pow(number, 2.0) for number in x.tolist()])
    found = powers_of_two(x, 2.0)
    nan = np.isnan(expected)
    assert np.array_equal(nan, np.isnan(found))
    assert np.array_equal(bits(found[~nan]), bits(expected[~nan]))


def test_some_squares_of_the_c_library_differ_from_the_product():
    """If they never did, the test above would say nothing about the second branch of power_of_two."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-30, 30, 2_000_000)
    differ = np.array([math.pow(number, 2.0) for number in x.tolist()]) != x * x
    if platform.libc_ver()[0] != "glibc" and not differ.any():
        pytest.skip("the C library of this machine rounds pow(x, 2) as x * x")
    assert differ.sum() > 100
    assert np.array_equal(
        powers_of_two(x[differ], 2.0), [math.pow(number, 2.0) for number in x[differ].tolist()]
    )


@pytest.mark.parametrize(("ufunc", "compiled"), [(np.cos, cosines), (np.sin, sines)], ids=["cos", "sin"])
def test_numpys_own_loop_gives_numpys_values(ufunc, compiled):
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [rng.uniform(-10, 10, 200_000), rng.uniform(-1e6, 1e6, 50_000), [0.0, -0.0, math.pi, 1e300, 5e-324]]
    )
    one_by_one = np.array([ufunc(number) for number in x[-1000:]])
    assert np.array_equal(bits(compiled(x, loop_address(ufunc))), bits(ufunc(x)))
    assert np.array_equal(bits(compiled(x[-1000:], loop_address(ufunc))), bits(one_by_one))


def test_the_loops_that_are_chosen_give_numpys_values():
    x = np.random.default_rng(7).uniform(-50, 50, 200_000)
    maths = gymnasium_maths()
    assert np.array_equal(cosines(x, maths.cos), np.cos(x))
    assert np.array_equal(sines(x, maths.sin), np.sin(x))


@pytest.mark.parametrize("environment", IDS)
def test_by_numpys_loops_the_returns_are_the_same(environment, monkeypatch):
    trees, seeds = sample_of_trees(environment, 16, seed=6), range(5)
    expected = compiled_returns(environment, trees, seeds)
    simulator_for.cache_clear()
    maths = Maths(loop_address(np.cos), loop_address(np.sin))
    monkeypatch.setattr(simulators, "gymnasium_maths", lambda: maths)
    assert np.array_equal(compiled_returns(environment, trees, seeds), expected)
    assert len(np.unique(expected)) > 5


def test_loops_of_another_function_are_noticed(monkeypatch):
    """The addresses do reach the kernels: with sine and cosine swapped nothing fits any more."""
    maths = Maths(loop_address(np.sin), loop_address(np.cos))
    monkeypatch.setattr(simulators, "gymnasium_maths", lambda: maths)
    for environment in ("CartPole-v1", "Acrobot-v1"):
        with pytest.warns(UserWarning, match=f"the compiled {environment} differs"):
            assert simulator_for(Environment(environment)) is None


# ------------------------------------------------------------------------------------- when it is not used


def test_no_simulator_for_other_environments_or_for_arguments():
    assert simulator_for(Environment("Taxi-v3")) is None
    assert simulator_for(Environment("CartPole-v1", (("sutton_barto_reward", True),))) is None
    assert simulator_for(Environment("MountainCar-v0", (("goal_velocity", 0.01),))) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"entry_point": "gymnasium.envs.classic_control.acrobot:AcrobotEnv"},
        {"kwargs": {"sutton_barto_reward": True}},
        {"max_episode_steps": None},
        {
            "additional_wrappers": (
                gymnasium.wrappers.TransformReward.wrapper_spec(func=lambda reward: 2 * reward),
            )
        },
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_no_simulator_for_an_id_that_was_registered_anew(changed, monkeypatch):
    spec = gymnasium.spec("CartPole-v1")
    settings = {"entry_point": spec.entry_point, "max_episode_steps": 500, **changed}
    new = gymnasium.envs.registration.EnvSpec("CartPole-v1", **settings)
    monkeypatch.setitem(gymnasium.registry, "CartPole-v1", new)
    assert simulator_for(Environment("CartPole-v1")) is None


def test_another_step_limit_of_the_registry_is_kept(monkeypatch):
    new = gymnasium.envs.registration.EnvSpec("CartPole-v1", ENTRY["CartPole-v1"], max_episode_steps=37)
    monkeypatch.setitem(gymnasium.registry, "CartPole-v1", new)
    assert simulator_for(Environment("CartPole-v1")).max_steps == 37
    balancing = tree(decision(2, 0.0, decision(3, 0.5, 0, 1), decision(3, -0.5, 0, 1)))
    assert balancing.evaluate("CartPole-v1", range(3)).tolist() == [37.0] * 3


@pytest.mark.parametrize("environment", KINDS)
def test_a_simulator_that_differs_by_one_bit_is_not_used(environment, monkeypatch):
    right, steps = _simulators.step, itertools.count()

    def slightly_wrong(kind, state, *rest):
        over = right(kind, state, *rest)
        if next(steps) == 500:
            state[0] = np.nextafter(state[0], np.inf)
        return over

    monkeypatch.setattr(_simulators, "step", slightly_wrong)
    with pytest.warns(UserWarning, match=f"the compiled {environment} differs .*through Gymnasium"):
        assert simulator_for(Environment(environment)) is None


def test_without_its_simulator_an_environment_gives_the_same_returns(monkeypatch):
    policy = sensible_tree(np.random.default_rng(0), "CartPole-v1")
    expected = policy.evaluate("CartPole-v1", range(4))
    simulator_for.cache_clear()
    monkeypatch.setattr(simulators.Classic, "is_exact", lambda kernel: False)
    with pytest.warns(UserWarning, match="differs"):
        assert np.array_equal(policy.evaluate("CartPole-v1", range(4)), expected)
    naive = plain_return(gymnasium.make("CartPole-v1"), policy.to_dict(), 3)
    assert expected[3] == naive


def test_the_naive_reader_and_the_forest_see_the_same_nodes():
    trees = sample_of_trees("Acrobot-v1", 10, seed=8)
    forest = Forest.of(trees)
    assert forest.offset.tolist() == np.cumsum([0, *map(len, trees)]).tolist()
    x = np.random.default_rng(0).uniform(-1, 1, 6)
    for m, policy in enumerate(trees):
        assert forest.columns_of(m) == policy.columns
        assert forest.columns_of(m).nodes() == policy.nodes
        assert policy.act(x) == naive_action(policy.to_dict(), x)
