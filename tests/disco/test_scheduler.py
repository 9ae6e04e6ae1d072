"""Sharing calls: who earns more gets more, nobody gets nothing, and what is off gets none."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spaces import mixed_sequence

from discodso import Design, DisCo, DisCoSettings, FixedSequence, NetworkSettings, Space, Token
from discodso.base.errors import DeclarationError
from discodso.disco.archive import Archive, Niche, Pool
from discodso.disco.proposers.refinement import Refinement
from discodso.disco.proposers.variation import Variation
from discodso.disco.scheduler import ELSEWHERE, POLICY, Origins, Scheduler
from discodso.disco.settings import ArchiveSettings, RefinementSettings, VariationSettings

SPACE = mixed_sequence()


VARIATION, REFINEMENT = 1, 2
ALL = (Variation(SPACE, VariationSettings()), Refinement(SPACE, RefinementSettings()))


class Own:
    """As much of a proposer as the scheduler looks at."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def begun(proposers=ALL) -> Scheduler:
    return Scheduler.of(proposers, adaptive=True)


def test_it_begins_evenly_above_the_floors():
    shares = begun().shares
    assert sum(shares) == pytest.approx(1)
    assert max(shares) - min(shares) < 0.06
    assert begun(()).shares == (1.0,)


@given(
    st.lists(st.tuples(st.sampled_from([-1, 0, 1, 2]), st.floats(0, 1)), max_size=60),
    st.lists(st.floats(0, 0.2), min_size=2, max_size=4),
)
def test_shares_add_up_and_keep_their_floors(batch, floors):
    own = [Own(name=str(k), floor=floor) for k, floor in enumerate(floors)]
    sources = np.array([source for source, _ in batch], np.int64)
    scheduler = begun(own).after(sources, np.array([earned for _, earned in batch]))
    assert sum(scheduler.shares) == pytest.approx(1)
    lowest = (0.15, *floors)
    assert all(share >= floor for share, floor in zip(scheduler.shares, lowest, strict=True))
    counts = scheduler.counts(100)
    assert sum(counts) <= 100
    assert counts[POLICY] == 0


def test_who_earns_more_for_each_call_gets_more_and_it_fades():
    sources = np.repeat([POLICY, VARIATION, REFINEMENT], (50, 30, 20))
    earned = np.where(sources == REFINEMENT, 0.2, 0.0)
    scheduler = begun()
    for _ in range(10):
        scheduler = scheduler.after(sources, earned)
    assert scheduler.shares[REFINEMENT] > 0.5
    for _ in range(60):
        scheduler = scheduler.after(sources, np.where(sources == VARIATION, 0.2, 0.0))
    assert scheduler.shares[VARIATION] > 0.5
    assert scheduler.shares[REFINEMENT] < 0.2


def test_designs_of_nobody_change_nothing():
    assert begun().after(np.full(5, ELSEWHERE), np.ones(5)) == begun()


def test_fixed_shares_stay_whatever_is_earned():
    fixed = Scheduler.of((*ALL, Own(name="own", share=0.2)), adaptive=False)
    assert fixed.named_shares() == pytest.approx(
        {"policy": 0.15, "variation": 0.35, "refinement": 0.3, "own": 0.2}
    )
    assert fixed.counts(40) == [0, 14, 12, 8]
    assert fixed.after(np.full(100, 3), np.ones(100)) == fixed


def test_a_proposer_of_ones_own_needs_neither_name_nor_share_nor_floor():
    plain = Scheduler.of((Own(),), adaptive=False)
    assert plain.named_shares() == {"policy": 0.9, "Own": 0.1}
    poor = begun((Own(), Own(name="rich", floor=0.0)))
    assert poor.floors == (0.15, 0.1, 0.0)
    for _ in range(20):
        poor = poor.after(np.repeat([0, 1, 2], 30), np.repeat([0.0, 0.0, 0.5], 30))
    shares = poor.named_shares()
    assert shares["rich"] > 0.6
    assert 0.1 <= shares["Own"] < 0.15
    assert shares["policy"] >= 0.15


def test_a_scheduler_goes_on_from_what_it_wrote():
    three = (*ALL, Own(name="own"))
    sources, earned = np.repeat([0, 1, 2, 3], 10), np.linspace(0, 1, 40)
    scheduler = begun(three).after(sources, earned)
    again = begun(three).with_dict(json.loads(json.dumps(scheduler.to_dict())))
    assert again == scheduler
    with pytest.raises(ValueError, match="other proposers"):
        begun().with_dict(scheduler.to_dict())


@pytest.mark.parametrize(
    ("proposers", "adaptive", "word"),
    [
        ((Own(name="a"), Own(name="a")), True, "names of proposers must be distinct"),
        ((Own(name="policy"),), True, "names of proposers must be distinct"),
        ((*ALL, Own(share=0.4)), False, "shares of proposers must be at most 1 together"),
        (tuple(Own(name=str(k)) for k in range(9)), True, "floors of proposers must be at most 1 together"),
        ((Own(share=-0.1),), False, "share of Own"),
        ((Own(floor="much"),), True, "floor of Own"),
    ],
)
def test_mistakes_of_proposers_are_named(proposers, adaptive, word):
    with pytest.raises(DeclarationError, match=word):
        Scheduler.of(proposers, adaptive)


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
    archive = Archive(nothing, nothing, nothing, 3, Niche(2))
    designs = SPACE.encode(
        [
            Design.of(("v", 0.1), "d"),
            Design.of(("v", 0.2), "d"),
            Design.of(("v", 0.3), "d"),
            Design.of("d", "d"),
        ]
    )
    batch = Pool(designs, np.array([1.0, 3.0, 2.0, 0.5]), np.ones(4))
    first = archive.add(batch, 0)
    assert first.entered(archive, batch).tolist() == [
        0.0,
        1.0,
        0.5,
        1 / 3,
    ]  # the niche is full without the first
    assert first.add(batch, 0).entered(first, batch).tolist() == [0.0] * 4


def test_what_was_earned_fades_by_calls_and_not_by_batches():
    sources, earned = np.repeat([POLICY, VARIATION, REFINEMENT], 20), np.repeat([0.0, 0.5, 0.0], 20)
    first = begun().after(sources, earned)
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
        archive=ArchiveSettings(size=20, niche=5),
        refinement=RefinementSettings(),
        adaptive=True,
        network=NetworkSettings(units=8),
    )
    space = Space([Token("v", range=(0, 1))], FixedSequence(6))
    method = DisCo(space, settings, seed=0)
    steep = 10.0 ** np.arange(6)
    most = set()
    for _ in range(40):
        asked = method.ask()
        method.tell(asked, -((np.cumsum(asked.values - 0.3, axis=1) ** 2) * steep).sum(axis=1))
        most.add(max(method.shares, key=method.shares.get))
    assert "refinement" in most
    assert set(method.shares) == {"policy", "refinement"}
