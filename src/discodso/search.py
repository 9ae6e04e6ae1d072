"""The loop round ask and tell: one call from a task to a result."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from discodso.arrays import Floats
from discodso.checks import require, require_integer, require_number
from discodso.design import Design, DesignBatch
from discodso.disco import DisCoSettings
from discodso.errors import DeadEndError, DeclarationError, TrainingError
from discodso.evaluation import Evaluation, Evaluator
from discodso.method import Method, MethodSettings, Metrics
from discodso.result import Failure, HistoryRow, Ranking, Result, StopReason
from discodso.task import Task
from discodso.trace import replay

_FAILURES_KEPT = 100


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop.

    Args:
        budget: objective calls.
        target: a reward that is good enough.
        patience: objective calls without a better design.
        time_limit: seconds.
    """

    budget: int
    target: float | None = None
    patience: int | None = None
    time_limit: float | None = None

    def __post_init__(self) -> None:
        require_integer("budget", self.budget, 1)
        if self.patience is not None:
            require_integer("patience", self.patience, 1)
        if self.target is not None:
            require_number("target", self.target)
        if self.time_limit is not None:
            require_number("time_limit", self.time_limit, above=0)


def search(
    task: Task,
    *,
    budget: int,
    seed: int = 0,
    method: MethodSettings | None = None,
    initial_designs: Sequence[Design] = (),
    target: float | None = None,
    patience: int | None = None,
    time_limit: float | None = None,
    top: int = 10,
    raise_on_failure: bool = False,
    callback: Callable[[HistoryRow, Ranking], None] | None = None,
) -> Result:
    """Search for the design of highest reward.

    Args:
        task: the space and the objective.
        budget: objective calls to spend; failed calls count.
        seed: the same seed gives the same run.
        method: settings of the method; DisCo with the paper's hyperparameters by default.
        initial_designs: designs to evaluate first and to learn from.
        target: stop at a reward of at least this.
        patience: stop after so many calls without a better design; looked at after every batch.
        time_limit: stop after so many seconds.
        top: how many distinct designs to keep.
        raise_on_failure: raise at the first failed evaluation instead of going on.
        callback: called after every batch with its history row and the best designs so far.

    Ctrl-C ends the search and returns what was found.
    """
    require("task", task, isinstance(task, Task), "a Task")
    settings = DisCoSettings() if method is None else method
    buildable = callable(getattr(settings, "build", None))
    require("method", settings, buildable, "the settings of a method, such as DisCoSettings()")
    require("callback", callback, callback is None or callable(callback), "a function")
    limits = Limits(budget, target, patience, time_limit)
    require_integer("top", top, 1)
    require_integer("seed", seed, 0)
    for_method, for_objective = np.random.SeedSequence(int(seed)).spawn(2)
    run = _Run(
        limits,
        settings.build(task.space, for_method),
        Evaluator(task, for_objective, raise_on_failure=raise_on_failure),
        Ranking(top),
        callback,
    )
    first = None
    if isinstance(initial_designs, Design):
        raise DeclarationError(
            "initial_designs must be a list of designs, got a single one; put it in a list"
        )
    given = list(initial_designs or ())
    if given:
        encoded = task.space.encode(given)
        replay(task.space, encoded)  # refuses designs that do not belong to the space
        first = encoded.select(slice(0, budget))
    stop, detail = run.until_stopped(first)
    return run.result(stop, detail, int(seed))


class _Run:
    """The state of one search: counts, best designs and history; it lives as long as the search does."""

    def __init__(
        self,
        limits: Limits,
        method: Method,
        evaluator: Evaluator,
        ranking: Ranking,
        callback: Callable[[HistoryRow, Ranking], None] | None,
    ) -> None:
        self.limits = limits
        self.method = method
        self.evaluator = evaluator
        self.ranking = ranking
        self.callback = callback
        self.history: list[HistoryRow] = []
        self.failures: list[Failure] = []
        self.started = time.monotonic()

    def until_stopped(self, first: DesignBatch | None) -> tuple[StopReason, str]:
        """Run batches, beginning with the given designs, until a limit is reached."""
        try:
            while True:
                room = self.limits.budget - self.evaluator.calls
                designs = first if first is not None else self.method.ask(min(room, self.method.batch_size))
                first = None
                stop = self._batch(designs)
                if stop is not None:
                    return stop, self._detail()
        except KeyboardInterrupt:
            return StopReason.INTERRUPTED, ""
        except TrainingError as error:
            return StopReason.TRAINING, str(error)
        except DeadEndError as error:
            if not self.evaluator.calls:
                raise
            return StopReason.DEAD_END, str(error)

    def _detail(self) -> str:
        if self.ranking.best is None and self.failures:
            return f"every evaluation failed, the first because the objective {self.failures[0].reason}"
        return ""

    def _batch(self, designs: DesignBatch) -> StopReason | None:
        before = self.evaluator.calls
        evaluation = self.evaluator.evaluate(designs, self._stop_inside_batch)
        count = len(evaluation.rewards)
        designs = designs.select(slice(0, count))
        usable = np.where(evaluation.failed, -np.inf, evaluation.rewards)
        self.ranking.add(designs, usable, before)
        self.failures += evaluation.failures[: _FAILURES_KEPT - len(self.failures)]
        stop = StopReason.INTERRUPTED if evaluation.interrupted else self._limit_reached()
        metrics = None
        try:
            if count and stop is not StopReason.INTERRUPTED:
                metrics = self.method.tell(designs, evaluation.rewards)
        finally:
            self._record(designs, evaluation, metrics)
        return stop

    def _stop_inside_batch(self, reward: float) -> bool:
        reached = self.limits.target is not None and reward >= self.limits.target
        return reached or self._out_of_time()

    def _out_of_time(self) -> bool:
        limit = self.limits.time_limit
        return limit is not None and time.monotonic() - self.started >= limit

    def _limit_reached(self) -> StopReason | None:
        best = self.ranking.best
        if best is not None and self.limits.target is not None and best.reward >= self.limits.target:
            return StopReason.TARGET
        if self.evaluator.calls >= self.limits.budget:
            return StopReason.BUDGET
        if self._out_of_time():
            return StopReason.TIME
        last_better = 0 if best is None else best.call
        if self.limits.patience is not None and self.evaluator.calls - last_better >= self.limits.patience:
            return StopReason.PATIENCE
        return None

    def _record(self, designs: DesignBatch, evaluation: Evaluation, metrics: Metrics | None) -> None:
        rewards: Floats = evaluation.rewards[~evaluation.failed]
        lengths = designs.design_lengths()
        best = self.ranking.best
        row = HistoryRow(
            calls=self.evaluator.calls,
            best=None if best is None else best.reward,
            batch_best=float(rewards.max()) if len(rewards) else None,
            mean=float((rewards / len(rewards)).sum()) if len(rewards) else None,
            quantile=None if metrics is None else metrics.quantile,
            entropy=None if metrics is None else metrics.entropy,
            mean_length=float(lengths.mean()) if len(lengths) else None,
            max_length=int(lengths.max()) if len(lengths) else None,
            failures=self.evaluator.failure_count,
            seconds=time.monotonic() - self.started,
            cost=self.evaluator.measured_cost,
        )
        self.history.append(row)
        if self.callback is not None:
            self.callback(row, self.ranking)

    def result(self, stop: StopReason, detail: str, seed: int) -> Result:
        """Everything found so far."""
        return Result(
            best=self.ranking.best,
            top=self.ranking.top,
            history=tuple(self.history),
            calls=self.evaluator.calls,
            failure_count=self.evaluator.failure_count,
            failures=tuple(self.failures),
            stop=stop,
            detail=detail,
            seconds=time.monotonic() - self.started,
            seed=seed,
            cost=self.evaluator.measured_cost,
        )
