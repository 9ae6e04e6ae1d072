"""The commands beyond `run bitstring`: settings files, folders, help."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from discodso.cli.main import app, main

ROOT = Path(__file__).parents[2]


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


def every_command(command, path=()):
    """All commands and groups, hidden ones too, as typed."""
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from every_command(inner, (*path, name))


COMMANDS = list(every_command(get_command(app)))


def test_the_promised_commands_are_there():
    promised = "run fit policy play resume bench show check init doctor report compare reproduce"
    assert {path[0] for path in COMMANDS if path} == set(promised.split())


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_and_every_option_has_help(command):
    shown = run(*command, "--help")
    assert shown.exit_code == 0
    assert "Usage:" in shown.output
    assert len(shown.output) > 200
    found = get_command(app)
    for name in command:
        found = found.commands[name]
    for option in found.params:
        assert option.help, option.name


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(shell):
    """As a shell asks after `--install-completion`."""
    shown = subprocess.run(
        [sys.executable, "-m", "discodso", "--show-completion", shell],
        env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"_DISCODSO_COMPLETE=complete_{shell}" in shown.stdout
    words = {
        "bash": {"COMP_WORDS": "discodso re", "COMP_CWORD": "1"},
        "zsh": {"_TYPER_COMPLETE_ARGS": "discodso re"},
        "fish": {"_TYPER_COMPLETE_ARGS": "discodso re", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    asked = subprocess.run(
        [sys.executable, "-m", "discodso"],
        env={**os.environ, "_DISCODSO_COMPLETE": f"complete_{shell}", **words},
        capture_output=True,
        text=True,
        check=False,
    )
    for name in ("resume", "report", "reproduce"):
        assert name in asked.stdout, asked.stderr
    assert "doctor" not in asked.stdout


def test_help_does_not_wait_for_torch():
    code = (
        "import sys\n"
        "from discodso.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'numba', 'scipy', 'sklearn', 'sympy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_defaults_of_options_are_those_of_the_library(tmp_path):
    from discodso import preset
    from discodso.run.settings import read

    done = run(*"run bitstring --budget 100 --length 3 --json --out".split(), tmp_path / "run")
    assert done.exit_code == 0
    settings = read(tmp_path / "run" / "settings.toml")
    assert settings.method == preset(budget=100)


def test_a_bitstring_from_its_starting_file_to_its_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("init", "bitstring").exit_code == 0
    change = ["--set", "run.budget=300", "--set", "method.archive.size=30"]
    done = run("run", "settings.toml", *change, "--out", "run-1", "--events", "events.jsonl", "--json")
    assert done.exit_code == 0, done.output
    first = json.loads(done.stdout)
    assert first["calls"] == 300
    assert len(Path("events.jsonl").read_text().splitlines()) >= 5
    shown = run("show", "run-1")
    assert "300 of 300 objective calls" in shown.output
    assert "it has ended: the budget" in shown.output
    assert json.loads(run("show", "run-1", "--json").stdout)["top"][0] == first["best"]
    longer = json.loads(run("resume", "run-1", "--budget", "500", "--json").stdout)
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
    assert json.loads(run("resume", tmp_path / "run-1", "--budget", "250", "--json").stdout)["calls"] == 250
    monkeypatch.delitem(sys.modules, "my_task", raising=False)


def test_an_equation_in_a_folder(tmp_path, monkeypatch):
    table = ROOT / "examples/data/stopping_distance.csv"
    options = [table, "--target", "distance", "--seed", "1", "--json"]
    done = run("fit", *options, "--budget", "400", "--out", tmp_path / "run")
    assert done.exit_code == 0, done.output
    again = json.loads(run("resume", tmp_path / "run", "--json").stdout)
    assert again == json.loads(done.stdout)
    longer = json.loads(run("resume", tmp_path / "run", "--budget", "500", "--json").stdout)
    assert again["calls"] < longer["calls"] <= 500
    assert "An equation for distance" in run("show", tmp_path / "run").output


def test_a_policy_from_its_starting_file_to_its_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("init", "policy").exit_code == 0
    change = ["--set", "run.budget=130", "--set", "task.episodes=5"]
    done = run("run", "settings.toml", *change, "--out", "run-1")
    assert done.exit_code == 0, done.output
    assert "test mean" in done.stdout
    assert "episodes" in done.stderr  # in the lines on how it goes
    shown = run("show", "run-1").output
    assert "A tree policy for CartPole-v1" in shown
    assert "130 of 130 objective calls" in shown
    assert "policy.json after 130 calls" in shown
    assert "it has ended: the budget" in shown
    longer = json.loads(run("resume", "run-1", "--budget", "250", "--json").stdout)
    whole = json.loads(run(*"policy CartPole-v1 --budget 250 --episodes 5 --json".split()).stdout)
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


with (ROOT / "pyproject.toml").open("rb") as project:
    EXTRAS = set(tomllib.load(project)["project"]["optional-dependencies"]) - {"dev", "browser"}  # for users


def test_the_doctor_tells_what_there_is():
    found = json.loads(run("doctor", "--json").stdout)
    assert found["missing"] == []
    assert found["needed"]["torch"]
    assert set(found["extras"]) == EXTRAS
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


def test_the_page_on_reports_is_true(tmp_path, monkeypatch):
    """Its Python blocks run, and its commands do what it says."""
    import re
    import shlex

    from report_runs import bitstrings

    text = (ROOT / "docs/reports.md").read_text()
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "reports.md", "exec"), {"__name__": "reports"})  # our own text
    made = bitstrings(Path("runs"))
    shutil.copytree(made[0], "runs/first")
    for folder in made[:2]:
        shutil.copytree(folder, f"runs/seed-{folder.name}")
    commands = re.findall(r"^\$ (discodso [^#\n]*)", text, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        words = [
            name
            for word in shlex.split(command)[1:]
            for name in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
        ]
        done = run(*words)
        if "--live" in words:
            assert "no run is going on" in str(done.exception)
        else:
            assert done.exit_code == 0, done.output
    assert Path("runs/first/report.html").exists()
    assert Path("table.csv").exists()
    assert Path("curves.pdf").exists()


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
            calls = ["--budget", "300"] if command[:2] == ["run", "bitstring"] else []
            done = run(*command, *calls) if command[0] != "resume" else run(*command[:2], "--budget", "400")
            assert done.exit_code == 0, done.output
