"""Ranges that follow the best trees: what they see, exactly, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from environments import Walk, registered
from gymnasium.spaces import Box

from discodso import resume, search_policy
from discodso.disco.archive import Archive, Pool
from discodso.disco.settings import ArchiveSettings
from discodso.tasks.policies.environments import describe
from discodso.tasks.policies.making import Environment
from discodso.tasks.policies.tree_space import tree_space
from discodso.tasks.policies.visits import Visits

CARTPOLE = Environment("CartPole-v1")


@pytest.fixture(scope="module")
def cartpole():
    interface = describe(CARTPOLE, moving=True)
    return interface, tree_space(interface)


def archive_of(space, count=30, seed=0):
    designs = space.encode(space.sample(count, seed))
    pool = Pool(designs, np.arange(count, dtype=float), np.ones(count))
    return Archive.begin(space, ArchiveSettings(size=count)).add(pool, count)


def raw(space, reach):
    """low[F], high[F] in the units of the features."""
    columns = [k for k, _ in space.vocabulary.thresholds()]
    low, high = space.library.low[columns], space.library.high[columns]
    return [low + own[columns, 0] * (high - low) for own in reach]


def test_it_begins_where_random_episodes_are_and_may_go_further(cartpole):
    interface, space = cartpole
    low, high = raw(space, Visits(space, interface, interface.hints, 0).reach())
    for n, (hint, limits) in enumerate(zip(interface.hints, interface.ranges, strict=True)):
        assert (low[n], high[n]) == pytest.approx(hint)
        assert limits[0] < hint[0] < hint[1] < limits[1]
    assert interface.sources == ("visited",) * 4


def test_intervals_go_half_of_the_way_to_what_the_best_trees_see(cartpole):
    interface, space = cartpole
    visits = Visits(space, interface, interface.hints, 7)
    before = np.array(raw(space, visits.reach()))
    archive = archive_of(space)
    assert visits.learn(archive) == 5.0
    after = np.array(raw(space, visits.reach()))
    rng = np.random.default_rng(np.random.SeedSequence((7, 2, 1)))
    env, rows = gymnasium.make("CartPole-v1"), []
    for design in archive.members.designs.select(slice(5)):
        from discodso.tasks.policies.tree_policy import TreePolicy

        policy = TreePolicy(space.vocabulary.nodes(design))
        x, _ = env.reset(seed=int(rng.integers(2**30, 2**31)))
        over = False
        while not over:
            rows.append(x)
            x, _, terminated, truncated, _ = env.step(policy.act(x))
            over = terminated or truncated
    low, high = np.quantile(np.array(rows, float), (0.01, 0.99), axis=0)
    reach = 0.1 * (high - low)
    assert after[0] == pytest.approx((before[0] + low - reach) / 2, rel=1e-6)
    assert after[1] == pytest.approx((before[1] + high + reach) / 2, rel=1e-6)


def test_trees_are_watched_more_and_more_seldom(cartpole):
    interface, space = cartpole
    visits, archive = Visits(space, interface, interface.hints, 0), archive_of(space)
    watched = [batch for batch in range(1, 60) if visits.learn(archive)]
    assert watched == [1, 3, 6, 10, 16, 25, 39]


def test_given_ranges_and_integers_stay():
    space = Box(np.array([0, -1]), np.array([1, 1]), dtype=np.float32)
    with registered("Near-v0", Walk, max_episode_steps=9, kwargs={"observation_space": space}):
        found = describe(Environment("Near-v0"), {"0": (0.2, 0.3)}, moving=True)
        assert found.ranges[0] == (0.2, 0.3)
        assert found.hints[0] is None
    assert describe(Environment("FrozenLake-v1"), moving=True).hints == (None,)


def test_bounds_that_are_far_too_wide_are_no_ranges():
    class Wide(Walk):
        def __init__(self):
            super().__init__(observation_space=Box(-1000.0, 1000.0, (2,)))

    with registered("Wide-v0", Wide, max_episode_steps=20):
        found = describe(Environment("Wide-v0"), moving=True)
    low, high = found.ranges[0]
    assert -1000 < low < found.hints[0][0]
    assert found.hints[0][1] < high < 1000


def test_a_state_brings_the_intervals_back(cartpole):
    interface, space = cartpole
    first, archive = Visits(space, interface, interface.hints, 0), archive_of(space)
    first.learn(archive)
    again = Visits(space, interface, interface.hints, 0)
    again.restore(first.state())
    assert np.array_equal(first.reach(), again.reach(), equal_nan=True)
    for _ in range(5):
        assert first.learn(archive) == again.learn(archive)
    assert np.array_equal(first.reach(), again.reach(), equal_nan=True)
    with pytest.raises(ValueError, match="other features"):
        again.restore(replace(first.state(), arrays={"ends": np.zeros((2, 2))}))


def test_a_resumed_search_goes_the_same_way_and_counts_what_it_watched(tmp_path):
    how = {"episodes": 4, "seed": 3, "moving_ranges": True, "test_seeds": (0, 1)}
    whole = search_policy("CartPole-v1", budget=120, **how)
    fixed = search_policy("CartPole-v1", budget=120, **{**how, "moving_ranges": False})
    search_policy("CartPole-v1", budget=60, out=tmp_path / "run", **how)
    resumed = resume(tmp_path / "run", budget=120)
    assert resumed.policy == whole.policy
    assert [row.best for row in resumed.search.history] == [row.best for row in whole.search.history]
    assert resumed.episodes == whole.episodes
    assert whole.search.top != fixed.search.top
