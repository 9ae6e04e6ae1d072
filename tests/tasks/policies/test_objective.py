"""Mean returns over fresh episodes, racing that saves most of them, and every episode counted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from imagined import INTERFACE, SEEDS, SPACE, Imagined, call_seeds_of, designs_of, measure
from trees import decision, leaf

from discodso import DisCoSettings, NetworkSettings, search
from discodso.run.evaluation import Evaluator
from discodso.tasks.policies.environments import describe
from discodso.tasks.policies.episodes import open_runner
from discodso.tasks.policies.making import Environment
from discodso.tasks.policies.objective import TreeObjective
from discodso.tasks.policies.racing import Racing
from discodso.tasks.policies.timed import TimedRunner
from discodso.tasks.policies.tree import Forest
from discodso.tasks.policies.tree_policy import TreePolicy
from discodso.tasks.policies.tree_space import search_seeds, tree_space, tree_task

METHOD = DisCoSettings(batch_size=40, network=NetworkSettings(units=4))


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


def test_without_racing_every_design_has_all_episodes():
    designs, runner = designs_of(25), Imagined(np.arange(25.0) * 100)
    assert measure(runner, designs, None, episodes=33).cost == 25 * 33
    assert runner.counts(designs).tolist() == [33] * 25
    assert len(runner.rounds) == 1


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


@pytest.mark.parametrize("racing", [None, Racing()])
def test_a_batch_that_there_is_no_time_for_ends_with_the_first_designs(racing):
    """Those that are rated are rated as if there were time; with a race they may lack its later rounds."""
    designs, call_seeds = designs_of(40), call_seeds_of(40)
    whole = TreeObjective(INTERFACE, SPACE, Imagined(np.arange(40)), SEEDS, 32, None)(designs, call_seeds)
    left = iter([1.0] * (6 if racing else 9))
    runner = Imagined(np.arange(40))
    cut = TreeObjective(INTERFACE, SPACE, runner, SEEDS, 32, racing, left=lambda: next(left, 0.0))
    measured = cut(designs, call_seeds)
    count = len(measured.rewards)
    assert 0 < count < 40
    assert measured.cut
    assert measured.cost == runner.episodes
    assert (measured.weights == (32 if racing is None else 4)).all()
    if racing is None:
        assert (measured.rewards == whole.rewards[:count]).all()
    known = TimedRunner(runner)
    late = TreeObjective(INTERFACE, SPACE, known, SEEDS, 32, racing, left=lambda: 0.0)
    first, none = late(designs, call_seeds), late(designs, call_seeds)
    assert len(first.rewards) == 1  # there is always a tree
    assert first.cost == (4 if racing else 32)
    assert len(none.rewards) == 0
    assert none.cut
    assert none.cost == 0
