"""A line for whose workers wait for the slowest of a batch."""

from __future__ import annotations

import pytest

from discodso.run import waiting
from discodso.run.waiting import Waiting


@pytest.mark.parametrize(
    ("workers", "there", "busy", "calls", "words"),
    [
        (4, 100.0, 236.0, 120, "busy 59% of the time"),
        (4, 100.0, 390.0, 120, ""),  # hardly any wait
        (4, 100.0, 236.0, 120_000, ""),  # too short to be worth it
        (4, 5.0, 10.0, 20, ""),  # too early to tell
        (1, 100.0, 50.0, 20, ""),
    ],
)
def test_it_is_said_where_it_matters(monkeypatch, workers, there, busy, calls, words):
    now = iter([0.0, there])
    monkeypatch.setattr(waiting.time, "monotonic", lambda: next(now))
    own = Waiting(workers)
    with own.measured() as measured:
        measured(busy, calls)
    assert words in own.words
    assert bool(own.words) == bool(words)
