"""What a command prints: to readers that are gone, to full disks, for programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import discodso

SOURCE = str(Path(discodso.__file__).parents[1])
SHORT = ["run", "bitstring", "--length", "4", "--set", "method.batch_size=50", "--budget", "200"]


def started(words, **streams):
    code = "import sys; from discodso.cli.main import main; main(sys.argv[1:])"
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    return subprocess.Popen([sys.executable, "-c", code, *words], env=environment, **streams)


def closed_pipe():
    reading, writing = os.pipe()
    os.close(reading)
    return writing


BROKEN = {
    "closed pipe": closed_pipe,
    "full disk": lambda: os.open("/dev/full", os.O_WRONLY),
    "closed": lambda: None,
}


@pytest.mark.parametrize("kind", BROKEN)
def test_standard_error_that_cannot_be_written_costs_its_words_only(kind):
    handle = BROKEN[kind]()
    how = {"preexec_fn": lambda: os.close(2)} if handle is None else {"stderr": handle}
    process = started(SHORT, stdout=subprocess.PIPE, text=True, **how)
    said, _ = process.communicate(timeout=100)
    assert process.returncode == 0, said
    assert "best reward" in said
    assert "calls, best" not in said  # of the progress, which must not go there instead


@pytest.mark.parametrize("words", [["doctor"], ["run", "--help"], [*SHORT, "--json"], SHORT], ids=" ".join)
def test_output_whose_reader_has_gone_ends_the_program_without_a_word(words):
    process = started(words, stdout=closed_pipe(), stderr=subprocess.PIPE, text=True)
    _, said = process.communicate(timeout=100)
    assert process.returncode == 1
    assert [line for line in said.splitlines() if " calls, best " not in line] == []


def test_output_to_a_full_disk_gets_one_line():
    full = os.open("/dev/full", os.O_WRONLY)
    process = started(["doctor"], stdout=full, stderr=subprocess.PIPE, text=True)
    _, said = process.communicate(timeout=100)
    assert process.returncode == 1
    (line,) = said.splitlines()
    assert line.startswith("discodso: ")
    assert line.endswith("No space left on device")
