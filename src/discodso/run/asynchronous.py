"""The asynchronous loop: a design for every worker that is free, told when it is done.

Batches leave workers idle that wait for the slowest. Here a worker gets the next design at once. Designs
are numbered as the method is asked for them; answers are told in the order in which they come, as many at a time
as the method learns from. It is asked for so many designs that the last of them is handed out just when the next
answers are complete: what it proposes follows from all answers but those that are under way.

The order of events decides the rest of the search, and stands in the journal. A run that goes on takes the same
events in the same order; what was under way when it stopped is evaluated again.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from discodso.base.errors import CheckpointError, DeclarationError, ExecutorError
from discodso.disco.method import Refining, Resumable, Searching
from discodso.run.evaluation import Evaluation, joined
from discodso.run.executors.chunks import Chunks
from discodso.run.journal import SEARCH, answer_of, mark_of
from discodso.run.loop import FRUITLESS, Loop, Pending
from discodso.run.objective_calls import Answer, Rows
from discodso.run.result import StopReason
from discodso.space.design import DesignBatch
from discodso.space.state import State, batch_arrays, batch_of

_UNDER_WAY_TOLD = 8  # numbers that are named when they are run again
_MOST_ASKED = 10**7  # designs at once, in a journal that anyone may have made


class AsynchronousLoop(Loop):
    """A search whose designs are handed out by their numbers, and whose answers may come in any order.

    Attributes:
        open: designs without an answer, by number, in the order in which they are handed out.
        handed: the numbers of those that are under way.
        numbers: how many designs have a number.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        task, why = self.task, ""
        if isinstance(self.method, Searching):
            why = "this method rates designs itself"
        elif isinstance(task.called, Resumable):
            why = "the objective remembers something from call to call"
        elif task.batch_objective is not None and not task.rows_independent:
            why = "the objective rates whole batches"
        elif task.refine is not None and isinstance(self.method, Refining) and self.method.refine_calls:
            why = "the task refines whole batches"
        if why:
            raise DeclarationError(f"asynchronous=True is not for this run: {why}")
        self.open: dict[int, DesignBatch] = {}
        self.handed: set[int] = set()
        self.numbers = 0
        self._gathered: list[Evaluation] = []  # ranked, and not told yet
        self._again = self._none()  # known ones that the method proposed once more
        self._exhausted = False
        self._events = 0  # of this search in the journal

    def _none(self) -> DesignBatch:
        values = np.empty((0, 1, *self.space.library.low.shape[1:]))
        return DesignBatch(
            self.space.library, np.empty((0, 1), np.int64), values, np.empty(0, np.int64), self.space
        )

    # ------------------------------------------------------------------------------------------------ events

    def hand_out(self, ahead: int = 0) -> tuple[int, DesignBatch] | None:
        """The next design and its number, None if there is none now; the method is asked for more if need be.

        Args:
            ahead: how many are evaluated at the same time.
        """
        while True:
            for number, design in self.open.items():
                if number not in self.handed:
                    self.handed.add(number)
                    return number, design
            room = self.confirmer.search_budget - self.numbers
            if room <= 0 or self._exhausted:
                return None
            missing = self.method.batch_size - len(self._gathered) - len(self.open) + max(ahead - 1, 0)
            before = self.numbers
            self._number(min(max(missing, 1), room))
            if self.numbers == before and self.open:  # all that it proposes is under way
                return None

    def take(self, number: int, answer: Answer) -> None:
        """What came of a design that was handed out."""
        designs = self.open[number]
        ledger = self.evaluator.ledger
        if ledger is not None:
            self._events += 1
            own = designs if ledger.tells(answer) else ()
            ledger.add(_rows(designs), answer, number - 1, own, event=self._events)
        self._take(number, answer)

    def seed_of(self, number: int) -> int | None:
        """For the objective, None if it takes none."""
        return self.evaluator.seed_of(number)

    def _number(self, size: int) -> None:
        """Ask the method for designs, and give numbers to those that are new."""
        if (ledger := self.evaluator.ledger) is not None:
            self._events += 1
            ledger.journal.write({"part": SEARCH, "asked": size, "event": self._events})
        self._ask_for(size)

    def _ask_for(self, size: int) -> None:
        asked = self._ask(size)
        if asked is None:
            self._exhausted = True
            return
        fresh = self._fresh(asked)
        self._enqueue(asked.select(fresh))
        if self.memory is not None and not fresh.all():
            known = asked.select(~fresh & self.memory.holds(asked))
            self._again = DesignBatch.concatenate((self._again, known))
        self._fruitless = 0 if fresh.any() else self._fruitless + 1
        self._exhausted = self._fruitless >= FRUITLESS
        if not self.open:
            self._tell()

    def _enqueue(self, designs: DesignBatch) -> None:
        if self.memory is not None:
            self.memory.reserve(designs)
        for row in range(len(designs)):
            self.numbers += 1
            self.open[self.numbers] = designs.select(slice(row, row + 1))

    def _take(self, number: int, answer: Answer) -> None:
        self.handed.discard(number)
        evaluation = self.confirmer.numbered(self.evaluator.told(self.open.pop(number), answer, number))
        self._rank(evaluation)
        self._gathered.append(evaluation)
        if len(self._gathered) >= self.method.batch_size:
            self._tell()

    def _tell(self) -> None:
        """Tell the method what was gathered."""
        gathered, self._gathered = self._gathered, []
        again, self._again = self._again, self._none()
        if gathered or len(again):
            evaluation = joined(gathered, self._none())
            asked = DesignBatch.concatenate((evaluation.designs, again))
            fresh = np.arange(len(asked)) < len(evaluation.designs)
            self._teach(asked, fresh, evaluation)

    # ------------------------------------------------------------------------------------------------- loop

    def _over(self, pending: Pending) -> StopReason | None:
        return None  # the journal may have more

    def _evaluate_all(self, pending: Pending) -> tuple[StopReason, str]:
        self.begin(pending)
        return self._fly()

    def begin(self, pending: Pending) -> None:
        """Take up the run where its checkpoint and its journal leave it."""
        if pending.current is not None:
            first = pending.current
            self._enqueue(first.select(self._fresh(first)))
            self._save(Pending())
        self._replay()

    def limit(self) -> tuple[StopReason, str] | None:
        """Why no more designs are handed out, None if there are more."""
        exhausted = self._exhausted and not self.open
        stop = StopReason.EXHAUSTED if exhausted else self._limit_reached()
        if stop in (StopReason.EXHAUSTED, StopReason.BUDGET) and self._gathered:
            self._tell()  # what is left, less than a batch; nothing can follow it
        return None if stop is None else (stop, self._exhaustion() if exhausted else self._detail())

    def save(self) -> None:
        """Write a checkpoint."""
        self._save(Pending())

    def _fly(self) -> tuple[StopReason, str]:
        """Keep all workers busy until a limit is reached; what is under way then is awaited."""
        dispatcher = self.evaluator.dispatcher
        assert dispatcher is not None
        chunks: Chunks[Rows, Answer] = dispatcher.flight()
        stop: StopReason | None = self._limit_reached()
        while True:
            while stop is None and chunks.busy < dispatcher.workers:
                if (handed := self.hand_out(dispatcher.workers)) is None:
                    break
                number, design = handed
                chunks.add(number, _rows(design, self.seed_of(number)))
            if not chunks.busy:
                break
            arrived: list[Any] = []
            lost = None
            try:
                with self.interrupts.at_once():
                    for item in chunks.next():
                        arrived.append(item)
            except KeyboardInterrupt:
                stop = StopReason.INTERRUPTED
            except ExecutorError as error:
                stop, lost = StopReason.EXECUTOR, str(error)
            for chunk, found in arrived:
                self.take(chunk.first, dispatcher.answer(chunk, found))
            if stop in (StopReason.INTERRUPTED, StopReason.EXECUTOR):
                chunks.abandon()
                self.handed.clear()
                self._save(Pending())
                return stop, lost or ""
            failed = None if self._gathered else self._failed()  # looked at after what makes a batch
            stop = stop or failed or self._limit_reached() or self._interrupted()
            if self.folder is not None and not arrived:
                self.folder.journal.sync()
            if time.monotonic() - self._saved >= self.plan.checkpoint_seconds:
                self._save(Pending())
        self._tell()  # what is left, less than a batch
        self._save(Pending())
        if stop is not None:
            return stop, self._detail()
        return StopReason.EXHAUSTED, self._exhaustion()

    # ------------------------------------------------------------------------------------------------ resume

    def _replay(self) -> None:
        """Take the events that the journal has and the checkpoint has not."""
        if self.folder is None or not (entries := self.folder.journal.entries):
            return
        ledger, self.evaluator.ledger = self.evaluator.ledger, None  # they are written already
        taken = 0
        try:
            for entry in entries:
                if entry.get("part") != SEARCH or entry.get("event", 0) <= self._events:
                    continue
                if entry["event"] != self._events + 1:
                    raise ValueError(f"event {self._events + 1} is missing")
                self._events += 1
                if "asked" in entry:
                    if int(entry["asked"]) > _MOST_ASKED:
                        raise ValueError("more designs are asked for than any run asks for")
                    self._ask_for(int(entry["asked"]))
                    continue
                number = int(entry["first"])
                if entry["mark"] != mark_of(_rows(self.open[number])):
                    raise ValueError(f"call {number} is of another design")
                self._take(number, answer_of(entry))
                taken += 1
        except (LookupError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise CheckpointError(
                f"{self.folder.journal.path} does not fit its run: {error}; bring it back from a copy, or go on "
                "from the checkpoint alone with --force"
            ) from None
        finally:
            self.evaluator.ledger = ledger
        if taken:
            self.callbacks("note", f"{taken} evaluations are taken from the journal")
        if self.open:
            some = ", ".join(map(str, list(self.open)[:_UNDER_WAY_TOLD]))
            more = ", ..." if len(self.open) > _UNDER_WAY_TOLD else ""
            self.callbacks("note", f"calls {some}{more} had not ended, and are made again")

    def _state(self, pending: Pending, counts: Any) -> State:
        whole = super()._state(pending, counts)
        data = {
            "numbers": list(self.open),
            "last": self.numbers,
            "events": self._events,
            "exhausted": self._exhausted,
            "gathered": [int(evaluation.calls[0]) for evaluation in self._gathered],
        }
        gathered = joined(self._gathered, self._none())
        parts = {
            "open": State(batch_arrays(DesignBatch.concatenate((self._none(), *self.open.values())))),
            "again": State(batch_arrays(self._again)),
            "designs": State(batch_arrays(gathered.designs)),
            "answers": gathered.answer.to_state(),
        }
        own = State({}, data)
        for name, part in parts.items():
            own = own.with_part(name, part)
        return whole.with_part("asynchronous", own)

    def _restore_more(self, state: State) -> None:
        own = state.part("asynchronous")
        data = own.data
        designs = batch_of(self.space, own.part("open").arrays)
        numbers = [int(number) for number in data["numbers"]]
        if len(numbers) != len(designs):
            raise ValueError("open designs without a number")
        self.open = {number: designs.select(slice(k, k + 1)) for k, number in enumerate(numbers)}
        self.numbers, self._events = int(data["last"]), int(data["events"])
        self._exhausted = bool(data["exhausted"])
        self._again = batch_of(self.space, own.part("again").arrays)
        gathered = batch_of(self.space, own.part("designs").arrays)
        answers = Answer.from_state(own.part("answers"))
        self._gathered = [
            self.evaluator.evaluation(gathered.select(slice(k, k + 1)), answers.part(k, k + 1), int(call))
            for k, call in enumerate(data["gathered"])
        ]
        if self.memory is not None:
            self.memory.reserve(designs)
            self.memory.reserve(gathered)


def _rows(designs: DesignBatch, seed: int | None = None) -> Rows:
    seeds = None if seed is None else np.array([seed], np.uint64)
    return Rows.of(designs, seeds, 0, len(designs))
