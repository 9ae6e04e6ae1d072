"""From a teacher to trees: it is found again where it is a tree, and what it took is counted and kept."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from killing import comparable

from discodso import TreePolicy, resume, search_policy
from discodso.base.errors import DiscodsoError
from discodso.run.clock import Clock
from discodso.run.plan import Plan
from discodso.tasks.policies.distillation import (
    EPISODES,
    FIRST,
    ROUNDS,
    distilled,
    pruned_by_returns,
    pruning_seeds,
)
from discodso.tasks.policies.episodes import open_runner, paired_returns
from discodso.tasks.policies.making import as_environment
from discodso.tasks.policies.policy_options import PolicyOptions
from discodso.tasks.policies.teachers import as_teacher
from discodso.tasks.policies.tree import DecisionTree
from discodso.tasks.policies.tree_space import space_for, validation_seeds

CAR = "MountainCar-v0"
QUICK: dict[str, Any] = {"budget": 40, "episodes": 4, "test_seeds": range(2), "seed": 2}


def pumping(observation: Any) -> int:
    """Pushes the way that the car moves."""
    return 0 if observation[1] < 0.001 else 2


def distil(teacher: Any, environment: str, budget: int = 20, **options: Any) -> tuple[Any, Any, list[str]]:
    own = PolicyOptions(environment=environment, **options)
    interface, space = space_for(own, "default", 0)
    said = list[str]()
    clock = Clock(None, said.append)
    with open_runner(interface.environment, 1, pruning_seeds(0)) as runner:
        known = as_teacher(teacher, interface)
        made = distilled(known, interface, space, own, runner, Plan(budget), clock)
    trees = [
        DecisionTree(space.vocabulary.nodes(design), numbers=interface.numbers) for design in made.designs
    ]
    return trees, made.record, said


def test_a_teacher_that_is_a_small_tree_is_found_again() -> None:
    trees, record, said = distil(pumping, CAR)
    (tree,) = trees  # there is nothing more to imitate
    assert len(tree) == 3
    assert tree.nodes[0][0].feature == 1
    assert tree.nodes[0][0].threshold == pytest.approx(0.001, abs=1e-5)
    assert [leaf.action for leaf in tree.leaves] == [0, 2]
    assert record["teacher"] == "function pumping"
    assert record["episodes"] == FIRST + (ROUNDS - 1) * EPISODES
    assert record["pruning_episodes"] == 0  # so few calls leave no room for it
    assert record["teacher_mean"] > -130
    assert any("more to imitate it" in line for line in said)


def test_a_line_is_found_again() -> None:
    def pushing(observation: Any) -> Any:
        return [30 * observation[1] + 0.1]

    trees, record, _ = distil(pushing, "MountainCarContinuous-v0", leaves="linear", max_nodes=3)
    x = np.random.default_rng(0).uniform((-1.2, -0.03), (0.6, 0.03), (200, 2))
    errors = [min(abs(float(tree.act(row)[0]) - pushing(row)[0]) for tree in trees) for row in x]
    assert max(errors) < 0.01
    assert record["teacher_mean"] > 80


def test_the_front_has_the_returns_of_its_trees() -> None:
    def both(observation: Any) -> int:
        fast = abs(observation[1]) > 0.01
        return pumping(observation) if fast or observation[0] < -0.3 else 2 - pumping(observation)

    trees, record, said = distil(both, CAR, budget=100_000, max_nodes=15)
    front = record["front"]
    sizes = [nodes for nodes, _ in front]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] <= 15
    assert record["pruning_episodes"] > 0
    seeds = np.array(pruning_seeds(0))
    with open_runner(as_environment(CAR)) as runner:
        means = paired_returns(trees[: len(front)], runner, seeds).mean(axis=1)
    assert [mean for _, mean in front] == pytest.approx(means.tolist(), abs=1e-6)
    assert said[-1].endswith(f"{record['episodes']} episodes; {means[0]:.2f} with {sizes[0]} nodes")


def test_pruning_cuts_what_costs_the_least_return() -> None:
    """A tree that pumps, with a decision that is never reached and one that spoils a little."""
    good = {"feature": 1, "threshold": 0.001, "left": {"action": 0}, "right": {"action": 2}}
    spoilt = {"feature": 0, "threshold": -1.1, "left": {"action": 1}, "right": good}
    idle = {"feature": 0, "threshold": 0.55, "left": spoilt, "right": {"action": 1}}
    seeds = np.array(pruning_seeds(0))
    with open_runner(as_environment(CAR)) as runner:
        steps = list(pruned_by_returns(DecisionTree.from_dict(idle), runner, seeds))
        means = paired_returns([tree for tree, _, _ in steps], runner, seeds).mean(axis=1)
    assert steps[-1][0].to_dict() == good
    assert [mean for _, mean, _ in steps] == means.tolist()
    sizes = [len(tree) for tree, _, _ in steps]
    assert sizes == sorted(set(sizes), reverse=True)
    spent = [episodes for _, _, episodes in steps]
    assert spent == sorted(spent)


def test_a_search_begins_with_them_and_is_resumed_without_the_teacher(tmp_path: Path) -> None:
    asked = 0

    def teacher(observation: Any) -> int:
        nonlocal asked
        asked += 1
        return pumping(observation)

    found = search_policy(CAR, **QUICK, teacher=teacher, out=tmp_path / "run")
    assert found.search.best is not None
    assert found.search.best.reward > -130
    assert found.begun["teacher"] == "function teacher"
    assert found.begun["steps"] == asked
    assert found.summary()["begun"] == found.begun
    assert found.episodes <= QUICK["budget"] * QUICK["episodes"]  # those of the teacher stand apart
    assert found.phases[0].episodes == found.begun["episodes"] == FIRST + (ROUNDS - 1) * EPISODES
    before = asked
    again = resume(tmp_path / "run", budget=80)
    assert asked == before
    assert again.begun == found.begun
    method = {**QUICK, "budget": 80}
    once = search_policy(CAR, **method, teacher=teacher, workers=2)
    assert comparable(once) == comparable(again)


def test_designs_of_a_teacher_and_starts_go_together() -> None:
    policy = TreePolicy.from_dict(
        {"feature": 0, "threshold": -0.5, "left": {"action": 0}, "right": {"action": 1}}
    )
    found = search_policy(CAR, **QUICK, teacher=pumping, start_from=policy)
    assert found.begun["designs"] == 2
    assert found.begun["start_from"] == ["the policy"]


def test_a_teacher_that_raises_is_told_in_a_line() -> None:
    def broken(observation: Any) -> int:
        raise KeyError("no\nsuch thing")

    with pytest.raises(DiscodsoError, match="teacher function broken raised KeyError") as caught:
        search_policy(CAR, **QUICK, teacher=broken)
    assert "\n" not in str(caught.value)


def test_a_slow_teacher_keeps_to_its_share_of_the_time() -> None:
    def slow(observation: Any) -> int:
        time.sleep(0.0005)
        return pumping(observation)

    found = search_policy(CAR, **QUICK, teacher=slow, time_limit=1.0)
    assert 1 <= found.begun["episodes"] < FIRST
    assert found.begun["pruning_episodes"] == 0
    assert found.search.best is not None


def test_trees_are_pruned_on_seeds_of_the_search() -> None:
    assert not set(pruning_seeds(3)) & set(validation_seeds(3, 10**5))
