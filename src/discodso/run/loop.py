"""The loop round ask and tell, from one batch to the next, and what of it a checkpoint holds.

A checkpoint is the state between two batches. A batch that was cut short, by a budget or by Ctrl-C, is kept with
it: its designs, and the answers that there are. A resumed run finishes that batch first, so that it goes the way
that it would have gone with the larger budget, or without the interrupt.

A noisy search may end with a race of its best designs (see `confirmation`). Its calls are counted and seeded
apart, so that a run whose budget is raised afterwards goes the same way; a checkpoint holds it beside the search.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.errors import CheckpointError, DeadEndError, DiscodsoError, ExecutorError, TrainingError
from discodso.disco.method import Comparing, Method, Metrics, Refining, Resumable
from discodso.run import checkpoint
from discodso.run.callbacks import Callbacks, RunInfo
from discodso.run.confirmation import CANDIDATES
from discodso.run.evaluation import Begun, Evaluation, Evaluator
from discodso.run.folder import RunFolder
from discodso.run.history import HistoryRow, is_sampled, rounded_shares, token_use
from discodso.run.memory import Memory
from discodso.run.objective_calls import NOTHING_KNOWN, Answer
from discodso.run.plan import Plan
from discodso.run.race import FAILURES_KEPT, Confirmer, Race
from discodso.run.result import Failure, Ranking, Result, Scored, StopReason
from discodso.space.design import DesignBatch
from discodso.space.space import Space
from discodso.space.state import Arrays, State, batch_arrays, batch_of

KIND = "search"
_REDRAWS = 10  # times that a method is asked again for designs that were not evaluated yet
_FRUITLESS = 100  # batches in a row without a new design after which a run ends
_SHOW_SECONDS = 2.0  # between two improvements that are shown in the folder before the next checkpoint


@dataclass(frozen=True)
class Pending:
    """What there is to do at the start of a batch.

    Attributes:
        current: designs that were asked for and not told; None to ask.
        known: answers of the first of them.
    """

    current: DesignBatch | None = None
    known: Answer = NOTHING_KNOWN


class Loop:
    """The state of one search: counts, best designs and history; it lives as long as the search does."""

    def __init__(
        self,
        plan: Plan,
        method: Method,
        evaluator: Evaluator,
        confirmer: Confirmer,
        callbacks: Callbacks,
    ) -> None:
        self.plan = plan
        self.method = method
        self.evaluator = evaluator
        self.callbacks = callbacks
        self.folder: RunFolder | None = None
        self.confirmer = confirmer
        races = confirmer.kept_calls > 0
        kept = max(plan.top, CANDIDATES) if races else plan.top
        self.ranking = Ranking(kept, evaluator.task.noisy, cautious=races)
        # Where rewards are exact no design is paid for twice.
        self.memory = None if evaluator.task.stochastic else Memory()
        self._fruitless = 0  # batches in a row without a new design
        self._repeats: float | None = None  # share of the last batch
        self.history: list[HistoryRow] = []
        self.failures: list[Failure] = []
        self.started = time.monotonic()
        self._saved = self._shown = self.started
        self._search_state = State()  # of the last checkpoint

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

    @property
    def calls(self) -> int:
        """All objective calls so far."""
        return self.evaluator.calls + self.confirmer.calls

    @property
    def _search_budget(self) -> int:
        return self.confirmer.search_budget(self.plan.budget)

    def spent(self, pending: Pending) -> int:
        """Objective calls of a run that goes on, with those whose answers are only kept."""
        return self.evaluator.calls + len(pending.known.rewards) + self.confirmer.spent

    # --------------------------------------------------------------------------------------------- the loop

    def execute(self, pending: Pending, resumed: bool = False) -> Result:
        """Run until a limit is reached; the result has everything found."""
        task = self.evaluator.task
        info = RunInfo(task.name, self.plan.budget, self.plan.seed, self.spent(pending), task.cost_unit)
        self.callbacks("start", info)
        if not resumed:
            self._save(pending)
        between = resumed and not len(pending.known.rewards)
        stop = self._limit_reached() if between else None
        stop, detail = (stop, self._detail()) if stop is not None else self._until_stopped(pending)
        if self.confirmer.kept_calls and stop in _CONFIRMED:
            stop, detail = self._confirm() or (stop, detail)
        result = self.result(stop, detail)
        if self.folder is not None:
            self.folder.write_top(_summary(result))
        self.callbacks("end", result)
        return result

    def _until_stopped(self, pending: Pending) -> tuple[StopReason, str]:
        current, known = pending.current, pending.known
        begun: Begun | None = None
        try:
            while True:
                if current is None:
                    current = self._ask()
                if current is None or self._fruitless >= _FRUITLESS:
                    self._save(Pending(current))
                    return StopReason.EXHAUSTED, self._exhaustion()
                try:
                    new = current if self.memory is None else current.select(self.memory.is_new(current))
                    begun = self._begin(new, known)
                    evaluated = self._evaluate(begun, current)
                except ExecutorError as error:
                    self._save(Pending(current, known))
                    return StopReason.EXECUTOR, str(error)
                stop = self._batch(begun, evaluated, current)
                if stop is not None:
                    return stop, self._detail()
                begun, current, known = None, None, NOTHING_KNOWN
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

    def _ask(self) -> DesignBatch | None:
        """The next batch; None if no design is left. A method that can is asked again for those known already."""
        asked = self.method.ask()
        size = drawn = len(asked)
        if self.memory is None:
            return asked
        if not getattr(self.method, "redraws", False):
            self._repeats = 1 - float(self.memory.is_new(asked).mean())
            return asked
        new = asked.select(self.memory.is_new(asked))
        repeated = size - len(new)
        for _ in range(_REDRAWS):
            if len(new) == size:
                break
            more = self.method.ask(size - len(new))
            both = DesignBatch.concatenate((new, more))
            drawn += len(more)
            before, new = len(new), both.select(self.memory.is_new(both))
            repeated += len(more) - (len(new) - before)
        self._repeats = repeated / drawn
        if 2 * len(new) < size:  # a space that is nearly exhausted: what is left is listed
            left = self.memory.unseen(self.space, size)
            if left is not None:
                both = DesignBatch.concatenate((new, left)).select(slice(0, 2 * size))
                new = both.select(self.memory.is_new(both)).select(slice(0, size))
                return new if len(new) else None
        return new if len(new) else asked

    def _exhaustion(self) -> str:
        left = None if self.memory is None else self.memory.unseen(self.space, 1)
        if left is not None and not len(left):
            count = len(self.memory or ())
            return f"all {count} designs of the space are evaluated, so the best is the optimum"
        return f"the last {_FRUITLESS} batches were repeats of designs that were evaluated before"

    def _begin(self, designs: DesignBatch, known: Answer) -> Begun:
        room = self._search_budget - self.evaluator.calls - len(known.rewards)
        if len(known.rewards):  # of a run that had stopped within this batch, perhaps for good
            best = max((r for r in known.rewards.tolist() if np.isfinite(r)), default=-np.inf)
            room = 0 if self._stop_inside_batch(best) else room
        return self.evaluator.begin(designs, room, known)

    def _detail(self) -> str:
        if self.ranking.best is None and self.failures:
            return f"every evaluation failed, the first because the objective {self.failures[0].reason}"
        return ""

    def _evaluate(self, begun: Begun, asked: DesignBatch) -> Evaluation:
        """Finish an evaluation, and let the task refine what the method picks."""
        before = self.evaluator.counts()
        evaluation = self.evaluator.finish(begun, self._stop_inside_batch)
        task, method = self.evaluator.task, self.method
        short = len(evaluation.rewards) < len(begun.designs)
        rows = np.empty(0, np.int64)
        if not (short or task.refine is None or evaluation.interrupted) and isinstance(method, Refining):
            rows = method.to_refine(evaluation.designs, _usable(evaluation))
        each = method.refine_calls if isinstance(method, Refining) else 0
        room = self._search_budget - self.evaluator.calls
        if len(rows) and self._stop_inside_batch(float(_usable(evaluation).max())):
            room = 0
        pending = Pending(asked, evaluation.answer)
        if short or len(rows) * each > room:  # saved before it changes anything, to be finished later
            self._save(pending, before)
        refined = self.evaluator.refine(evaluation, rows, each, room) if len(rows) else evaluation
        if refined.interrupted and not evaluation.interrupted:
            self._save(pending, before)
        return self.confirmer.numbered(refined)

    def _batch(self, begun: Begun, evaluation: Evaluation, asked: DesignBatch) -> StopReason | None:
        """Rank and learn; gives why to stop."""
        count = len(evaluation.rewards)
        complete = count == len(begun.designs) and not evaluation.cut
        designs, best = evaluation.designs, self.ranking.best
        self.ranking.add(designs, _usable(evaluation), evaluation.calls, evaluation.answer.weights)
        self._add_failures(evaluation.failures)
        self._fruitless = 0 if count else self._fruitless + 1
        stop = StopReason.INTERRUPTED if evaluation.interrupted else self._limit_reached()
        metrics = None
        try:
            told, rewards, weights = self._told(evaluation, begun.designs, asked)
            if len(told) and stop is not StopReason.INTERRUPTED:
                metrics = self.method.tell(told, rewards, weights)
                if metrics is not None and metrics.restarted and isinstance(self._objective, Comparing):
                    self._objective.begin_anew()
        finally:
            self._record(designs, evaluation, metrics, best)
        if complete and (stop is not None or self._save_is_due()):
            self._save(Pending())
        return stop

    def _told(
        self, evaluation: Evaluation, new: DesignBatch, asked: DesignBatch
    ) -> tuple[DesignBatch, Floats, Floats | None]:
        """What the method is told: the designs that were evaluated, and those known from before among them."""
        rewards, weights = evaluation.rewards, evaluation.answer.weights
        if self.memory is None:
            return evaluation.designs, rewards, weights
        count, failed, whole = len(rewards), evaluation.failed, len(new) == len(asked)
        fresh = None if whole else self.memory.is_new(asked)
        # Refined designs are known as they came, and as they are now.
        self.memory.add(new.select(slice(0, count)), np.where(failed, np.nan, evaluation.answer.rewards))
        self.memory.add(evaluation.designs, np.where(failed, np.nan, rewards))
        if fresh is None:
            return evaluation.designs, rewards, weights
        again = np.flatnonzero(~fresh & self.memory.holds(asked))
        known = asked.select(again)
        order = np.argsort(np.concatenate((np.flatnonzero(fresh)[:count], again)))  # as they were asked for
        told = DesignBatch.concatenate((evaluation.designs, known)).select(order)
        found = self.memory.rewards(known)
        found = np.where(np.isnan(found), self.evaluator.task.worst_reward, found)
        return told, np.concatenate((rewards, found))[order], None

    def _confirm(self) -> tuple[StopReason, str] | None:
        """Let the best designs race on fresh seeds; gives why that was cut short, if it was."""
        confirmer, after = self.confirmer, self.evaluator.calls
        try:
            if confirmer.race is not None and confirmer.race.after != after:
                self._add_failures(confirmer.leave())
            race = confirmer.start(self.ranking.top, after, self.plan.budget)
            if race.objective is not None:
                self._objective.restore(race.objective)
            for row in race.rows:  # of a run that goes on
                self._write(row)
            while (designs := confirmer.next_round(self.space)) is not None:
                evaluation, unfinished = confirmer.round(
                    designs, self.started, self._out_of_time, self._objective
                )
                if unfinished is not None:
                    self._save_search(unfinished)
                row = self._row(evaluation.designs, evaluation, None)
                confirmer.add(row)
                self._write(row)
                self.callbacks("batch", row, self.leaders)
                if unfinished is None:
                    self._save_search(confirmer.race)
                if unfinished is not None or evaluation.interrupted:
                    return StopReason.INTERRUPTED if evaluation.interrupted else StopReason.TIME, ""
        except KeyboardInterrupt:
            return StopReason.INTERRUPTED, ""
        except ExecutorError as error:
            return StopReason.EXECUTOR, str(error)
        return None

    def _add_failures(self, failures: Iterable[Failure]) -> None:
        self.failures += tuple(failures)[: FAILURES_KEPT - len(self.failures)]

    def _stop_inside_batch(self, reward: float) -> bool:
        # One noisy reward says little of a design; `Ranking.reaches` does.
        target = None if self.confirmer.kept_calls else self.plan.target
        return (target is not None and reward >= target) or self._out_of_time()

    def _out_of_time(self) -> bool:
        limit = self.plan.time_limit
        if limit is not None and not self.confirmer.racing:  # a share of it is for the race, as of the calls
            limit *= 1 - self.confirmer.kept_calls / self.plan.budget
        return limit is not None and time.monotonic() - self.started >= limit

    def _limit_reached(self) -> StopReason | None:
        best = self.ranking.best
        if self.plan.target is not None and self.ranking.reaches(self.plan.target):
            return StopReason.TARGET
        if self.evaluator.calls >= self._search_budget:
            return StopReason.BUDGET
        if self._out_of_time():
            return StopReason.TIME
        last_better = 0 if best is None else best.call
        if self.plan.patience is not None and self.calls - last_better >= self.plan.patience:
            return StopReason.PATIENCE
        return None

    def _record(
        self, designs: DesignBatch, evaluation: Evaluation, metrics: Metrics | None, before: Scored | None
    ) -> None:
        row = self._row(designs, evaluation, metrics)
        self._write(row)
        best = self.leaders.best
        if best is not None and (before is None or best.reward > before.reward):
            if self.folder is not None and time.monotonic() - self._shown >= _SHOW_SECONDS:
                self._write_top(self.folder)  # for whoever is watching the folder
            self.callbacks("improvement", best, row)
        self.callbacks("batch", row, self.ranking)

    def _row(self, designs: DesignBatch, evaluation: Evaluation, metrics: Metrics | None) -> HistoryRow:
        rewards: Floats = evaluation.rewards[~evaluation.failed]
        lengths = designs.design_lengths()
        best = self.leaders.best
        return HistoryRow(
            calls=self.calls,
            best=None if best is None else best.reward,
            batch_best=float(rewards.max()) if len(rewards) else None,
            mean=float((rewards / len(rewards)).sum()) if len(rewards) else None,
            quantile=None if metrics is None else metrics.quantile,
            entropy=None if metrics is None else metrics.entropy,
            mean_length=float(lengths.mean()) if len(lengths) else None,
            max_length=int(lengths.max()) if len(lengths) else None,
            failures=self._failure_count,
            seconds=time.monotonic() - self.started,
            cost=self._cost,
            shares=None if metrics is None else rounded_shares(metrics.shares),
            tokens=token_use(designs) if len(designs) and is_sampled(len(self.history) + 1) else None,
            restarted=metrics is not None and metrics.restarted,
            confirming=self.confirmer.racing,
            repeats=None if self._repeats is None else round(self._repeats, 4),
        )

    def _write(self, row: HistoryRow) -> None:
        self.history.append(row)
        if self.folder is not None:
            self.folder.append(row)

    @property
    def leaders(self) -> Ranking:
        """The best designs."""
        return self.confirmer.leaders(self.ranking, self.plan.top)

    @property
    def _failure_count(self) -> int:
        return self.evaluator.failure_count + self.confirmer.evaluator.failure_count

    @property
    def _cost(self) -> float | None:
        own = self.evaluator.measured_cost
        return None if own is None else own + self.confirmer.evaluator.cost

    def result(self, stop: StopReason, detail: str) -> Result:
        """Everything found so far."""
        return Result(
            best=self.leaders.best,
            top=self.leaders.top,
            history=tuple(self.history),
            calls=self.calls,
            failure_count=self._failure_count,
            failures=(*self.failures, *self.confirmer.failures)[:FAILURES_KEPT],
            stop=stop,
            detail=detail,
            seconds=time.monotonic() - self.started,
            seed=int(self.plan.seed),
            cost=self._cost,
        )

    # ------------------------------------------------------------------------------------------ checkpoints

    def _save_is_due(self) -> bool:
        return time.monotonic() - self._saved >= self.plan.checkpoint_seconds

    def _save(self, pending: Pending, counts: dict[str, float] | None = None) -> None:
        if self.folder is None:
            return
        self._search_state = self._state(pending, counts or self.evaluator.counts())
        self._save_search(self.confirmer.race)
        self._saved = time.monotonic()

    def _save_search(self, race: Race | None) -> None:
        """The search as it stood at the last checkpoint, and the race beside it."""
        if self.folder is None:
            return
        state = self._search_state
        self.folder.sync()
        checkpoint.save(
            self.folder.path, state if race is None else state.with_part("race", race.to_state()), KIND
        )
        self._write_top(self.folder)

    def _write_top(self, folder: RunFolder) -> None:
        folder.write_top({**_summary(self.result(StopReason.BUDGET, "")), **_STILL_RUNNING})
        self._shown = time.monotonic()

    def _state(self, pending: Pending, counts: dict[str, float]) -> State:
        assert isinstance(self.method, Resumable)
        arrays: Arrays = {}
        if pending.current is not None:
            arrays = {f"current/{name}": array for name, array in batch_arrays(pending.current).items()}
        data = {
            **counts,
            "rows": len(self.history),
            "fruitless": self._fruitless,
            "repeat_share": self._repeats,
            "seconds": time.monotonic() - self.started,
            "seed": int(self.plan.seed),
            "space": self.space.mark,
            "method": type(self.method).__name__,
            "task": self.evaluator.task.name,
            **self.ranking.state(),
            "raced": self.confirmer.evaluator.counts(),
            "failures": [failure.to_record() for failure in self.failures],
        }
        run = State(arrays, data).with_part("known", pending.known.to_state())
        parts = {"run": run, "method": self.method.state()}
        if self.memory is not None:
            parts["memory"] = self.memory.state()
        if isinstance(self._objective, Resumable):
            parts["objective"] = self._objective.state()
        return State.of_parts(parts)

    @property
    def _objective(self) -> Any:
        task = self.evaluator.task
        return task.batch_objective or task.objective

    def restore(self, state: State) -> Pending:
        """Go back to a checkpoint; gives what to do next."""
        assert self.folder is not None
        assert isinstance(self.method, Resumable)
        where = f"the checkpoint in {self.folder.path} does not fit"
        try:
            run = state.part("run")
            data = run.data
            for key, own in (
                ("space", self.space.mark),
                ("method", type(self.method).__name__),
                ("seed", int(self.plan.seed)),
            ):
                if data[key] != own:
                    raise CheckpointError(f"{where}: it was made with another {key}; use that of the run")
            self.method.restore(state.part("method"))
            if isinstance(self._objective, Resumable):
                self._objective.restore(state.part("objective"))
            if self.memory is not None:
                self.memory.restore(state.part("memory"))
            self._fruitless, self._repeats = int(data["fruitless"]), data["repeat_share"]
            self.evaluator.take_counts(data)
            self.confirmer.evaluator.take_counts(data["raced"])
            self.failures = [Failure.from_record(failure) for failure in data["failures"]]
            self.ranking.restore(data)
            known = Answer.from_state(run.part("known"))
            if not self.evaluator.task.rows_independent:
                # The rest of the batch has a say in these rewards: all of it is rated again.
                known = NOTHING_KNOWN
            current = self._designs(run.arrays, "current")
            self.started = time.monotonic() - float(data["seconds"])
            rows = int(data["rows"])
            race = Race.from_state(state.part("race")) if "race" in state.data else None
            if race is not None:
                self.started -= max(0.0, race.seconds - float(data["seconds"]))
                if not self.evaluator.task.rows_independent:
                    race = replace(race, known=NOTHING_KNOWN)
            self.confirmer.race, self._search_state = race, state
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CheckpointError(f"{where} this run: {error}") from None
        self.history = self.folder.take_history(rows)
        return Pending(current, known)

    def _designs(self, arrays: Arrays, place: str) -> DesignBatch | None:
        own = {key.split("/")[1]: array for key, array in arrays.items() if key.startswith(f"{place}/")}
        return batch_of(self.space, own) if own else None


def _usable(evaluation: Evaluation) -> Floats:
    """Rewards, -inf for those that failed."""
    return np.where(evaluation.failed, -np.inf, evaluation.rewards)


# Ends of a search after which there is still a race.
_CONFIRMED = {
    StopReason.BUDGET,
    StopReason.TARGET,
    StopReason.TIME,
    StopReason.PATIENCE,
    StopReason.TRAINING,
    StopReason.DEAD_END,
}
_STILL_RUNNING: dict[str, Any] = {"stop": None, "stop_sentence": None, "detail": ""}


def _summary(result: Result) -> dict[str, Any]:
    return {key: value for key, value in result.to_dict().items() if key != "history"}
