"""A run that was stopped, killed or cut short goes on exactly as if nothing had happened."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from environments import Walk, registered
from killing import comparable, duration, killed_and_resumed
from spaces import decision_tree, valued_sequence

from discodso import (
    CheckpointError,
    DeclarationError,
    Design,
    DiscodsoError,
    DisCoRegressor,
    DisCoSettings,
    FileError,
    NetworkSettings,
    RandomSettings,
    SettingsError,
    StopReason,
    Task,
    Where,
    preset,
    resume,
    search,
    search_policy,
)
from discodso.cli.reporting import as_data
from discodso.disco.settings import ArchiveSettings, RestartSettings
from discodso.report.folders import read_run
from discodso.run.checkpoint import NAME, PREVIOUS, load
from discodso.run.folder import is_running
from discodso.tasks.bitstring import bitstring

SMALL = DisCoSettings(batch_size=50, archive=ArchiveSettings(size=5), network=NetworkSettings(units=8))
RESTARTING = replace(SMALL, restarts=RestartSettings(batches=1, patience=0.0))


def objective(design: Design) -> float:
    if design.tokens[0] == "d" and len(design) > 1 and design.tokens[1] == "d":
        raise ValueError("no value")
    return -sum((v - 0.7) ** 2 for v in design.values if v is not None) - 0.01 * len(design)


def noisy(design: Design, seed: int) -> float:
    return len(design) + np.random.default_rng(seed).random()


TASK = Task(valued_sequence(), objective)
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


# --------------------------------------------------------------------------------------------------- policies


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


# ---------------------------------------------------------------------------------------------------- kill -9


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
        budget=1000,
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


# ------------------------------------------------------------------------------------- folders and checkpoints


def test_a_run_folder_is_never_overwritten(tmp_path):
    search(TASK, budget=60, method=SMALL, out=tmp_path / "run")
    before = {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir()}
    with pytest.raises(FileError, match=r"already holds a run.*discodso resume"):
        search(TASK, budget=60, method=SMALL, out=tmp_path / "run")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("mine")
    with pytest.raises(FileError, match="not empty"):
        search(TASK, budget=60, method=SMALL, out=tmp_path / "other")
    assert before == {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir()}


def test_a_run_that_was_killed_while_it_wrote_its_settings_is_started_again(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "lock").touch()
    (tmp_path / "run" / ".settings.toml.0a1b2c3d.tmp").write_text("[task]")
    search(TASK, budget=60, method=SMALL, out=tmp_path / "run")
    assert not list((tmp_path / "run").glob(".*"))


def test_two_processes_cannot_run_in_one_folder(tmp_path, monkeypatch):
    from discodso.run import folder as rundir

    monkeypatch.setattr(rundir, "_LOCK_ATTEMPTS", 1)
    search(TASK, budget=60, method=SMALL, out=tmp_path / "run")
    with rundir.RunFolder.reopen(tmp_path / "run"):
        assert rundir.is_running(tmp_path / "run")
        with pytest.raises(FileError, match="another process"):
            resume(tmp_path / "run", task=TASK, budget=200)
    assert not rundir.is_running(tmp_path / "run")


@pytest.fixture
def two_checkpoints(tmp_path):
    folder = tmp_path / "run"
    search(TASK, budget=200, method=SMALL, out=folder, checkpoint_seconds=0)
    assert (folder / NAME).exists()
    assert (folder / PREVIOUS).exists()
    return folder


@pytest.mark.parametrize("damage", ["truncated", "edited", "foreign", "gone"])
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(two_checkpoints, damage):
    folder = two_checkpoints
    whole = comparable(search(TASK, budget=300, method=SMALL))
    content = (folder / NAME).read_bytes()
    if damage == "gone":
        (folder / NAME).unlink()
    else:
        edited = content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]
        bad = {"truncated": content[: len(content) // 2], "edited": edited, "foreign": b"PK\x03\x04" * 100}
        (folder / NAME).write_bytes(bad[damage])
    assert comparable(resume(folder, task=TASK, budget=300)) == whole
    assert comparable(resume(folder, task=TASK)) == whole


def test_without_a_good_checkpoint_there_is_one_line(two_checkpoints):
    for name in (NAME, PREVIOUS):
        (two_checkpoints / name).write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="no older one is left") as caught:
        resume(two_checkpoints, task=TASK, budget=300)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"task": Task(decision_tree(), objective)}, "another space"),
        ({"task": TASK, "method": RandomSettings()}, "another method"),
        ({"task": TASK, "method": DisCoSettings(batch_size=50)}, "weights of another network"),
        ({"task": TASK, "budget": 10}, "200 calls already"),
        ({}, "began in Python"),
    ],
)
def test_what_does_not_fit_is_refused(two_checkpoints, change, words):
    before = (two_checkpoints / NAME).read_bytes()
    with pytest.raises(DiscodsoError, match=words):
        resume(two_checkpoints, **change)
    assert (two_checkpoints / NAME).read_bytes() == before


def test_a_run_with_another_condition_is_refused(tmp_path):
    def task(condition, **named):
        return Task(replace(valued_sequence(), constraints=[Where(condition, **named)]), objective)

    begun = task(lambda design: design.tokens[0] == "v")
    search(begun, budget=50, method=RandomSettings(batch_size=25), out=tmp_path / "run")
    with pytest.raises(CheckpointError, match="another space"):
        resume(tmp_path / "run", budget=100, task=task(lambda design: design.tokens[1] == "v"))
    same = task(lambda d: d.tokens[0] == "v")
    assert resume(tmp_path / "run", budget=100, task=same).calls == 100
    named = task(lambda design: design.tokens[0] == "v", called="begins with a value")
    search(named, budget=50, method=RandomSettings(batch_size=25), out=tmp_path / "named")
    trusted = task(lambda design: design.tokens[0] != "d", called="begins with a value")
    assert resume(tmp_path / "named", budget=100, task=trusted).calls == 100


def test_a_history_that_lost_rows_is_refused_and_one_with_more_is_cut(two_checkpoints):
    history = two_checkpoints / "history.jsonl"
    content = history.read_text()
    history.write_text(content + '{"calls": 250, "best"')
    whole = comparable(search(TASK, budget=300, method=SMALL))
    assert comparable(resume(two_checkpoints, task=TASK, budget=300)) == whole
    rows = [json.loads(line) for line in history.read_text().splitlines()]
    assert [row["calls"] for row in rows] == [50, 100, 150, 200, 250, 300]
    history.write_text("\n".join(content.splitlines()[:2]) + "\n")
    with pytest.raises(CheckpointError, match="does not have the 6 rows"):
        resume(two_checkpoints, task=TASK, budget=400)


def test_a_full_disk_ends_the_run_in_one_line_and_harms_nothing(two_checkpoints, monkeypatch):
    import errno

    before = (two_checkpoints / NAME).read_bytes()

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(FileError, match="No space left on device"):
            resume(two_checkpoints, task=TASK, budget=300)
    assert (two_checkpoints / NAME).read_bytes() == before
    assert not list(two_checkpoints.glob(".*.tmp"))
    whole = comparable(search(TASK, budget=300, method=SMALL))
    assert comparable(resume(two_checkpoints, task=TASK, budget=300)) == whole


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot make the folder"):
        search(TASK, budget=60, method=SMALL, out=tmp_path / "file" / "run")


def test_the_folder_tells_where_it_was_made(tmp_path):
    search(TASK, budget=60, method=SMALL, out=tmp_path / "run")
    environment = json.loads((tmp_path / "run" / "environment.json").read_text())
    assert environment["packages"]["torch"]
    assert environment["command"]
    top = json.loads((tmp_path / "run" / "top.json").read_text())
    assert top["stop"] == "budget"
    assert top["calls"] == 60
    assert not [
        file for file in (tmp_path / "run").iterdir() if "pickle" in file.name or file.suffix == ".pkl"
    ]
