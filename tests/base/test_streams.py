"""Standard error that may be broken: words get lost, nothing else does."""

from __future__ import annotations

import io
import os

import pytest

from discodso.base.streams import Forgiving, discard


class Breaking(io.StringIO):
    """Takes two texts, then the disk is full."""

    def write(self, text):
        if self.getvalue().count("\n") == 2:
            raise OSError(28, "No space left on device")
        return super().write(text)


def test_a_stream_that_refuses_something_is_not_tried_again():
    inner = Breaking()
    stream = Forgiving(inner)
    for word in ("one\n", "two\n", "three\n"):
        assert stream.write(word) == len(word)
    assert stream.broken
    inner.seek(0)
    inner.truncate()  # it would take more now
    stream.write("four\n")
    stream.flush()
    assert inner.getvalue() == ""
    assert not stream.isatty()


@pytest.mark.parametrize("closed", [True, False])
def test_no_stream_and_a_closed_one_say_nothing(closed):
    inner = io.StringIO()
    inner.close()
    stream = Forgiving(inner if closed else None)
    assert stream.write("word") == 4
    stream.flush()
    assert not stream.isatty()
    assert stream.broken


def test_all_else_is_the_streams_own():
    class Terminal(io.StringIO):
        encoding = "utf-8"

        def isatty(self):
            return True

    assert Forgiving(Terminal()).isatty()
    assert Forgiving(Terminal()).encoding == "utf-8"


def test_what_a_broken_pipe_still_holds_goes_nowhere():
    reading, writing = os.pipe()
    stream = os.fdopen(writing, "w")
    os.close(reading)
    stream.write("held back")
    discard(stream)
    stream.close()  # would raise BrokenPipeError
    discard(stream)  # has no number any more
    discard(None)
