"""Locks of folders: one holder at a time on every file system, and none that stays when its process is gone."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import time

import pytest

from discodso import FileError
from discodso.base import locks
from discodso.base.locks import FolderLock, is_locked

WAYS = pytest.mark.parametrize("way", ["of the system", "by files"])


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(locks, "WAIT", 0.0)


def without_locks(monkeypatch):
    """A file system, or a system, that has no locks."""
    monkeypatch.setattr(locks, "system_lock", lambda handle, exclusive: None)


@WAYS
def test_a_folder_has_one_holder_at_a_time(tmp_path, monkeypatch, way):
    if way == "by files":
        without_locks(monkeypatch)
    for _ in range(3):
        assert not is_locked(tmp_path)
        with FolderLock(tmp_path) as held:
            assert is_locked(tmp_path)
            held.check()
            with pytest.raises(FileError, match="is running in"):
                FolderLock(tmp_path)
            with FolderLock(tmp_path, name="other"):
                assert is_locked(tmp_path, "other")
    assert not is_locked(tmp_path)


@pytest.mark.parametrize("first", ["of the system", "by files"])
def test_a_machine_with_locks_and_one_without_exclude_each_other(tmp_path, monkeypatch, first):
    with monkeypatch.context() as patch:
        if first == "by files":
            without_locks(patch)
        held = FolderLock(tmp_path)
    if first != "by files":
        without_locks(monkeypatch)
    assert is_locked(tmp_path)
    with pytest.raises(FileError, match=r"is running in .* \(if there is none, remove"):
        FolderLock(tmp_path)
    held.close()
    FolderLock(tmp_path).close()


def record_of(tmp_path):
    return json.loads((tmp_path / "lock.1").read_text())


def test_the_lock_of_a_process_that_is_gone_is_taken_over_and_that_of_another_machine_is_not(
    tmp_path, monkeypatch
):
    without_locks(monkeypatch)
    FolderLock(tmp_path)  # never closed
    record, gone = record_of(tmp_path), subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for change in ({"process": gone.pid}, {"start": 1}, {"boot": "before"}):
        (tmp_path / "lock.1").write_text(json.dumps({**record, **change}))
        assert not is_locked(tmp_path)
        FolderLock(tmp_path).close()
        assert [file.name for file in sorted(tmp_path.iterdir())] == ["lock", "lock.2"]
        (tmp_path / "lock.2").unlink()
    for line in (json.dumps({**record, "machine": "far\x1b[2J"}), "", "[]"):
        (tmp_path / "lock.1").write_text(line)
        with pytest.raises(FileError, match=r"remove .*lock\.1\)$") as caught:
            FolderLock(tmp_path)
        assert str(caught.value).isprintable()
        assert is_locked(tmp_path)


def test_a_folder_that_was_moved_removed_or_replaced_is_noticed(tmp_path):
    place = tmp_path / "run"
    place.mkdir()
    with FolderLock(place) as held:
        held.check()
        place.rename(tmp_path / "moved")
        with pytest.raises(FileError, match="renamed, removed or replaced"):
            held.check()
        place.mkdir()
        (place / "lock").touch()
        with pytest.raises(FileError, match="renamed, removed or replaced"):
            held.check()
        (tmp_path / "moved").rename(tmp_path / "again")
        (place / "lock").unlink()
        place.rmdir()
        (tmp_path / "again").rename(place)
        held.check()


def test_a_process_that_was_forked_off_does_not_let_go(tmp_path, monkeypatch):
    without_locks(monkeypatch)
    with FolderLock(tmp_path) as held:
        if (child := os.fork()) == 0:
            held.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert is_locked(tmp_path)


def _count(folder, times):
    locks.system_lock = lambda handle, exclusive: None
    for _ in range(times):
        with FolderLock(folder, wait=60.0):
            own = int((folder / "count").read_text())
            time.sleep(0.001)
            (folder / "count").write_text(str(own + 1))


@pytest.mark.slow
def test_processes_take_turns_without_locks_of_the_system(tmp_path):
    (tmp_path / "count").write_text("0")
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_count, args=(tmp_path, 25)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert (tmp_path / "count").read_text() == "100"
