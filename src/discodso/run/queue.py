"""A run that others drive: designs are asked for, evaluated wherever that may be, and told in any order.

    with Queue("runs/lab", settings) as queue:
        for asked in queue.ask(8):
            print(asked.id, asked.design)
        queue.tell([{"id": 3, "reward": 0.7}, {"id": 1, "error": "broke"}])

The folder holds everything, so that days may lie between two steps, and processes may take turns: whoever opens it
waits for the others. The search is the asynchronous one; what was asked and told, in which order, stands in its
journal, and decides all that follows.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.checks import is_integer, is_number, require_integer
from discodso.base.errors import CheckpointError, DeclarationError
from discodso.base.files import Closing, FileError, json_numbers, read_plain
from discodso.run.asynchronous import AsynchronousLoop
from discodso.run.folder import SETTINGS
from discodso.run.journal import JOURNAL, SEARCH, answer_of, entries_of, is_sound
from discodso.run.objective_calls import Answer, Measured, Outcome, outcome_of
from discodso.run.result import Result, StopReason
from discodso.run.settings import RunSettings
from discodso.run.start import Opened, opened, settings_of
from discodso.run.task import Task
from discodso.space.design import Design

TOLD = "told.json"  # results that were taken, until all of them stand in the journal
_PART = "queue"  # of the journal
_WAIT = 120.0  # seconds for others who are at work in the folder
_LEAST = 1e-3  # seconds of an evaluation, from which on the journal has its design


@dataclass(frozen=True)
class HandedOut:
    """A design to evaluate.

    Attributes:
        id: to tell what came of it.
        design: itself.
        seed: for the randomness of a stochastic task, None for others.
    """

    id: int
    design: Design
    seed: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the parts in order, each with its name and values, and the design as `from_json` reads it."""
        parts = [{"token": part.name, **part.values} for part in self.design]
        own = {"id": self.id, "parts": parts, "design": self.design.to_dict()}
        return own if self.seed is None else {**own, "seed": self.seed}


@dataclass(frozen=True)
class Told:
    """What became of results.

    Attributes:
        taken: ids whose results count now.
        repeated: ids that had the same result before.
        refused: a sentence for each result that does not count.
    """

    taken: tuple[int, ...]
    repeated: tuple[int, ...]
    refused: tuple[str, ...]


class Queue(Closing):
    """The run in a folder, held for as long as this is open.

    Args:
        folder: of the run; a new or empty one if it is to begin.
        settings: of a run that begins; of one that is there already they are not looked at.
        wait: seconds for others who are at work in the folder.
        given: what was handed over in Python, such as a task, where the run began with it.
    """

    def __init__(
        self,
        folder: str | Path,
        settings: RunSettings | None = None,
        *,
        wait: float = _WAIT,
        given: Any = None,
    ) -> None:
        self.path = Path(folder)
        with ExitStack() as stack:
            run = self._enter(stack, settings, wait, given)
            assert isinstance(run.loop, AsynchronousLoop)
            self._loop = run.loop
            self._loop.begin(run.pending)
            assert self._loop.folder is not None
            self._journal = self._loop.folder.journal
            self._since = _handed(self._journal.entries)
            queued = _of_queue(self._journal.entries)
            self._ever = {number for own in queued for number in own.get("handed", ())}
            told = (
                entry for entry in self._journal.entries if entry.get("part") == SEARCH and is_sound(entry)
            )
            self._results = {int(entry["first"]): answer_of(entry) for entry in told}
            self._finish_telling()
            self._loop.handed = set(self.pending)
            self._closing = stack.pop_all()

    def _enter(self, stack: ExitStack, settings: RunSettings | None, wait: float, given: Any) -> Opened:
        try:
            return stack.enter_context(self._opened(settings, wait, given))
        except FileError:
            if settings is None or not (self.path / SETTINGS).is_file():
                raise
        return stack.enter_context(self._opened(None, wait, given))  # another process has just begun it

    def _opened(
        self, settings: RunSettings | None, wait: float, given: Any
    ) -> AbstractContextManager[Opened]:
        begun = (self.path / SETTINGS).is_file()
        if not begun and settings is None:
            raise FileError(
                f"{self.path} is no run folder; begin one there by `discodso ask {self.path} --settings FILE`"
            )
        if settings is not None and not begun:
            return opened(settings, out=self.path, queue=True, wait=wait)
        own = replace(settings_of(self.path), given=given)
        if not own.plan.asynchronous:
            raise CheckpointError(
                f"the run in {self.path} is not driven by ask and tell; begin another folder"
            )
        return opened(own, out=self.path, resume=True, queue=True, wait=wait)

    def __exit__(self, *error: object) -> None:
        with self._closing:  # after an error, such as a full disk, the journal knows better than this process
            if not any(error):
                self._save()

    def close(self) -> None:
        """Save the run and let go of its folder."""
        self.__exit__()

    # --------------------------------------------------------------------------------------------------- state

    @property
    def pending(self) -> dict[int, float]:
        """When each design was handed out that has no result yet, by id: seconds since 1970."""
        return {number: since for number, since in self._since.items() if number in self._loop.open}

    @property
    def told(self) -> int:
        """How many designs have a result."""
        return int(self._loop.evaluator.calls)

    @property
    def budget(self) -> int:
        """How many may have one."""
        return int(self._loop.plan.budget)

    @property
    def result(self) -> Result:
        """What was found so far."""
        stop, detail = self._end or (StopReason.BUDGET, "")
        return self._loop.result(stop, detail)

    @property
    def over(self) -> str:
        """Why no more designs are handed out; empty if there are more."""
        return "" if self._end is None else self._end[0].value + (f": {self._end[1]}" if self._end[1] else "")

    @property
    def _end(self) -> tuple[StopReason, str] | None:
        return self._loop.limit()

    # ------------------------------------------------------------------------------------------------- ask, tell

    def ask(self, count: int = 1) -> list[HandedOut]:
        """Designs to evaluate, which nobody else gets; fewer than `count` where the budget or the space ends.

        Those that were forgotten come first.
        """
        require_integer("count", count, 1)
        found: list[HandedOut] = []
        loop = self._loop
        while len(found) < count and self._end is None:
            handed = loop.hand_out(len(self.pending) + count - len(found))
            if handed is None:
                break
            number, designs = handed
            found.append(HandedOut(number, designs[0], loop.seed_of(number)))
        if found:
            now = round(time.time(), 3)
            self._ever |= {asked.id for asked in found}
            self._since |= dict.fromkeys((asked.id for asked in found), now)
            self._journal.write(
                {"part": _PART, "handed": [asked.id for asked in found], "at": now}, at_once=True
            )
        return found

    def forget(self, ids: Iterable[int] = (), *, older_than: float = math.inf) -> tuple[int, ...]:
        """Designs that are to be handed out again, since nothing will come of them; gives their ids.

        Args:
            ids: of pending designs.
            older_than: and those that were handed out so many seconds ago.
        """
        pending, now = self.pending, time.time()
        chosen = list(ids)
        for number in chosen:
            if number not in pending:
                raise DeclarationError(f"id {number} cannot be forgotten: it is not pending")
        chosen += [n for n, since in pending.items() if now - since >= older_than and n not in chosen]
        if chosen:
            for number in chosen:
                del self._since[number]
            self._loop.handed -= set(chosen)
            self._journal.write({"part": _PART, "forgot": chosen}, at_once=True)
        return tuple(chosen)

    def tell(self, results: Sequence[Mapping[str, Any]]) -> Told:
        """Take results of designs: all that can count, or none if the machine stops before they are on the disk.

        Args:
            results: each with "id" and "reward", or "error", what happened in place of one; "violation", "cost"
                and "weight" as in `Measured`. Any of those that are pending, in any order.
        """
        good: dict[int, Mapping[str, Any]] = {}
        repeated, refused = list[int](), list[str]()
        for place, result in enumerate(results, start=1):
            try:
                number = self._id_of(result, place)
                _outcome(self._loop.task, result)
            except DeclarationError as error:
                refused.append(str(error))
                continue
            if number in good:
                refused.append(f"result {place}: id {number} is there twice; the first counts")
            elif number in self._loop.open:
                good[number] = {"elapsed": time.time() - self._since.get(number, time.time()), **result}
            elif self._is_same(number, result):
                repeated.append(number)
            else:
                refused.append(f"result {place}: id {number} has another result already, which counts")
        if good:
            assert self._loop.folder is not None
            self._loop.folder.write(
                TOLD, json.dumps([{**own, "id": n} for n, own in good.items()], allow_nan=False)
            )
            self._finish_telling()
        return Told(tuple(good), tuple(repeated), tuple(refused))

    def _id_of(self, result: Any, place: int) -> int:
        if not isinstance(result, Mapping):
            raise DeclarationError(f"result {place} must be an object with id and reward, got {result!r:.60}")
        number: Any = result.get("id")
        if not is_integer(number):
            raise DeclarationError(
                f"result {place} needs the id that its design was asked with, got {number!r:.40}"
            )
        if number not in self._ever:
            raise DeclarationError(f"result {place}: id {number} was never handed out")
        return int(number)

    def _is_same(self, number: int, result: Mapping[str, Any]) -> bool:
        """Whether a design was told the same before, as when a program repeats itself to be sure."""
        known, again = self._results.get(number), Answer.of_outcomes([_outcome(self._loop.task, result)])
        if known is None or known.reasons != again.reasons:
            return False
        pairs = (
            (known.rewards, again.rewards),
            (known.violations, again.violations),
            (known.goals, again.goals),
        )
        return all(_equal(one, two) for one, two in pairs)

    def _finish_telling(self) -> None:
        """Bring results into the journal that were taken; those that it has already are passed over."""
        file = self.path / TOLD
        if not file.exists():
            return
        for result in json.loads(read_plain(file)):
            if result["id"] in self._loop.open:
                answer = Answer.of_outcomes([_outcome(self._loop.task, result)])
                answer = replace(answer, seconds=max(_LEAST, float(result["elapsed"])))
                self._loop.take(result["id"], answer)
                self._results[result["id"]] = answer
        self._journal.sync()
        file.unlink()

    def _save(self) -> None:
        self._loop.save()
        if self._end is not None and not self.pending:
            self._loop.end(*self._end)


def _equal(one: Floats | None, two: Floats | None) -> bool:
    return one is two or (one is not None and two is not None and np.array_equal(one, two, equal_nan=True))


def _outcome(task: Task, result: Mapping[str, Any]) -> Outcome:
    """What a result says; DeclarationError if that is nothing."""
    where = f"id {result.get('id')}"
    error: Any = result.get("error")
    reward: Any = result.get("reward")
    violation, several = result.get("violation"), bool(task.objectives)
    if error is not None:
        if reward is not None or not isinstance(error, str) or not error.strip():
            raise DeclarationError(f"{where} needs a reward, or an error that is a text, not both")
        return f"reported: {' '.join(error.split())}"
    if reward is None and violation is None:
        raise DeclarationError(f"{where} has no reward: give a finite number, or an error in words")
    if not (reward is None or several or is_number(reward)):
        raise DeclarationError(f"{where}: the reward must be a finite number, got {reward!r:.40}")
    for key in ("cost", "weight"):
        if not (result.get(key) is None or is_number(result[key])):
            raise DeclarationError(f"{where}: {key} must be a finite number, got {result[key]!r:.40}")
    cost, weight = float(result.get("cost") or 0.0), result.get("weight")
    measured = Measured(math.nan if reward is None else reward, cost, weights=weight, violation=violation)
    try:
        plain = not (several or cost or weight is not None or violation is not None)
        outcome = float(reward) if plain else outcome_of(task, measured)
    except (TypeError, ValueError) as wrong:
        raise DeclarationError(f"{where}: {wrong}") from None
    if isinstance(outcome, str):
        raise DeclarationError(f"{where} {outcome}")
    return outcome


def results_of(text: str | bytes) -> list[Any]:
    """Results from a file: a JSON list, an object with one as "results", or an object in each line."""
    try:
        data = json_numbers(text)
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, Mapping):
        data = data["results"] if isinstance(data.get("results"), list) else [data]
    if isinstance(data, list):
        return data
    found = []
    words = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    for number, line in enumerate(words.splitlines(), start=1):
        if line.strip():
            try:
                found.append(json_numbers(line))
            except (ValueError, RecursionError):
                raise FileError(f"line {number} of the results is no JSON: {line.strip()!r:.60}") from None
    return found


def pending_in(folder: Path) -> dict[int, float] | None:
    """When the designs were handed out that have no result yet, by id; None for a run that is not driven so.

    Only read, so it may be asked while another process is at work.
    """
    entries = entries_of(folder / JOURNAL)
    if not any(entry.get("part") == _PART for entry in entries):
        return None
    since = _handed(entries)
    for entry in entries:
        if entry.get("part") == SEARCH and is_sound(entry):
            since.pop(entry["first"], None)
    return since


def _handed(entries: Iterable[Mapping[str, Any]]) -> dict[int, float]:
    since: dict[int, float] = {}
    for entry in _of_queue(entries):
        since |= dict.fromkeys(entry.get("handed", ()), float(entry.get("at", 0.0)))
        for number in entry.get("forgot", ()):
            since.pop(number, None)
    return since


def _of_queue(entries: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The entries of asking; what a stranger may have made of them is passed over."""
    for entry in entries:
        lists = [entry.get("handed", []), entry.get("forgot", [])]
        sound = all(isinstance(own, list) and all(map(is_integer, own)) for own in lists)
        if entry.get("part") == _PART and sound and is_number(entry.get("at", 0.0)):
            yield entry
