"""Ctrl-C outside of the objective waits for the end of a step, and loses nothing."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

import pytest
from killing import comparable
from resumable import TASK

from discodso import RandomSettings, StopReason, resume, search
from discodso.baselines.random_search import RandomSearch
from discodso.run.interrupts import Interrupts


class Pressed(RandomSearch):
    """A method in whose second update someone presses Ctrl-C."""

    updates = 0
    times = 1

    def tell(self, designs, rewards, weights=None):
        type(self).updates += 1
        if type(self).updates == 2:
            for _ in range(self.times):
                os.kill(os.getpid(), signal.SIGINT)
        return super().tell(designs, rewards, weights)


@dataclass(frozen=True)
class PressedSettings:
    name = "pressed"

    def build(self, space, seed):
        return Pressed(space, RandomSettings(20), seed=seed)


def test_an_update_is_finished_and_saved_before_the_run_ends(tmp_path):
    Pressed.updates = 0
    whole = comparable(search(TASK, budget=100, method=PressedSettings(), seed=4, out=tmp_path / "run"))
    assert (whole["stop"], whole["calls"]) == ("interrupted", 40)

    again = resume(tmp_path / "run", task=TASK, method=PressedSettings())
    assert (again.stop, again.calls) == (StopReason.BUDGET, 100)
    Pressed.updates = 10
    assert comparable(again) == comparable(search(TASK, budget=100, method=PressedSettings(), seed=4))


def test_the_second_one_does_not_wait():
    with Interrupts() as interrupts:
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupts.came
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):  # as before
        os.kill(os.getpid(), signal.SIGINT)


def test_it_comes_at_once_where_that_is_allowed():
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt), interrupts.at_once():
            os.kill(os.getpid(), signal.SIGINT)
        assert interrupts.came
        with pytest.raises(KeyboardInterrupt), interrupts.at_once():
            pass
