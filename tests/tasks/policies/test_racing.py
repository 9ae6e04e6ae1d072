"""Races: who stays, what they save, and that luck which all share decides nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from imagined import INTERFACE, SEEDS, SPACE, Imagined, call_seeds_of, designs_of, measure

from discodso.tasks.policies.objective import TreeObjective
from discodso.tasks.policies.racing import Racing, rounds


def test_a_race_that_is_decided_at_once():
    """Worths lie far apart: the best 8 of 40 get all 80 episodes, the others the first 4."""
    designs, worth = designs_of(40), np.random.default_rng(0).permutation(40) * 1000.0
    runner = Imagined(worth)
    measured = measure(runner, designs, Racing(share=0.2, margin=1.5))
    best = worth >= 32_000
    assert runner.counts(designs).tolist() == np.where(best, 80, 4).tolist()
    assert measured.cost == runner.episodes == 8 * 80 + 32 * 4
    assert [len(who) for who in runner.rounds] == [40, 8, 8, 8, 8, 8]


def test_a_race_between_equals_is_not_decided():
    designs, runner = designs_of(20), Imagined(np.zeros(20), noise=0)
    measured = measure(runner, designs, Racing())
    assert runner.counts(designs).tolist() == [80] * 20
    assert measured.rewards.tolist() == [0.0] * 20


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 60),
    st.sampled_from([0.01, 0.05, 0.2, 0.5, 1.0]),
    st.integers(0, 3),
)
def test_the_top_share_of_the_batch_always_has_all_episodes(seed, count, share, margin):
    rng = np.random.default_rng(seed)
    designs = designs_of(count)
    runner = Imagined(rng.integers(-30, 30, count).astype(float), noise=int(rng.integers(1, 40)))
    racing = Racing(share=share, margin=margin)
    measured = measure(runner, designs, racing, episodes=50, call_seed=seed)
    counts = runner.counts(designs)
    assert (counts == 50).sum() >= math.ceil(share * count)
    assert set(counts.tolist()) <= set(rounds(50))
    assert measured.cost == counts.sum()


def test_racing_saves_episodes_and_finds_the_same_best():
    designs, worth = designs_of(100), np.random.default_rng(1).normal(0, 20, 100).round()
    plain, raced = Imagined(worth, noise=25), Imagined(worth, noise=25)
    expected, found = (
        measure(plain, designs, None),
        measure(raced, designs, Racing(share=0.1, margin=2)),
    )
    assert found.cost < 0.5 * expected.cost
    assert np.argmax(found.rewards) == np.argmax(expected.rewards)
    best = np.argsort(-expected.rewards)[:10]
    assert (raced.counts(designs)[best] == 80).all()


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_designs_that_come_through_are_not_changed_by_racing(share):
    """Same seeds, so the same mean; whoever was cut has the mean of its first episodes."""
    designs, worth = designs_of(60), np.random.default_rng(2).normal(0, 20, 60).round()
    plain, raced = Imagined(worth, noise=25), Imagined(worth, noise=25)
    expected, found = measure(plain, designs, None), measure(raced, designs, Racing(share=share))
    counts = raced.counts(designs)
    assert 0 < (counts == 80).sum() < 60
    assert found.rewards[counts == 80].tolist() == expected.rewards[counts == 80].tolist()
    for row in range(60):
        assert raced.seen[row] == plain.seen[row][: counts[row]]


def test_rounds_grow_to_the_number_of_episodes():
    assert rounds(100) == [4, 8, 16, 32, 64, 100]
    assert rounds(5) == [4, 5]
    assert rounds(4) == [4]
    assert rounds(3) == [3]


def test_luck_that_all_share_decides_no_race():
    """The batch itself tells which of the common episodes are hard, though luck spreads a thousand times wider."""
    runner, racing = Imagined(np.arange(20.0), noise=5000), Racing(share=0.25)
    objective = TreeObjective(INTERFACE, SPACE, runner, SEEDS, 80, racing, common=True)
    assert objective(designs_of(20, 0), call_seeds_of(20, 0)).cost == 5 * 80 + 15 * 4


def test_a_few_lucky_episodes_are_no_record():
    """A design that was cut counts no better than the worst of those that came through."""
    worth = np.concatenate((np.full(10, 100.0), np.full(90, 0.0)))
    runner = Imagined(worth, noise=40)
    designs = designs_of(100)
    measured = TreeObjective(INTERFACE, SPACE, runner, SEEDS, 64, Racing(share=0.1))(
        designs, call_seeds_of(100)
    )
    through = np.asarray(measured.weights) == 64
    assert measured.rewards[~through].max() <= measured.rewards[through].min()
