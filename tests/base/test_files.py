"""Files that are whole or not there, and JSON that anyone may have edited."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from discodso import FileError
from discodso.base import files
from discodso.base.files import Closing, file_errors, json_numbers, read_object, read_plain, write_atomically


def test_a_file_is_written_whole_with_its_folders(tmp_path):
    path = tmp_path / "a" / "b.txt"
    write_atomically(path, "größer\n")
    assert path.read_bytes() == "größer\n".encode()
    write_atomically(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    assert list(path.parent.iterdir()) == [path]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "kept.txt"
    path.write_text("old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match=r"cannot write .*kept\.txt: No space left on device"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_errors_of_the_system_are_told_once():
    with pytest.raises(FileError, match="cannot read x: No such file"), file_errors("cannot read x"):
        Path("/nowhere/at/all").read_text()
    with pytest.raises(FileError, match=r"^inner$"), file_errors("outer"):
        raise FileError("inner")


@pytest.mark.parametrize("content", [b"", b"[1]", b"{", b"\xff{}", b"3", b"[" * 100_000])
def test_what_is_no_object_is_none(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    assert read_object(path) is None
    assert read_object(tmp_path / "missing.json") is None


def test_numbers_that_do_not_fit_are_null():
    text = '{"a": NaN, "b": -Infinity, "c": 1e999, "d": 12345678901234567890, "e": 1.5, "f": -7}'
    assert json_numbers(text) == {"a": None, "b": None, "c": None, "d": None, "e": 1.5, "f": -7}


def test_what_is_held_is_let_go_at_the_end_of_a_block():
    class Held(Closing):
        closed = False

        def close(self):
            self.closed = True

    with pytest.raises(KeyError), Held() as held:
        raise KeyError
    assert held.closed


def test_a_file_that_somebody_reads_is_replaced_a_moment_later(tmp_path, monkeypatch):
    path, tries, replace = tmp_path / "top.json", [], os.replace

    def refusing(old, new):
        tries.append(new)
        if len(tries) < 3:
            raise PermissionError(13, "The process cannot access the file")
        replace(old, new)

    monkeypatch.setattr(os, "replace", refusing)
    with pytest.raises(FileError, match="cannot access"):  # where only rights can be the reason
        write_atomically(path, "{}")
    tries.clear()
    monkeypatch.setattr(files, "may_be_held_by_readers", lambda: True)
    write_atomically(path, "{}")
    assert len(tries) == 3
    assert list(tmp_path.iterdir()) == [path]


def test_an_endless_file_is_refused_without_being_read(tmp_path):
    path = tmp_path / "history.jsonl"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(FileError, match="has more than 1,073,741,824 bytes"):
        read_plain(path)
    with pytest.raises(FileError, match="has more than 10 bytes"):
        read_plain(Path("/proc/self/status"), 10)  # whose size is not told before


def test_a_message_has_one_line_of_limited_length():
    assert str(FileError("no \r\ncolumn\u2028x")) == "no  column x"
    assert len(str(FileError("x" * 100_000))) == 4000
