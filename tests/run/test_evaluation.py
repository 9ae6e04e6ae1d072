"""Every call is counted, and a failing objective is recorded, never fatal."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest
from spaces import roomy_fixed, valued_sequence

from discodso import DisCoSettings, EvaluationError, NetworkSettings, Task, search
from discodso.baselines.random_search import RandomSettings
from discodso.run.evaluation import child_seeds

METHOD = DisCoSettings(batch_size=50, network=NetworkSettings(units=4))


def good(design) -> float:
    return float(sum(token == "a" for token in design.tokens))


def sometimes(what):
    """An objective that works but for designs beginning with b."""

    def objective(design):
        if design.tokens[0] == "b":
            return what()
        return good(design)

    return objective


def raise_error():
    raise RuntimeError("the simulator crashed")


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no message")


def raise_unprintable():
    raise Unprintable


def raise_exit():
    raise SystemExit(3)


BAD = {
    "raises": (raise_error, "raised RuntimeError: the simulator crashed"),
    "exits": (raise_exit, "raised SystemExit: 3"),
    "nan": (lambda: math.nan, "returned nan"),
    "inf": (lambda: math.inf, "returned inf"),
    "minus inf": (lambda: -math.inf, "returned -inf"),
    "string": (lambda: "0.5", "returned '0.5' instead of a number"),
    "None": (lambda: None, "returned None instead of a number"),
    "array": (lambda: np.zeros(2), r"returned an array of shape (2,) instead of a number"),
    "complex": (lambda: 1j, "returned a complex instead of a number"),
    "list": (lambda: [1.0], "returned an array of shape (1,) instead of a number"),
    "numpy complex": (lambda: np.complex128(1), "returned a complex128 instead of a number"),
    "text in an array": (lambda: np.array("3"), "returned a ndarray instead of a number"),
    "unprintable": (lambda: raise_unprintable(), "raised Unprintable: (its message cannot be shown)"),
    "object": (object, "returned a object instead of a number"),
    "huge": (lambda: 10**400, "returned a number too large for a float"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_objective_is_recorded_and_the_run_goes_on(kind):
    what, reason = BAD[kind]
    result = search(Task(roomy_fixed(), sometimes(what)), budget=500, seed=0, method=METHOD)
    assert result.calls == 500
    assert result.best.reward == 2
    assert 0 < result.failure_count < 500
    assert result.history[-1].failures == result.failure_count
    assert len(result.failures) == min(100, result.failure_count)
    for failure in result.failures:
        assert failure.reason.startswith(reason)
        assert failure.design.tokens[0] == "b"
    assert all(math.isfinite(row.mean) for row in result.history)


@pytest.mark.parametrize("kind", BAD)
def test_an_objective_that_always_fails_spends_its_budget_and_says_so(kind):
    what, reason = BAD[kind]
    task = Task(roomy_fixed(), lambda design: what())
    result = search(task, budget=120, seed=0, method=METHOD, on_failure="continue")
    assert (result.best, result.top) == (None, ())
    assert result.calls == result.failure_count == 120
    assert result.failures[0].reason.startswith(reason)
    assert f"every evaluation failed, because the objective {reason}" in result.sentence


def batch_of(good_values):
    return lambda designs: good_values(np.array([good(d) for d in designs]))


BAD_BATCHES = {
    "raises": (lambda r: raise_error(), "the batch objective raised RuntimeError"),
    "too few": (lambda r: r[:-1], "returned 49 rewards for 50 designs"),
    "too many": (lambda r: np.append(r, 1), "returned 51 rewards for 50 designs"),
    "a number": (lambda r: 1.0, "returned 1.0 for 50 designs"),
    "None": (lambda r: None, "returned None for 50 designs"),
    "a string": (lambda r: "x" * 50, "returned 'xxx"),
    "a dictionary": (lambda r: dict.fromkeys(range(50), 1.0), "returned {0: 1.0"),
    "a matrix": (lambda r: np.zeros((50, 2)), "returned an array of shape (2,)"),
}


@pytest.mark.parametrize("kind", BAD_BATCHES)
def test_a_batch_objective_that_breaks_its_contract(kind):
    change, reason = BAD_BATCHES[kind]
    task = Task(roomy_fixed(), batch_objective=batch_of(change))
    result = search(task, budget=150, seed=0, method=METHOD)
    assert result.calls == result.failure_count == 50
    assert reason in result.failures[0].reason


def test_a_failure_tells_the_line_that_raised():
    result = search(Task(roomy_fixed(), sometimes(raise_error)), budget=100, method=METHOD)
    assert "(test_evaluation.py, line " in result.failures[0].reason


def test_a_batch_objective_with_some_bad_entries():
    def objective(designs):
        rewards = [good(d) for d in designs]
        rewards[3], rewards[4], rewards[5] = None, "x", math.nan
        return rewards

    result = search(Task(roomy_fixed(), batch_objective=objective), budget=150, seed=0, method=METHOD)
    assert result.failure_count == 9
    assert [f.call for f in result.failures] == [4, 5, 6, 54, 55, 56, 104, 105, 106]
    assert result.best.reward == 2


def test_single_and_batch_objectives_give_the_same_run():
    single = search(Task(roomy_fixed(), good), budget=300, seed=1, method=METHOD)
    batch = search(
        Task(roomy_fixed(), batch_objective=batch_of(lambda r: r)), budget=300, seed=1, method=METHOD
    )
    assert single.top == batch.top
    assert [row.mean for row in single.history] == [row.mean for row in batch.history]


def test_a_failure_does_not_reach_the_target():
    task = Task(roomy_fixed(), sometimes(raise_error), worst_reward=9.0)
    result = search(task, budget=200, target=5.0, method=METHOD)
    assert len(result.history) == 4


def test_a_batch_objective_cannot_change_the_designs():
    def objective(designs):
        designs.values.sort(axis=1)
        return np.zeros(len(designs))

    result = search(Task(valued_sequence(), batch_objective=objective), budget=50, method=METHOD)
    assert "read-only" in result.failures[0].reason


def test_failures_can_be_made_to_end_the_run():
    with pytest.raises(EvaluationError, match="the simulator crashed"):
        search(Task(roomy_fixed(), sometimes(raise_error)), budget=500, method=METHOD, on_failure="raise")


def test_the_worst_reward_of_the_task_is_told():
    told = []

    class Spy:
        batch_size = 20

        def __init__(self, inner):
            self.inner = inner

        def ask(self, size=None):
            return self.inner.ask(size)

        def tell(self, designs, rewards, weights=None):
            told.extend(rewards)

    class SpySettings:
        def build(self, space, seed):
            return Spy(RandomSettings().build(space, seed))

    search(Task(roomy_fixed(), sometimes(raise_error), worst_reward=-7.0), budget=100, method=SpySettings())
    assert -7.0 in told
    assert len(told) == 100


def test_an_unpicklable_objective_works():
    lock = threading.Lock()

    def objective(design):
        with lock:
            return good(design)

    assert search(Task(roomy_fixed(), objective), budget=100, method=METHOD).best.reward == 2


def test_numbers_of_other_libraries_are_rewards():
    import torch

    for wrap in (np.float32, np.int64, torch.tensor, np.array, bool, np.bool_):
        result = search(Task(roomy_fixed(), lambda d, wrap=wrap: wrap(good(d))), budget=60, method=METHOD)
        assert result.failure_count == 0


def test_every_call_of_a_stochastic_objective_has_its_own_seed():
    seen = []

    def objective(design, seed):
        seen.append(seed)
        return np.random.default_rng(seed).random()

    task = Task(valued_sequence(), objective, stochastic=True)
    first = search(task, budget=200, seed=4, method=METHOD)
    assert len(set(seen)) == 200
    assert all(0 <= seed < 2**63 for seed in seen)
    seeds = list(seen)
    seen.clear()
    again = search(task, budget=200, seed=4, method=METHOD)
    assert seen == seeds
    assert first.top == again.top


def test_child_seeds_depend_on_the_number_of_the_call_only():
    sequence = np.random.SeedSequence(9)
    whole = child_seeds(sequence, 0, 10_000)
    assert len(set(whole.tolist())) == 10_000
    assert np.array_equal(whole[700:900], child_seeds(sequence, 700, 200))
    assert not np.array_equal(whole, child_seeds(np.random.SeedSequence(10), 0, 10_000))
