"""The command line in a process of its own, and within this one."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from discodso.cli.main import app, main

COMMAND = [sys.executable, "-m", "discodso"]
# Under a shell's "&" SIGINT is ignored from birth; the child gets the ordinary handler back.
ORDINARY_INTERRUPT: dict[str, Any] = {
    "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler)
}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=600, check=False)


def invoked(*arguments: Any) -> Any:
    """Run a command within this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def error_of(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    """The line that a mistake gets; there must be one, and nothing else."""
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    assert caught.value.code == 1
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    return lines[0]
