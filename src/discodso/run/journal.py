"""The journal of a run: every finished evaluation is on the disk before the next is begun.

A line for each evaluation, or for a group of cheap ones: JSON whose first key is a checksum of the rest. Lines are
only ever added. A run that goes on takes the answers that its journal has in place of calling the objective, so
that a kill loses what was under way and nothing else.

    {"crc":"9f1c22d0","part":"search","first":57,"rewards":[0.5],"seconds":1.2,"mark":"...","designs":[...]}

Each line is handed to the system at once, and so survives the end of the process. To survive that of the machine
it is forced onto the disk: after each evaluation of 50 ms and more, and of faster ones so often that this takes a
hundredth of the time.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.errors import InvalidDesignError
from discodso.base.files import Closing, file_errors, open_plain, read_plain
from discodso.run.objective_calls import Answer, Outcome, Rows
from discodso.space.design import Design

JOURNAL = "journal.jsonl"
SEARCH, RACE = "search", "race"  # parts of a run whose calls are numbered apart
_FEW = 8  # numbers that stand as such; more are packed
_TOLD = 1e-3  # seconds of an evaluation from which on its design is written as well
_SLOW = 0.05  # seconds of an evaluation from which on each is synced
_SYNC_SHARE = 100  # so many times as long as a sync takes must lie between two
_MARKED = 32  # designs of many that a mark looks at, and up to as many more
_HEAD = len('{"crc":"00000000",')


class Journal(Closing):
    """An open journal, and what it held when it was opened.

    Args:
        path: of its file.
        check: raises if the folder is not the one any more that it was; asked before every line.

    Attributes:
        path: of its file.
        entries: of the lines before, in order.
        damaged: how many lines could not be read.
    """

    def __init__(self, path: Path, check: Callable[[], None] = lambda: None) -> None:
        self.path, self._check = path, check
        with file_errors(f"cannot read {path}"):
            content = read_plain(path) if path.exists() else b""
        whole = content.rfind(b"\n") + 1  # a line that was being written when the run was killed is cut off
        self.entries: list[dict[str, Any]] = []
        self.damaged = 0
        for line in content[:whole].splitlines():
            entry = read_line(line)
            if entry is None:
                self.damaged += 1
            elif entry.get("forget"):
                self.entries.clear()
            else:
                self.entries.append(entry)
        with file_errors(f"cannot write {path}"):
            self._handle: int | None = open_plain(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            os.ftruncate(self._handle, whole)
        self._size = whole
        self._synced, self._sync_seconds, self._unsynced = time.monotonic(), 0.0, False

    def write(self, entry: Mapping[str, Any], at_once: bool = False) -> None:
        """Add a line; `at_once` to have it on the disk whatever that takes."""
        assert self._handle is not None
        self._check()
        line = line_of(entry)
        with file_errors(f"cannot write {self.path}"):
            try:
                if os.write(self._handle, line) < len(line):  # a disk that has just become full
                    raise OSError("only a part of a line could be written")
            except BaseException:
                os.ftruncate(self._handle, self._size)  # no line is left half written before the next
                raise
        self._size += len(line)
        self._unsynced = True
        now = time.monotonic()
        if at_once or now - self._synced >= _SYNC_SHARE * self._sync_seconds:
            self.sync()

    def sync(self) -> None:
        """Force what was written onto the disk."""
        if not self._unsynced or self._handle is None:
            return
        began = time.monotonic()
        with file_errors(f"cannot write {self.path}"):
            os.fsync(self._handle)
        self._synced = time.monotonic()
        self._sync_seconds, self._unsynced = self._synced - began, False

    def forget(self) -> None:
        """What stands in it belongs to another objective or other settings."""
        self.entries.clear()
        self.write({"forget": True})

    def close(self) -> None:
        """Sync and let go of it."""
        if self._handle is not None:
            try:
                self.sync()
            finally:
                os.close(self._handle)
                self._handle = None


def line_of(entry: Mapping[str, Any]) -> bytes:
    """An entry as a line with its checksum."""
    rest = json.dumps(entry, allow_nan=False, separators=(",", ":"))[1:].encode()
    return b'{"crc":"%08x",' % zlib.crc32(rest) + rest + b"\n"


def read_line(line: bytes) -> dict[str, Any] | None:
    """Inverse of `line_of`; None for a line whose checksum does not fit."""
    rest = line[_HEAD:]
    if line[:_HEAD] != b'{"crc":"%08x",' % zlib.crc32(rest):
        return None
    try:
        entry = json.loads(b"{" + rest)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def packed(numbers: Floats) -> list[float | None] | str:
    """Numbers for JSON, without loss: a few as a list with null for NaN, many as base64 of 64-bit floats."""
    if len(numbers) > _FEW:
        return base64.b64encode(numbers.astype("<f8").tobytes()).decode()
    return [None if number != number else number for number in numbers.tolist()]


def unpacked(given: list[float | None] | str) -> Floats:
    """Inverse of `packed`."""
    if isinstance(given, str):
        return np.frombuffer(base64.b64decode(given), "<f8").astype(np.float64)
    return np.array([np.nan if number is None else number for number in given], np.float64)


def mark_of(rows: Rows) -> str:
    """Stands for some designs, to the last bit; of many it looks at the lengths, and at some of them evenly."""
    most = int(rows.lengths.max(initial=0))
    digest = hashlib.blake2b(digest_size=8)
    some = slice(None, None, max(1, len(rows) // _MARKED))
    for array in (rows.lengths, rows.tokens[some, :most], rows.values[some, :most]):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def answer_entry(answer: Answer) -> dict[str, Any]:
    """An answer for a line."""
    entry: dict[str, Any] = {"rewards": packed(answer.rewards)}
    if answer.reasons:
        entry["reasons"] = [list(pair) for pair in answer.reasons.items()]
    if answer.weights is not None:
        entry["weights"] = packed(answer.weights)
    if answer.violations is not None:
        entry["violations"] = [packed(column) for column in answer.violations.T]
        entry["requirements"] = list(answer.requirements)
    if answer.goals is not None:
        entry["goals"] = [packed(column) for column in answer.goals.T]
    if answer.cost:
        entry["cost"] = answer.cost
    if answer.broken:
        entry["broken"] = True
    if answer.seconds >= _TOLD:
        entry["seconds"] = round(answer.seconds, 4)
    return entry


def answer_of(entry: Mapping[str, Any]) -> Answer:
    """Inverse of `answer_entry`; KeyError, TypeError or ValueError for anything else."""
    violations, goals = (
        np.stack([unpacked(column) for column in entry[name]], axis=1) if entry.get(name) else None
        for name in ("violations", "goals")
    )
    return Answer(
        unpacked(entry["rewards"]),
        {int(row): str(reason) for row, reason in entry.get("reasons", ())},
        float(entry.get("cost", 0.0)),
        bool(entry.get("broken", False)),
        unpacked(entry["weights"]) if "weights" in entry else None,
        violations,
        tuple(map(str, entry.get("requirements", ()))),
        goals=goals,
        seconds=float(entry.get("seconds", 0.0)),
    )


def is_sound(entry: Mapping[str, Any]) -> bool:
    """Whether an entry says what came of some calls; a stranger may have made a line whose checksum fits."""
    try:
        answer = answer_of(entry)
    except (LookupError, TypeError, ValueError, OverflowError, RecursionError):
        return False
    shape, more = answer.rewards.shape, (answer.weights, answer.violations, answer.goals)
    whole = all(own is None or own.shape[: len(shape)] == shape for own in more)
    named = answer.violations is None or answer.violations.shape[1:] == (len(answer.requirements),)
    return type(entry.get("first")) is int and len(shape) == 1 and whole and named


def entries_of(path: Path) -> list[dict[str, Any]]:
    """The entries of a journal, which may be growing; none if there is no such file."""
    try:
        lines = read_plain(path).split(b"\n")
    except FileNotFoundError:
        return []
    found: list[dict[str, Any]] = []
    for line in lines:
        if (entry := read_line(line)) is not None:
            found.append(entry)
            if entry.get("forget"):
                found.clear()
    return found


def written_designs(path: Path) -> Iterator[tuple[int, Design, Outcome]]:
    """The designs that a journal has written out: the number of the call, the design, what came of it."""
    for entry in entries_of(path):
        if entry.get("part") != SEARCH or not isinstance(entry.get("designs"), list) or not is_sound(entry):
            continue
        answer = answer_of(entry)
        for row, data in enumerate(entry["designs"][: len(answer.rewards)]):
            with suppress(InvalidDesignError):
                yield int(entry["first"]) + row, Design.from_dict(data), answer.outcome(row)


@dataclass(frozen=True)
class Ledger:
    """The answers of one part of a run in its journal, by the numbers of their calls.

    Attributes:
        journal: of the run.
        part: "search" or "race".
        known: entries of a run that goes on, by the number of their first call.
    """

    journal: Journal
    part: str
    known: dict[int, dict[str, Any]]

    @classmethod
    def of(cls, journal: Journal, part: str) -> Ledger:
        """That part of a journal; where it has answers of the same call twice, the later one counts."""
        own = (entry for entry in journal.entries if entry.get("part") == part and is_sound(entry))
        return cls(journal, part, {entry["first"]: entry for entry in own})

    @property
    def last(self) -> int:
        """The last call that it knows of, 0 for none."""
        return max((first + len(unpacked(e["rewards"])) - 1 for first, e in self.known.items()), default=0)

    def answers(self, rows: Rows, before: int) -> dict[int, Answer]:
        """What is known of some designs, by the position of the first of each group.

        Args:
            rows: the designs of calls `before` + 1, `before` + 2, ...
        """
        found: dict[int, Answer] = {}
        at = 0
        while self.known and at < len(rows):
            entry = self.known.pop(before + 1 + at, None)
            answer = None if entry is None else answer_of(entry)
            count = 0 if answer is None else len(answer.rewards)
            own = Rows.of(rows, rows.seeds, at, at + count)
            if entry is None or answer is None or len(own) < count or entry.get("mark") != mark_of(own):
                at += 1
                continue
            found[at] = answer
            at += count
        return found

    @staticmethod
    def tells(answer: Answer) -> bool:
        """Whether an answer took so long that its designs are written out for people as well."""
        return answer.seconds >= _TOLD * max(len(answer.rewards), 1)

    def add(
        self,
        rows: Rows,
        answer: Answer,
        before: int,
        designs: Sequence[Design] = (),
        event: int | None = None,
    ) -> None:
        """Write down what came of some designs.

        Args:
            rows, answer: as many of each.
            before: number of the call before the first of them.
            designs: the same once more, where they are to be written out.
            event: of an asynchronous search, which is replayed in their order.
        """
        entry = {"part": self.part, "first": before + 1, **answer_entry(answer), "mark": mark_of(rows)}
        if event is not None:
            entry["event"] = event
        if designs:
            entry["designs"] = [design.to_dict() for design in designs]
        self.journal.write(entry, at_once=answer.seconds >= _SLOW * len(rows))
