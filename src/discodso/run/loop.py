"""The loop round ask and tell, from one batch to the next, and what of it a checkpoint holds.

A checkpoint is the state between two batches. A batch that was cut short, by a budget or by Ctrl-C, is kept with
it: its designs, and the answers that there are. A resumed run finishes that batch first, so that it goes the way
that it would have gone with the larger budget, or without the interrupt.

A noisy search may end with a race of its best designs (see `race`). Its calls are counted and seeded apart, so
that a run whose budget is raised afterwards goes the same way; a checkpoint holds it beside the search.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from discodso.base.arrays import Bools, Floats
from discodso.base.errors import (
    CheckpointError,
    DeadEndError,
    DeadEndWarning,
    DeclarationError,
    DiscodsoError,
    ExecutorError,
    TrainingError,
)
from discodso.disco.method import Method, MethodSettings, Metrics, Refining, Resumable, Searching
from discodso.run import checkpoint
from discodso.run.callbacks import Callbacks, RunInfo
from discodso.run.clock import Clock
from discodso.run.evaluation import Evaluation, Evaluator
from discodso.run.executors.dispatch import Executor
from discodso.run.folder import RunFolder
from discodso.run.front import Front
from discodso.run.goals import Grading, feasibility_words
from discodso.run.history import HistoryRow, is_sampled, named_values, rounded_shares, token_use
from discodso.run.identity import OTHER_OBJECTIVE, differences
from discodso.run.interrupts import Interrupts
from discodso.run.journal import RACE, SEARCH, Ledger
from discodso.run.memory import Memory
from discodso.run.objective_calls import NOTHING_KNOWN, Answer, Counts, commonest
from discodso.run.plan import Plan
from discodso.run.race import FAILURES_KEPT, Confirmer, Race
from discodso.run.result import Failure, Ranking, Result, Scored, StopReason
from discodso.run.task import Task
from discodso.run.waiting import Waiting
from discodso.space.design import DesignBatch
from discodso.space.state import State, batch_arrays, batch_of

_REDRAWS = 10  # times that a method is asked again for designs that were not evaluated yet
FRUITLESS = 100  # batches in a row without a new design after which a run ends
_TELLING = 10  # failures without a success that end a run, where the first batch is smaller
_RARE = 0.05  # share of random designs that meet the conditions, below which a search is slow
_SHOW_SECONDS = 2.0  # between two improvements that are shown in the folder before the next checkpoint
# Ends of a search after which there is no race.
_UNCONFIRMED = {StopReason.INTERRUPTED, StopReason.EXECUTOR, StopReason.EXHAUSTED, StopReason.FAILED}
_STILL_RUNNING: dict[str, Any] = {"stop": None, "stop_sentence": None, "detail": ""}


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
        task: Task,
        method: MethodSettings,
        plan: Plan,
        callbacks: Callbacks,
        executor: Executor | None = None,
        clock: Clock | None = None,
        reserve: Callable[[], float] = lambda: 0.0,
        identity: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.task, self.plan, self.callbacks, self.space = task, plan, callbacks, task.space
        self.clock, self.reserve = clock or Clock(plan.time_limit), reserve
        for_method, for_objective, for_race = np.random.SeedSequence(int(plan.seed)).spawn(3)
        raising = plan.on_failure == "raise"
        self.evaluator = Evaluator(task, for_objective, raising, executor, plan.design_seconds, plan.retries)
        self.confirmer = Confirmer(self.evaluator.with_seed(for_race), plan.confirm_calls or 0, plan.budget)
        self.method: Method = method.build(task.space, for_method)
        self.folder: RunFolder | None = None
        self.identity = identity  # of the run, which one that goes on must share
        self.interrupts = Interrupts()
        self.waiting = Waiting(self.evaluator.workers)
        cautious = self.confirmer.kept_calls > 0
        self.front = Front(task.signs, task.reference) if len(task.objectives) else None
        own = Ranking(plan.top, task.noisy, cautious)
        self.ranking: Front | Ranking = own if self.front is None else self.front
        # Where rewards are exact no design is paid for twice.
        rates = isinstance(self.method, Searching)
        self.memory = None if task.stochastic or rates else Memory()
        self.grading: Grading | None = None  # of what the method is told, once a requirement was named
        self.history: list[HistoryRow] = []
        self.failures: list[Failure] = []
        self._shown_best: Scored | None = None  # of the last batch
        self._grown = False  # whether the front has since
        self._latest_best = 0  # call of the newest design that has ever been the best
        self._fruitless = 0  # batches in a row without a new design
        self._repeats: float | None = None  # share of the last batch
        self._saved = self._shown = time.monotonic()
        self._search_state = State()  # of the last checkpoint

    def write_to(self, folder: RunFolder) -> None:
        """Keep the run in a folder."""
        if not isinstance(self.method, Resumable):
            raise DiscodsoError(
                f"a run with {type(self.method).__name__} cannot be written to a folder: it has no state()"
            )
        self.folder = folder
        if self._is_journalled:
            self.evaluator.ledger = Ledger.of(folder.journal, SEARCH)
            self.confirmer.evaluator.ledger = Ledger.of(folder.journal, RACE)

    @property
    def _is_journalled(self) -> bool:
        """Whether answers can be replayed: not where an objective remembers them or a method makes them."""
        return not isinstance(self.task.called, Resumable) and not isinstance(self.method, Searching)

    @property
    def counts(self) -> Counts:
        """Of all objective calls so far."""
        return self.evaluator.counts + self.confirmer.evaluator.counts

    def spent(self, pending: Pending) -> int:
        """Objective calls of a run that goes on, with those whose answers are only kept."""
        ledgers = self.evaluator.ledger, self.confirmer.evaluator.ledger
        alone = self.task.rows_independent  # or a batch that is not complete is rated again as a whole
        written = [ledger.last if ledger is not None and alone else 0 for ledger in ledgers]
        searched = max(self.evaluator.calls + len(pending.known.rewards), written[0])
        return searched + max(self.confirmer.spent.calls, written[1])

    def know(self, designs: DesignBatch, answer: Answer) -> None:
        """Learn from designs that were evaluated before the run; they cost no calls, and their call is 0."""
        if isinstance(self.method, Searching):
            name = type(self.method).__name__
            raise DeclarationError(f"known designs are for methods that are told rewards, and {name} is not")
        failed = np.isin(np.arange(len(designs)), list(answer.reasons))
        rewards = np.where(failed, self.task.worst_reward, answer.rewards)
        calls, all_new = np.zeros(len(designs), np.int64), np.ones(len(designs), np.bool_)
        evaluation = Evaluation(designs, rewards, calls, failed, (), False, answer, True)
        self._rank(evaluation)
        self._shown_best, self._grown = self.ranking.best, False
        self.method.tell(*self._told(designs, all_new, evaluation))

    # --------------------------------------------------------------------------------------------- the loop

    def execute(self, pending: Pending, resumed: bool = False) -> Result:
        """Run until a limit is reached; the result has everything found."""
        task, plan = self.task, self.plan
        info = RunInfo(task.name, plan.budget, plan.seed, self.spent(pending), task.cost_unit)
        self.callbacks("start", info)
        if not resumed:
            self._warn_if_few_are_accepted()
            self._save(pending)
        over = self._over(pending) if resumed or self.ranking.candidates else None
        with self.interrupts:
            stop, detail = (over, self._detail()) if over else self._until_stopped(pending)
            if self.confirmer.kept_calls and stop not in _UNCONFIRMED:
                stop, detail = self._confirm() or (stop, detail)
        if (words := self.waiting.words) and task.refine is None:
            self.callbacks("note", words)
        return self.end(stop, detail)

    def end(self, stop: StopReason, detail: str) -> Result:
        """What was found, which the folder then has as the end of the run."""
        result = self.result(stop, detail)
        if self.folder is not None:
            self._write_top(self.folder, result.to_dict(history=False))
        self.callbacks("end", result)
        return result

    def _over(self, pending: Pending) -> StopReason | None:
        """Why a run that goes on is at its end already; None in the midst of a batch."""
        return None if len(pending.known.rewards) else self._limit_reached()

    def _warn_if_few_are_accepted(self) -> None:
        """Say so where conditions make a search slow: most of what is drawn is thrown away."""
        if self.space.conditions and (share := self.space.acceptance()) < _RARE:
            names = " and ".join(rule.name for rule in self.space.conditions)
            why = "others are drawn again, which takes time; rules that look ahead would spare that"
            warnings.warn(f"{share:.1%} of random designs meet {names}: {why}", DeadEndWarning, stacklevel=2)

    def _until_stopped(self, pending: Pending) -> tuple[StopReason, str]:
        """Search; gives why it ended."""
        try:
            if isinstance(self.method, Searching):
                return self._search(self.method)
            return self._evaluate_all(pending)
        except KeyboardInterrupt:
            return StopReason.INTERRUPTED, ""
        except TrainingError as error:
            return StopReason.TRAINING, str(error)
        except DeadEndError as error:
            if not self.evaluator.calls:
                raise
            return StopReason.DEAD_END, str(error)

    def _evaluate_all(self, pending: Pending) -> tuple[StopReason, str]:
        """Batch after batch until a limit is reached."""
        while True:
            asked = self._ask() if pending.current is None else pending.current
            if asked is None or self._fruitless >= FRUITLESS:
                self._save(Pending(asked))
                return StopReason.EXHAUSTED, self._exhaustion()
            fresh = self._fresh(asked)
            try:
                evaluation = self._evaluate(asked, fresh, pending.known)
            except ExecutorError as error:
                self._save(Pending(asked, pending.known))
                return StopReason.EXECUTOR, str(error)
            stop = self._learn(asked, fresh, evaluation) or self._interrupted()
            due = time.monotonic() - self._saved >= self.plan.checkpoint_seconds
            if evaluation.complete and (stop is not None or due):
                self._save(Pending())
            if stop is not None:
                return stop, self._detail()
            pending = Pending()

    def _fresh(self, designs: DesignBatch) -> Bools:
        """Which designs are to be evaluated: all of them where rewards are noisy."""
        return np.ones(len(designs), np.bool_) if self.memory is None else self.memory.is_new(designs)

    def _search(self, method: Searching) -> tuple[StopReason, str]:
        """Let a method search that rates designs itself, part by part; gives why it ended."""
        while True:
            searched = method.search(self.confirmer.search_budget - self.evaluator.calls)
            self._repeats = searched.repeats
            evaluation = self.evaluator.take(
                searched.designs, searched.rewards, searched.calls, searched.cost
            )
            stop = self._learn(searched.designs, np.ones(len(searched.designs), np.bool_), evaluation)
            stop = stop or self._interrupted()
            if stop is None and (searched.solved or searched.exhausted):
                self._save(Pending())
                return StopReason.SOLVED if searched.solved else StopReason.EXHAUSTED, searched.exhausted
            if stop is not None or time.monotonic() - self._saved >= self.plan.checkpoint_seconds:
                self._save(Pending())
            if stop is not None:
                return stop, self._detail()

    def _interrupted(self) -> StopReason | None:
        return StopReason.INTERRUPTED if self.interrupts.came else None

    # ------------------------------------------------------------------------------------------------- ask

    def _ask(self, count: int | None = None) -> DesignBatch | None:
        """The next batch; None if no design is left. A method that can is asked again for those known already."""
        asked = self.method.ask() if count is None else self.method.ask(count)
        if self.memory is None:
            return asked
        redraws = getattr(self.method, "redraws", False)
        new = asked.select(self.memory.is_new(asked))
        size = drawn = len(asked)
        for _ in range(_REDRAWS if redraws else 0):
            if len(new) == size:
                break
            more = self.method.ask(size - len(new))
            drawn += len(more)
            both = DesignBatch.concatenate((new, more))
            new = both.select(self.memory.is_new(both))
        self._repeats = (drawn - len(new)) / max(drawn, 1)
        if not redraws:
            return asked
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
        return f"the last {FRUITLESS} batches were repeats of designs that were evaluated before"

    # -------------------------------------------------------------------------------------------- evaluate

    def _evaluate(self, asked: DesignBatch, fresh: Bools, known: Answer) -> Evaluation:
        """Evaluate the fresh designs of a batch, and let the task refine what the method picks.

        If not all of that can be done, the batch is saved before it changes anything, to be finished later.
        """
        before, method = self.evaluator.counts, self.method
        room = self._room(known.feasible, self.evaluator.calls + len(known.rewards))
        with self.interrupts.at_once(), self.waiting.measured() as measured:
            evaluation = self.evaluator.evaluate(asked.select(fresh), self._stop_inside_batch, known, room)
            measured(evaluation.answer.seconds, len(evaluation.rewards))
        pending, usable = Pending(asked, evaluation.answer), evaluation.usable
        if evaluation.complete and isinstance(method, Refining) and self.task.refine is not None:
            rows = method.to_refine(evaluation.designs, usable)
            if len(rows):
                room = self._room(usable, self.evaluator.calls)
                with self.interrupts.at_once():
                    evaluation = self.evaluator.refine(evaluation, rows, method.refine_calls, room)
        if not evaluation.complete:
            self._save(pending, before)
        return self.confirmer.numbered(evaluation)

    def _room(self, rewards: Floats, calls: int) -> int:
        """Calls that may follow within a batch that has these rewards, after so many calls of the search."""
        if len(rewards) and self._stop_inside_batch(float(np.fmax.reduce(rewards, initial=-np.inf))):
            return 0
        return self.confirmer.search_budget - calls

    def _stop_inside_batch(self, reward: float) -> bool:
        # One noisy reward says little of a design; `Ranking.reaches` does.
        target = None if self.confirmer.kept_calls else self.plan.target
        return (target is not None and reward >= target) or self._out_of_time()

    def _out_of_time(self) -> bool:
        limit = self.plan.time_limit
        if limit is not None and not self.confirmer.racing:  # a share of it is for the race, as of the calls
            limit *= 1 - self.confirmer.kept_calls / self.plan.budget
        return limit is not None and self.clock.seconds >= limit - self.reserve()

    def _limit_reached(self) -> StopReason | None:
        if self.plan.target is not None and self.ranking.reaches(self.plan.target):
            return StopReason.TARGET
        if self.task.settled is not None and self.task.settled(self.ranking.candidates):
            return StopReason.OPTIMUM
        if self.evaluator.calls >= self.confirmer.search_budget:
            return StopReason.BUDGET
        if self._out_of_time():
            return StopReason.TIME
        if self.plan.patience is not None and self.counts.calls - self._latest_best >= self.plan.patience:
            return StopReason.PATIENCE
        return None

    def _failed(self) -> StopReason | None:
        """Whether all has failed so far; a run that goes on after that tries one more batch."""
        calls, failed = self.evaluator.calls, self.evaluator.counts.failure_count
        stops = self.plan.on_failure == "stop" and failed == calls >= _TELLING
        return StopReason.FAILED if stops else None

    def _detail(self) -> str:
        failed = self.evaluator.counts.failure_count
        if self.failures and (not self.ranking.candidates or failed == self.evaluator.calls):
            reason, share = commonest([failure.reason for failure in self.failures])
            why = "because" if share == 1 else f"{share:.0%} of them because"
            subject = "" if reason.startswith("the batch objective") else "the objective "
            return f"every evaluation failed, {why} {subject}{reason}"
        if self.ranking.candidates and not self.ranking.candidates[0].feasible:
            words = feasibility_words(0, self.counts.broken)
            return f"no design met all requirements ({words}); the closest has a violation of " + (
                f"{self.ranking.candidates[0].violation:.3g}"
            )
        return "" if self.task.settled is None else self.task.settled(self.ranking.candidates)

    # ------------------------------------------------------------------------------------------------ tell

    def _learn(self, asked: DesignBatch, fresh: Bools, evaluation: Evaluation) -> StopReason | None:
        """Rank a batch, tell the method and record it; gives why to stop."""
        self._rank(evaluation)
        self._fruitless = 0 if len(evaluation.rewards) else self._fruitless + 1
        stop = StopReason.INTERRUPTED if evaluation.interrupted else self._failed() or self._limit_reached()
        self._teach(asked, fresh, evaluation)
        return stop

    def _rank(self, evaluation: Evaluation) -> None:
        """Let designs into the ranking, or among the failures."""
        answer = evaluation.answer
        if isinstance(self.ranking, Front):
            self._grown = self.ranking.take(evaluation) or self._grown
            self._latest_best = self.ranking.newest
        else:
            self.ranking.add(
                evaluation.designs, evaluation.usable, evaluation.calls, answer.weights, answer.violation
            )
        if self.ranking.candidates:
            self._latest_best = max(self._latest_best, self.ranking.candidates[0].call)
        self._add_failures(evaluation.failures)

    def _teach(self, asked: DesignBatch, fresh: Bools, evaluation: Evaluation) -> None:
        """Tell the method, and record the batch."""
        metrics, before = None, self._shown_best
        try:
            told, rewards, weights = self._told(asked, fresh, evaluation)
            rates = isinstance(self.method, Searching)  # itself, and knows them
            if len(told) and not rates and not evaluation.interrupted:
                metrics = self.method.tell(told, rewards, weights)
                if metrics is not None and metrics.cost:
                    self.evaluator.counts += Counts(0, metrics.cost)
        finally:
            row = self._row(evaluation, metrics)
            self._write(row)
            grown, self._grown = self._grown, False
            best = self._shown_best = self.ranking.best
            if grown and self.front is not None:
                best = next((own for own in self.front if own.call == self.front.newest), None)
            if best is not None and (grown or before is None or best.reward > before.reward):
                if self.folder is not None and time.monotonic() - self._shown >= _SHOW_SECONDS:
                    self._show(self.folder)  # for whoever is watching the folder
                self.callbacks("improvement", best, row)
            self.callbacks("batch", row, self.ranking)

    def _told(
        self, asked: DesignBatch, fresh: Bools, evaluation: Evaluation
    ) -> tuple[DesignBatch, Floats, Floats | None]:
        """What the method is told: the designs that were evaluated, and those known from before among them."""
        designs, memory = evaluation.designs, self.memory
        rewards, came = self._graded(evaluation)
        if memory is None:
            return designs, rewards, evaluation.answer.weights
        rows, failed = np.flatnonzero(fresh)[: len(rewards)], evaluation.failed
        # Refined designs are known as they came, and as they are now.
        memory.add(asked.select(rows), _where(failed, np.nan, came))
        memory.add(designs, _where(failed, np.nan, rewards))
        if fresh.all():
            return designs, rewards, evaluation.answer.weights
        again = np.flatnonzero(~fresh & memory.holds(asked))
        known = asked.select(again)
        found = memory.rewards(known).reshape(len(known), *rewards.shape[1:])
        found = np.where(np.isnan(found), self._worst, found)
        order = np.argsort(np.concatenate((rows, again)))  # as they were asked for
        told = DesignBatch.concatenate((designs, known)).select(order)
        return told, np.concatenate((rewards, found))[order], None

    def _graded(self, evaluation: Evaluation) -> tuple[Floats, Floats]:
        """What the method is told of designs, and of them as they came, before they were refined."""
        rewards, answer, failed = evaluation.rewards, evaluation.answer, evaluation.failed
        violation, came = answer.violation, answer.rewards
        if len(signs := self.task.signs):
            came = signs * answer.goals_of(len(signs))
            rewards = _where(failed, -np.inf, came)
        if self.grading is None:
            if violation is None:
                return rewards, came
            self.grading = Grading.of(came[~failed], violation[~failed])
        far = np.zeros(len(rewards)) if violation is None else violation
        told = _where(failed, self._worst, self.grading.told(came, far))
        return told, told

    @property
    def _worst(self) -> float:
        """What the method is told of designs that failed."""
        worst = self.task.worst_reward
        return worst if self.grading is None else min(worst, self.grading.least)

    # ------------------------------------------------------------------------------------------------ race

    def _confirm(self) -> tuple[StopReason, str] | None:
        """Let the best designs race on fresh seeds; gives why that was cut short, if it was."""
        confirmer, after = self.confirmer, self.evaluator.calls
        try:
            if confirmer.race is not None and confirmer.race.after != after:
                self._add_failures(confirmer.leave())
            race = confirmer.start([scored for scored in self.ranking.candidates if scored.feasible], after)
            self.ranking.raced = race.ranked
            if race.objective is not None:
                self.task.called.restore(race.objective)
            for row in race.rows:  # of a run that goes on
                self._write(row)
            while confirmer.race and (designs := confirmer.race.batch(self.space)) is not None:
                with self.interrupts.at_once():
                    evaluation, unfinished = confirmer.round(
                        designs, self.clock, self._out_of_time, self.task.called
                    )
                self.ranking.raced = confirmer.race.ranked
                row = self._row(evaluation, None)
                confirmer.add(row)
                self._write(row)
                self._save_race(unfinished or confirmer.race)
                self.callbacks("batch", row, self.ranking)
                if evaluation.interrupted:
                    return StopReason.INTERRUPTED, ""
                if unfinished is not None:
                    return StopReason.TIME, ""
        except KeyboardInterrupt:
            return StopReason.INTERRUPTED, ""
        except ExecutorError as error:
            return StopReason.EXECUTOR, str(error)
        return None

    # ---------------------------------------------------------------------------------------------- record

    def _add_failures(self, failures: Iterable[Failure]) -> None:
        self.failures += tuple(failures)[: FAILURES_KEPT - len(self.failures)]

    def _row(self, evaluation: Evaluation, metrics: Metrics | None) -> HistoryRow:
        rewards: Floats = evaluation.rewards[evaluation.feasible]
        if self.front is not None:
            rewards = rewards[:0]
        designs, best, counts, metrics = (
            evaluation.designs,
            self.ranking.best,
            self.counts,
            metrics or Metrics(),
        )
        lengths = designs.design_lengths()
        sampled = len(designs) > 0 and is_sampled(len(self.history) + 1)
        return HistoryRow(
            calls=counts.calls,
            best=None if best is None else best.reward,
            batch_best=float(rewards.max()) if len(rewards) else None,
            mean=float((rewards / len(rewards)).sum()) if len(rewards) else None,
            quantile=metrics.quantile,
            entropy=metrics.entropy,
            mean_length=float(lengths.mean()) if len(lengths) else None,
            max_length=int(lengths.max()) if len(lengths) else None,
            failures=counts.failure_count,
            seconds=self.clock.seconds,
            cost=self._cost,
            shares=rounded_shares(metrics.shares),
            tokens=token_use(designs) if sampled else None,
            values=named_values(designs) if sampled else None,
            restarted=metrics.restarted,
            redrawn=metrics.redrawn,
            feasible=counts.feasible_count if counts.has_requirements else None,
            broken=dict(counts.broken) or None,
            hypervolume=None if self.front is None else self.front.hypervolume,
            front=None if self.front is None else len(self.front),
            confirming=self.confirmer.racing,
            repeats=None if self._repeats is None else round(self._repeats, 4),
        )

    def _write(self, row: HistoryRow) -> None:
        self.history.append(row)
        if self.folder is not None:
            self.folder.append(row)

    @property
    def _cost(self) -> float | None:
        return self.counts.cost if self.task.cost_unit else None

    def result(self, stop: StopReason, detail: str) -> Result:
        """Everything found so far."""
        raced = self.confirmer.race if self.confirmer.racing else None
        top, arities = self.ranking.top, self.space.library.arities
        if arities is not None:  # those from a checkpoint do not know it
            top = tuple(replace(scored, design=scored.design.as_tree(arities)) for scored in top)
        return Result(
            best=next((scored for scored in top if scored.feasible), None) if self.front is None else None,
            top=top,
            history=tuple(self.history),
            calls=self.counts.calls,
            failure_count=self.counts.failure_count,
            failures=(*self.failures, *(raced.failures if raced else ()))[:FAILURES_KEPT],
            stop=stop,
            detail=detail,
            seconds=self.clock.seconds,
            seed=int(self.plan.seed),
            cost=self._cost,
            feasible_count=self.counts.feasible_count if self.counts.has_requirements else None,
            broken=self.counts.broken,
            objectives=tuple(self.task.objectives),
            directions=tuple(self.task.directions),
            hypervolume=None if self.front is None else self.front.hypervolume,
            reference=None if self.front is None else self.front.reference,
        )

    # ------------------------------------------------------------------------------------------------ save

    def _save(self, pending: Pending, counts: Counts | None = None) -> None:
        """Save the search with what is to do next, and with its counts before that."""
        if self.folder is not None:
            self._search_state = self._state(pending, counts or self.evaluator.counts)
            self._save_race(self.confirmer.race)
            self._saved = time.monotonic()

    def _save_race(self, race: Race | None) -> None:
        """Save the search as it stood at the last checkpoint, and the race beside it."""
        if self.folder is not None:
            whole = self._search_state
            self.folder.sync()
            checkpoint.save(
                self.folder.path, whole if race is None else whole.with_part("race", race.to_state())
            )
            self._show(self.folder)

    def _show(self, folder: RunFolder) -> None:
        summary = self.result(StopReason.BUDGET, "").to_dict(history=False)
        self._write_top(folder, {**summary, **_STILL_RUNNING})
        self._shown = time.monotonic()

    def _write_top(self, folder: RunFolder, summary: dict[str, Any]) -> None:
        arities = self.space.library.arities
        folder.write_top(summary if arities is None else {**summary, "arities": arities})

    def _state(self, pending: Pending, counts: Counts) -> State:
        assert isinstance(self.method, Resumable)
        data = {
            **asdict(counts),
            "rows": len(self.history),
            "fruitless": self._fruitless,
            "repeat_share": self._repeats,
            "latest_best": self._latest_best,
            **({} if self.grading is None else {"grading": self.grading.to_dict()}),
            "seconds": self.clock.seconds,
            **self._marks(),
            "identity": dict(self.identity),
            **self.ranking.state(),
            "raced": asdict(self.confirmer.evaluator.counts),
            "failures": [failure.to_dict() for failure in self.failures],
        }
        run = State({}, data).with_part("known", pending.known.to_state())
        if pending.current is not None:
            run = run.with_part("current", State(batch_arrays(pending.current)))
        parts = {"run": run, "method": self.method.state()}
        if self.memory is not None:
            parts["memory"] = self.memory.state()
        if isinstance(self.task.called, Resumable):
            parts["objective"] = self.task.called.state()
        return State.of_parts(parts)

    def _restore_more(self, state: State) -> None:
        """What a loop of another kind has beside that."""

    def _marks(self) -> dict[str, Any]:
        """What a checkpoint must have been made with."""
        method = type(self.method).__name__
        return {"space": self.space.mark, "method": method, "seed": int(self.plan.seed)}

    def _forget_journal(self) -> None:
        """What the journal holds is of another search than the one that goes on."""
        assert self.folder is not None
        self.folder.journal.forget()
        for evaluator in (self.evaluator, self.confirmer.evaluator):
            if evaluator.ledger is not None:
                evaluator.ledger.known.clear()

    def restore(self, state: State, force: bool = False) -> Pending:
        """Go back to a checkpoint; gives what to do next. `force` takes that of a run with other settings."""
        assert self.folder is not None
        assert isinstance(self.method, Resumable)
        where = f"the checkpoint in {self.folder.path} does not fit"
        try:
            run = state.part("run")
            data = run.data
            for key, own in self._marks().items():
                if data[key] != own:
                    raise CheckpointError(f"{where}: it was made with another {key}; use that of the run")
            changes = differences(data.get("identity"), self.identity)
            mended = changes == [OTHER_OBJECTIVE] and data["failure_count"] == data["calls"]  # all has failed
            if changes and not force and not mended:
                said = "; ".join(changes)
                raise CheckpointError(
                    f"{where}: {said}; change that back, or go on all the same with --force"
                )
            self.method.restore(state.part("method"))
            if isinstance(self.task.called, Resumable):
                self.task.called.restore(state.part("objective"))
            if self.memory is not None:
                self.memory.restore(state.part("memory"))
            self._fruitless, self._repeats = int(data["fruitless"]), data["repeat_share"]
            self._latest_best = int(data.get("latest_best", 0))
            self.grading = Grading.from_dict(data["grading"]) if "grading" in data else None
            self.evaluator.counts = Counts.from_dict(data)
            self.confirmer.evaluator.counts = Counts.from_dict(data["raced"])
            self.failures = [Failure.from_dict(failure) for failure in data["failures"]]
            self.ranking.restore(data)
            self._shown_best = self.ranking.best
            self._restore_more(state)
            current = batch_of(self.space, run.part("current").arrays) if "current" in data else None
            known, seconds = Answer.from_state(run.part("known")), float(data["seconds"])
            race = Race.from_state(state.part("race")) if "race" in state.data else None
            if not self.task.rows_independent:
                # The rest of the batch has a say in these rewards: all of it is rated again.
                known = NOTHING_KNOWN
                race = None if race is None else replace(race, known=NOTHING_KNOWN)
            self.clock.go_on(max(seconds, 0.0 if race is None else race.seconds))
            self.confirmer.race, self._search_state = race, state
            rows = int(data["rows"])
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise CheckpointError(f"{where} this run: {error}") from None
        self.history = self.folder.take_history(rows)
        if changes:
            self._forget_journal()
        return Pending(current, known)


def _where(rows: Bools, value: float, rewards: Floats) -> Floats:
    """A value for some rows of rewards[n] or rewards[n, m]."""
    return np.where(rows.reshape(-1, *(1,) * (rewards.ndim - 1)), value, rewards)
