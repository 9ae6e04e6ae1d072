"""Executors by name: the same result from all of them."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

import pytest
from executor_tasks import TASKS, outcome

from discodso import DeclarationError, search
from discodso.run.executors.registry import Processes, Threads, make_executor


@pytest.mark.parametrize("kind", TASKS)
def test_all_executors_and_numbers_of_workers_give_the_same_result(kind):
    task = TASKS[kind]
    expected = outcome(task)
    for workers in (1, 2, 8):
        with Processes(workers) as executor:
            assert outcome(task, executor=executor) == expected
    with Threads(2) as threads, ProcessPoolExecutor(2) as pool:
        assert outcome(task, executor=threads) == expected
        assert outcome(task, executor=pool) == expected
        assert outcome(task, executor=threads, design_seconds=60.0) == expected


@pytest.mark.parametrize(
    ("do", "words"),
    [
        (lambda: make_executor("dask"), "executor.address must name a Dask scheduler"),
        (lambda: make_executor("slurm"), "executor.kind must be one of"),
        (lambda: Processes(0), "workers must be an integer >= 1"),
        (
            lambda: search(TASKS["plain"], budget=9, executor=3),
            "executor must be an object with a method submit",
        ),
        (lambda: search(TASKS["plain"], budget=9, design_seconds=0), "design_seconds"),
    ],
)
def test_bad_executors_get_one_line(do, words):
    with pytest.raises(DeclarationError, match=words):
        do()
