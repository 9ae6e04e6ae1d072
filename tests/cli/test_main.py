"""The command line as a whole: its commands, their help, how mistakes are told."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from command import error_of, invoked, run
from typer.main import get_command

from discodso.cli.main import app, main


def every_command(command, path=()):
    """All commands and groups, hidden ones too, as typed."""
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from every_command(inner, (*path, name))


COMMANDS = list(every_command(get_command(app)))


def test_the_promised_commands_are_there():
    promised = (
        "run fit policy play resume bench show export ask tell check init doctor report compare reproduce"
    )
    assert {path[0] for path in COMMANDS if path} == set(promised.split())


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_and_every_option_has_help(command):
    shown = invoked(*command, "--help")
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


def test_python_m_discodso_is_the_same_command():
    module = [sys.executable, "-m", "discodso", "--version"]
    assert subprocess.run(module, capture_output=True, text=True, check=True).stdout.startswith("discodso")


def test_help_and_version():
    assert "bitstring" in run("run", "--help").stdout
    assert run("--version").stdout.startswith("discodso 0.")
    done = run(*"run bitstring --help".split())
    assert "--alpha" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--alpha 3", "alpha must be a finite number >= 0 and <= 1"),
        ("--length 0", "length must be an integer >= 1"),
        ("--budget 0", "budget must be an integer >= 1"),
        ("--set method.batch_size=0", "batch_size must be an integer >= 1"),
        ("--set method.learner.risk_factor=2", "risk_factor must be"),
        ("--objective f3", "objective must be one of 'f1', 'f2'"),
        ("--preset best", "preset must be one of"),
        ("--seed -1", "seed must be an integer >= 0"),
    ],
)
def test_a_mistake_gets_one_line(arguments, words, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["run", "bitstring", *arguments.split()])
    error = capsys.readouterr().err
    assert exit_.value.code == 1
    assert words in error
    assert len(error.strip().splitlines()) == 1


@pytest.mark.parametrize("arguments", ["--alpha high", "--budget many"])
def test_a_mistyped_option_is_explained(arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["run", "bitstring", *arguments.split()])
    assert exit_.value.code == 2
    assert "Invalid value" in capsys.readouterr().err


def test_a_mistake_in_a_process_of_its_own():
    done = run("run", "bitstring", "--alpha", "3")
    assert done.returncode == 1
    assert done.stderr.startswith("discodso: alpha must be")
    assert len(done.stderr.strip().splitlines()) == 1
