"""A run of a million calls: memory as it goes on, and the sizes of its folder and of its report at the end.

python benchmarks/long_run.py          prints, and writes benchmarks/results/long_run.json (minutes)
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from harness import write_result

from discodso import DisCoSettings, search
from discodso.report.writing import write_report
from discodso.run.history import HistoryRow
from discodso.tasks.bitstring import bitstring


def resident_megabytes() -> float:
    """Memory of this process, now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def main() -> None:
    """Run, watch, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budget", type=int, default=1_000_000)
    calls = parser.parse_args().calls
    memory: dict[int, float] = {}

    def watch(row: HistoryRow, ranking: object) -> None:
        done = row.calls
        if done % (calls // 10) == 0:
            memory[done] = round(resident_megabytes(), 1)
            print(f"{done:>9,} calls {memory[done]:7.1f} MB", flush=True)

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        result = search(
            bitstring(10, 0.9, "f1", seed=0),
            budget=calls,
            seed=0,
            method=DisCoSettings(batch_size=1000),
            out=folder,
            checkpoint_seconds=5,
            callback=watch,
        )
        report = write_report([folder], Path(place) / "report.html").stat().st_size
        files = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    sizes = list(memory.values())
    record = {
        "calls": result.calls,
        "seconds": round(result.seconds, 1),
        "megabytes_by_calls": memory,
        "growth_from_the_first_tenth_megabytes": round(sizes[-1] - sizes[0], 1),
        "folder_megabytes": round(sum(files.values()) / 1e6, 2),
        "folder_bytes": files,
        "report_megabytes": round(report / 1e6, 2),
    }
    write_result("long_run", record)


if __name__ == "__main__":
    main()
