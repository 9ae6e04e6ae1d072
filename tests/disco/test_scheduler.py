"""Sharing calls: who earns more gets more, nobody gets nothing, and what is off gets none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spaces import mixed_sequence

from discodso import Design, DisCo, DisCoSettings, FixedSequence, PolicySettings, Space, Token
from discodso.disco.archive import Elites, Niche, Pool
from discodso.disco.scheduler import ELSEWHERE, POLICY, REFINEMENT, VARIATION, Allocation, Origins

SPACE = mixed_sequence()


def test_it_begins_evenly_above_the_floors():
    shares = Allocation().shares((True, True, True))
    assert sum(shares) == pytest.approx(1)
    assert max(shares) - min(shares) < 0.06
    assert Allocation().shares((True, False, False)) == (1.0, 0.0, 0.0)


@given(
    st.lists(st.tuples(st.sampled_from([-1, 0, 1, 2]), st.floats(0, 1)), max_size=60),
    st.tuples(st.just(True), st.booleans(), st.booleans()),
)
def test_shares_add_up_and_keep_their_floors(batch, on):
    sources = np.array([source for source, _ in batch], np.int64)
    allocation = Allocation().after(sources, np.array([earned for _, earned in batch]))
    shares = allocation.shares(on)
    assert sum(shares) == pytest.approx(1)
    assert all((share >= 0.1) == used for share, used in zip(shares, on, strict=True))


def test_who_earns_more_for_each_call_gets_more_and_it_fades():
    sources = np.repeat([POLICY, VARIATION, REFINEMENT], (50, 30, 20))
    earned = np.where(sources == REFINEMENT, 0.2, 0.0)
    allocation = Allocation()
    for _ in range(10):
        allocation = allocation.after(sources, earned)
    assert allocation.shares((True, True, True))[REFINEMENT] > 0.5
    for _ in range(60):
        allocation = allocation.after(sources, np.where(sources == VARIATION, 0.2, 0.0))
    shares = allocation.shares((True, True, True))
    assert shares[VARIATION] > 0.5
    assert shares[REFINEMENT] < 0.2


def test_designs_of_nobody_change_nothing():
    told = Allocation().after(np.full(5, ELSEWHERE), np.ones(5))
    assert told == Allocation()


def test_origins_are_found_by_the_design_and_kept_by_a_state():
    designs = SPACE.encode([Design.of(("v", k / 20), "d") for k in range(20)])
    origins = Origins(15)
    origins.note(designs.select(slice(0, 10)), VARIATION)
    origins.note(designs.select(slice(10, 20)), POLICY)
    again = Origins(15)
    again.restore(origins.to_arrays())
    for one in (origins, again):  # the first five are forgotten
        backwards = one.take(designs.select(np.arange(20)[::-1])).tolist()
        assert backwards == [POLICY] * 10 + [VARIATION] * 5 + [ELSEWHERE] * 5
        assert one.take(designs).tolist() == [ELSEWHERE] * 20


def test_only_new_members_of_the_archive_earn():
    nothing = Pool.empty(SPACE)
    elites = Elites(nothing, nothing, 3, Niche(2))
    designs = SPACE.encode(
        [
            Design.of(("v", 0.1), "d"),
            Design.of(("v", 0.2), "d"),
            Design.of(("v", 0.3), "d"),
            Design.of("d", "d"),
        ]
    )
    batch = Pool(designs, np.array([1.0, 3.0, 2.0, 0.5]), np.ones(4))
    first = elites.add(batch, 0)
    assert first.entered(elites, batch).tolist() == [
        0.0,
        1.0,
        0.5,
        1 / 3,
    ]  # the niche is full without the first
    assert first.add(batch, 0).entered(first, batch).tolist() == [0.0] * 4


def test_what_was_earned_fades_by_calls_and_not_by_batches():
    sources, earned = np.repeat([POLICY, VARIATION, REFINEMENT], 20), np.repeat([0.0, 0.5, 0.0], 20)
    first = Allocation().after(sources, earned)
    nothing = np.full(1000, POLICY)
    whole = first.after(nothing, np.zeros(1000))
    parts = first
    for part in np.split(nothing, 20):
        parts = parts.after(part, np.zeros(len(part)))
    assert whole.earned == pytest.approx(parts.earned)
    assert whole.earned[VARIATION] == pytest.approx(10 / np.e, rel=0.01)  # a memory of about a thousand calls


def test_calls_move_to_what_helps():
    """Values alone decide, smoothly: beside the policy refinement soon has the larger share."""
    settings = DisCoSettings(
        queue_size=20,
        queue_niche=5,
        refinement=0.3,
        allocation=True,
        policy=PolicySettings(units=8),
    )
    space = Space([Token("v", range=(0, 1))], FixedSequence(6))
    method = DisCo(space, settings, seed=0)
    steep = 10.0 ** np.arange(6)
    most = set()
    for _ in range(40):
        asked = method.ask()
        method.tell(asked, -((np.cumsum(asked.values - 0.3, axis=1) ** 2) * steep).sum(axis=1))
        most.add(int(np.argmax(method.shares)))
    assert REFINEMENT in most
    assert method.shares[VARIATION] == 0
