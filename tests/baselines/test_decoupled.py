"""Decoupled search: what is optimised, how often, and by how many calls."""

from __future__ import annotations

from method_runs import SMALL_DISCO, Counting, reward
from spaces import decision_tree

from discodso import DecisionTreeBounds, Design, DisCoSettings, Space, Task, Token, Tree, search
from discodso.baselines import inner
from discodso.baselines.decoupled import DecoupledSettings
from discodso.space.constraints import DifferentLeaves
from discodso.tasks.bitstring import bitstring


def test_a_failed_evaluation_does_not_stop_an_inner_search():
    def sometimes(design: Design) -> float:
        if design.values[0] is not None and design.values[0] > 2.5:
            raise RuntimeError("too large")
        return reward(design)

    for name in inner.INNER:
        method = DecoupledSettings(SMALL_DISCO, name, inner_calls=40, in_flight=5)
        result = search(Task(decision_tree(), sometimes), budget=200, method=method)
        assert result.calls == 200
        assert 0 < result.failure_count < 200


def test_a_skeleton_is_optimised_once_until_a_batch_brings_no_other():
    task = bitstring(3)
    method = DecoupledSettings(SMALL_DISCO, inner_calls=30).build(task.space, 0)
    first: dict[tuple[str, ...], int] = {}
    for number in range(400):
        designs = method.ask()
        for design in designs:
            first.setdefault(design.tokens, number)
        method.tell(designs, task.batch_objective(designs))
    assert len(first) == 8
    assert method.proposed > method.optimised > 8


def test_the_reward_of_a_skeleton_is_the_best_that_its_search_met():
    task = bitstring(2, alpha=0.5)
    method = DecoupledSettings(SMALL_DISCO, "evo", inner_calls=60).build(task.space, 0)
    best: dict[bytes, float] = {}
    told: list[tuple[bytes, float]] = []
    inside = method.method.tell
    method.method.tell = lambda designs, rewards, weights=None: (
        told.extend(zip(designs.skeletons(), rewards, strict=True)) or inside(designs, rewards)
    )
    while not told:
        designs = method.ask()
        rewards = task.batch_objective(designs)
        for key, value in zip(designs.skeletons(), rewards.tolist(), strict=True):
            best[key] = max(best.get(key, 0.0), value)
        method.tell(designs, rewards)
    assert told
    assert all(value == best[key] for key, value in told)


def test_inner_calls_limit_every_skeleton():
    task = bitstring(6)
    for name in inner.INNER:
        method = DecoupledSettings(DisCoSettings(batch_size=30), name, inner_calls=50, in_flight=3).build(
            task.space, 0
        )
        used: dict[tuple[str, ...], int] = {}
        for _ in range(100):
            designs = method.ask()
            for design in designs:
                used[design.tokens] = used.get(design.tokens, 0) + 1
            method.tell(designs, task.batch_objective(designs))
            if method.optimised >= 20:
                break
        assert max(used.values()) <= 50


def test_bounds_that_depend_on_values_leave_no_room_for_some_skeletons():
    # With h of a quarter of the range a chain of decisions on one feature fits few thresholds, or none.
    tokens = [Token("x<", 2, range=(0.0, 1.0)), Token("a"), Token("b")]
    space = Space(tokens, Tree(1, 11), [DifferentLeaves()], bounds=DecisionTreeBounds(0.25))
    objective = Counting()
    method = DecoupledSettings(SMALL_DISCO, inner_calls=20)
    search(Task(space, objective), budget=300, method=method, seed=0)
    assert all(space.violations(design) == [] for design in objective.designs)
