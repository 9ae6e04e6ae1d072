"""The commands beyond `run bitstring`: settings files, folders, help."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discodso.cli import app, main

ROOT = Path(__file__).parent.parent


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def error_of(capsys, *arguments):
    """The line that a mistake gets; there must be one, and nothing else."""
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    assert caught.value.code == 1
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    return lines[0]


COMMANDS = [
    "",
    "run",
    "run bitstring",
    "run file",
    "fit",
    "policy",
    "play",
    "resume",
    "show",
    "report",
    "compare",
    "init",
    "check",
    "doctor",
    "bench",
]


@pytest.mark.parametrize("command", [*COMMANDS, "bench regression"])
def test_every_command_has_help(command):
    shown = run(*command.split(), "--help")
    assert shown.exit_code == 0
    assert "Usage:" in shown.output
    assert len(shown.output) > 200


def test_help_does_not_wait_for_torch():
    code = (
        "import sys\n"
        "from discodso.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'numba', 'scipy', 'sklearn', 'sympy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_defaults_of_options_are_those_of_the_library(tmp_path):
    from discodso import DisCoSettings
    from discodso.config import read

    done = run(*"run bitstring --calls 100 --length 3 --json --out".split(), tmp_path / "run")
    assert done.exit_code == 0
    settings = read(tmp_path / "run" / "settings.toml")
    assert settings.method == DisCoSettings()


def test_a_bitstring_from_its_starting_file_to_its_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("init", "bitstring").exit_code == 0
    change = ["--set", "run.budget=300", "--set", "method.epsilon=0.1"]
    done = run("run", "settings.toml", *change, "--out", "run-1", "--events", "events.jsonl", "--json")
    assert done.exit_code == 0, done.output
    first = json.loads(done.stdout)
    assert first["calls"] == 300
    assert len(Path("events.jsonl").read_text().splitlines()) >= 5
    shown = run("show", "run-1")
    assert "300 of 300 objective calls" in shown.output
    assert "it has ended: the budget" in shown.output
    assert json.loads(run("show", "run-1", "--json").stdout)["top"][0] == first["best"]
    longer = json.loads(run("resume", "run-1", "--calls", "500", "--json").stdout)
    whole = json.loads(run("run", "settings.toml", *change, "--set", "run.budget=500", "--json").stdout)
    for result in (longer, whole):
        for part in (result, *result["history"]):
            part.pop("seconds")
    assert longer == whole
    assert "already holds a run" in error_of(capsys, "run", "settings.toml", "--out", "run-1")
    assert "left alone" in error_of(capsys, "init", "bitstring")


def test_a_custom_task_from_its_starting_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "my_task", raising=False)
    assert run("init", "custom").exit_code == 0
    checked = run("check", "my_task:task")
    assert "sound task" in checked.output, checked.output
    change = ["--set", "run.budget=200", "--set", "executor.kind=processes", "--set", "executor.workers=2"]
    done = run("run", "settings.toml", *change, "--out", "run-1", "--json")
    assert json.loads(done.stdout)["calls"] == 200
    monkeypatch.chdir("/")  # a run is gone on with from anywhere
    assert json.loads(run("resume", tmp_path / "run-1", "--calls", "250", "--json").stdout)["calls"] == 250
    monkeypatch.delitem(sys.modules, "my_task", raising=False)


def test_an_equation_in_a_folder(tmp_path, monkeypatch):
    table = ROOT / "examples/data/stopping_distance.csv"
    options = [table, "--target", "distance", "--seed", "1", "--json"]
    done = run("fit", *options, "--calls", "400", "--out", tmp_path / "run")
    assert done.exit_code == 0, done.output
    again = json.loads(run("resume", tmp_path / "run", "--json").stdout)
    assert again == json.loads(done.stdout)
    longer = json.loads(run("resume", tmp_path / "run", "--calls", "500", "--json").stdout)
    assert longer["calls"] == 500
    assert "regression task" in run("show", tmp_path / "run").output


def test_a_policy_from_its_starting_file_to_its_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("init", "policy").exit_code == 0
    change = ["--set", "run.budget=130", "--set", "task.episodes=5"]
    done = run("run", "settings.toml", *change, "--out", "run-1")
    assert done.exit_code == 0, done.output
    assert "test mean" in done.stdout
    assert "episodes" in done.stderr  # in the lines on how it goes
    shown = run("show", "run-1").output
    assert "policy task CartPole-v1" in shown
    assert "130 of 130 objective calls" in shown
    assert "policy.json after 130 calls" in shown
    assert "it has ended: the budget" in shown
    longer = json.loads(run("resume", "run-1", "--calls", "250", "--json").stdout)
    whole = json.loads(run(*"policy CartPole-v1 --calls 250 --episodes 5 --json".split()).stdout)
    assert longer.pop("seconds")
    assert whole.pop("seconds")
    assert longer == whole
    assert "already holds a run" in error_of(capsys, "run", "settings.toml", "--out", "run-1")
    assert "left alone" in error_of(capsys, "init", "policy")
    wrong = ["--set", "executor.kind=processes"]
    assert "see task.workers" in error_of(capsys, "run", "settings.toml", *wrong)


def test_a_task_that_is_not_sound_is_told(tmp_path, monkeypatch):
    (tmp_path / "unsound_task.py").write_text(
        "import random\n"
        "from discodso import FixedSequence, Space, Task, Token\n"
        "space = Space([Token('a'), Token('b')], FixedSequence(3))\n"
        "task = Task(space, lambda design: random.random())\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    done = run("check", "unsound_task:task")
    assert done.exit_code == 1
    assert "the objective gave" in done.stderr


def test_the_doctor_tells_what_there_is():
    found = json.loads(run("doctor", "--json").stdout)
    assert found["missing"] == []
    assert found["needed"]["torch"]
    assert set(found["extras"]) >= {"dask", "ray", "tensorboard"}
    assert "Slurm" in run("doctor").output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("run nowhere.toml", "there is no file nowhere.toml"),
        ("resume nowhere", "there is no folder nowhere"),
        ("show nowhere", "there is no folder nowhere"),
        ("show .", "is no run folder"),
        ("resume .", "is no run folder"),
        ("check plain", "module:attribute"),
        ("fit nowhere.csv --target y", "there is no file"),
    ],
)
def test_mistakes_get_one_line(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert words in error_of(capsys, *arguments.split())


def test_a_file_of_another_kind_is_no_settings_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text("a,b\n1,2\n")
    assert "table.csv is not TOML" in error_of(capsys, "run", "table.csv")


def test_the_page_on_running_is_true(tmp_path, monkeypatch, capsys):
    """Its Python blocks run, and its commands and keys exist."""
    import re
    import shlex

    text = (ROOT / "docs/running.md").read_text()
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "running.md", "exec"), {"__name__": "running"})  # our own text
    commands = [shlex.split(line)[1:] for line in re.findall(r"^\$ (discodso [^#\n]*)", text, re.MULTILINE)]
    known = {"run", "show", "resume", "init"}
    assert {command[0] for command in commands} == known
    for command in commands:
        if "executor.kind=dask" not in command:
            calls = ["--calls", "300"] if command[:2] == ["run", "bitstring"] else []
            done = run(*command, *calls) if command[0] != "resume" else run(*command[:2], "--calls", "400")
            assert done.exit_code == 0, done.output
