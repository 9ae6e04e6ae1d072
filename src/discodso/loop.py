"""The loop round ask and tell, from one batch to the next, and what of it a checkpoint holds.

A checkpoint is the state between two batches. A batch that was cut short, by a budget or by Ctrl-C, is kept with
it: its designs, and the answers that there are. A resumed run finishes that batch first, so that it goes the way
that it would have gone with the larger budget, or without the interrupt.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from discodso import checkpoint
from discodso.arrays import Floats
from discodso.callbacks import Callbacks, RunInfo
from discodso.checks import require, require_integer, require_number
from discodso.design import Design, DesignBatch
from discodso.errors import CheckpointError, DeadEndError, DiscodsoError, ExecutorError, TrainingError
from discodso.evaluation import NOTHING_KNOWN, Begun, Evaluation, Evaluator
from discodso.history import HistoryRow, is_sampled, rounded_shares, token_use
from discodso.method import Comparing, Method, Metrics, Refining, Resumable
from discodso.objective_calls import Answer
from discodso.result import Failure, Ranking, Result, Scored, StopReason
from discodso.rundir import RunFolder
from discodso.space import Space
from discodso.state import Arrays, State, batch_arrays, batch_of

KIND = "search"
_FAILURES_KEPT = 100
_SHOW_SECONDS = 2.0  # between two improvements that are shown in the folder before the next checkpoint


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


@dataclass(frozen=True, slots=True)
class Plan:
    """All that decides a run beside its task, method and executor; `search` explains the fields."""

    limits: Limits
    seed: int = 0
    top: int = 10
    raise_on_failure: bool = False
    overlap: bool = False
    checkpoint_seconds: float = 60.0
    design_seconds: float | None = None
    chunk_size: int | None = None

    def __post_init__(self) -> None:
        require_integer("top", self.top, 1)
        require_integer("seed", self.seed, 0)
        require_number("checkpoint_seconds", self.checkpoint_seconds, least=0)
        require("overlap", self.overlap, isinstance(self.overlap, (bool, np.bool_)), "True or False")

    def to_record(self) -> dict[str, Any]:
        """For settings.toml."""
        own = {key: value for key, value in asdict(self).items() if key != "limits"}
        return {**asdict(self.limits), **own}


@dataclass(frozen=True)
class Standing:
    """What there is to do at the start of a batch.

    Attributes:
        current: designs that were asked for and not told; None to ask.
        known: answers of the first of them.
        ahead: designs that were asked for beyond that.
    """

    current: DesignBatch | None = None
    known: Answer = NOTHING_KNOWN
    ahead: DesignBatch | None = None


class Run:
    """The state of one search: counts, best designs and history; it lives as long as the search does."""

    def __init__(
        self,
        plan: Plan,
        method: Method,
        evaluator: Evaluator,
        callbacks: Callbacks,
        folder: RunFolder | None,
    ) -> None:
        self.plan = plan
        self.limits = plan.limits
        self.method = method
        self.evaluator = evaluator
        self.callbacks = callbacks
        self.folder: RunFolder | None = None
        self.ranking = Ranking(plan.top, evaluator.task.stochastic)
        self.history: list[HistoryRow] = []
        self.failures: list[Failure] = []
        self.started = time.monotonic()
        self._saved = self._shown = self.started
        self._lost = ""
        if folder is not None:
            self.write_to(folder)

    def write_to(self, folder: RunFolder) -> None:
        """Keep the run in a folder."""
        if not isinstance(self.method, Resumable):
            raise DiscodsoError(
                f"a run with {type(self.method).__name__} cannot be written to a folder: it has no state()"
            )
        self.folder = folder

    @property
    def space(self) -> Space:
        """The space that is searched."""
        return self.evaluator.task.space

    # --------------------------------------------------------------------------------------------- the loop

    def execute(self, standing: Standing, resumed: bool = False) -> Result:
        """Run until a limit is reached; the result has everything found."""
        task = self.evaluator.task
        done = self.evaluator.calls
        info = RunInfo(task.name, self.limits.budget, self.plan.seed, done, task.cost_unit)
        self.callbacks("start", info)
        if not resumed:
            self._save(standing)
        between = resumed and not len(standing.known.rewards)
        stop = self._limit_reached() if between else None
        stop, detail = (stop, self._detail()) if stop is not None else self._until_stopped(standing)
        result = self.result(stop, detail)
        if self.folder is not None:
            self.folder.write_top(_summary(result))
        self.callbacks("end", result)
        return result

    def _until_stopped(self, standing: Standing) -> tuple[StopReason, str]:
        current, known, ahead = standing.current, standing.known, standing.ahead
        begun: Begun | None = None
        try:
            while True:
                if current is None:
                    current = self.method.ask()
                try:
                    if begun is None:
                        begun = self._begin(current, known)
                    if self.plan.overlap and ahead is None:
                        ahead = self.method.ask()
                    evaluated = self._evaluate(begun, ahead)
                except ExecutorError as error:
                    self._save(Standing(current, known, ahead))
                    return StopReason.EXECUTOR, str(error)
                stop, following = self._batch(begun, evaluated, ahead)
                if stop is not None:
                    return stop, self._detail()
                begun, current, known, ahead = following, ahead, NOTHING_KNOWN, None
        except KeyboardInterrupt:
            return StopReason.INTERRUPTED, ""
        except TrainingError as error:
            return StopReason.TRAINING, str(error)
        except DeadEndError as error:
            if not self.evaluator.calls:
                raise
            return StopReason.DEAD_END, str(error)
        finally:
            if begun is not None:
                self.evaluator.abandon(begun)

    def _begin(self, designs: DesignBatch, known: Answer) -> Begun:
        room = self.limits.budget - self.evaluator.calls - len(known.rewards)
        if len(known.rewards):  # of a run that had stopped within this batch, perhaps for good
            best = max((r for r in known.rewards.tolist() if np.isfinite(r)), default=-np.inf)
            room = 0 if self._stop_inside_batch(best) else room
        return self.evaluator.begin(designs, room, known)

    def _detail(self) -> str:
        if self._lost:
            return self._lost
        if self.ranking.best is None and self.failures:
            return f"every evaluation failed, the first because the objective {self.failures[0].reason}"
        return ""

    def _evaluate(self, begun: Begun, ahead: DesignBatch | None) -> Evaluation:
        """Finish an evaluation, and let the task refine what the method picks."""
        before = self._counts()
        evaluation = self.evaluator.finish(begun, self._stop_inside_batch)
        task, method = self.evaluator.task, self.method
        short = len(evaluation.rewards) < len(begun.designs)
        rows = np.empty(0, np.int64)
        if not (short or task.refine is None or evaluation.interrupted) and isinstance(method, Refining):
            rows = method.to_refine(evaluation.designs, _usable(evaluation))
        each = method.refine_calls if isinstance(method, Refining) else 0
        room = self.limits.budget - self.evaluator.calls
        if len(rows) and self._stop_inside_batch(float(_usable(evaluation).max())):
            room = 0
        standing = Standing(begun.designs, evaluation.answer, ahead)
        if short or len(rows) * each > room:  # saved before it changes anything, to be finished later
            self._save(standing, before)
        refined = self.evaluator.refine(evaluation, rows, each, room) if len(rows) else evaluation
        if refined.interrupted and not evaluation.interrupted:
            self._save(standing, before)
        return refined

    def _batch(
        self, begun: Begun, evaluation: Evaluation, ahead: DesignBatch | None
    ) -> tuple[StopReason | None, Begun | None]:
        """Rank and learn; gives why to stop, or the next batch if its evaluation has begun already."""
        count = len(evaluation.rewards)
        complete = count == len(begun.designs) and not evaluation.cut
        designs, best = evaluation.designs, self.ranking.best
        self.ranking.add(designs, _usable(evaluation), evaluation.calls, evaluation.answer.weights)
        self.failures += evaluation.failures[: _FAILURES_KEPT - len(self.failures)]
        stop = StopReason.INTERRUPTED if evaluation.interrupted else self._limit_reached()
        following = None
        if stop is None and ahead is not None:
            try:
                following = self._begin(ahead, NOTHING_KNOWN)
            except ExecutorError as error:  # this batch is still learned from
                stop, self._lost = StopReason.EXECUTOR, str(error)
        metrics, told = None, False
        try:
            if count and stop is not StopReason.INTERRUPTED:
                metrics = self.method.tell(designs, evaluation.rewards, evaluation.answer.weights)
                if metrics is not None and metrics.restarted and isinstance(self._objective, Comparing):
                    self._objective.begin_anew()
            told = True
        finally:
            self._record(designs, evaluation, metrics, best)
            if not told and following is not None:
                self.evaluator.abandon(following)
        if complete and (stop is not None or self._save_is_due()):
            self._save(Standing(current=ahead))
        return stop, following

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

    def _record(
        self, designs: DesignBatch, evaluation: Evaluation, metrics: Metrics | None, before: Scored | None
    ) -> None:
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
            shares=None if metrics is None else rounded_shares(metrics.shares),
            tokens=token_use(designs) if len(designs) and is_sampled(len(self.history) + 1) else None,
            restarted=metrics is not None and metrics.restarted,
        )
        self.history.append(row)
        if self.folder is not None:
            self.folder.append(row)
        if best is not None and (before is None or best.reward > before.reward):
            if self.folder is not None and time.monotonic() - self._shown >= _SHOW_SECONDS:
                self._write_top(self.folder)  # for whoever is watching the folder
            self.callbacks("improvement", best, row)
        self.callbacks("batch", row, self.ranking)

    def result(self, stop: StopReason, detail: str) -> Result:
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
            seed=int(self.plan.seed),
            cost=self.evaluator.measured_cost,
        )

    # ------------------------------------------------------------------------------------------ checkpoints

    def _save_is_due(self) -> bool:
        return time.monotonic() - self._saved >= self.plan.checkpoint_seconds

    def _counts(self) -> dict[str, float]:
        e = self.evaluator
        return {"calls": e.calls, "cost": e.cost, "failure_count": e.failure_count}

    def _save(self, standing: Standing, counts: dict[str, float] | None = None) -> None:
        if self.folder is None:
            return
        self.folder.sync()
        checkpoint.save(self.folder.path, self._state(standing, counts or self._counts()), KIND)
        self._write_top(self.folder)
        self._saved = time.monotonic()

    def _write_top(self, folder: RunFolder) -> None:
        folder.write_top({**_summary(self.result(StopReason.BUDGET, "")), **_STILL_RUNNING})
        self._shown = time.monotonic()

    def _state(self, standing: Standing, counts: dict[str, float]) -> State:
        assert isinstance(self.method, Resumable)
        arrays: Arrays = {"known/rewards": standing.known.rewards.copy()}
        if standing.known.weights is not None:
            arrays["known/weights"] = standing.known.weights.copy()
        for place, designs in (("current", standing.current), ("ahead", standing.ahead)):
            if designs is not None:
                arrays |= {f"{place}/{name}": array for name, array in batch_arrays(designs).items()}
        data = {
            **counts,
            "rows": len(self.history),
            "seconds": time.monotonic() - self.started,
            "seed": int(self.plan.seed),
            "space": space_mark(self.space),
            "method": type(self.method).__name__,
            "task": self.evaluator.task.name,
            "top": [scored.to_dict() for scored in self.ranking.top],
            "failures": [[f.call, f.design.to_dict(), f.reason] for f in self.failures],
            "known": {"reasons": list(standing.known.reasons.items()), "cost": standing.known.cost},
        }
        parts = {"run": State(arrays, data), "method": self.method.state()}
        if isinstance(self._objective, Resumable):
            parts["objective"] = self._objective.state()
        return State.of_parts(parts)

    @property
    def _objective(self) -> Any:
        task = self.evaluator.task
        return task.batch_objective or task.objective

    def restore(self, state: State) -> Standing:
        """Go back to a checkpoint; gives what to do next."""
        assert self.folder is not None
        assert isinstance(self.method, Resumable)
        where = f"the checkpoint in {self.folder.path} does not fit"
        try:
            run = state.part("run")
            data = run.data
            for key, own in (
                ("space", space_mark(self.space)),
                ("method", type(self.method).__name__),
                ("seed", int(self.plan.seed)),
            ):
                if data[key] != own:
                    raise CheckpointError(f"{where}: it was made with another {key}; use that of the run")
            self.method.restore(state.part("method"))
            if isinstance(self._objective, Resumable):
                self._objective.restore(state.part("objective"))
            self.evaluator.calls = int(data["calls"])
            self.evaluator.cost = float(data["cost"])
            self.evaluator.failure_count = int(data["failure_count"])
            self.failures = [Failure(int(c), Design.from_dict(d), str(r)) for c, d, r in data["failures"]]
            self.ranking.restore(Scored.from_dict(scored) for scored in data["top"])
            reasons = {int(row): str(reason) for row, reason in data["known"]["reasons"]}
            known = Answer(
                run.arrays["known/rewards"],
                reasons,
                float(data["known"]["cost"]),
                weights=run.arrays.get("known/weights"),
            )
            if not self.evaluator.task.rows_independent:
                # The rest of the batch has a say in these rewards: all of it is rated again.
                known = NOTHING_KNOWN
            current, ahead = (self._designs(run.arrays, place) for place in ("current", "ahead"))
            self.started = time.monotonic() - float(data["seconds"])
            rows = int(data["rows"])
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{where} this run: {error}") from None
        self.history = self.folder.take_history(rows)
        return Standing(current, known, ahead)

    def _designs(self, arrays: Arrays, place: str) -> DesignBatch | None:
        own = {key.split("/")[1]: array for key, array in arrays.items() if key.startswith(f"{place}/")}
        return batch_of(self.space, own) if own else None


def _usable(evaluation: Evaluation) -> Floats:
    """Rewards, -inf for those that failed."""
    return np.where(evaluation.failed, -np.inf, evaluation.rewards)


_STILL_RUNNING: dict[str, Any] = {"stop": None, "stop_sentence": None, "detail": ""}


def _summary(result: Result) -> dict[str, Any]:
    return {key: value for key, value in result.to_dict().items() if key != "history"}


def space_mark(space: Space) -> str:
    """A mark of a space: tokens, shape and the names of the rules; equal spaces have equal marks."""
    rules = [rule.name for rule in (*space.rules, *space.priors, space.bounds)]
    parts = [*(repr(token) for token in space.library.tokens), repr(space.shape), *rules]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
