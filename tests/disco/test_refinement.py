"""Refinement of values: it finds what a skeleton can give, keeps to the bounds, and is resumed exactly."""

from __future__ import annotations

import numpy as np
import pytest
from spaces import decision_tree, mixed_sequence, symbolic

from discodso import DisCo, DisCoSettings, FixedSequence, NetworkSettings, OpenSequence, Space, Token, preset
from discodso.base.threads import one_blas_thread
from discodso.disco.archive import Archive, Pool
from discodso.disco.proposers.refinement import LocalSearch, LocalSearches, Refinement
from discodso.disco.settings import ArchiveSettings, RefinementSettings
from discodso.space.replay import replay

SEQUENCE = Space([Token("v", range=(0, 1)), Token("w", range=(1e-3, 1e3), scale="log")], FixedSequence(4))


@pytest.fixture(autouse=True)
def one_thread():
    """As a search does; two threads are twenty times slower where cores are shared."""
    with one_blas_thread():
        yield


def first(count):
    tokens, options = np.zeros(count, np.int64), np.empty(0, np.int64)
    return LocalSearch.begin(tokens, options, np.full(count, 0.5), -np.inf, np.zeros(count), np.ones(count))


def minimised(count, objective, generations, seed=0):
    """The last search, and the best value that it met."""
    search, best, rng = first(count), np.inf, np.random.default_rng(seed)
    for _ in range(generations):
        units = search.propose(search.generation_size, rng)
        values = np.array([objective(x) for x in units])
        best = min(best, float(values.min()))
        search = search.told(units, -values)
        if search.done:
            break
    return search, best


@pytest.mark.parametrize("count", [1, 2, 6, 40])
def test_it_closes_in_on_the_optimum(count):
    centre = np.linspace(0.1, 0.9, count)
    search, best = minimised(count, lambda x: float(((x - centre) ** 2).sum()), 400)
    assert best < 1e-8
    np.testing.assert_allclose(search.mean, centre, atol=1e-4)


def test_the_covariance_learns_a_narrow_valley():
    rng = np.random.default_rng(1)
    turn = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    steep = 10.0 ** np.arange(5)
    _, best = minimised(5, lambda x: float((steep * (turn @ (x - 0.3)) ** 2).sum()), 300)
    assert best < 1e-6  # steps of one size in every direction are still above 0.1 after as many calls


def test_a_flat_reward_ends_it():
    search, _ = minimised(3, lambda x: 1.0, 1000)
    assert search.done
    assert search.generations < 50


def test_failed_designs_do_not_break_it():
    search, rng = first(2), np.random.default_rng(0)
    for _ in range(50):
        units = search.propose(6, rng)
        rewards = np.where(units[:, 0] > 0.5, np.nan, -((units - 0.4) ** 2).sum(axis=1))
        search = search.told(units, rewards)
    assert np.isfinite(search.mean).all()
    np.testing.assert_allclose(search.mean, 0.4, atol=0.01)


def test_designs_may_be_told_in_parts():
    rng = np.random.default_rng(0)
    search = first(3)
    units = search.propose(search.generation_size, rng)
    rewards = -((units - 0.2) ** 2).sum(axis=1)
    whole = search.told(units, rewards)
    parts = search.told(units[:2], rewards[:2]).told(units[2:], rewards[2:])
    assert whole.generations == parts.generations == 1
    np.testing.assert_array_equal(whole.mean, parts.mean)
    np.testing.assert_array_equal(whole.covariance, parts.covariance)


@pytest.mark.parametrize(
    "space",
    [SEQUENCE, decision_tree(), symbolic(), mixed_sequence(), Space([Token("a")], OpenSequence(1, 3))],
    ids=["sequence", "dependent bounds", "infinite range", "mixed", "no values"],
)
def test_refined_designs_belong_to_the_space(space):
    rng = np.random.default_rng(0)
    designs = DisCo(space, preset("paper"), seed=0).ask(60)
    elites = Pool(designs, np.linspace(1, 0, len(designs)), np.ones(len(designs)))
    elites = elites.best_distinct(20)
    refinement = LocalSearches()
    for _ in range(5):
        refinement, asked = refinement.ask(space, elites, 40, rng)
        assert len(asked) <= 40
        if len(asked):
            replay(space, asked)  # refuses a design that breaks a rule
        assert set(asked.skeletons()) <= set(elites.designs.skeletons())
        told = Pool(asked, rng.random(len(asked)) * 0.5, np.ones(len(asked)))
        refinement = refinement.tell(space, told, elites)


def test_it_follows_an_elite_that_others_moved():
    rng = np.random.default_rng(0)
    designs = SEQUENCE.encode(DisCo(SEQUENCE, preset("paper"), seed=0).ask(1))
    elites = Pool(designs, np.array([0.0]), np.ones(1))
    refinement, _ = LocalSearches().ask(SEQUENCE, elites, 8, rng)
    (before,) = refinement.searches.values()
    near = before.mean + 0.01
    values = SEQUENCE.library.coordinates.to_value(designs.tokens, near[None])
    moved = SEQUENCE.encode(designs.__class__(designs.library, designs.tokens, values, designs.lengths))
    nothing = Pool.empty(SEQUENCE)
    (joined,) = refinement.tell(SEQUENCE, nothing, Pool(moved, np.array([1.0]), np.ones(1))).searches.values()
    assert joined.rewards.tolist() == [1.0]  # takes part in the next step
    np.testing.assert_allclose(joined.units[0], near)
    far = 1 - before.mean.round()  # in the other corner
    values = SEQUENCE.library.coordinates.to_value(designs.tokens, far[None])
    gone = SEQUENCE.encode(designs.__class__(designs.library, designs.tokens, values, designs.lengths))
    (anew,) = refinement.tell(SEQUENCE, nothing, Pool(gone, np.array([1.0]), np.ones(1))).searches.values()
    np.testing.assert_allclose(anew.mean, far, atol=1e-12)


def test_searches_end_with_their_skeletons():
    rng = np.random.default_rng(0)
    designs = DisCo(SEQUENCE, preset("paper"), seed=0).ask(30)
    elites = Pool(designs, np.linspace(1, 0, 30), np.ones(30))
    refinement, _ = LocalSearches().ask(SEQUENCE, elites, 1000, rng)
    count = len(set(designs.skeletons()))
    assert len(refinement.searches) == count > 3
    left = refinement.tell(SEQUENCE, Pool.empty(SEQUENCE), elites.select(np.arange(2)))
    assert set(left.searches) == set(designs.skeletons()[:2])


def test_a_state_gives_the_same_searches_back():
    rng = np.random.default_rng(0)
    designs = DisCo(SEQUENCE, preset("paper"), seed=0).ask(10)
    elites = Pool(designs, np.linspace(1, 0, 10), np.ones(10))
    refinement, asked = LocalSearches().ask(SEQUENCE, elites, 30, rng)
    refinement = refinement.tell(SEQUENCE, Pool(asked, rng.random(len(asked)), np.ones(len(asked))), elites)
    again = LocalSearches.of_state(refinement.to_state())
    assert list(again.searches) == list(refinement.searches)
    both = [r.ask(SEQUENCE, elites, 30, np.random.default_rng(3))[1] for r in (refinement, again)]
    assert list(both[0]) == list(both[1])


def test_a_search_with_refinement_gets_closer_for_the_same_calls():
    target = np.array([0.31, 0.72, 0.11, 0.57])

    def reward(designs):
        z = SEQUENCE.library.coordinates.to_z(designs.tokens, designs.values)
        return -((z - target) ** 2).sum(axis=1) - (designs.tokens == 0).sum(axis=1)

    best = {}
    for share in (0.0, 0.5):
        settings = DisCoSettings(
            batch_size=50,
            archive=ArchiveSettings(size=20, niche=2),
            refinement=RefinementSettings(share) if share else None,
            network=NetworkSettings(units=8),
        )
        method = DisCo(SEQUENCE, settings, seed=0)
        for _ in range(30):
            asked = method.ask()
            method.tell(asked, reward(asked))
        best[share] = method.archive.members.rewards[0]
    assert best[0.5] > -1e-4
    assert best[0.0] < -1e-3


def test_the_proposer_learns_from_its_own_designs_and_goes_on_from_a_state():
    def begin():
        return Refinement(SEQUENCE, RefinementSettings(0.4))

    designs = DisCo(SEQUENCE, preset("paper"), seed=0).ask(10)
    pool = Pool(designs, np.linspace(1, 0, 10), np.ones(10))
    archive = Archive.begin(SEQUENCE, ArchiveSettings(size=10)).add(pool, 0)
    refinement, rng = begin(), np.random.default_rng(0)
    assert (refinement.name, refinement.share) == ("refinement", 0.4)
    for step in range(4):
        asked = refinement.propose(archive, 30, rng)
        assert 0 < len(asked) <= 30
        told = Pool(asked, 0.5 * rng.random(len(asked)), np.ones(len(asked)))
        refinement.learn(told, archive)
        again = begin()
        again.restore(refinement.state())
        both = [r.propose(archive, 30, np.random.default_rng(step)) for r in (refinement, again)]
        assert list(both[0]) == list(both[1])
