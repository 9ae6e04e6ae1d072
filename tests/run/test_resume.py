"""A run that was stopped, killed or cut short goes on exactly as if nothing had happened."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from environments import Walk, registered
from gymnasium.spaces import Box
from killing import comparable, duration, kill_after, killed_and_resumed
from resumable import SMALL, TASK, objective
from spaces import decision_tree

from discodso import (
    CheckpointError,
    DeclarationError,
    Design,
    DisCoRegressor,
    DisCoSettings,
    NetworkSettings,
    RandomSettings,
    SettingsError,
    StopReason,
    Task,
    preset,
    resume,
    search,
    search_policy,
)
from discodso.cli.reporting import as_data
from discodso.disco.settings import RestartSettings
from discodso.report.folders import read_run
from discodso.run.checkpoint import load
from discodso.run.folder import is_running
from discodso.tasks.bitstring import bitstring
from discodso.tasks.policies import distillation
from discodso.tasks.policies.objective import TreeObjective
from discodso.tasks.policies.visits import Visits

RESTARTING = replace(SMALL, restarts=RestartSettings(batches=1, patience=0.0))


def noisy(design: Design, seed: int) -> float:
    return len(design) + np.random.default_rng(seed).random()


NOISY = Task(decision_tree(), noisy, stochastic=True)


@pytest.mark.parametrize("method", [SMALL, RandomSettings(60)], ids=["disco", "random"])
@pytest.mark.parametrize("task", [TASK, NOISY], ids=["plain", "stochastic"])
def test_a_larger_budget_goes_the_way_of_the_uninterrupted_run(tmp_path, task, method):
    whole = comparable(search(task, budget=400, seed=3, method=method))
    for budget in (50, 60, 77, 223):
        folder = tmp_path / str(budget)
        first = search(task, budget=budget, seed=3, method=method, out=folder)
        assert comparable(resume(folder, task=task)) == comparable(first)
        assert comparable(resume(folder, task=task, budget=400)) == whole
        assert comparable(resume(folder, task=task)) == whole  # ended, and stays so


def test_initial_designs_and_an_interrupt_in_the_middle_of_a_batch(tmp_path):
    start = [Design.of(("v", 0.5), "d"), Design.of("d", ("v", 0.1))]
    whole = comparable(search(TASK, budget=300, method=SMALL, initial_designs=start))
    calls = 0

    def interrupted(design):
        nonlocal calls
        calls += 1
        if calls in (1, 2, 130):
            raise KeyboardInterrupt
        return objective(design)

    task = Task(TASK.space, interrupted)
    first = search(task, budget=300, method=SMALL, initial_designs=start, out=tmp_path / "run")
    assert first.stop is StopReason.INTERRUPTED
    while (found := resume(tmp_path / "run", task=task)).stop is StopReason.INTERRUPTED:
        pass
    assert comparable(found) == whole
    assert calls == 303


def test_a_target_stays_reached(tmp_path):
    first = search(TASK, budget=1000, target=-0.2, method=SMALL, out=tmp_path / "run")
    assert first.stop is StopReason.TARGET
    again = resume(tmp_path / "run", task=TASK, budget=2000)
    assert comparable(again) == comparable(first)


def test_the_estimator_goes_on_with_a_larger_budget(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3, (50, 2))
    y = X[:, 1] * X[:, 0]
    settings = DisCoSettings(batch_size=50, network=NetworkSettings(units=8))
    whole = DisCoRegressor(budget=300, random_state=1, method=settings).fit(X, y)
    DisCoRegressor(budget=130, random_state=1, method=settings, out=tmp_path / "run").fit(X, y)
    resumed = DisCoRegressor(budget=300, out=tmp_path / "run").resume(X, y)
    assert comparable(resumed.result_) == comparable(whole.result_)
    assert resumed.front_rows_ == whole.front_rows_
    assert resumed.calls_ == whole.calls_
    with pytest.raises(CheckpointError, match="the data are not those of the run"):
        DisCoRegressor(budget=400, out=tmp_path / "run").resume(X, y + 1)


def test_a_batch_whose_rewards_depend_on_each_other_is_rated_as_a_whole(tmp_path):
    def ranks(designs):
        return np.argsort(np.argsort([objective(d) if d.tokens[:2] != ("d", "d") else -9.0 for d in designs]))

    task = Task(TASK.space, batch_objective=ranks, rows_independent=False)
    whole = comparable(search(task, budget=300, seed=3, method=SMALL))
    first = search(task, budget=130, seed=3, method=SMALL, out=tmp_path / "run")
    assert comparable(resume(tmp_path / "run", task=task)) == comparable(first)
    assert comparable(resume(tmp_path / "run", task=task, budget=300)) == whole


def policy(calls, **more):
    own = {"episodes": 8, "seed": 1, "test_seeds": range(9), "method": SMALL, **more}
    return search_policy("CartPole-v1", budget=calls, **own)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"racing": False, "preset": "paper"},
        {"method": RESTARTING, "ranges": {"angle": (-0.2, 0.1)}},
        {"method": RESTARTING, "common_episodes": True, "episodes": 40},
    ],
    ids=["raced", "plain", "restarted", "common"],
)
def test_a_policy_search_goes_on_with_a_larger_budget(tmp_path, more):
    whole = comparable(policy(400, **more))
    folder = tmp_path / "run"
    first = comparable(policy(130, workers=2, out=folder, **more))
    assert comparable(resume(folder)) == first  # ended, and stays so
    assert comparable(resume(folder, budget=400)) == whole
    assert comparable(resume(folder)) == whole
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["calls"] == 400
    assert summary["test_mean"] == whole["summary"]["test_mean"]
    if "method" in more:
        state, _ = load(folder)
        assert state.part("method").data["restarts"]["restarts"] >= 2


def test_a_policy_search_through_gymnasium_goes_on(tmp_path):
    own = {"method": SMALL, "episodes": 2, "seed": 0, "test_seeds": range(3), "max_nodes": 7}
    with registered("Walk-v0", Walk) as name:
        whole = comparable(search_policy(name, budget=120, workers=2, **own))
        search_policy(name, budget=70, out=tmp_path / "run", **own)
        assert comparable(resume(tmp_path / "run", budget=120)) == whole


def test_a_policy_search_that_was_killed_before_the_choice_is_not_ended(tmp_path, monkeypatch):
    folder = tmp_path / "run"

    def killed(*arguments):
        assert is_running(folder)  # held until the policy is written
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("discodso.tasks.policies.policy_kind.choose_and_test", killed)
        with pytest.raises(KeyboardInterrupt):
            policy(100, out=folder)
    assert not (folder / "policy.json").exists()
    assert as_data(read_run(folder))["status"] == "stopped"
    assert comparable(resume(folder)) == comparable(policy(100))
    assert as_data(read_run(folder))["status"] == "ended"
    assert as_data(read_run(folder))["policy"]["calls"] == 100


def test_what_does_not_fit_a_policy_search_is_refused(tmp_path):
    class Own:
        def build(self, space, seed):
            return SMALL.build(space, seed)

    folder = tmp_path / "own"
    policy(60, method=Own(), out=folder)
    with pytest.raises(SettingsError, match="method of one's own"):
        resume(folder, budget=120)
    found = resume(folder, budget=120, method=Own())
    assert comparable(found) == comparable(policy(120))
    with pytest.raises(CheckpointError, match="100 calls already"):
        resume(folder, budget=60, method=Own())
    search(TASK, budget=60, method=SMALL, out=tmp_path / "other")
    with pytest.raises(SettingsError, match="began in Python"):
        resume(tmp_path / "other")
    with pytest.raises(DeclarationError, match="None"):
        policy(60, arguments={"sutton_barto_reward": None}, out=tmp_path / "none")
    text = (folder / "settings.toml").read_text().replace("max_nodes = 31", "max_nodes = 15")
    (folder / "settings.toml").write_text(text)
    with pytest.raises(CheckpointError, match="another space"):
        resume(folder, method=Own())


def start_bitstring(folder: Path):
    return search(bitstring(length=8), budget=2000, seed=5, method=SMALL, out=folder, checkpoint_seconds=0)


def resume_bitstring(folder: Path):
    return resume(folder, task=bitstring(length=8))


def start_default(folder: Path):
    return search(bitstring(length=8), budget=2000, seed=5, out=folder, checkpoint_seconds=0)


def regression_data():
    rng = np.random.default_rng(1)
    X = rng.uniform(0.5, 3, (30, 2))
    return X, X[:, 0] + 2 * X[:, 1]


def start_regression(folder: Path):
    settings = DisCoSettings(batch_size=50, network=NetworkSettings(units=8))
    model = DisCoRegressor(budget=800, random_state=2, method=settings, out=folder)
    return model.fit(*regression_data()).result_


def resume_regression(folder: Path):
    return DisCoRegressor(budget=800, out=folder).resume(*regression_data()).result_


def start_policy(folder: Path, method: DisCoSettings = SMALL):
    return search_policy(
        "CartPole-v1",
        budget=500,
        episodes=10,
        seed=4,
        method=method,
        test_seeds=range(20),
        out=folder,
        checkpoint_seconds=0,
    )


def start_restarting_policy(folder: Path):
    found = start_policy(folder, replace(SMALL, restarts=RestartSettings(batches=3)))
    state, _ = load(folder)
    assert state.part("method").data["restarts"]["restarts"] >= 2
    return found


TASKS = {
    "bitstring": (start_bitstring, resume_bitstring),
    "bitstring-default": (start_default, resume_bitstring),
    "regression": (start_regression, resume_regression),
    "policy": (start_policy, resume),
    "policy-with-restarts": (start_restarting_policy, resume),
}


def check_kills(tmp_path, start, resume, moments: int) -> None:
    start(tmp_path / "warm")  # compiles what is compiled
    whole, seconds = duration(start, tmp_path / "whole")
    rng = np.random.default_rng(0)
    killed = 0
    for moment in range(moments):
        delay = seconds * (moment + rng.random()) / moments
        found, alive = killed_and_resumed(start, resume, tmp_path / f"killed-{moment}", delay)
        killed += alive
        assert comparable(found) == comparable(whole), f"killed after {delay:.3f} s"
    print(f"{killed} of {moments} kills came before the end of the run")
    assert killed >= moments // 2  # most moments lie before the end


@pytest.mark.parametrize(("start", "go_on"), TASKS.values(), ids=TASKS)
def test_killed_runs_end_as_the_undisturbed_one(tmp_path, start, go_on):
    check_kills(tmp_path, start, go_on, 3)


@pytest.mark.slow
@pytest.mark.parametrize(("start", "go_on"), TASKS.values(), ids=TASKS)
def test_twenty_kills(tmp_path, start, go_on):
    check_kills(tmp_path, start, go_on, 20)


class Cart(Walk):
    """A walk that takes a push of any size."""

    def __init__(self):
        super().__init__(action_space=Box(-1.0, 1.0))

    def step(self, action):
        self.x += 0.5 * float(action[0]) + float(self.np_random.normal(0, 0.3))
        self.t += 1
        return self.observe(self.x, self.t), -abs(self.x), self.t == self.length, False, {}


def taught(folder: Path | None, environment: str, workers: int = 1, dies: str = ""):
    """A search with a teacher, moving ranges, sums and valued leaves, whose process may die at some moment."""

    def killing_at(count: int, function):
        calls = itertools.count(1)

        def counted(*arguments):
            if next(calls) == count:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments)

        return counted

    def teacher(x):
        return [min(max(-x[0], -1.0), 1.0) if environment == "Cart-v0" else 1.0 if x[1] > 0 else -1.0]

    moments = {
        "teaching": (None, "", 300),  # of its actions
        "watching": (Visits, "_watched", 2),
        "searching": (TreeObjective, "__call__", 5),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distillation, "ROUNDS", 3)
        place, name, count = moments.get(dies, (None, "", 0))
        if place is not None:
            patch.setattr(place, name, killing_at(count, getattr(place, name)))
        return search_policy(
            environment,
            teacher=killing_at(count, teacher) if dies == "teaching" else teacher,
            moving_ranges=True,
            splits="oblique",
            leaves="linear",
            max_nodes=7,
            trim=False,
            budget=160,
            episodes=4,
            test_seeds=range(5),
            seed=1,
            workers=workers,
            out=folder,
            checkpoint_seconds=0,
        )


@pytest.mark.parametrize("environment", ["MountainCarContinuous-v0", "Cart-v0"], ids=["compiled", "plain"])
def test_a_taught_search_with_moving_ranges_is_the_same_killed_and_with_any_workers(tmp_path, environment):
    with registered("Cart-v0", Cart, max_episode_steps=30):
        whole = comparable(taught(None, environment))
        for workers in (2, 3):
            assert comparable(taught(None, environment, workers)) == whole
        for dies in ("teaching", "watching", "searching"):
            start = partial(taught, environment=environment, dies=dies)
            again = partial(taught, environment=environment)
            folder = tmp_path / dies
            assert not kill_after(start, folder, 60)  # it has died by itself
            begun = (folder / "settings.toml").exists()
            assert begun == (dies != "teaching")  # before that there is nothing to go on with
            assert comparable(resume(folder) if begun else again(folder)) == whole


def test_a_killed_command_is_resumed_by_a_command(tmp_path):
    module = [sys.executable, "-m", "discodso"]
    options = "run bitstring --length 6 --budget 3000 --checkpoint-seconds 0 --json".split()
    options += ["--set", "method.batch_size=50"]
    process = subprocess.Popen([*module, *options, "--out", str(tmp_path / "run")], stdout=subprocess.DEVNULL)
    history = tmp_path / "run" / "history.jsonl"
    end = time.monotonic() + 120
    while not (history.exists() and history.stat().st_size > 1000) and time.monotonic() < end:
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    shown = subprocess.run(
        [*module, "show", str(tmp_path / "run"), "--json"], capture_output=True, text=True, check=True
    )
    assert json.loads(shown.stdout)["status"] == "stopped"
    done = subprocess.run(
        [*module, "resume", str(tmp_path / "run"), "--json"], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    method = replace(preset(), batch_size=50)
    whole = comparable(search(bitstring(length=6), budget=3000, method=method))
    for part in (found, *found["history"]):
        part.pop("seconds")
    assert found == whole
