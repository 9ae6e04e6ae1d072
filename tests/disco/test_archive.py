"""The archive of a search: distinct, of different structure, and with evidence where rewards are noisy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from spaces import decision_tree

from discodso import Design, DisCo, DisCoSettings, FixedSequence, OpenSequence, Space, Task, Token, search
from discodso.base.errors import DeclarationError
from discodso.disco.archive import Archive, Niche, Pool
from discodso.disco.settings import ArchiveSettings, RefinementSettings, VariationSettings
from discodso.run.result import Ranking

SPACE = Space([Token("x", range=(0, 1)), Token("y", range=(0, 1))], FixedSequence(2))


def designs(*values, token="x"):
    return SPACE.encode([Design.of((token, v), (token, v)) for v in values])


def pool(values, rewards, weights=None, token="x"):
    rewards = np.array(rewards, float)
    return Pool(designs(*values, token=token), rewards, np.array(weights or np.ones(len(rewards)), float))


def noisy(size=2, niche=None):
    return Archive(*[Pool.empty(SPACE)] * 3, size, niche, recheck=True)


def test_the_first_reward_of_a_design_does_not_count_if_rewards_are_noisy():
    archive = noisy().add(pool([0.1, 0.2, 0.3], [9.0, 5.0, 1.0]), places=2)
    assert len(archive.members) == 0
    assert archive.waiting.rewards.tolist() == [9.0, 5.0]
    assert list(archive.to_recheck(5)) == list(designs(0.1, 0.2))
    archive = archive.add(pool([0.1, 0.2], [2.0, 4.0]), places=2)
    assert archive.members.rewards.tolist() == [4.0, 2.0]
    assert len(archive.waiting) == 0


def test_later_rewards_are_averaged_by_their_weight():
    archive = noisy().add(pool([0.1], [9.0]), places=2).add(pool([0.1], [2.0], [40.0]), places=2)
    archive = archive.add(pool([0.1], [8.0], [10.0]), places=2)
    assert archive.members.rewards.tolist() == [pytest.approx((2 * 40 + 8 * 10) / 50)]
    assert archive.members.weights.tolist() == [50.0]


def test_members_with_the_least_evidence_are_evaluated_first():
    archive = replace(noisy(3), members=pool([0.1, 0.2, 0.3], [3.0, 2.0, 1.0], [90.0, 10.0, 50.0]))
    assert list(archive.to_recheck(2)) == list(designs(0.2, 0.3))


def test_only_designs_that_could_enter_wait_and_failed_ones_never_do():
    archive = replace(noisy(2), members=pool([0.1, 0.2], [3.0, 2.0]))
    archive = archive.add(pool([0.5, 0.6, 0.7], [1.0, 2.5, -np.inf]), places=5)
    assert list(archive.waiting.designs) == list(designs(0.6))


def test_a_failed_second_evaluation_leaves_what_is_known():
    archive = replace(noisy(2), members=pool([0.1], [3.0]))
    assert archive.add(pool([0.1], [-np.inf]), places=1).members.rewards.tolist() == [3.0]


def test_few_may_be_alike():
    tokens = pool([0.1, 0.2, 0.3], [3.0, 2.0, 1.0]).join(pool([0.4], [0.5], token="y"))
    kept = tokens.best_distinct(4, Niche(2))
    assert kept.rewards.tolist() == [3.0, 2.0, 0.5]
    mixed = Pool(
        SPACE.encode([Design.of(("x", 0.1), ("y", 0.1)), Design.of(("x", 0.1), ("x", 0.2))]),
        np.ones(2),
        np.ones(2),
    )
    assert len(mixed.best_distinct(2, Niche(1))) == 2
    assert len(mixed.best_distinct(2, Niche(1, length=1))) == 1


def test_a_fresh_start_sets_the_best_of_those_before_aside():
    archive = Archive.begin(SPACE, ArchiveSettings(size=2, niche=1))
    archive = archive.add(pool([0.1, 0.2], [1.0, 3.0]), 0).begin_anew()
    assert (len(archive), archive.earlier.rewards.tolist()) == (0, [3.0])
    archive = archive.add(pool([0.5], [2.0], token="y").join(pool([0.3], [4.0])), 0)
    assert archive.members.rewards.tolist() == [4.0, 2.0]
    again = Archive.begin(SPACE, ArchiveSettings(size=2, niche=1)).restored(SPACE, archive.state())
    for one in (archive, again):
        assert one.begin_anew().earlier.rewards.tolist() == [4.0, 2.0]


def test_the_ranking_averages_what_is_noisy():
    ranking = Ranking(2, noisy=True)
    ranking.add(designs(0.1, 0.2, 0.3), np.array([9.0, 5.0, 4.0]), np.arange(1, 4), np.array([4.0, 4.0, 4.0]))
    ranking.add(designs(0.1), np.array([1.0]), np.array([4]), np.array([12.0]))
    assert [(s.reward, s.weight, s.call) for s in ranking.top] == [(5.0, 4.0, 2), (3.0, 16.0, 1)]


def test_without_noise_the_ranking_keeps_the_reward_with_the_most_evidence():
    ranking = Ranking(3)
    ranking.add(designs(0.1, 0.2), np.array([9.0, 5.0]), np.arange(1, 3), np.array([40.0, 4.0]))
    ranking.add(designs(0.1, 0.2), np.array([6.0, 7.0]), np.arange(3, 5), np.array([8.0, 40.0]))
    ranking.add(designs(0.2), np.array([7.5]), np.array([5]), np.array([40.0]))
    assert [(s.reward, s.weight, s.call) for s in ranking.top] == [(9.0, 40.0, 1), (7.0, 40.0, 4)]


def test_rewards_that_repeat_are_not_noisy():
    def objective(design, seed):
        return design.values[0]

    task = Task(SPACE, objective, stochastic=True, repeatable=True)
    assert not task.noisy
    assert Task(SPACE, objective, stochastic=True).noisy
    found = search(task, budget=300, seed=0)
    assert found.best.evaluations == 1
    with pytest.raises(DeclarationError, match="noisy"):
        search(task, budget=300, confirm_calls=30)
    with pytest.raises(DeclarationError, match="repeatable"):
        Task(SPACE, lambda design: 0.0, repeatable=True)


def test_noise_is_seen_through():
    """One structure is better on average, another is noisier: with rechecking the archive holds the better one."""

    def objective(design, seed):
        rng = np.random.default_rng(seed)
        return 1.0 if design.tokens[0] == "x" else rng.normal(0.0, 1.0)

    task = Task(SPACE, objective, stochastic=True)
    plain = DisCoSettings(batch_size=50, archive=ArchiveSettings(size=10))
    shares = {}
    for recheck in (0.0, 0.4):
        method = replace(plain, archive=ArchiveSettings(size=10, recheck=recheck)).build(SPACE, 0)
        rng = np.random.default_rng(0)
        for _ in range(60):
            batch = method.ask()
            method.tell(batch, [task.objective(d, int(rng.integers(2**32))) for d in batch])
        shares[recheck] = np.mean([d.tokens[0] == "x" for d in method.archive.members.designs])
    assert shares[0.0] < 0.2
    assert shares[0.4] > 0.8


def test_a_search_with_everything_on_counts_each_call_and_repeats():
    entered = []

    def objective(design, seed):
        entered.append(seed)
        return -len(design) + np.random.default_rng(seed).normal()

    space = decision_tree()
    settings = DisCoSettings(
        batch_size=40,
        archive=ArchiveSettings(size=10, niche=3, niche_length=2, recheck=0.2),
        variation=VariationSettings(share=0.5),
    )
    results = [
        search(Task(space, objective, stochastic=True), budget=400, seed=5, method=settings) for _ in range(2)
    ]
    assert len(entered) == 800
    assert len(set(entered)) == 400  # fresh noise for every call, the same in both runs
    assert results[0].top == results[1].top
    assert any(scored.weight > 1 for scored in results[0].top)


@pytest.mark.parametrize(
    "option",
    [{"variation": VariationSettings()}, {"refinement": RefinementSettings()}, {"proposers": (object,)}],
    ids=lambda option: next(iter(option)),
)
def test_options_that_need_an_archive_say_so(option):
    with pytest.raises(DeclarationError, match=f"{next(iter(option))} needs an archive"):
        DisCoSettings(**option)


def test_weights_are_checked():
    disco = DisCo(SPACE, DisCoSettings(batch_size=5))
    with pytest.raises(DeclarationError, match="positive weight"):
        disco.tell(disco.ask(2), [1.0, 2.0], [1.0, 0.0])


def test_at_equal_rewards_the_shorter_design_stands_first():
    space = Space([Token("x", range=(0, 1))], OpenSequence(1, 5))
    by_length = {n: Design.of(*(("x", 0.5),) * n) for n in (1, 2, 3)}
    batch = space.encode([by_length[n] for n in (3, 1, 2)])
    kept = Pool(batch, np.ones(3), np.ones(3)).best_distinct(2)
    assert list(kept.designs) == [by_length[1], by_length[2]]
    ranking = Ranking(2)
    for row in range(3):
        ranking.add(batch.select(slice(row, row + 1)), np.ones(1), np.array([row + 1]))
    assert [s.design for s in ranking.top] == [by_length[1], by_length[2]]
