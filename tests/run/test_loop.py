"""The loop: budgets, stop reasons, histories, and the same run for the same seed."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
from killing import comparable
from near_task import METHOD, NEAR, count_a, near
from spaces import decision_tree, roomy_fixed, small_fixed, symbolic, valued_sequence

from discodso import (
    Constraint,
    DeadEndError,
    DeadEndWarning,
    DeclarationError,
    Design,
    DisCoSettings,
    FixedSequence,
    GPSettings,
    Integer,
    InvalidDesignError,
    NetworkSettings,
    OpenSequence,
    Real,
    Space,
    StartsWith,
    StopReason,
    Task,
    Token,
    Where,
    preset,
    resume,
    search,
)
from discodso.baselines.random_search import RandomSettings
from discodso.disco.settings import LearnerSettings, RestartSettings


def test_the_budget_is_spent_exactly_and_counted_exactly():
    calls = []
    task = Task(roomy_fixed(), lambda d: calls.append(d) or count_a(d))
    result = search(task, budget=123, method=METHOD)
    assert len(calls) == result.calls == result.history[-1].calls == 123
    assert [row.calls for row in result.history] == [50, 100, 123]
    assert result.stop is StopReason.BUDGET
    assert "budget" in result.stop.value


def test_a_target_ends_the_search_at_the_call_that_reached_it():
    result = search(Task(roomy_fixed(), count_a), budget=1000, target=2.0, method=METHOD)
    assert result.stop is StopReason.TARGET
    assert result.best.reward == 2
    assert result.calls == result.best.call


def test_patience_counts_calls_without_a_better_design():
    result = search(Task(roomy_fixed(), lambda d: 1.0), budget=10_000, patience=120, method=METHOD)
    assert result.stop is StopReason.PATIENCE
    assert result.calls == 150  # checked after every batch of 50, the best is call 1


def test_a_time_limit_is_kept_within_one_objective_call():
    def slow(design):
        time.sleep(0.02)
        return count_a(design)

    started = time.monotonic()
    result = search(Task(roomy_fixed(), slow), budget=10_000, time_limit=0.3, method=METHOD)
    assert result.stop is StopReason.TIME
    assert time.monotonic() - started < 3
    assert 0 < result.calls < 50


def test_an_interrupt_returns_what_was_found():
    calls = 0

    def objective(design):
        nonlocal calls
        calls += 1
        if calls == 77:
            raise KeyboardInterrupt
        return count_a(design)

    result = search(Task(roomy_fixed(), objective), budget=1000, method=METHOD)
    assert result.stop is StopReason.INTERRUPTED
    assert result.calls == 77
    assert result.best is not None
    assert result.history[-1].calls == 77
    assert result.failure_count == 0


def test_an_interrupt_inside_a_batch_objective_returns_what_was_found():
    calls = 0

    def objective(designs):
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return [count_a(d) for d in designs]

    result = search(Task(roomy_fixed(), batch_objective=objective), budget=1000, method=METHOD)
    assert result.stop is StopReason.INTERRUPTED
    assert result.best.reward == 2


def test_training_that_breaks_down_is_a_stop_reason_with_the_cause(monkeypatch):
    from discodso import TrainingError
    from discodso.disco import learner

    def broken(*arguments):
        raise TrainingError("the loss is nan: non-finite entropy")

    monkeypatch.setattr(learner, "require_finite", broken)
    result = search(Task(roomy_fixed(), count_a), budget=1000, method=METHOD)
    assert result.stop is StopReason.TRAINING
    assert "entropy" in result.detail
    assert result.best.reward == 2
    assert result.calls == 50


class RarelyStuck(Constraint):
    """Nothing may follow a value above 0.99."""

    def forbidden(self, prefix):
        mask = prefix.forbid_nothing()
        if prefix.position:
            mask[np.nan_to_num(prefix.values[:, -1]) > 0.99] = True
        return mask


def test_a_design_that_meets_a_dead_end_is_drawn_again():
    space = Space([Token("v", range=(0, 1)), Token("d")], FixedSequence(3), [RarelyStuck()])
    with pytest.warns(DeadEndWarning, match="RarelyStuck forbids v, d") as warned:
        result = search(Task(space, near), budget=5000, method=METHOD)
    assert len([one for one in warned if one.category is DeadEndWarning]) == 1
    assert result.stop is StopReason.BUDGET
    assert result.calls == 5000
    assert sum(row.redrawn or 0 for row in result.history) > 0


@pytest.mark.parametrize("method", [RandomSettings(50), GPSettings(population=50)])
def test_other_methods_tell_a_dead_end_once_and_count_what_they_draw_again(tmp_path, method):
    space = Space([Token("v", range=(0.9, 1)), Token("d")], FixedSequence(3), [RarelyStuck()])
    with pytest.warns(DeadEndWarning, match="RarelyStuck forbids v, d") as warned:
        result = search(Task(space, near), budget=200, method=method, out=tmp_path / "run")
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeadEndWarning)
        longer = resume(tmp_path / "run", task=Task(space, near), method=method, budget=300)
    assert len([one for one in warned if one.category is DeadEndWarning]) == 1
    assert sum(row.redrawn or 0 for row in result.history) > 0
    assert longer.calls == 300


def test_a_dead_end_is_told_once_however_often_the_method_begins_anew():
    space = Space([Token("v", range=(0, 1)), Token("d")], FixedSequence(3), [RarelyStuck()])
    method = replace(preset("default", budget=2_000), restarts=RestartSettings(batches=5, patience=0.0))
    with pytest.warns(DeadEndWarning) as warned:
        result = search(Task(space, near), budget=2_000, method=method)
    assert sum(row.restarted or 0 for row in result.history) > 2
    assert len([one for one in warned if one.category is DeadEndWarning]) == 1


@pytest.mark.parametrize("seed", range(3))
def test_a_condition_that_few_designs_meet_does_not_end_a_search(seed):
    rare = Where(lambda design: design[0].k == 0, called="rare")
    space = Space(
        [Token("a", k=Integer(0, 99)), Token("b", x=Real(0, 1))], OpenSequence(1, 3), [StartsWith("a"), rare]
    )
    task = Task(space, lambda design: len(design) - abs(design[-1].values.get("x", 0) - 0.3))
    with pytest.warns(DeadEndWarning) as warned:
        result = search(task, budget=60, seed=seed)
    assert result.calls == 60
    assert result.stop is StopReason.BUDGET
    assert not any(space.violations(ranked.design) for ranked in result.top)
    (told,) = [str(one.message) for one in warned if one.category is DeadEndWarning]
    assert told.startswith(
        f"{space.acceptance():.1%} of random designs meet Where(rare): others are drawn again"
    )
    assert 0.0 < space.acceptance(5000) < 0.02


def test_a_condition_that_many_designs_meet_is_not_warned_of(recwarn):
    often = Where(lambda design: design.tokens[0] == "a")
    space = Space([Token("a"), Token("b")], FixedSequence(6), [often])
    assert 0.4 < space.acceptance(1000) < 0.6
    search(Task(space, count_a), budget=30)
    assert not [one for one in recwarn if one.category is DeadEndWarning]


def test_a_condition_that_no_design_meets_is_named():
    space = Space([Token("a"), Token("b")], OpenSequence(1, 3), [Where(lambda design: False, called="never")])
    with pytest.raises(DeadEndError, match=r"designs did not meet Where\(never\)"):
        search(Task(space, len), budget=60)


class AlwaysStuck(Constraint):
    """Nothing may follow anything."""

    def forbidden(self, prefix):
        mask = prefix.forbid_nothing()
        mask[:] = prefix.position > 0
        return mask


def test_a_space_without_a_way_out_says_so():
    space = Space([Token("v", range=(0, 1)), Token("d")], FixedSequence(3), [AlwaysStuck()])
    with pytest.raises(DeadEndError, match="AlwaysStuck forbids v, d"):
        search(Task(space, near), budget=100, method=METHOD)


@pytest.mark.parametrize("size", [1e308, -1e308, 1e-308])
def test_extreme_rewards_do_not_break_a_run(size):
    task = Task(roomy_fixed(), lambda d: (len(set(d.tokens)) - 2) * size)
    result = search(task, budget=300, method=METHOD)
    assert result.stop is StopReason.BUDGET
    json.dumps(result.to_dict(), allow_nan=False)


def test_initial_designs_are_evaluated_first_and_counted():
    seen = []
    start = [Design.of("a", "b", "a", "c"), Design.of("b", "b", "a", "c")]
    task = Task(small_fixed(), lambda d: seen.append(d) or count_a(d))
    result = search(task, budget=40, initial_designs=start, method=METHOD)
    assert seen[:2] == start
    assert result.calls == 40
    assert result.best.call == 1
    with pytest.raises(InvalidDesignError, match="Repeat"):
        search(task, budget=40, initial_designs=[Design.of("b", "b", "b", "b")], method=METHOD)
    assert search(task, budget=1, initial_designs=start, method=METHOD).calls == 1
    with pytest.raises(InvalidDesignError, match="Repeat"):
        search(task, budget=1, initial_designs=[*start, Design.of("b", "b", "b", "b")], method=METHOD)


def test_the_history_has_what_the_search_saw():
    result = search(NEAR, budget=500, seed=3, method=METHOD)
    best = [row.best for row in result.history]
    assert best == sorted(best)
    assert all(row.batch_best <= row.best for row in result.history)
    assert all(row.mean <= row.batch_best for row in result.history)
    assert all(row.quantile >= row.mean for row in result.history)
    assert all(math.isfinite(row.entropy) for row in result.history)
    assert {row.mean_length for row in result.history} == {2.0}


def test_the_search_learns():
    network, learner = NetworkSettings(learn_scale=True), LearnerSettings(learning_rate=0.01)
    method = DisCoSettings(batch_size=50, network=network, learner=learner)
    result = search(NEAR, budget=5000, method=method)
    assert result.history[-1].mean > result.history[0].mean + 0.3
    assert result.best.reward > -1e-3


@pytest.mark.parametrize("space", [symbolic, decision_tree, valued_sequence])
@pytest.mark.parametrize("method", [METHOD, RandomSettings(60)], ids=["disco", "random"])
def test_the_same_seed_gives_the_same_run(space, method):
    task = Task(space(), lambda d: math.sin(len(d)) + sum(v for v in d.values if v is not None))
    first, second, other = (search(task, budget=400, seed=s, method=method) for s in (5, 5, 6))
    assert comparable(first) == comparable(second)
    assert comparable(first) != comparable(other)


def test_the_same_seed_gives_the_same_run_in_another_process():
    command = [
        sys.executable,
        "-m",
        "discodso.cli.main",
        "run",
        "bitstring",
        "--budget",
        "1000",
        "--seed",
        "11",
        "--json",
    ]
    there = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    from discodso.tasks.bitstring import bitstring

    here = search(bitstring(seed=11), budget=1000, seed=11).to_dict()
    for run in (there, here):
        run.pop("seconds")
        for row in run["history"]:
            row.pop("seconds")
    assert there == here


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        ({"budget": 0}, "budget"),
        ({"budget": 1.5}, "budget"),
        ({"budget": 10, "patience": 0}, "patience"),
        ({"budget": 10, "target": math.nan}, "target"),
        ({"budget": 10, "time_limit": -1.0}, "time_limit"),
        ({"budget": 10, "top": 0}, "top"),
        ({"budget": 10, "seed": -1}, "seed"),
    ],
)
def test_bad_arguments_name_their_key(bad, word):
    with pytest.raises(DeclarationError, match=word):
        search(NEAR, **bad)


@pytest.mark.parametrize(
    ("do", "words"),
    [
        (lambda: search(valued_sequence(), budget=9), "task must be a Task"),
        (lambda: search(NEAR, budget=9, method=NetworkSettings()), "method must be the settings of a method"),
        (lambda: search(NEAR, budget=9, callback=3), "callback must be a function"),
        (lambda: search(NEAR, budget=9, initial_designs=Design.of("d", "d")), "put it in a list"),
    ],
)
def test_ordinary_mistakes_get_one_line(do, words):
    with pytest.raises(DeclarationError, match=words):
        do()


def test_a_history_row_is_given_to_the_callback_after_every_batch():
    rows = []
    result = search(
        NEAR, budget=120, method=METHOD, callback=lambda row, ranking: rows.append((row, ranking.best))
    )
    assert [row for row, _ in rows] == list(result.history)
    assert rows[-1][1] == result.best


def test_a_task_says_when_no_better_design_can_come():
    seen = []

    def settled(best):
        seen.append(best[0].reward)
        return "two a are the most there can be" if best[0].reward >= 2 else ""

    found = search(Task(roomy_fixed(), count_a, settled=settled), budget=1000, method=METHOD)
    assert found.stop is StopReason.OPTIMUM
    assert found.detail == "two a are the most there can be"
    assert found.best.reward == 2
    assert found.calls < 1000
    assert seen == sorted(seen)  # after every batch, and once more for the words
    assert seen.count(2) == 2


@pytest.mark.parametrize("on_failure", ["stop", "continue"])
def test_if_the_first_batch_fails_it_is_the_last_and_the_commonest_reason_is_told(on_failure, tmp_path):
    calls = []

    def broken(design):
        calls.append(design)
        if len(calls) == 1:
            raise RuntimeError("no licence")
        raise RuntimeError(f"no power at second {len(calls)}.5")

    task = Task(roomy_fixed(), broken)
    found = search(task, budget=300, method=METHOD, on_failure=on_failure, out=tmp_path / "run")
    stops = on_failure == "stop"
    assert (found.stop, found.calls) == ((StopReason.FAILED, 50) if stops else (StopReason.BUDGET, 300))
    share = "98%" if stops else "99%"
    words = f"every evaluation failed, {share} of them because the objective raised RuntimeError: no power"
    assert found.detail.startswith(words)
    if stops:  # who goes on with it wants to try again: with one more batch
        assert resume(tmp_path / "run", task=task).calls == 100
        mended = resume(tmp_path / "run", task=replace(task, objective=count_a))
        assert (mended.calls, mended.failure_count, mended.stop) == (300, 100, StopReason.BUDGET)


def test_a_batch_with_one_success_is_not_the_last():
    calls = []

    def seldom(design):
        calls.append(design)
        return 1.0 if len(calls) == 50 else math.nan

    found = search(Task(roomy_fixed(), seldom), budget=200, method=METHOD)
    assert (found.stop, found.failure_count) == (StopReason.BUDGET, 199)


def test_a_few_failures_in_smaller_batches_are_not_enough_to_stop():
    task = Task(roomy_fixed(), lambda design: math.nan)
    assert search(task, budget=100, method=RandomSettings(1)).calls == 10


class OddRule(Constraint):
    """Remembers."""

    asked = 0

    def forbidden(self, prefix):
        mask = prefix.forbid_nothing()
        type(self).asked += 1
        mask[:, 0] = self.asked % 2
        return mask


def test_mistakes_that_need_no_call_are_told_before_any():
    calls = []
    with pytest.raises(DeclarationError, match="must take a design: missing a required argument: 'other'"):
        search(Task(roomy_fixed(), lambda design, other: calls.append(design)), budget=50)
    with pytest.raises(DeclarationError, match="must take a design and seeds: too many positional"):
        search(Task(roomy_fixed(), lambda design: calls.append(design), stochastic=True), budget=50)
    space = Space([Token("a"), Token("b")], FixedSequence(3), [OddRule()])
    with pytest.raises(DeclarationError, match="OddRule gave two answers for one prefix"):
        search(Task(space, lambda design: calls.append(design)), budget=50)
    assert not calls


def test_patience_counts_from_the_newest_design_that_was_ever_the_best():
    """A better design at call 200 that is then rated worse again does not end a search at once."""
    calls = []

    def objective(design, seed):
        calls.append(design)
        return 1.0 if len(calls) == 200 else 0.0 if calls[:199].count(design) else 0.5

    task = Task(roomy_fixed(), objective, stochastic=True)
    found = search(task, budget=2000, patience=300, method=METHOD, confirm_calls=0)
    assert found.stop is StopReason.PATIENCE
    assert 500 <= found.calls < 600
