"""The choice of a policy on fresh episodes, and what is then cut out of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discodso import TreePolicy, search_policy
from discodso.base.arrays import Floats, Ints
from discodso.tasks.policies.episodes import open_runner
from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.making import as_environment
from discodso.tasks.policies.policy_choice import _round, trim
from discodso.tasks.policies.tree import Forest


@pytest.mark.parametrize(("episodes", "expected"), [(30, 300), (200, 2000), (450, 2000)])
def test_many_episodes_for_a_call_do_not_make_the_choice_long(episodes: int, expected: int) -> None:
    found = search_policy("MountainCar-v0", budget=100, episodes=episodes, seed=0, test_seeds=range(3))
    assert {candidate.episodes for candidate in found.finalists} == {expected}


@pytest.mark.parametrize(
    ("episodes", "spent", "expected"), [(450, 1e4, 200), (600, 2e6, 400), (1000, 6.4e6, 1000), (30, 1e9, 30)]
)
def test_after_a_long_search_the_choice_takes_its_time(episodes: int, spent: float, expected: int) -> None:
    assert _round(episodes, spent) == expected


def test_decisions_that_earn_nothing_are_cut_out() -> None:
    """Around a perfect tree for CartPole: a decision that is never reached and one between equal ends."""
    perfect = {
        "feature": 2,
        "threshold": 0.0167507,
        "left": {"feature": 3, "threshold": 0.407984, "left": {"action": 0}, "right": {"action": 1}},
        "right": {"action": 1},
    }
    idle = {"feature": 0, "threshold": 4.0, "left": {"action": 1}, "right": {"action": 0}}
    padded = {"feature": 1, "threshold": 50.0, "left": {**perfect, "right": idle}, "right": {"action": 0}}
    policy = TreePolicy.from_dict(padded)
    seeds = np.arange(2**29, 2**29 + 1200)
    with open_runner(as_environment("CartPole-v1")) as runner:
        trimmed, spent = trim(policy, runner, seeds[:50], seeds[50:200], seeds[200:])
    assert trimmed.to_dict() == perfect
    assert spent > 0
    assert policy.pruned() == policy  # no action would change on some observation: pruning cannot do it


class _Lucky:
    """Returns of trees that lack an action are better on the few seeds and worse on all others; 8 is never met."""

    def returns(self, forest: Forest, tree: Ints, seeds: Ints) -> tuple[Floats, dict[int, str]]:
        actions = [
            {node.action for node, _ in forest.columns_of(m).nodes() if isinstance(node, Leaf)}
            for m in range(len(forest.offset) - 1)
        ]
        whole = np.array([{0, 1, 2, 3} <= own for own in actions])[tree]
        return seeds % 7 + np.where(whole, 0.0, np.where(seeds < 100, 1.0, -5.0)), {}


def test_what_no_episode_reaches_is_cut_out_though_other_cuts_look_better() -> None:
    leaves = [{"action": action} for action in range(4)]
    idle = {"feature": 1, "threshold": 9.0, "left": leaves[3], "right": {"action": 8}}
    policy = TreePolicy.from_dict(_chain(leaves[:3], idle))
    trimmed, spent = trim(policy, _Lucky(), np.arange(50), np.arange(100, 300), np.arange(300, 400))
    assert trimmed.to_dict() == _chain(leaves[:3], leaves[3])
    # Each round: the tree and its cuts on the few; the whole tree once, then what is tried, on the many.
    assert spent == 200 + (1 + 8) * 50 + 4 * 200 + (1 + 6) * 50 + 3 * 200


def _chain(leaves: list[Any], last: Any) -> Any:
    for place, leaf in reversed(list(enumerate(leaves))):
        last = {"feature": 0, "threshold": float(place), "left": leaf, "right": last}
    return last


def test_trimming_keeps_what_earns_something() -> None:
    seeds = np.arange(2**29, 2**29 + 700)
    policy = TreePolicy.from_dict(
        {"feature": 1, "threshold": 0.0, "left": {"action": 0}, "right": {"action": 2}}
    )
    with open_runner(as_environment("MountainCar-v0")) as runner:
        trimmed, _ = trim(policy, runner, seeds[:50], seeds[50:250], seeds[250:])
    assert trimmed == policy
