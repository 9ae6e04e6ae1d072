"""The command line as a user meets it: most of it in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from command import COMMAND, ORDINARY_INTERRUPT, run

from discodso.cli.main import main


def test_the_bitstring_task_runs_and_prints_its_best_design():
    done = run(
        *"run bitstring --length 6 --objective f2 --budget 3000 --seed 0 --set method.batch_size=100".split()
    )
    assert done.returncode == 0
    assert "best reward 1.000000 at call" in done.stdout
    assert "3000 objective calls, 0 failed" in done.stdout
    assert "300 calls, best" in done.stderr  # plain lines where the output is not a terminal
    assert "\x1b" not in done.stdout + done.stderr


def test_json_is_for_programs():
    done = run(*"run bitstring --length 4 --budget 500 --json".split())
    result = json.loads(done.stdout)
    assert done.stderr == ""
    assert result["calls"] == 500
    assert result["stop"] == "budget"
    assert len(result["best"]["design"]["tokens"]) == 4


def test_a_run_that_broke_down_does_not_exit_with_zero():
    done = run(*"run bitstring --budget 3000 --preset paper --set method.learner.learning_rate=1e30".split())
    assert done.returncode == 1
    assert "non-finite" in done.stdout
    assert "Traceback" not in done.stderr


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


def test_ctrl_c_prints_the_best_so_far_and_exits_with_130():
    arguments = "run bitstring --budget 30000 --length 20 --set method.batch_size=100".split()
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        **ORDINARY_INTERRUPT,
    )
    assert "calls, best" in process.stderr.readline()  # it is searching
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "best reward 0." in out
    assert "interrupted by the user" in out
    assert "Traceback" not in err
    assert time.monotonic() - started < 20  # a second on an idle machine; this only guards against hanging
