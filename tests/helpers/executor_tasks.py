"""Tasks of every form for executors, and an executor that loses chunks and answers in any order."""

from __future__ import annotations

from concurrent.futures import Future

import numpy as np
from killing import comparable
from spaces import valued_sequence

from discodso import DisCoSettings, Measured, NetworkSettings, Task, search

METHOD = DisCoSettings(batch_size=50, network=NetworkSettings(units=8))


def objective(design):
    if design.tokens == ("d", "d"):
        raise ValueError("two of them")
    return -sum((v - 0.7) ** 2 for v in design.values if v is not None)


def noisy(design, seed):
    return objective(design) + np.random.default_rng(seed).random()


def batch(designs):
    return Measured(np.nansum(designs.values, axis=1), cost=float(len(designs)))


TASKS = {
    "plain": Task(valued_sequence(), objective),
    "stochastic": Task(valued_sequence(), noisy, stochastic=True),
    "batch": Task(valued_sequence(), batch_objective=batch, cost_unit="rows"),
}


def outcome(task, **options):
    return comparable(search(task, budget=173, seed=2, method=METHOD, **options))


class Shuffled:
    """Gives results in the reverse order, and fails some of the time."""

    workers = 3

    def __init__(self):
        self.jobs = []
        self.submitted = 0

    def submit(self, function, *arguments):
        future = Future()
        self.submitted += 1
        self.jobs.append((future, function, arguments, self.submitted % 5 == 0))
        return future

    def pump(self, seconds):
        jobs, self.jobs = self.jobs[::-1], []
        for future, function, arguments, lost in jobs:
            if lost:
                future.set_exception(ConnectionError("the worker went away"))
            else:
                future.set_result(function(*arguments))
