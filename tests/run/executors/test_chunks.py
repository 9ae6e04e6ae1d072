"""The one loop of lost and found work: what is sent again, what goes alone, what is given up."""

from __future__ import annotations

import ast
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass
from pathlib import Path

import pytest

import discodso
from discodso import ExecutorError
from discodso.run.executors.chunks import Chunks, GivenUp, Retries, WorkerLost


@dataclass(frozen=True)
class Words:
    words: tuple[str, ...]

    def __len__(self):
        return len(self.words)

    def singles(self):
        return [Words((word,)) for word in self.words]


class Desk:
    """Does everything at once; a load with one of the words in `faults` ends as said there, so often."""

    def __init__(self, **faults):
        self.faults = faults
        self.sent = []

    def submit(self, load):
        self.sent.append(" ".join(load.words))
        future = Future()
        for word in load.words:
            if self.faults.get(word):
                future.set_exception(self.faults[word].pop())
                return future
        future.set_result(len(load))
        return future


def found(desk, retries, *loads, **options):
    numbered, first = [], 0
    for load in loads:
        numbered.append((first, Words(tuple(load.split()))))
        first += len(numbered[-1][1])
    chunks = Chunks(desk, desk.submit, numbered, retries, **options)
    return {chunk.first: answer for chunk, answer in chunks.answers()}


def test_a_lost_chunk_goes_again_then_one_by_one_and_then_only_the_guilty_is_given_up():
    desk = Desk(b=[WorkerLost()] * 9)
    answers = found(desk, Retries(), "a b", "c d", window=1)
    assert desk.sent == ["a b", "a b", "a", "b", "b", "b", "c d"]
    given_up = answers.pop(1)
    assert isinstance(given_up, GivenUp)
    assert (given_up.lost, given_up.late) == (3, False)
    assert answers == {0: 1, 2: 2}


def test_losses_may_count_on_when_parts_go_alone():
    desk = Desk(b=[WorkerLost()] * 9)
    answers = found(desk, Retries(together=1, afresh=False), "a b")
    assert desk.sent == ["a b", "a", "b", "b"]
    assert answers[1].lost == 3


def test_what_is_late_goes_alone_at_once_and_is_given_up_at_once():
    desk = Desk(b=[TimeoutError()] * 9)
    answers = found(desk, Retries(losses=(TimeoutError,)), "a b")
    assert desk.sent == ["a b", "a", "b"]
    assert answers[1].late


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (ValueError("x"), ValueError),
        (BrokenExecutor(), ExecutorError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_what_is_no_loss_is_raised_and_the_rest_let_go(error, raised):
    desk = Desk(b=[error])
    with pytest.raises(raised):
        found(desk, Retries(), "a", "b", "c", window=1)
    assert desk.sent == ["a", "b"]


def test_there_is_one_such_loop():
    """Only there are futures awaited."""
    source = Path(discodso.__file__).parent
    waiting = {
        path.name
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("add_done_callback", "pump")
    }
    assert waiting == {"chunks.py", "processes.py"}  # the latter pumps for those who ask a future of its own
