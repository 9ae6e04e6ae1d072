"""Asynchronous runs: every worker is busy, the journal replays them exactly, and nothing is evaluated twice."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future
from dataclasses import replace

import numpy as np
import pytest
from killing import comparable
from resumable import SMALL, TASK, objective
from spaces import decision_tree

from discodso import (
    DeclarationError,
    Design,
    FixedSequence,
    GPSettings,
    Processes,
    RandomSettings,
    SettingsError,
    Space,
    StopReason,
    Task,
    Threads,
    Token,
    preset,
    resume,
    search,
)
from discodso.run.journal import JOURNAL


class Shuffled:
    """An executor whose workers are done in an order that a seed decides, or lose their work."""

    def __init__(self, workers: int, seed: int, lost: tuple[int, ...] = ()) -> None:
        self.workers, self.lost, self.done = workers, lost, 0
        self._rng = np.random.default_rng(seed)
        self._running: list[tuple[Future, tuple]] = []
        self.most = 0

    def submit(self, function, *arguments):
        future: Future = Future()
        self._running.append((future, (function, *arguments)))
        self.most = max(self.most, len(self._running))
        return future

    def pump(self, seconds):
        if self._running:
            future, (function, *arguments) = self._running.pop(int(self._rng.integers(len(self._running))))
            self.done += 1
            if self.done in self.lost:
                future.set_exception(OSError("a worker has gone"))
            else:
                future.set_result(function(*arguments))

    def abandon(self, futures):
        self._running.clear()


def run(budget=120, seed=1, method=None, task=TASK, workers=4, order=0, lost=(), **more):
    executor = Shuffled(workers, order, lost)
    found = search(
        task, budget=budget, seed=seed, method=method, executor=executor, asynchronous=True, **more
    )
    return found, executor


def test_all_workers_are_busy_and_no_more_than_the_budget_is_evaluated():
    seen = Counter()

    def counted(design: Design) -> float:
        seen[str(design)] += 1
        return objective(design)

    found, executor = run(task=replace(TASK, objective=counted), method=preset("default", budget=120))
    assert (found.calls, found.stop, executor.most) == (120, StopReason.BUDGET, 4)
    assert seen.total() == 120
    assert seen.most_common(1)[0][1] == 1  # none was paid twice
    assert [row.calls for row in found.history] == list(range(10, 121, 10))


def test_the_order_of_answers_decides_the_run():
    first, again, other = (run(order=order, method=preset("default", budget=120))[0] for order in (3, 3, 4))
    assert comparable(first) == comparable(again) != comparable(other)


SEEN: list[Design] = []


def seen_objective(design: Design) -> float:
    SEEN.append(design)
    return objective(design)


def noisy(design: Design, seed: int) -> float:
    SEEN.append(design)
    return len(design) + np.random.default_rng(seed).random()


TASKS = {
    "plain": replace(TASK, objective=seen_objective),
    "stochastic": Task(decision_tree(), noisy, stochastic=True),
}
TRIED = {
    "default": preset("default", budget=90),
    "paper": SMALL,
    "random": RandomSettings(30),
    "gp": GPSettings(population=20),
}


class Killed(BaseException):
    """Nothing catches it: the run ends where it is."""


class Dying(Shuffled):
    """Ends the run after so many answers."""

    def __init__(self, workers, seed, answers):
        super().__init__(workers, seed)
        self.answers = answers

    def pump(self, seconds):
        if not self.answers:
            raise Killed
        self.answers -= 1
        super().pump(seconds)


@pytest.mark.parametrize("method", TRIED.values(), ids=TRIED)
@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_a_run_that_was_killed_goes_on_from_its_journal(tmp_path, task, method):
    for answers in (0, 37, 88):
        folder = tmp_path / str(answers)
        with pytest.raises(Killed):
            search(
                task,
                budget=90,
                method=method,
                executor=Dying(4, 5, answers),
                asynchronous=True,
                confirm_calls=10 if task.stochastic else None,
                out=folder,
                checkpoint_seconds=0.0 if answers == 37 else 1e9,
            )
        SEEN.clear()
        again = resume(folder, task=task, executor=Shuffled(4, 6))
        assert (len(SEEN), again.calls) == (90 - answers, 90)
        lines = (folder / JOURNAL).read_bytes()
        # From the beginning, with all that the journal has: the same once more, and no call.
        with pytest.raises(Killed):
            search(
                task,
                budget=90,
                method=method,
                executor=Dying(4, 5, 0),
                asynchronous=True,
                confirm_calls=10 if task.stochastic else None,
                out=tmp_path / f"{answers} again",
                checkpoint_seconds=1e9,
            )
        (tmp_path / f"{answers} again" / JOURNAL).write_bytes(lines)
        SEEN.clear()
        replayed = resume(tmp_path / f"{answers} again", task=task, executor=Dying(4, 0, 0))
        assert comparable(replayed) == comparable(again)
        assert not SEEN


def test_what_a_lost_worker_had_is_sent_again():
    found, _ = run(method=RandomSettings(20), lost=(1, 20, 33), budget=60)
    assert (found.calls, found.failure_count) == (
        60,
        run(method=RandomSettings(20), budget=60)[0].failure_count,
    )


def test_a_space_that_is_exhausted_ends_the_run():
    space = Space([Token("a"), Token("b")], FixedSequence(4))
    for method in (preset("default", budget=100), RandomSettings(10), GPSettings(population=10)):
        found, _ = run(
            task=Task(space, lambda design: float(len(set(design.tokens)))), budget=100, method=method
        )
        assert (found.calls, found.stop) == (16, StopReason.EXHAUSTED), method


def test_a_target_ends_it_and_what_is_under_way_is_awaited():
    found, executor = run(target=-10.0, budget=100)
    assert (found.stop, found.calls) == (StopReason.TARGET, 4)
    assert not executor._running


def test_ctrl_c_ends_it_and_the_rest_is_done_later(tmp_path):
    class Pressed(Shuffled):
        def pump(self, seconds):
            super().pump(seconds)
            if len(SEEN) == 21:
                raise KeyboardInterrupt

    SEEN.clear()
    task = TASKS["plain"]
    found = search(task, budget=90, executor=Pressed(4, 1), asynchronous=True, out=tmp_path / "run")
    assert found.stop is StopReason.INTERRUPTED
    assert 20 <= found.calls <= 21
    again = resume(tmp_path / "run", task=task, executor=Shuffled(4, 1))
    assert (again.calls, again.stop) == (90, StopReason.BUDGET)
    assert len(SEEN) - 90 <= 1  # the answer that came with Ctrl-C may be lost


@pytest.mark.parametrize("executor", [Threads, Processes])
def test_workers_of_every_kind(executor):
    with executor(2) as workers:
        found = search(TASK, budget=40, method=RandomSettings(10), executor=workers, asynchronous=True)
    assert found.calls == 40


def test_what_it_is_not_for_is_said_in_a_line():
    with pytest.raises(SettingsError, match="needs workers; give an executor"):
        search(TASK, budget=10, asynchronous=True)
    whole = replace(
        TASK, objective=None, batch_objective=lambda designs: [0.0] * len(designs), rows_independent=False
    )
    with pytest.raises(DeclarationError, match="rates whole batches"):
        search(whole, budget=10, asynchronous=True, executor=Shuffled(2, 0))


@pytest.mark.parametrize(
    "method", [preset("default", budget=32), RandomSettings(10)], ids=["default", "random"]
)
def test_what_was_told_in_part_is_not_evaluated_again_after_a_kill(tmp_path, method):
    task = Task(Space([Token("a"), Token("b")], FixedSequence(5)), seen_length)
    SEEN.clear()
    options = {"budget": 32, "method": method, "asynchronous": True, "checkpoint_seconds": 0.0}
    with pytest.raises(Killed):
        search(task, **options, executor=Dying(4, 5, 17), out=tmp_path / "run")
    again = resume(tmp_path / "run", task=task, executor=Shuffled(4, 6))
    assert again.calls == 32
    assert len(set(map(str, SEEN))) == 32


def seen_length(design: Design) -> float:
    SEEN.append(design)
    return float(len(set(design.tokens)))
