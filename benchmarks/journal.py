"""What the journal costs: its seconds within a bitstring run of a million calls, and of a slow objective for each.

The bitstring is evaluated in batches, which are a line each; the other objective is plain Python and takes a
millisecond or ten, which are a line for each call or few. Seconds of all that the journal does over those of the
whole run, in the same run, syncs to the disk included as wall time.

    python benchmarks/journal.py          prints, and writes benchmarks/results/journal.json
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from harness import write_result

from discodso import Design, OpenSequence, RandomSettings, Space, Task, Token, preset, search
from discodso.run.journal import JOURNAL, Ledger
from discodso.tasks.bitstring import bitstring

SPACE = Space([Token("v", range=(0, 1)), Token("w", range=(0, 1)), Token("d")], OpenSequence(1, 6))


def busy(milliseconds: float) -> Any:
    """An objective that computes so long."""

    def objective(design: Design) -> float:
        until = time.perf_counter() + milliseconds / 1000
        while time.perf_counter() < until:
            pass
        return float(len(design))

    return objective


def measured(task: Task, budget: int, method: Any) -> dict[str, Any]:
    """One run in a folder, and the part of the journal."""
    spent, add = 0.0, Ledger.add

    def timed(self: Ledger, *arguments: Any, **named: Any) -> None:
        nonlocal spent
        began = time.perf_counter()
        add(self, *arguments, **named)
        spent += time.perf_counter() - began

    Ledger.add = timed  # type: ignore[method-assign]
    try:
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            search(task, budget=budget, method=method, out=Path(folder) / "run")
            whole = time.perf_counter() - began
            size = (Path(folder) / "run" / JOURNAL).stat().st_size
    finally:
        Ledger.add = add  # type: ignore[method-assign]
    return {
        "calls": budget,
        "seconds": round(whole, 3),
        "journal_seconds": round(spent, 4),
        "share": round(spent / whole, 5),
        "microseconds_per_call": round(1e6 * spent / budget, 3),
        "bytes_per_call": round(size / budget, 1),
    }


def run(calls: int) -> dict[str, Any]:
    """All runs by name."""
    plain = Task(SPACE, busy(1.0)), Task(SPACE, busy(10.0))
    return {
        "bitstring, the default, batches of 100": measured(bitstring(), calls, preset("default")),
        "bitstring, random search, batches of 1000": measured(bitstring(), calls, RandomSettings()),
        "1 ms, plain": measured(plain[0], 3_000, RandomSettings(100)),
        "10 ms, plain": measured(plain[1], 500, RandomSettings(100)),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=1_000_000, help="of the bitstring")
    found = run(parser.parse_args().calls)
    write_result("journal", found)
