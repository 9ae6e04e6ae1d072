"""One starter: Python, a settings file and a command that ask for the same run make the same settings of it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from killing import comparable
from typer.testing import CliRunner

from discodso import (
    DeclarationError,
    Design,
    PolicySearch,
    RandomSettings,
    Result,
    SettingsError,
    preset,
    resume,
    search,
    search_policy,
)
from discodso.base.toml_text import to_toml
from discodso.cli.main import app
from discodso.run import start as starter
from discodso.run.plan import Plan
from discodso.run.python_tasks import PythonOptions
from discodso.run.settings import ExecutorOptions, RunSettings, parse, read
from discodso.run.start import settings_of, start
from discodso.tasks.bitstring import bitstring
from discodso.tasks.bitstring_options import BitstringOptions
from discodso.tasks.policies.policy_options import PolicyOptions
from discodso.tasks.regression.models import FoundEquation


def command(*words: object) -> None:
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output


def record_of(folder: Path) -> dict:
    return tomllib.loads((folder / "settings.toml").read_text())


def from_file(tmp_path: Path, data: dict, *changes: str) -> Path:
    (tmp_path / "asked.toml").write_text(to_toml(data))
    words = [word for change in changes for word in ("--set", change)]
    command("run", tmp_path / "asked.toml", *words, "--json", "--out", tmp_path / "file")
    return tmp_path / "file"


@pytest.mark.parametrize("name", ["default", "paper"])
def test_a_bitstring_has_one_record(tmp_path, name):
    data = {
        "task": {"kind": "bitstring", "length": 4},
        "run": {"budget": 120, "seed": 3, "patience": 100},
        "method": {"preset": name, "batch_size": 30},
    }
    file = from_file(tmp_path, data)
    asked = "run bitstring --length 4 --budget 120 --seed 3 --patience 100 --json --set method.batch_size=30"
    command(*asked.split(), "--preset", name, "--out", tmp_path / "command")
    settings = RunSettings(
        BitstringOptions(length=4), Plan(120, 3, patience=100), preset=name, changes={"batch_size": 30}
    )
    outcome = start(settings, out=tmp_path / "python")
    assert record_of(tmp_path / "command") == record_of(file) == record_of(tmp_path / "python")
    assert parse(data).record() == parse(settings.record()).record()
    assert settings_of(file) == settings_of(tmp_path / "command")
    assert settings_of(file).method.batch_size == 30

    own = search(
        bitstring(4, seed=3),
        budget=120,
        seed=3,
        patience=100,
        method=settings_of(file).method,
        out=tmp_path / "own",
    )
    mine, theirs = record_of(tmp_path / "own"), record_of(file)
    assert mine["task"] == {"kind": "python", "name": "bitstring-4-0.9-f1"}
    assert mine["run"] == theirs["run"]
    assert {**mine["method"], "preset": name} == {**theirs["method"], "preset": name}
    assert comparable(own) == comparable(outcome.result) == comparable(resume(file))


def test_a_policy_has_one_record(tmp_path):
    task = {"kind": "policy", "environment": "CartPole-v1", "episodes": 3, "test_seeds": [1, 2]}
    task |= {"ranges": {"angle": [-0.2, 0.2]}, "racing": False}
    file = from_file(tmp_path, {"task": task, "run": {"budget": 60, "seed": 2}})
    asked = "policy CartPole-v1 --episodes 3 --range angle=-0.2,0.2 --no-racing --budget 60 --seed 2 --json"
    command(*asked.split(), "--set", "task.test_seeds=[1, 2]", "--out", tmp_path / "command")
    own = search_policy(
        "CartPole-v1",
        budget=60,
        seed=2,
        episodes=3,
        ranges={"angle": (-0.2, 0.2)},
        racing=False,
        test_seeds=(1, 2),
        out=tmp_path / "python",
    )
    assert record_of(tmp_path / "python") == record_of(file) == record_of(tmp_path / "command")
    assert settings_of(file).plan.top == 100
    again = resume(file)
    assert isinstance(again, PolicySearch)
    assert comparable(again) == comparable(own)
    assert record_of(file) == record_of(tmp_path / "python")


def test_an_equation_has_one_record(tmp_path):
    X = np.random.default_rng(0).uniform(1, 2, (20, 2))
    rows = "\n".join(f"{a},{b},{a * b}" for a, b in X.tolist())
    (tmp_path / "table.csv").write_text(f"a,b,y\n{rows}\n")
    table = str(tmp_path / "table.csv")
    data = {
        "task": {"kind": "regression", "table": table, "target": "y", "max_length": 9, "ignore": ["b"]},
        "run": {"budget": 200, "seed": 1, "time_limit": 100.0},
    }
    file = from_file(tmp_path, data)
    asked = "--target y --ignore b --max-length 9 --budget 200 --seed 1 --time-limit 100 --json"
    command("fit", table, *asked.split(), "--out", tmp_path / "command")
    assert record_of(tmp_path / "command") == record_of(file)
    assert isinstance(resume(file), FoundEquation)
    assert record_of(file) == record_of(tmp_path / "command")


def test_what_is_asked_for_reaches_the_run(tmp_path, monkeypatch):
    """`search` makes settings of all its arguments, and hands the rest over as it is."""
    seen = []

    def watched(settings, **more):
        seen.append((settings, more))
        return start(settings, **more)

    monkeypatch.setattr(starter, "start", watched)
    task, method = bitstring(3), RandomSettings(20)
    first = (Design.of(("0", 0.1), ("1", 0.2), ("0", 0.3)),)
    search(
        task, budget=40, seed=5, target=2.0, top=3, method=method, initial_designs=first, out=tmp_path / "run"
    )
    ((settings, more),) = seen
    assert settings == RunSettings(
        PythonOptions(task.name), Plan(40, 5, target=2.0, top=3), method, initial_designs=first, given=task
    )
    assert more == {"out": tmp_path / "run", "callback": None, "executor": None}
    resume(tmp_path / "run", task=task, budget=60)
    settings, more = seen[1]
    assert settings.plan == Plan(60, 5, target=2.0, top=3, confirm_calls=settings.plan.confirm_calls)
    assert (settings.method, settings.given, more["resume"]) == (method, task, True)


def test_outcomes_have_the_result_the_space_and_what_was_found():
    plain = start(RunSettings(BitstringOptions(length=3), Plan(60)))
    assert isinstance(plain.result, Result)
    assert (plain.found, plain.note) == (None, "")
    assert plain.space.shape.length == 3
    told = []
    policy = start(
        RunSettings(PolicyOptions(environment="CartPole-v1", episodes=2, test_seeds=(0, 1)), Plan(40)),
        introduce=told.append,
    )
    assert isinstance(policy.found, PolicySearch)
    assert policy.found.search is policy.result
    assert len(told) == 1


def test_another_method_also_ends_with_an_equation(tmp_path):
    (tmp_path / "table.csv").write_text("a,y\n" + "".join(f"{n},{2 * n}\n" for n in range(1, 20)))
    data = {
        "task": {"kind": "regression", "table": str(tmp_path / "table.csv"), "target": "y"},
        "run": {"budget": 300},
        "method": {"kind": "random", "batch_size": 50},
    }
    outcome = start(parse(data))
    assert isinstance(outcome.found, FoundEquation)
    assert outcome.found.r2 > 0.99


def test_presets_are_those_of_the_library(tmp_path):
    for name in ("default", "paper"):
        start(RunSettings(BitstringOptions(length=3), Plan(50), preset=name), out=tmp_path / name)
        assert settings_of(tmp_path / name).method == preset(name, budget=50)
        assert settings_of(tmp_path / name).preset == name


def test_what_cannot_be_is_refused(tmp_path):
    task = bitstring(3)
    with pytest.raises(DeclarationError, match="a method or a preset, not both"):
        search(task, budget=10, method=RandomSettings(), preset="paper")
    with pytest.raises(DeclarationError, match="task must be a Task"):
        search(3, budget=10)
    with pytest.raises(
        DeclarationError, match="preset must be one of 'default', 'paper', 'paper-scaled', got 'best'"
    ):
        search(task, budget=10, preset="best")
    with pytest.raises(DeclarationError, match="method must be the settings of a method"):
        search(task, budget=10, method=3)
    policy = PolicyOptions(environment="CartPole-v1")
    with pytest.raises(SettingsError, match=r"executor\.kind must be 'none' for policy.*task\.workers"):
        start(RunSettings(policy, Plan(10), executor=ExecutorOptions("threads", 2)))
    with pytest.raises(SettingsError, match="began in Python"):
        start(RunSettings(PythonOptions("mine"), Plan(10)))
    (tmp_path / "bad.toml").write_text(
        '[task]\nkind = "bitstring"\n[run]\nbudget = 10\n[method]\nbatch_size = 0\n'
    )
    with pytest.raises(SettingsError, match=r"method\.batch_size must be an integer >= 1"):
        read(tmp_path / "bad.toml")
    assert parse({"task": {"kind": "bitstring"}, "run": {"budget": 10}}).method is None
