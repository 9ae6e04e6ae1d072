"""What all benchmarks share: runs that are kept, made in processes and tabulated.

A benchmark whose runs take long is a file with its question as docstring, and

    KEYS                     of every run: values by field, the same fields for all
    run(key) -> record       one run: figures by name
    table(records) -> str    Markdown of all runs

    BENCHMARK = Benchmark("name", KEYS, run, table)
    if __name__ == "__main__":
        main(BENCHMARK, __doc__)

Its runs are in results/NAME.jsonl, a JSON object for each on a line of its own, and the table in results/NAME.md.
Runs that are there are not made again. A benchmark of speed measures anew each time: `write_result`.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from discodso.base.files import write_atomically
from discodso.base.statistics import bootstrap_interval
from discodso.base.text_tables import markdown as markdown

RESULTS = Path(__file__).parent / "results"
sys.path.append(str(Path(__file__).parent.parent / "examples"))  # some tasks are there

Key = Mapping[str, Any]
Record = dict[str, Any]
Identity = tuple[Any, ...]


# ---------------------------------------------------------------------------------------- records


class Records:
    """Runs in a file of JSON lines, each known by its key.

    The whole file is written anew after each run, through a temporary file that takes its name: a reader never
    sees half of it. One process at a time may add to a file. Should a copy have lost the end of its last line,
    that run counts as not made; any other line that cannot be read is an error.

    Args:
        path: the file, which need not exist.
        fields: names of the key. A record has them all, and figures.
    """

    def __init__(self, path: Path, fields: Sequence[str]) -> None:
        self.path, self.fields = path, tuple(fields)
        self._known: dict[Identity, Record] = {}
        lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                self._known[self.identity(record)] = record
            except (ValueError, KeyError, TypeError) as error:
                if number < len(lines):  # a whole file ends with an empty line
                    raise ValueError(f"{path}, line {number} is no run: {error!r}") from None
                print(f"{path.name}: the last line is torn, its run is made again", file=sys.stderr)

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._known.values())

    def __contains__(self, key: Key) -> bool:
        return self.identity(key) in self._known

    def identity(self, key: Key) -> Identity:
        """The values of the key, of a key or a record."""
        return tuple(key[field] for field in self.fields)

    def add(self, *records: Record) -> None:
        """Keep runs, in the place of those with the same key, and write the file."""
        self._known |= {self.identity(record): record for record in records}
        self._write()

    def arrange(self, keys: Iterable[Key]) -> None:
        """Put the runs of these keys first, in their order, so that the file does not tell which ended first."""
        first = [identity for key in keys if (identity := self.identity(key)) in self._known]
        arranged = {identity: self._known[identity] for identity in dict.fromkeys([*first, *self._known])}
        if list(arranged) != list(self._known):
            self._known = arranged
            self._write()

    def _write(self) -> None:
        write_atomically(self.path, "".join(json.dumps(record) + "\n" for record in self))


# ---------------------------------------------------------------------------------------- runs


@dataclass(frozen=True)
class Benchmark:
    """Runs that are kept, and their table.

    Attributes:
        name: of the files in results/, as that of the benchmark's.
        keys: of all runs, in the order of the file; or a function from the runs that are there to the keys, for
            runs that depend on others. It is asked again until all of its runs are there.
        run: makes the run of a key, in a process of its own; returns its figures.
        table: Markdown of runs, which need not be all.
    """

    name: str
    keys: Sequence[Key] | Callable[[Sequence[Record]], Sequence[Key]]
    run: Callable[[Key], Record]
    table: Callable[[Sequence[Record]], str]

    @property
    def path(self) -> Path:
        """The file of runs."""
        return RESULTS / f"{self.name}.jsonl"

    def wanted(self, records: Sequence[Record]) -> Sequence[Key]:
        """Keys of all runs, as far as they are known."""
        return self.keys(records) if callable(self.keys) else self.keys

    def records(self) -> Records:
        """The runs that are there."""
        return Records(self.path, tuple(self.wanted(())[0]))

    def text(self, records: Records) -> str:
        """The table, ending with one newline."""
        return self.table(list(records)).rstrip("\n") + "\n"


def make(
    benchmark: Benchmark,
    records: Records,
    *,
    chosen: Callable[[Key], bool] = lambda key: True,
    jobs: int = 2,
    again: bool = False,
) -> int:
    """Make the runs that are missing, and say how many that were.

    Args:
        benchmark: what to run.
        records: the runs that are there; each new one is added and written when it ends.
        chosen: whether a run is wanted.
        jobs: processes; with 1 all runs are made in this one.
        again: make those anew that are there.
    """
    made: set[Identity] = set()
    while missing := [
        key
        for key in benchmark.wanted(list(records))
        if chosen(key) and records.identity(key) not in made and (again or key not in records)
    ]:
        for key, figures in _done(benchmark.run, missing, jobs):
            records.add({**key, **figures})
            made.add(records.identity(key))
            what = ", ".join(f"{value}" for value in key.values())
            print(f"{len(made)}: {what}: {json.dumps(figures)}", flush=True)
        records.arrange(benchmark.wanted(list(records)))
    return len(made)


def _done(run: Callable[[Key], Record], keys: Sequence[Key], jobs: int) -> Iterator[tuple[Key, Record]]:
    if jobs == 1:
        yield from ((key, run(key)) for key in keys)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        futures = {pool.submit(run, key): key for key in keys}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:  # if one fails, the others need not begin
            pool.shutdown(wait=False, cancel_futures=True)


def main(benchmark: Benchmark, question: str | None, arguments: Sequence[str] | None = None) -> None:
    """The command of a benchmark: make what is missing, write the table and print it."""
    records = benchmark.records()
    parser = argparse.ArgumentParser(
        description=question, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help=f"only such runs; may be given again. Fields: {', '.join(records.fields)}",
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--again", action="store_true", help="make runs anew that are there")
    parser.add_argument("--table", action="store_true", help="make no runs, only write the table")
    options = parser.parse_args(arguments)
    only: dict[str, set[str]] = {}
    for choice in options.only:
        field, _, value = choice.partition("=")
        if field not in records.fields:
            parser.error(f"--only {choice}: no field of {', '.join(records.fields)}")
        only.setdefault(field, set()).add(value)

    def chosen(key: Key) -> bool:
        return all(str(key[field]) in values for field, values in only.items())

    if not any(map(chosen, benchmark.wanted(list(records)))):
        parser.error("--only: there is no such run")
    if options.table:
        records.arrange(benchmark.wanted(list(records)))  # those of a command that was stopped
    else:
        make(benchmark, records, chosen=chosen, jobs=options.jobs, again=options.again)
    text = benchmark.text(records)
    write_atomically(benchmark.path.with_suffix(".md"), text)
    print(text)


# ---------------------------------------------------------------------------------------- tables


def grid(
    corner: str, rows: Iterable[str], columns: Sequence[str], cell: Callable[[str, str], str]
) -> list[str]:
    """Lines of a table with a cell for each row and column; rows without any run ("-") are left out."""
    named = [(row, [cell(row, column) for column in columns]) for row in rows]
    return markdown([corner, *columns], [[row, *own] for row, own in named if set(own) != {"-"}])


def shown(numbers: Sequence[float], wanted: int, digits: int) -> str:
    """Mean and half the width of its 95 % interval by Student's t; how many where some of those wanted are
    missing, "-" where all are."""
    if not numbers:
        return "-"
    mean = f"{statistics.fmean(numbers):.{digits}f}"
    if len(numbers) != wanted or wanted < 2:
        return f"{mean} ({len(numbers)} run{'s' * (len(numbers) > 1)})"
    return f"{mean} ± {half_width(numbers):.{digits}f}"


def half_width(numbers: Sequence[float]) -> float:
    """Of the 95 % interval of the mean by Student's t."""
    from scipy.stats import t

    count = len(numbers)
    return float(t.ppf(0.975, count - 1)) * statistics.stdev(numbers) / math.sqrt(count)


def gaps(first: Mapping[Any, float], second: Mapping[Any, float]) -> list[float]:
    """What the first has more than the second, pair by pair, of the pairs that both have."""
    return [value - second[name] for name, value in first.items() if name in second]


def signed_gap(differences: Sequence[float], digits: int = 3) -> tuple[str, str]:
    """Mean of paired differences, and its 95 % interval by the bootstrap; no interval of equal pairs."""
    limits = bootstrap_interval(differences) if any(differences) else None
    interval = "" if limits is None else f"{limits[0]:+.{digits}f} to {limits[1]:+.{digits}f}"
    return f"{statistics.fmean(differences):+.{digits}f}", interval


# ---------------------------------------------------------------------------------------- speed


def machine(*more: str) -> str:
    """For results of speed: processor, version of Python, and more."""
    return ", ".join([platform.machine(), f"Python {platform.python_version()}", *more])


def write_result(name: str, figures: Mapping[str, Any], *more: str, shown: bool = True) -> None:
    """Write what a benchmark of speed measured to results/NAME.json, with its command and the machine.

    Args:
        name: of the benchmark.
        figures: for JSON.
        more: versions that count beside Python's.
        shown: whether to print it too.
    """
    result = {"command": f"python benchmarks/{name}.py", "machine": machine(*more), **figures}
    text = json.dumps(result, indent=1) + "\n"
    write_atomically(RESULTS / f"{name}.json", text)
    if shown:
        print(text, end="")
