"""Designs that are known before a run begins: of files, of the folders of earlier runs, handed over in Python.

A file is CSV with one row for each design and a header:

    design,reward,error,violation.ripple,call,text
    "add(x, const(3.14))",0.93,,0,,
    "{""tokens"": [""x""], ""values"": [null]}",,raised ValueError: no power,,17,x

`design` is JSON, or the text that a design is printed as. A row without a reward has an error, what happened to
it. `goal.NAME` are the values of several objectives, in place of a reward, `violation.NAME` is by how much a
requirement is broken, `weight` the evidence behind a reward. Other columns are for people.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discodso.base.checks import is_number
from discodso.base.errors import DeclarationError, DiscodsoError, InvalidDesignError
from discodso.base.files import FileError, file_errors, read_plain
from discodso.run.folder import KNOWN, best_designs, read_top, require_run_folder
from discodso.run.journal import JOURNAL, written_designs
from discodso.run.objective_calls import Measured, Outcome, Rated, outcome_of
from discodso.run.result import Scored
from discodso.run.task import Task
from discodso.space.design import Design, DesignBatch
from discodso.space.design_text import design_of_text
from discodso.space.replay import replay
from discodso.space.space import Space

__all__ = ["KNOWN", "KnownDesign", "encoded", "first_designs", "known_designs"]
_VIOLATION, _GOAL = "violation.", "goal."
_ONLY_ONE = "violation"  # name of a requirement that has none
_CELL = 10_000_000  # characters of a cell at most


@dataclass(frozen=True)
class KnownDesign:
    """A design and what came of it.

    Attributes:
        design: or the text of one, until its space is known.
        outcome: None for one that is to be evaluated; `Measured` where its objectives have names or an order.
        where: for errors, such as "lab.csv, row 3".
    """

    design: Design | str
    outcome: Outcome | Measured | None
    where: str


def known_designs(given: Any) -> tuple[KnownDesign, ...]:
    """What `search(known=...)` takes: pairs of design and reward, files, run folders, or a list of all these."""
    if isinstance(given, (str, Path)):
        return read_known(Path(given))
    found: list[KnownDesign] = []
    for place, item in enumerate(_items("known", given), start=1):
        where = f"known, item {place}"
        if isinstance(item, KnownDesign):
            found.append(item)
        elif isinstance(item, (str, Path)):
            found += read_known(Path(item))
        elif isinstance(item, Scored):
            found.append(KnownDesign(item.design, _in_order(_outcome_of(item)), where))
        elif isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], (Design, str)):
            if isinstance(item[1], (tuple, list, Mapping)):
                found.append(KnownDesign(item[0], Measured(item[1]), where))
                continue
            if not is_number(item[1]):
                raise DeclarationError(f"{where}: the reward must be a finite number, got {item[1]!r:.60}")
            found.append(KnownDesign(item[0], float(item[1]), where))
        else:
            raise DeclarationError(f"{where} must be a pair (design, reward) or a path, got {item!r:.60}")
    return tuple(found)


def first_designs(given: Any) -> tuple[Design | str, ...]:
    """What `search(initial_designs=...)` takes: designs, their texts, or the path of a file of them."""
    items = [row[0] for row in _rows(given)] if isinstance(given, Path) else _items("initial_designs", given)
    for item in items:
        if not isinstance(item, (Design, str)):
            raise DeclarationError(f"initial_designs must be designs, got {item!r:.60}")
    return tuple(
        Design.from_json(item) if isinstance(item, str) and item[:1] == "{" else item for item in items
    )


def numbered(designs: Iterable[Design | str]) -> tuple[KnownDesign, ...]:
    """Initial designs with their places."""
    return tuple(
        KnownDesign(design, None, f"initial_designs, item {place}")
        for place, design in enumerate(designs, start=1)
    )


def _items(key: str, given: Any) -> list[Any]:
    if isinstance(given, (Design, Scored)) or not isinstance(given, Iterable):
        raise DeclarationError(f"{key} must be a list, got a single {type(given).__name__}; put it in a list")
    return list(given)


def read_known(path: Path) -> tuple[KnownDesign, ...]:
    """The designs of a CSV file, or the best of the run in a folder."""
    if path.is_dir():
        found = enumerate(designs_of_run(path), start=1)
        return tuple(
            KnownDesign(own, _in_order(outcome), f"{path}, design {place}")
            for place, (own, outcome, _) in found
        )
    return tuple(KnownDesign(text, _outcome(cells, where), where) for text, cells, where in _rows(path))


def designs_of_run(folder: Path) -> list[tuple[Design, Outcome, int | None]]:
    """The designs of the run in a folder, what came of each, and the number of its call, None if it was known.

    These are all whose evaluation took long enough to be written down by itself, and the best of the others.
    """
    require_run_folder(folder)
    found = {call: (design, outcome) for call, design, outcome in written_designs(folder / JOURNAL)}
    best = best_designs(read_top(folder) or {})
    others = [scored for scored in best if scored.call not in found]
    ranked = [(scored.design, _outcome_of(scored), scored.call or None) for scored in others]
    return [*ranked, *((design, outcome, call) for call, (design, outcome) in sorted(found.items()))]


def _rows(path: Path) -> list[tuple[str, dict[str, str], str]]:
    """The design, the other cells and the place of each row of a file."""
    with file_errors(f"cannot read {path}"):
        content = read_plain(path, follow=True)
    try:
        csv.field_size_limit(_CELL)
        reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        table = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except (csv.Error, ValueError) as error:
        raise FileError(f"{path} is no CSV file: {error}") from None
    header = [cell.strip() for cell in table[0][1]] if table else []
    if "design" not in header:
        raise FileError(f"{path} needs a header with a column 'design', as `discodso export` writes it")
    if twice := next((name for name, count in Counter(header).items() if name and count > 1), None):
        raise FileError(f"{path} has two columns {twice!r:.80}; leave one of them out")
    found = []
    for line, row in table[1:]:
        where = f"{path}, line {line}"
        if len(row) != len(header):
            raise FileError(
                f"{where} has {len(row)} cells, its header {len(header)}; put cells with commas in quotes"
            )
        cells = dict(zip(header, map(str.strip, row), strict=True))
        found.append((cells.pop("design"), cells, where))
    return found


def _outcome(cells: dict[str, str], where: str) -> Outcome | Measured:
    """What came of the design of a row."""
    text, error = cells.get("reward", ""), cells.get("error", "")
    named = {key.removeprefix(_VIOLATION): cell for key, cell in cells.items() if key.startswith(_VIOLATION)}
    broken = {
        name: max(0.0, _number(f"violation.{name}", cell, where)) for name, cell in named.items() if cell
    }
    weight = _number("weight", cells["weight"], where) if cells.get("weight") else None
    if weight is not None and weight <= 0:
        raise FileError(f"{where}: weight must be above 0, got {weight:g}")
    goals = {key.removeprefix(_GOAL): cell for key, cell in cells.items() if key.startswith(_GOAL) and cell}
    if goals:
        numbers = {name: _number(f"{_GOAL}{name}", cell, where) for name, cell in goals.items()}
        return Measured(numbers, weights=weight, violation=broken or None)
    if not text and any(broken.values()):
        return Rated(math.nan, broken, weight=weight)
    if not text and error:
        return error
    if not text:
        raise FileError(f"{where} has no reward; write one, or what went wrong into a column 'error'")
    reward = _number("reward", text, where)
    return Rated(reward, broken or None, weight=weight) if broken or weight is not None else reward


def _number(name: str, text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        hint = "; leave it empty and say in a column 'error' why there is none" if name == "reward" else ""
        raise FileError(f"{where}: {name} must be a finite number, got {text!r:.40}{hint}")
    return number


def _outcome_of(scored: Scored) -> Outcome:
    """Of a design that a run has ranked."""
    broken = {_ONLY_ONE: scored.violation} if scored.violation else None
    weight = None if scored.weight == 1 else scored.weight
    plain = broken is None and weight is None and not scored.goals
    return scored.reward if plain else Rated(scored.reward, broken, weight=weight, goals=scored.goals)


def _in_order(outcome: Outcome) -> Outcome | Measured:
    """An outcome of a run with several objectives as one that any task can be asked about."""
    if not isinstance(outcome, Rated) or not outcome.goals:
        return outcome
    return Measured(outcome.goals, weights=outcome.weight, violation=outcome.broken)


def encoded(space: Space, known: Sequence[KnownDesign]) -> DesignBatch:
    """Designs as a batch of a space; one that does not belong to it is named with its place."""
    designs: list[Design] = []
    for own in known:
        try:
            designs.append(design_of_text(own.design, space) if isinstance(own.design, str) else own.design)
        except InvalidDesignError as error:
            raise InvalidDesignError(f"{own.where}: {error}") from None
    try:
        batch = space.encode(designs)
        replay(space, batch)  # refuses designs that do not belong to the space
    except DiscodsoError:
        for own, design in zip(known, designs, strict=True):
            try:
                replay(space, space.encode([design]))
            except DiscodsoError as error:
                raise InvalidDesignError(f"{own.where}: {error}") from None
        raise
    return batch


def outcomes_of(task: Task, known: Sequence[KnownDesign]) -> list[Outcome]:
    """What came of known designs of a task."""
    found: list[Outcome] = []
    for own in known:
        outcome = own.outcome
        if isinstance(outcome, float) and task.objectives:
            outcome = Measured(outcome)
        if isinstance(outcome, Measured):
            outcome = outcome_of(task, outcome)
            if isinstance(outcome, str):
                raise DeclarationError(f"{own.where}: the reward was {outcome.removeprefix('returned ')}")
        assert outcome is not None
        found.append(outcome)
    return found


def csv_of_known(task: Task, known: Sequence[KnownDesign], designs: Sequence[Design]) -> str:
    """A file for the folder of the run that begins with these."""
    rows = zip(designs, outcomes_of(task, known), strict=True)
    return csv_of(((design, outcome, None) for design, outcome in rows), task.objectives)


def csv_of(rows: Iterable[tuple[Design, Outcome, int | None]], objectives: Sequence[Any] = ()) -> str:
    """Designs, what came of each, and the number of its call, as a file that can be read again.

    Args:
        objectives: names of several.
    """
    rows = list(rows)
    rated = [outcome for _, outcome, _ in rows if isinstance(outcome, Rated)]
    names = list(dict.fromkeys(name for outcome in rated for name in outcome.broken or ()))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    weighed = any(outcome.weight is not None for outcome in rated)
    goals = [f"{_GOAL}{name}" for name in objectives]
    columns = [*goals, *(f"{_VIOLATION}{name}" for name in names), *(["weight"] if weighed else [])]
    writer.writerow(["call", "reward", *columns, "error", "text", "design"])
    for design, outcome, call in rows:
        broken = outcome.broken or {} if isinstance(outcome, Rated) else {}
        reward = (
            ""
            if isinstance(outcome, str)
            else _exact(outcome.reward if isinstance(outcome, Rated) else outcome)
        )
        more = [_exact(broken[name]) if name in broken else "" for name in names]
        if weighed:
            more.append(_exact(outcome.weight or 1.0) if isinstance(outcome, Rated) else "")
        own = outcome.goals if isinstance(outcome, Rated) else ()
        more = [*([_exact(goal) for goal in own] if len(own) == len(goals) else [""] * len(goals)), *more]
        error = outcome if isinstance(outcome, str) else ""
        words = str(design).strip("⟨⟩")
        writer.writerow(
            ["" if call is None else call, reward, *more, _plain(error), _plain(words), design.to_json()]
        )
    return text.getvalue()


def _exact(number: float) -> str:
    return "" if math.isnan(number) else json.dumps(number)


def _plain(words: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{words}" if words[:1] in ("=", "+", "-", "@", "\t", "\r") else words
