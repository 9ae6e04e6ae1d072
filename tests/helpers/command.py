"""The command line in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

COMMAND = [sys.executable, "-m", "discodso"]
# Under a shell's "&" SIGINT is ignored from birth; the child gets the ordinary handler back.
ORDINARY_INTERRUPT: dict[str, Any] = {
    "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler)
}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=600, check=False)
