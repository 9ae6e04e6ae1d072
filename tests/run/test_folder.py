"""Run folders: never overwritten, never shared, and damage is passed over or told in one line."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
from killing import comparable
from resumable import SMALL, TASK, objective
from spaces import decision_tree, valued_sequence

from discodso import (
    CheckpointError,
    DiscodsoError,
    DisCoSettings,
    FileError,
    RandomSettings,
    Task,
    Where,
    resume,
    search,
)
from discodso.report.folders import read_run
from discodso.report.page import page
from discodso.report.page_data import page_data
from discodso.run.checkpoint import NAME, PREVIOUS, from_bytes, to_bytes
from discodso.space.state import State


def test_a_run_folder_is_never_overwritten(tmp_path):
    search(TASK, budget=60, method=SMALL, out=tmp_path / "run")
    before = {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir()}
    with pytest.raises(FileError, match=r"already holds a run.*discodso resume"):
        search(TASK, budget=60, method=SMALL, out=tmp_path / "run")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("mine")
    with pytest.raises(FileError, match="not empty"):
        search(TASK, budget=60, method=SMALL, out=tmp_path / "other")
    assert before == {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir()}


def test_a_run_that_was_killed_while_it_wrote_its_settings_is_started_again(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "lock").touch()
    (tmp_path / "run" / ".settings.toml.0a1b2c3d.tmp").write_text("[task]")
    search(TASK, budget=60, method=SMALL, out=tmp_path / "run")
    assert not list((tmp_path / "run").glob(".*"))


def test_two_processes_cannot_run_in_one_folder(tmp_path, monkeypatch):
    from discodso.run import folder as rundir

    monkeypatch.setattr("discodso.base.locks.WAIT", 0.0)
    search(TASK, budget=60, method=SMALL, out=tmp_path / "run")
    with rundir.RunFolder.reopen(tmp_path / "run"):
        assert rundir.is_running(tmp_path / "run")
        with pytest.raises(FileError, match="another process"):
            resume(tmp_path / "run", task=TASK, budget=200)
    assert not rundir.is_running(tmp_path / "run")


@pytest.fixture
def two_checkpoints(tmp_path):
    folder = tmp_path / "run"
    search(TASK, budget=200, method=SMALL, out=folder, checkpoint_seconds=0)
    assert (folder / NAME).exists()
    assert (folder / PREVIOUS).exists()
    return folder


@pytest.mark.parametrize("damage", ["truncated", "edited", "foreign", "gone"])
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(two_checkpoints, damage):
    folder = two_checkpoints
    whole = comparable(search(TASK, budget=300, method=SMALL))
    content = (folder / NAME).read_bytes()
    if damage == "gone":
        (folder / NAME).unlink()
    else:
        edited = content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]
        bad = {"truncated": content[: len(content) // 2], "edited": edited, "foreign": b"PK\x03\x04" * 100}
        (folder / NAME).write_bytes(bad[damage])
    assert comparable(resume(folder, task=TASK, budget=300)) == whole
    assert comparable(resume(folder, task=TASK)) == whole


def test_without_a_good_checkpoint_there_is_one_line(two_checkpoints):
    for name in (NAME, PREVIOUS):
        (two_checkpoints / name).write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="no older one is left") as caught:
        resume(two_checkpoints, task=TASK, budget=300)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"task": Task(decision_tree(), objective)}, "another space"),
        ({"task": TASK, "method": RandomSettings()}, "another method"),
        ({"task": TASK, "method": DisCoSettings(batch_size=50)}, r"method\..* was .* and is .*--force"),
        ({"task": TASK, "budget": 10}, "200 calls already"),
        ({}, "began in Python"),
    ],
)
def test_what_does_not_fit_is_refused(two_checkpoints, change, words):
    before = (two_checkpoints / NAME).read_bytes()
    with pytest.raises(DiscodsoError, match=words):
        resume(two_checkpoints, **change)
    assert (two_checkpoints / NAME).read_bytes() == before


def test_a_run_with_another_condition_is_refused(tmp_path):
    def task(condition, **named):
        return Task(replace(valued_sequence(), constraints=[Where(condition, **named)]), objective)

    begun = task(lambda design: design.tokens[0] == "v")
    search(begun, budget=50, method=RandomSettings(batch_size=25), out=tmp_path / "run")
    with pytest.raises(CheckpointError, match="another space"):
        resume(tmp_path / "run", budget=100, task=task(lambda design: design.tokens[1] == "v"))
    same = task(lambda d: d.tokens[0] == "v")
    assert resume(tmp_path / "run", budget=100, task=same).calls == 100
    named = task(lambda design: design.tokens[0] == "v", called="begins with a value")
    search(named, budget=50, method=RandomSettings(batch_size=25), out=tmp_path / "named")
    trusted = task(lambda design: design.tokens[0] != "d", called="begins with a value")
    assert resume(tmp_path / "named", budget=100, task=trusted).calls == 100


def test_a_history_that_lost_rows_is_refused_and_one_with_more_is_cut(two_checkpoints):
    history = two_checkpoints / "history.jsonl"
    content = history.read_text()
    history.write_text(content + '{"calls": 250, "best"')
    whole = comparable(search(TASK, budget=300, method=SMALL))
    assert comparable(resume(two_checkpoints, task=TASK, budget=300)) == whole
    rows = [json.loads(line) for line in history.read_text().splitlines()]
    assert [row["calls"] for row in rows] == [50, 100, 150, 200, 250, 300]
    history.write_text("\n".join(content.splitlines()[:2]) + "\n")
    with pytest.raises(CheckpointError, match="does not have the 6 rows"):
        resume(two_checkpoints, task=TASK, budget=400)


def test_a_full_disk_ends_the_run_in_one_line_and_harms_nothing(two_checkpoints, monkeypatch):
    import errno

    before = (two_checkpoints / NAME).read_bytes()

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(FileError, match="No space left on device"):
            resume(two_checkpoints, task=TASK, budget=300)
    assert (two_checkpoints / NAME).read_bytes() == before
    assert not list(two_checkpoints.glob(".*.tmp"))
    whole = comparable(search(TASK, budget=300, method=SMALL))
    assert comparable(resume(two_checkpoints, task=TASK, budget=300)) == whole


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot make the folder"):
        search(TASK, budget=60, method=SMALL, out=tmp_path / "file" / "run")


def test_the_folder_tells_where_it_was_made(tmp_path):
    search(TASK, budget=60, method=SMALL, out=tmp_path / "run")
    environment = json.loads((tmp_path / "run" / "environment.json").read_text())
    assert environment["packages"]["torch"]
    assert environment["command"]
    top = json.loads((tmp_path / "run" / "top.json").read_text())
    assert top["stop"] == "budget"
    assert top["calls"] == 60
    assert not [
        file for file in (tmp_path / "run").iterdir() if "pickle" in file.name or file.suffix == ".pkl"
    ]


@pytest.mark.parametrize("way", ["renamed", "deleted"])
def test_a_folder_that_is_taken_from_under_a_run_is_not_made_again(tmp_path, way):
    place = tmp_path / "run"

    def take(row, best):
        if row.calls == 100:
            place.rename(tmp_path / "moved") if way == "renamed" else shutil.rmtree(place)

    with pytest.raises(FileError, match="was renamed, removed or replaced while"):
        search(TASK, budget=200, method=SMALL, out=place, callback=take, checkpoint_seconds=0)
    assert not place.exists()
    if way == "renamed":
        assert comparable(resume(tmp_path / "moved", task=TASK)) == comparable(
            search(TASK, budget=200, method=SMALL)
        )


@pytest.mark.parametrize("trick", ["link", "second name", "pipe", "device"])
def test_a_stranger_cannot_have_other_files_written_or_read_through_a_run_folder(
    two_checkpoints, tmp_path, trick
):
    own = tmp_path / "mine.txt"
    own.write_text(secret := "[task]\nname = 'secret'\n")
    for name in ("history.jsonl", "lock", "settings.toml", "top.json", NAME):
        path = two_checkpoints / name
        kept = path.read_bytes()
        path.unlink()
        if trick == "link":
            path.symlink_to(own)
        elif trick == "second name":
            path.hardlink_to(own)
        elif trick == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to("/dev/zero")
        with contextlib.suppress(DiscodsoError):
            resume(two_checkpoints, task=TASK, budget=250)
        assert own.read_text() == secret
        if trick != "second name":  # which is a file like any other, for reading
            with contextlib.suppress(DiscodsoError):
                assert "secret" not in page(page_data([read_run(two_checkpoints)]))
        path.unlink()
        path.write_bytes(kept)


@pytest.mark.parametrize(
    ("name", "value"),
    [("seconds", 10**400), ("top", [{"reward": 10**400}]), ("rows", []), ("known", [[1.0]]), ("step", -1.0)],
    ids=["seconds", "top", "rows", "known", "step"],
)
def test_a_forged_checkpoint_gets_one_line(two_checkpoints, name, value):
    state = from_bytes((two_checkpoints / NAME).read_bytes())
    arrays, data = dict(state.arrays), copy.deepcopy(state.data)
    if name == "known":
        arrays["run/known/rewards"] = np.array(value)
    elif name == "step":
        arrays |= {key: np.array(value, np.float32) for key in arrays if key.endswith("/step")}
    else:
        data["run"][name] = value
    (two_checkpoints / NAME).write_bytes(to_bytes(State(arrays, data)))
    (two_checkpoints / PREVIOUS).unlink()
    with pytest.raises(CheckpointError, match="does not fit") as caught:
        resume(two_checkpoints, task=TASK, budget=300)
    assert "\n" not in str(caught.value)
