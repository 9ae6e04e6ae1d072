"""The clock of a run."""

from __future__ import annotations

import math

from discodso.run.clock import Clock


def test_time_is_left_until_the_limit_with_what_was_spent_before() -> None:
    assert math.isinf(Clock().left)
    clock = Clock(1000.0)
    assert clock.seconds + clock.left == 1000 or abs(clock.seconds + clock.left - 1000) < 1
    before = clock.seconds
    clock.go_on(2000.0)
    assert clock.seconds >= before + 2000
    assert clock.left < -999


def test_it_passes_words_on() -> None:
    heard: list[str] = []
    Clock(None, heard.append).say("test: 3 seeds")
    assert heard == ["test: 3 seeds"]
