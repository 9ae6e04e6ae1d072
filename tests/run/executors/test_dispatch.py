"""Work that is spread over an executor: in any order, lost and sent again, whole where it must be."""

from __future__ import annotations

import os

import numpy as np
import pytest
from executor_tasks import METHOD, TASKS, Shuffled, outcome
from killing import comparable
from spaces import valued_sequence

from discodso import ExecutorError, StopReason, Task, resume, search
from discodso.run.executors.dispatch import as_completed
from discodso.run.executors.registry import Processes, Threads


@pytest.mark.parametrize("kind", TASKS)
def test_results_may_come_in_any_order_and_lost_chunks_are_sent_again(kind):
    executor = Shuffled()
    assert outcome(TASKS[kind], executor=executor) == outcome(TASKS[kind])
    assert executor.submitted > 20


def test_the_number_of_workers_alone_says_how_many_designs_travel_together():
    class Noting(Shuffled):
        sizes = ()

        def submit(self, function, *arguments):
            self.sizes = (*self.sizes, len(arguments[1]))
            return super().submit(function, *arguments)

    executor = Noting()
    search(TASKS["plain"], budget=48, method=METHOD, executor=executor)
    assert set(executor.sizes) == {4}  # a quarter of what each of three workers gets
    with pytest.raises(TypeError, match="chunk_size"):
        search(TASKS["plain"], budget=48, executor=executor, chunk_size=7)


def test_a_batch_objective_with_dependent_rows_stays_whole_and_here():
    sizes = []

    def ranks(designs):
        sizes.append((len(designs), os.getpid()))
        return np.argsort(np.argsort(np.nansum(designs.values, axis=1))).astype(float)

    task = Task(valued_sequence(), batch_objective=ranks, rows_independent=False)
    with Processes(2) as executor:
        outcome(task, executor=executor)
    assert set(sizes) == {(50, os.getpid()), (23, os.getpid())}


def test_a_batch_objective_that_raises_fails_the_same_with_workers():
    def broken(designs):
        raise RuntimeError("no licence")

    task = Task(valued_sequence(), batch_objective=broken)
    with Processes(2) as executor:
        assert outcome(task, executor=executor) == outcome(task)


def double(x):
    return 2 * x


def exit_once(path):
    if not path.exists():
        path.write_text("")
        os._exit(1)
    return "done"


def test_whole_experiments_spread_over_an_executor(tmp_path):
    with Processes(2) as executor:
        assert sorted(as_completed(executor, double, range(10))) == list(range(0, 20, 2))
        assert list(as_completed(executor, exit_once, [tmp_path / "mark"])) == ["done"]
        with pytest.raises(TypeError):
            list(as_completed(executor, double, [None]))
    with Threads(2) as threads:
        assert sorted(as_completed(threads, double, range(10))) == list(range(0, 20, 2))


def test_an_executor_that_breaks_ends_the_run_with_a_good_checkpoint(tmp_path):
    class Breaking(Shuffled):
        def check(self):
            if self.submitted > 30:
                raise ExecutorError("the scheduler went away")

        def pump(self, seconds):
            if self.submitted <= 30:
                super().pump(seconds)

    task = TASKS["plain"]
    result = search(task, budget=300, seed=2, method=METHOD, executor=Breaking(), out=tmp_path / "run")
    assert result.stop is StopReason.EXECUTOR
    assert "the scheduler went away" in result.sentence
    assert 0 < result.calls < 300
    whole = search(task, budget=300, seed=2, method=METHOD)
    assert comparable(resume(tmp_path / "run", task=task)) == comparable(whole)


def test_a_module_that_workers_do_not_have_ends_the_run_in_one_line(tmp_path):
    class Elsewhere(Shuffled):
        def pump(self, seconds):
            jobs, self.jobs = self.jobs, []
            for future, *_ in jobs:
                future.set_exception(RuntimeError("Traceback ...\nNo module named 'my_task'\n"))

    found = search(TASKS["plain"], budget=100, method=METHOD, executor=Elsewhere(), out=tmp_path / "run")
    assert found.stop is StopReason.EXECUTOR
    assert "a worker has no module 'my_task'" in found.sentence
    assert "\n" not in found.sentence
    whole = search(TASKS["plain"], budget=100, method=METHOD)
    assert comparable(resume(tmp_path / "run", task=TASKS["plain"])) == comparable(whole)
