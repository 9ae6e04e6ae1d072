"""Policies side by side, in the same episodes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from environments import Walk, registered
from trees import decision, tree

from discodso.base.errors import DeclarationError, EvaluationError
from discodso.tasks.policies.making import Environment
from discodso.tasks.policies.paired import compare_policies

GOOD = tree(decision(2, 0.0, 0, 1)).with_names(Environment("CartPole-v1"))
BAD = tree(decision(2, 0.0, 1, 0)).with_names(Environment("CartPole-v1"))
PLAIN = tree(1)


def test_differences_are_those_of_the_same_episodes() -> None:
    found = compare_policies({"good": GOOD, "bad": BAD, "plain": PLAIN}, range(50, 90))
    returns = np.array([policy.evaluate("CartPole-v1", range(50, 90)) for policy in (GOOD, BAD, PLAIN)])
    assert found.returns.tolist() == returns.tolist()
    assert found.means == returns.mean(axis=1).tolist()
    assert found.nodes == (3, 3, 1)
    first = found.pairs[0]
    fall = returns[0] - returns[1]
    assert (first["first"], first["second"]) == ("good", "bad")
    assert first["difference"] == fall.mean()
    assert first["error"] == pytest.approx(fall.std(ddof=1) / math.sqrt(40))
    assert first["interval"][0] < fall.mean() < first["interval"][1]
    assert len(found.pairs) == 3
    assert found.to_dict()["seeds"] == {"first": 50, "last": 89, "count": 40}
    assert found.to_csv().splitlines()[0] == "policy,nodes,mean return,standard error"
    same = compare_policies({"one": GOOD, "other": GOOD}, range(5)).pairs[0]
    assert (same["difference"], same["interval"]) == (0.0, (0.0, 0.0))


def test_what_cannot_be_compared_is_refused() -> None:
    other = GOOD.with_names(Environment("MountainCar-v0"))
    with pytest.raises(DeclarationError, match="for MountainCar-v0, not for CartPole-v1"):
        compare_policies({"a": GOOD, "b": other})
    with pytest.raises(DeclarationError, match="at least two"):
        compare_policies({"a": GOOD}, [3])
    with pytest.raises(DeclarationError, match="no policy"):
        compare_policies({})


def test_episodes_that_fail_for_one_are_left_out_for_all() -> None:
    class Moody(Walk):
        def reset(self, **given: Any) -> Any:
            if given.get("seed") in (2, 4):
                raise RuntimeError("out of order")
            return super().reset(**given)

    with registered("Moody-v0", Moody, max_episode_steps=20) as name:
        found = compare_policies({"a": PLAIN, "b": tree(0)}, range(6), environment=name)
        with pytest.raises(EvaluationError, match="nearly every episode of Moody-v0 failed"):
            compare_policies({"a": PLAIN}, [2, 4], environment=name)
    assert found.seeds == (0, 1, 3, 5)
    assert found.returns.shape == (2, 4)
