"""What a user writes: a space and an objective."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from discodso.base.arrays import Floats, Ints
from discodso.base.checks import is_number
from discodso.base.errors import DeclarationError
from discodso.run import loading  # noqa: F401  (who unpickles a task needs it to find the module of the objective)
from discodso.run.result import Scored
from discodso.space.design import DesignBatch
from discodso.space.space import Space

Objective = Callable[..., Any]


@dataclass(frozen=True)
class Refined:
    """What `Task.refine` returns for B designs.

    Attributes:
        designs: the same designs, with other values at most, in the same order.
        rewards: float[B], of these designs; none is worse than before.
        calls: int[B], objective calls that each has cost, at most those allowed.
    """

    designs: DesignBatch
    rewards: Floats
    calls: Ints


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
        settled: told the best designs after every batch, it says in words why no better one can come, such as that
            the highest reward there is was reached often enough; "" to search on.
        repeatable: of a stochastic objective, whether a design gets the same reward each time all the same, as
            where all designs meet the same random events. Where a design was rated with less evidence at one time
            (see `Measured`), the reward with more of it counts.
        worst_reward: what a failed evaluation counts as; -inf keeps it out of the averages.
        name: for reports.
        cost_unit: what a batch objective counts besides calls, and returns as the cost of `Measured`, such as
            "episodes"; empty for nothing.
        rows_independent: whether a batch objective rates each design as if it were alone, so that executors may
            share a batch among them; otherwise it is called with whole batches, in the process of the search.
        refine: betters the values of designs, where an objective knows more than their reward, such as residuals
            and their derivatives: a function of a `DesignBatch` and of calls allowed to each, int[B], to
            `Refined`. The method picks the designs after every batch, and is told the refined ones in place of
            those picked. One evaluation is one objective call, and one derivative of all residuals is one more;
            all of them count. It runs in the process of the search, and is not for stochastic objectives.

    An objective that remembers something from call to call has methods `state` and `restore` (see `Resumable`) if
    its runs are to be resumed, and stays in the process of the search. If its rows are not independent, a batch
    that a run was stopped in is rated again as a whole, and must be rated then as if it were the first time.
    """

    space: Space
    objective: Objective | None = None
    batch_objective: Objective | None = None
    stochastic: bool = False
    worst_reward: float = -math.inf
    name: str = "task"
    cost_unit: str = ""
    rows_independent: bool = True
    refine: Callable[[DesignBatch, Ints], Refined] | None = None
    repeatable: bool = False
    settled: Callable[[Sequence[Scored]], str] | None = None

    @property
    def called(self) -> Any:
        """The objective that is used."""
        return self.batch_objective or self.objective

    @property
    def noisy(self) -> bool:
        """Whether the rewards of one design differ from call to call."""
        return self.stochastic and not self.repeatable

    def __post_init__(self) -> None:
        if not isinstance(self.space, Space):
            raise DeclarationError(f"space must be a Space, got {self.space!r}")
        if self.objective is None and self.batch_objective is None:
            raise DeclarationError("a task needs an objective or a batch_objective")
        if not all(f is None or callable(f) for f in (self.objective, self.batch_objective)):
            raise DeclarationError("objective and batch_objective must be functions")
        if self.refine is not None and (not callable(self.refine) or self.stochastic):
            raise DeclarationError("refine must be a function, of a task that is not stochastic")
        if self.repeatable and not self.stochastic:
            raise DeclarationError("repeatable is for stochastic tasks; others are so anyway, leave it out")
        if self.worst_reward != -math.inf and not is_number(self.worst_reward):
            raise DeclarationError(f"worst_reward must be a number or -inf, got {self.worst_reward!r}")
