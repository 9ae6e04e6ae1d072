"""What a user writes: a space and an objective."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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
        outside: there is no objective: rewards come from a laboratory or another program, by `Queue`, or by
            `discodso ask` and `discodso tell`.
        worst_reward: what a failed evaluation counts as; -inf keeps it out of the averages.
        name: for reports.
        objectives: names of several objectives, whose values the objective then returns, as a sequence in this
            order or as a mapping; a batch objective returns an array[n, m], or a mapping to arrays. The search is
            for the front: designs that no other one is better than in all objectives.
        directions: "max" or "min" for each of them; all "max" by default.
        reference: the point, one number for each of them, down to which the hypervolume of the front counts. By
            default the worst value of each objective among the first ten feasible designs, and those that come in
            one batch with them.
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
    objectives: Sequence[str] = ()
    directions: Sequence[str] = ()
    reference: Sequence[float] | None = None
    outside: bool = False

    @property
    def signs(self) -> Floats:
        """float[m], 1 for objectives to maximise and -1 for those to minimise; m is 0 for a plain reward."""
        return np.array([1.0 if direction == "max" else -1.0 for direction in self.directions])

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
        none = self.objective is None and self.batch_objective is None
        if none and not self.outside:
            raise DeclarationError(
                "a task needs an objective or a batch_objective, or outside=True for neither"
            )
        if self.outside and not none:
            raise DeclarationError("a task has an objective, or outside=True if rewards come by ask and tell")
        if not all(f is None or callable(f) for f in (self.objective, self.batch_objective)):
            raise DeclarationError("objective and batch_objective must be functions")
        if self.refine is not None and (not callable(self.refine) or self.stochastic):
            raise DeclarationError("refine must be a function, of a task that is not stochastic")
        if self.repeatable and not self.stochastic:
            raise DeclarationError("repeatable is for stochastic tasks; others are so anyway, leave it out")
        if self.worst_reward != -math.inf and not is_number(self.worst_reward):
            raise DeclarationError(f"worst_reward must be a number or -inf, got {self.worst_reward!r}")
        self._settle_objectives()

    def _settle_objectives(self) -> None:
        names, text = self.objectives, isinstance(self.objectives, str)
        if text or not all(isinstance(name, str) and name for name in names) or len(set(names)) != len(names):
            raise DeclarationError(
                f"objectives must be distinct names, such as ('gain', 'cost'), got {names!r}"
            )
        if len(names) == 1:
            raise DeclarationError(
                "objectives are for several; leave them out where there is one, the reward"
            )
        directions = tuple(self.directions) or ("max",) * len(names)
        if len(directions) != len(names) or not set(directions) <= {"max", "min"}:
            raise DeclarationError(
                f"directions must be 'max' or 'min' for each objective, got {self.directions!r}"
            )
        object.__setattr__(self, "objectives", tuple(names))
        object.__setattr__(self, "directions", directions)
        if self.reference is not None:
            given = tuple(self.reference)
            if not names or len(given) != len(names) or not all(map(is_number, given)):
                raise DeclarationError(
                    f"reference must be a number for each objective, got {self.reference!r}"
                )
            object.__setattr__(self, "reference", tuple(map(float, given)))
        if names and (self.refine is not None or self.settled is not None or self.worst_reward != -math.inf):
            raise DeclarationError("refine, settled and worst_reward are for one objective; leave them out")
