"""Mean returns over fresh episodes, racing that saves most of them, and every episode counted."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import decision, leaf

from discodso import DisCoSettings, NetworkSettings, search
from discodso.disco.sampling import sample
from discodso.disco.uniform import UniformStepper
from discodso.run.evaluation import Evaluator
from discodso.tasks.policies.environments import Interface, describe
from discodso.tasks.policies.episodes import open_runner
from discodso.tasks.policies.objective import TreeObjective
from discodso.tasks.policies.racing import Racing, rounds
from discodso.tasks.policies.tree import Environment, Forest
from discodso.tasks.policies.tree_policy import TreePolicy
from discodso.tasks.policies.tree_space import search_seeds, tree_space, tree_task, validation_seeds

INTERFACE = Interface(
    environment=Environment("Imagined-v0"),
    feature_names=("height", "constant", "speed", "heat"),
    ranges=((0.0, 1.0), None, (-5.0, 5.0), (100.0, 200.0)),
    sources=("declared", "probed", "declared", "declared"),
    action_names=((5, "up"), (6, "stay"), (7, "down")),
    max_steps=10,
)
SPACE = tree_space(INTERFACE, max_nodes=15)
SEEDS = range(2**20, 2**20 + 2**10)
METHOD = DisCoSettings(batch_size=40, network=NetworkSettings(units=4))


def designs_of(count, seed=0, space=SPACE):
    return sample(space, UniformStepper(space), count, np.random.default_rng(seed)).designs


def call_seeds_of(count, seed=0):
    return np.random.default_rng(seed).integers(0, 2**63, count, dtype=np.uint64)


class Imagined:
    """A runner whose returns are whole numbers: the worth of the tree and some noise that follows from the seed.

    Args:
        worth: of the trees by position, or a function of the forest.
        noise: the largest.
        fails: the reason for which episode (tree, seed) fails, or None.
    """

    def __init__(self, worth, noise=10, fails=lambda tree, seed: None):
        self.worth, self.noise, self.fails = worth, noise, fails
        self.seen = defaultdict(list)  # by tree: (seed, return)
        self.episodes = 0
        self.rounds = []

    def returns(self, forest, tree, seeds):
        worth = self.worth(forest) if callable(self.worth) else np.asarray(self.worth)
        mixed = (seeds.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
        values = worth[tree] + (mixed % np.uint64(2 * self.noise + 1)).astype(float) - self.noise
        reasons = {}
        for episode, (t, s) in enumerate(zip(tree.tolist(), seeds.tolist(), strict=True)):
            reason = self.fails(t, s)
            if reason is not None:
                reasons[episode], values[episode] = reason, np.nan
            self.seen[t].append((s, values[episode]))
        self.episodes += len(tree)
        self.rounds.append(sorted(set(tree.tolist())))
        return values, reasons

    def counts(self, designs):
        return np.array([len(self.seen[row]) for row in range(len(designs))])


def measure(runner, designs, racing, episodes=80, seeds=SEEDS, call_seed=0):
    objective = TreeObjective(INTERFACE, SPACE, runner, seeds, episodes, racing)
    return objective(designs, call_seeds_of(len(designs), call_seed))


# ------------------------------------------------------------------------------------- trees


def read(design):
    """The nested tree of a design, by its names."""
    features = {"height <": 0, "speed <": 2, "heat <": 3}
    actions = {"up": 5, "stay": 6, "down": 7}
    items = iter(design)

    def part():
        name, value = next(items)
        return leaf(actions[name]) if name in actions else decision(features[name], value, part(), part())

    return part()


def test_the_forest_has_the_tree_of_every_design():
    designs = designs_of(200)
    objective = TreeObjective(INTERFACE, SPACE, Imagined(np.zeros(200)), SEEDS, 2, None)
    forest = objective.forest(designs)
    trees = [TreePolicy.from_dict(read(design)) for design in designs]
    expected = Forest.of(trees)
    assert forest.offset.tolist() == expected.offset.tolist()
    for found, wanted in zip(forest.columns, expected.columns, strict=True):
        assert found.tolist() == wanted.tolist()
    assert len({len(policy) for policy in trees}) >= 5
    for design, policy in zip(designs, trees, strict=True):
        made = objective.policy(design)
        assert made == policy
        assert made.environment == INTERFACE.environment
        assert made.feature_name(2) == "speed"
        assert made.action_name(7) == "down"


def test_the_runner_gets_the_designs_of_the_batch():
    designs, got = designs_of(10), []

    def worth(forest):
        got.append(forest)
        return np.zeros(len(forest.offset) - 1)

    measure(Imagined(worth), designs, None)
    expected = Forest.of([TreePolicy.from_dict(read(design)) for design in designs])
    assert got[0].columns.jump.tolist() == expected.columns.jump.tolist()


# ------------------------------------------------------------------------------------- seeds and means


@pytest.mark.parametrize("racing", [None, Racing()])
def test_rewards_are_means_over_exactly_the_episodes_that_ran(racing):
    designs = designs_of(30)
    runner = Imagined(np.arange(30.0) * 5)
    measured = measure(runner, designs, racing)
    for row, reward in enumerate(measured.rewards):
        assert reward == np.mean([value for _, value in runner.seen[row]])
    assert measured.cost == runner.episodes
    assert measured.reasons == {}


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=8), st.integers(0, 6), st.integers(0, 2**31))
def test_the_seeds_of_a_call_are_distinct_and_inside_the_range(call_seeds, power, first):
    """With as many episodes as there are seeds, every seed is used once."""
    size = 2**power
    runner = Imagined(np.zeros(len(call_seeds)))
    seeds = range(first, first + size)
    objective = TreeObjective(INTERFACE, SPACE, runner, seeds, size, None)
    objective(designs_of(len(call_seeds)), np.array(call_seeds, np.uint64))
    for row in range(len(call_seeds)):
        assert sorted(seed for seed, _ in runner.seen[row]) == list(seeds)


def test_seeds_stay_distinct_over_the_rounds_of_a_race():
    runner = Imagined(np.zeros(20))
    measure(runner, designs_of(20), Racing(margin=100), episodes=100)
    assert len(runner.rounds) > 3
    for row in range(20):
        used = [seed for seed, _ in runner.seen[row]]
        assert len(used) == len(set(used)) == 100
        assert set(used) <= set(SEEDS)


def test_calls_have_different_seeds():
    runner = Imagined(np.zeros(50))
    measure(runner, designs_of(50), None, episodes=30)
    used = {tuple(seed for seed, _ in runner.seen[row]) for row in range(50)}
    assert len(used) == 50
    assert len({seed for row in used for seed in row}) > 500


def test_the_seeds_of_searches_choices_and_tests_do_not_meet():
    searches = [search_seeds(seed) for seed in (0, 1, 2, 2**14 - 1)]
    choices = [validation_seeds(seed, 2**14) for seed in (0, 1, 2, 2**14 - 1)]
    ordered = sorted([range(10_000), *searches, *choices], key=lambda seeds: seeds.start)
    for before, after in itertools.pairwise(ordered):
        assert before.stop <= after.start
    assert all(len(seeds) & (len(seeds) - 1) == 0 for seeds in searches)
    assert ordered[-1].stop <= 2**31


# ------------------------------------------------------------------------------------- racing


def test_without_racing_every_design_has_all_episodes():
    designs, runner = designs_of(25), Imagined(np.arange(25.0) * 100)
    assert measure(runner, designs, None, episodes=33).cost == 25 * 33
    assert runner.counts(designs).tolist() == [33] * 25
    assert len(runner.rounds) == 1


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


# ------------------------------------------------------------------------------------- failures


def test_a_design_that_fails_leaves_the_race_with_a_reason():
    """Tree 3 fails at once, tree 9 (the best) only in a later round; the others go on without them."""
    later = []

    def fails(tree, seed):
        if tree == 9:
            later.append(seed)
        return "fell over" if tree == 3 or (tree == 9 and len(later) > 15) else None

    designs, runner = designs_of(10), Imagined(np.arange(10.0) * 1000, fails=fails)
    measured = measure(runner, designs, Racing(share=0.3))
    assert measured.reasons == {3: "fell over", 9: "fell over"}
    assert np.flatnonzero(np.isnan(measured.rewards)).tolist() == [3, 9]
    counts = runner.counts(designs)
    assert counts[3] == 4
    assert counts[9] == 16
    assert measured.cost == counts.sum()
    assert (counts[[7, 8]] == 80).all()


@pytest.mark.parametrize("racing", [None, Racing()])
def test_a_batch_in_which_all_fail_ends_at_once(racing):
    runner = Imagined(np.zeros(5), fails=lambda tree, seed: f"no {tree}")
    measured = measure(runner, designs_of(5), racing)
    assert measured.reasons == {row: f"no {row}" for row in range(5)}
    assert np.isnan(measured.rewards).all()
    assert measured.cost == (5 * 4 if racing else 5 * 80)


def test_the_evaluator_counts_calls_episodes_and_failures():
    designs = designs_of(12)
    runner = Imagined(np.arange(12.0), fails=lambda tree, seed: "raised Boom: ouch" if tree == 4 else None)
    task = tree_task(INTERFACE, runner, SPACE, 20)
    evaluator = Evaluator(task, np.random.SeedSequence(0))
    evaluation = evaluator.evaluate(designs)
    assert evaluator.calls == 12
    assert evaluator.counts.cost == runner.episodes == 240
    assert evaluator.counts.failure_count == 1
    assert np.flatnonzero(evaluation.failed).tolist() == [4]
    assert evaluation.rewards[4] == -math.inf
    (failure,) = evaluation.failures
    assert (failure.call, failure.design, failure.reason) == (5, designs[4], "raised Boom: ouch")


def imagined_worth(forest):
    """Trees that look at heat first are worth more, and small ones a little more."""
    return np.where(forest.columns.feature[forest.offset[:-1]] == 3, 100.0, 0.0) - np.diff(forest.offset)


def fails_for_some_seeds(tree, seed):
    return "raised Boom: ouch" if seed % 500 == 0 else None


@pytest.mark.parametrize("racing", [None, Racing()])
def test_a_search_reports_failures_and_its_cost_in_episodes(racing):
    runner = Imagined(imagined_worth, fails=fails_for_some_seeds)
    task = tree_task(INTERFACE, runner, SPACE, 20, racing)
    result = search(task, budget=400, seed=0, method=METHOD)
    assert result.calls == 400
    assert result.cost == runner.episodes
    assert result.history[-1].cost == result.cost
    assert (result.cost == 8000) if racing is None else (1600 <= result.cost < 8000)
    assert 0 < result.failure_count < 100
    assert len(result.failures) == result.failure_count
    assert {failure.reason for failure in result.failures} == {"raised Boom: ouch"}
    assert result.best.design.tokens[0] == "heat <"
    assert task.cost_unit == "episodes"


@pytest.mark.parametrize("racing", [None, Racing()])
def test_the_same_seed_gives_the_same_search(racing):
    def run(seed):
        runner = Imagined(imagined_worth)
        result = search(
            tree_task(INTERFACE, runner, SPACE, 20, racing, seed), budget=200, seed=seed, method=METHOD
        )
        return [(scored.design, scored.reward, scored.call) for scored in result.top], result.cost

    assert run(1) == run(1)
    assert run(1)[0] != run(2)[0]


def test_a_real_environment_gives_what_the_policies_themselves_give():
    """CartPole, with and without racing, with one thread and two."""
    interface = describe(Environment("CartPole-v1"))
    space, seeds = tree_space(interface), search_seeds(3)
    designs, calls = designs_of(40, space=space), call_seeds_of(40)
    found = []
    for racing, workers in ((None, 1), (None, 2), (Racing(share=0.1), 1)):
        with open_runner(interface.environment, workers, seeds) as runner:
            objective = TreeObjective(interface, space, runner, seeds, 50, racing)
            found.append(objective(designs, calls))
    plain, threaded, raced = found
    assert plain.rewards.tolist() == threaded.rewards.tolist()
    assert raced.cost < plain.cost == 2000
    assert np.max(raced.rewards) == np.max(plain.rewards)
    assert len(np.unique(plain.rewards)) > 10
    for row in (0, 7, int(np.argmax(plain.rewards))):
        stride, first = (int(calls[row]) >> 32) | 1, int(calls[row]) & 0xFFFFFFFF
        chosen = [seeds[(first + stride * step) % len(seeds)] for step in range(50)]
        policy = objective.policy(designs[row])
        assert policy.evaluate(seeds=chosen).mean() == plain.rewards[row]


def test_common_episodes_are_the_same_for_all_designs_and_all_batches():
    seen = []
    for call_seed in (0, 1):
        runner = Imagined(np.arange(30.0), noise=5)
        objective = TreeObjective(INTERFACE, SPACE, runner, SEEDS, 40, None, common=True)
        rewards = objective(designs_of(30), call_seeds_of(30, call_seed)).rewards
        seen.append(rewards)
        assert all({seed for seed, _ in own} == set(SEEDS[:40]) for own in runner.seen.values())
    np.testing.assert_array_equal(*seen)  # no noise is left


def test_races_over_common_episodes_begin_with_others_in_each_batch():
    firsts = set()
    for call_seed in range(5):
        runner = Imagined(np.arange(30.0), noise=0)
        TreeObjective(INTERFACE, SPACE, runner, SEEDS, 40, Racing(), common=True)(
            designs_of(30), call_seeds_of(30, call_seed)
        )
        cut = min(runner.seen.values(), key=len)
        assert len(cut) == 4
        firsts.add(tuple(sorted(seed for seed, _ in cut)))
    assert len(firsts) == 5


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
