"""A run goes on as the search that it began as, or says what is another."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from killing import comparable
from resumable import SMALL, TASK

from discodso import CheckpointError, resume, search
from discodso.run.identity import source_mark


def other_objective(design):
    return float(len(design))


class Weighted:
    def __init__(self, weight):
        self.weight = weight

    def __call__(self, design):
        return self.weight * len(design)


@pytest.fixture
def begun(tmp_path):
    search(TASK, budget=60, method=SMALL, seed=1, out=tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"objective": other_objective}, "the source of the objective was changed"),
        ({"name": "another"}, "the task was 'task' and is 'another'"),
    ],
)
def test_another_objective_or_task_is_refused_unless_it_is_forced(begun, change, words):
    task = replace(TASK, **change)
    with pytest.raises(CheckpointError, match=f"{words}.*--force"):
        resume(begun, task=task, budget=120)
    assert resume(begun, task=task, budget=120, force=True).calls == 120


def test_edited_settings_are_refused_and_limits_are_not(begun):
    settings = begun / "settings.toml"
    text = settings.read_text()
    whole = comparable(search(TASK, budget=120, method=SMALL, seed=1))
    settings.write_text(text.replace("batch_size = 50", "batch_size = 40"))
    with pytest.raises(CheckpointError, match=r"method\.batch_size was 50 and is 40"):
        resume(begun, task=TASK)
    settings.write_text(
        text.replace("budget = 60", "budget = 120").replace('on_failure = "stop"', 'on_failure = "continue"')
    )
    assert comparable(resume(begun, task=TASK)) == whole


def test_what_stands_for_an_objective_is_its_own_source():
    assert source_mark(other_objective) == source_mark(partial(partial(other_objective), x=1))
    assert source_mark(Weighted(1)) == source_mark(Weighted(2)) != source_mark(other_objective)
    assert source_mark(search) is None  # of discodso itself
    assert source_mark(len) is None  # without a source
