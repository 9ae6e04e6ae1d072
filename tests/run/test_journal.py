"""The journal: lines that survive, and runs that take what stands in them in place of calling the objective."""

from __future__ import annotations

import errno
import os
from collections import Counter
from dataclasses import fields, replace

import numpy as np
import pytest
from killing import comparable
from resumable import SMALL, TASK, objective

from discodso import Processes, RandomSettings, Task, resume, search
from discodso.base.files import FileError
from discodso.run import evaluation
from discodso.run.journal import (
    JOURNAL,
    SEARCH,
    Journal,
    Ledger,
    answer_entry,
    answer_of,
    line_of,
    packed,
    read_line,
    unpacked,
)
from discodso.run.objective_calls import Answer, Measured

ANSWER = Answer(
    np.array([0.1, np.nan, 3.0]),
    {1: "took longer"},
    2.5,
    True,
    np.array([1.0, 2.0, 3.0]),
    np.array([[0.5, 0.0], [0.0, 0.0], [1e-9, 2.0]]),
    ("ripple", "size"),
    np.array([[0.1, 1.0], [np.nan, np.nan], [3.0, 2.0]]),
    0.25,
)


def test_a_line_is_read_back_and_any_changed_byte_is_noticed():
    line = line_of({"part": "search", "first": 1, "rewards": [0.1]})
    assert read_line(line.rstrip()) == {"part": "search", "first": 1, "rewards": [0.1]}
    for at in range(len(line) - 1):
        changed = bytearray(line.rstrip())
        changed[at] ^= 1
        assert read_line(bytes(changed)) is None


def test_an_answer_comes_back_whole():
    again = answer_of(read_line(line_of(answer_entry(ANSWER)).rstrip()))
    for own in fields(Answer):  # whatever is added to it must be kept as well
        np.testing.assert_equal(getattr(again, own.name), getattr(ANSWER, own.name))


@pytest.mark.parametrize("count", [0, 3, 9, 500])
def test_numbers_come_back_to_the_last_bit(count):
    numbers = np.random.default_rng(0).standard_normal(count) * 1e-300
    numbers[: count // 3] = np.nan
    np.testing.assert_equal(unpacked(packed(numbers)), numbers)


def test_a_torn_end_is_cut_off_and_a_damaged_line_is_passed_over(tmp_path):
    path = tmp_path / JOURNAL
    good = [line_of({"part": "search", "first": first}) for first in (1, 2, 3)]
    path.write_bytes(good[0] + good[1][:9] + b"x" + good[1][10:] + good[2] + good[0][:20])
    with Journal(path) as journal:
        assert [entry["first"] for entry in journal.entries] == [1, 3]
        assert journal.damaged == 1
        journal.write({"part": "search", "first": 4})
    with Journal(path) as journal:
        assert [entry["first"] for entry in journal.entries] == [1, 3, 4]


def test_a_full_disk_leaves_no_half_line_behind(tmp_path, monkeypatch):
    real = os.write
    with Journal(tmp_path / JOURNAL) as journal:
        journal.write({"first": 1})
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", lambda handle, data: real(handle, data[:5]))
            with pytest.raises(FileError, match="only a part"):
                journal.write({"first": 2})
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", _full)
            with pytest.raises(FileError, match="No space left"):
                journal.write({"first": 2})
        journal.write({"first": 3})
    with Journal(tmp_path / JOURNAL) as journal:
        assert ([entry["first"] for entry in journal.entries], journal.damaged) == ([1, 3], 0)


def _full(handle, data):
    raise OSError(errno.ENOSPC, "No space left on device")


class Calls:
    """Counts the calls of an objective by design, and gives up after so many as if it were killed."""

    def __init__(self, most: int) -> None:
        self.most, self.seen = most, Counter[str]()

    def objective(self, design, seed=None):
        if sum(self.seen.values()) == self.most:
            raise Killed
        self.seen[f"{design} {seed}"] += 1
        return objective(design)

    def batch(self, designs):
        return Measured([self.objective(design) if len(design) > 1 else 0.5 for design in designs], cost=2.0)


class Killed(BaseException):
    """Nothing catches it: the run ends where it is, without a checkpoint."""


@pytest.mark.parametrize("kind", ["objective", "stochastic", "batch"])
@pytest.mark.parametrize("most", [1, 57, 149])
def test_what_a_killed_run_has_evaluated_is_not_evaluated_again(tmp_path, kind, most, monkeypatch):
    monkeypatch.setattr(evaluation, "_GROUP", 0.0)  # cheap ones are written down together else

    def task(calls: Calls) -> Task:
        if kind == "batch":
            return replace(TASK, objective=None, batch_objective=calls.batch, cost_unit="minutes")
        return replace(TASK, objective=calls.objective, stochastic=kind == "stochastic")

    whole = comparable(search(task(Calls(-1)), budget=200, method=SMALL, seed=1))
    killed, rest = Calls(most), Calls(-1)
    with pytest.raises(Killed):
        search(task(killed), budget=200, method=SMALL, seed=1, out=tmp_path / "run")
    assert comparable(resume(tmp_path / "run", task=task(rest))) == whole
    twice = (killed.seen & rest.seen).total()
    assert twice <= (50 if kind == "batch" else 0)  # a batch that was under way is one call


def test_answers_of_workers_are_kept_as_they_come(tmp_path):
    whole = comparable(search(TASK, budget=300, method=RandomSettings(300), seed=2))
    folder = tmp_path / "run"
    search(TASK, budget=300, method=RandomSettings(300), seed=2, out=folder)
    lines = (folder / JOURNAL).read_bytes().splitlines(keepends=True)
    search(TASK, budget=10, method=RandomSettings(300), seed=2, out=tmp_path / "begun")
    begun = (tmp_path / "begun" / JOURNAL).read_bytes()
    # Some chunks of the batch, in the order in which workers might have been done with them.
    (tmp_path / "begun" / JOURNAL).write_bytes(begun + b"".join(lines[1::2][::-1]))
    with Processes(2) as executor:
        again = resume(tmp_path / "begun", task=TASK, budget=300, executor=executor)
    assert comparable(again) == whole


def test_a_journal_of_other_designs_is_not_taken_for_that_of_the_run(tmp_path):
    for seed in (1, 2):
        search(TASK, budget=60, method=SMALL, seed=seed, out=tmp_path / str(seed))
    whole = comparable(search(TASK, budget=120, method=SMALL, seed=1))
    other = search(TASK, budget=120, method=SMALL, seed=3, out=tmp_path / "3")
    assert other.calls == 120
    (tmp_path / "1" / JOURNAL).write_bytes((tmp_path / "3" / JOURNAL).read_bytes())
    assert comparable(resume(tmp_path / "1", task=TASK, budget=120)) == whole


@pytest.mark.parametrize(
    "change",
    [
        {"rewards": 3},
        {"rewards": "AAA"},
        {"first": "x"},
        {"rewards": [[1.0]]},
        {"weights": [1.0, 2.0]},
        {"reasons": [1]},
    ],
)
def test_a_line_whose_checksum_fits_and_whose_content_does_not_is_passed_over(tmp_path, change):
    entry = {"part": SEARCH, "first": 1, "rewards": [1.0], "mark": ""}
    path = tmp_path / JOURNAL
    path.write_bytes(line_of({**entry, **change}) + line_of({**entry, "first": 2}))
    with Journal(path) as journal:
        ledger = Ledger.of(journal, SEARCH)
        assert list(ledger.known) == [2]
        assert ledger.last == 2
