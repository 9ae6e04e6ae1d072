"""Callbacks see what happens, and cannot end a run."""

from __future__ import annotations

import io
import json
import sys
import warnings

import pytest
from killing import comparable
from rich.console import Console
from spaces import valued_sequence

from discodso import (
    Callback,
    DeclarationError,
    DisCoSettings,
    JsonLines,
    NetworkSettings,
    RichProgress,
    Task,
    TensorBoard,
    search,
)
from discodso.run.callbacks import Callbacks, RunInfo
from discodso.run.history import HistoryRow

METHOD = DisCoSettings(batch_size=50, network=NetworkSettings(units=8))
TASK = Task(valued_sequence(), lambda d: -sum((v - 0.7) ** 2 for v in d.values if v is not None))


class Diary(Callback):
    def __init__(self):
        self.pages = []

    def start(self, info):
        self.pages.append(("start", info.budget))

    def batch(self, row, ranking):
        self.pages.append(("batch", row.calls))

    def improvement(self, best, row):
        self.pages.append(("improvement", best.reward))

    def end(self, result):
        self.pages.append(("end", result.calls))


def test_the_hooks_come_in_order():
    diary = Diary()
    result = search(TASK, budget=120, method=METHOD, callback=diary)
    assert diary.pages[0] == ("start", 120)
    assert [page for page in diary.pages if page[0] == "batch"] == [("batch", n) for n in (50, 100, 120)]
    assert diary.pages[-1] == ("end", 120)
    better = [value for name, value in diary.pages if name == "improvement"]
    assert better == sorted(set(better))
    assert better[-1] == result.best.reward


def test_several_callbacks_and_functions_together():
    rows, diary = [], Diary()
    search(TASK, budget=100, method=METHOD, callback=[diary, lambda row, ranking: rows.append(row.calls)])
    assert rows == [50, 100]
    assert len(diary.pages) >= 5


def test_a_failing_callback_warns_once_and_the_run_goes_on():
    calls = []

    def failing(row, ranking):
        calls.append(row.calls)
        raise OSError("no network")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = search(TASK, budget=200, method=METHOD, callback=failing)
    told = [str(w.message) for w in caught if "callback" in str(w.message)]
    assert len(told) == 1
    assert "failing failed in batch with OSError: no network" in told[0]
    assert calls == [50, 100, 150, 200]
    assert comparable(result) == comparable(search(TASK, budget=200, method=METHOD))


def test_json_lines_are_for_programs(tmp_path):
    stream = io.StringIO()
    search(TASK, budget=100, method=METHOD, callback=[JsonLines(tmp_path / "events"), JsonLines(stream)])
    assert (tmp_path / "events").read_text().count("\n") == stream.getvalue().count("\n")
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [events[0]["event"], events[-1]["event"]] == ["start", "end"]
    assert events[-1]["stop"] == "budget"
    assert [e["calls"] for e in events if e["event"] == "batch"] == [50, 100]


def test_progress_is_a_bar_on_a_terminal_and_lines_elsewhere():
    plain, terminal = io.StringIO(), io.StringIO()
    search(TASK, budget=200, method=METHOD, callback=RichProgress(Console(file=plain)))
    assert plain.getvalue().splitlines()[0].startswith("50 calls, best ")
    assert "\x1b" not in plain.getvalue()
    search(
        TASK, budget=200, method=METHOD, callback=RichProgress(Console(file=terminal, force_terminal=True))
    )
    assert "200/200" in terminal.getvalue()


def test_notes_are_lines_and_events():
    plain, events = io.StringIO(), io.StringIO()
    callbacks = Callbacks([RichProgress(Console(file=plain, width=20)), JsonLines(events)])
    callbacks("note", "test: 1000 unseen seeds, none of which [the search] has seen")
    assert plain.getvalue() == "test: 1000 unseen seeds, none of which [the search] has seen\n"
    assert json.loads(events.getvalue())["words"].startswith("test: 1000")


def test_a_best_reward_that_falls_is_explained():
    plain = io.StringIO()
    progress = RichProgress(Console(file=plain))
    progress.start(RunInfo("task", 100, 0, 0))
    for calls, best, confirming in ((10, 2.0, False), (20, 3.0, False), (30, 2.5, False), (40, 1.0, True)):
        row = HistoryRow(calls, best, best, best, None, None, 1.0, 1, 0, 0.1, confirming=confirming)
        progress.batch(row, None)
    assert plain.getvalue().splitlines() == [
        "10 calls, best 2.00000, mean 2.00000",
        "20 calls, best 3.00000, mean 3.00000",
        "30 calls, best 2.50000 (before 3.00000: evaluated again its mean fell), mean 2.50000",
        "40 calls, best 1.00000 (before 2.50000: on fresh seeds), mean 1.00000",
    ]


def test_tensorboard_gets_curves(tmp_path):
    pytest.importorskip("tensorboard")
    search(TASK, budget=100, method=METHOD, callback=TensorBoard(tmp_path / "board"))
    (file,) = (tmp_path / "board").iterdir()
    assert b"search/best" in file.read_bytes()


def test_what_is_no_callback_is_refused():
    with pytest.raises(DeclarationError, match="callback must be a function"):
        search(TASK, budget=10, callback="print")


@pytest.mark.parametrize(
    ("error", "as_console"),
    [
        (OSError(28, "No space left on device"), False),
        (OSError(28, "No space left on device"), True),
        (ValueError("closed"), False),
        (ValueError("closed"), True),
        (BrokenPipeError(), False),
    ],
)
def test_progress_that_cannot_be_shown_stays_silent(monkeypatch, recwarn, error, as_console):
    tries = []

    class Broken(io.StringIO):
        def write(self, text):
            tries.append(text)
            raise error

    monkeypatch.setattr(sys, "stderr", Broken())
    progress = RichProgress(Console(file=Broken()) if as_console else None)
    assert search(TASK, budget=200, method=METHOD, callback=progress).calls == 200
    assert len(tries) == 1
    assert not recwarn.list
