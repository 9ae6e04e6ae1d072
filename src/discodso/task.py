"""What a user writes: a space and an objective."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from discodso.checks import is_number
from discodso.errors import DeclarationError
from discodso.space import Space

Objective = Callable[..., Any]


@dataclass(frozen=True)
class Task:
    """A design problem; rewards are maximised.

    Args:
        space: the designs.
        objective: function of one `Design` to a number. With `stochastic` it takes a second argument, an
            integer seed, and must use no other source of randomness.
        batch_objective: function of a `DesignBatch` to as many numbers, or to `Measured` (and of an array of
            seeds, if stochastic); used in place of `objective` where given.
        stochastic: whether the objective takes seeds.
        worst_reward: what a failed evaluation counts as; -inf keeps it out of the averages.
        name: for reports.
        cost_unit: what a batch objective counts besides calls, and returns as the cost of `Measured`, such as
            "episodes"; empty for nothing.
        rows_independent: whether a batch objective rates each design as if it were alone, so that executors may
            share a batch among them; otherwise it is called with whole batches, in the process of the search.

    An objective that remembers something from call to call has methods `state` and `restore` (see `Resumable`) if
    its runs are to be resumed, and stays in the process of the search.
    """

    space: Space
    objective: Objective | None = None
    batch_objective: Objective | None = None
    stochastic: bool = False
    worst_reward: float = -math.inf
    name: str = "task"
    cost_unit: str = ""
    rows_independent: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.space, Space):
            raise DeclarationError(f"space must be a Space, got {self.space!r}")
        given = [f for f in (self.objective, self.batch_objective) if f is not None]
        if not given:
            raise DeclarationError("a task needs an objective or a batch_objective")
        if not all(callable(f) for f in given):
            raise DeclarationError("objective and batch_objective must be functions")
        if self.worst_reward != -math.inf and not is_number(self.worst_reward):
            raise DeclarationError(f"worst_reward must be a number or -inf, got {self.worst_reward!r}")
