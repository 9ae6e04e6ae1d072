"""What is special about a kind of task, as one record; all kinds by name, loaded when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from discodso.base.checks import did_you_mean
from discodso.base.errors import SettingsError
from discodso.disco.method import MethodSettings
from discodso.run.clock import Clock
from discodso.run.plan import Plan
from discodso.run.result import Result
from discodso.run.task import Task
from discodso.space.design import Design
from discodso.space.space import Space

_IN_PYTHON = "discodso.run.python_tasks"  # tasks that are handed over; no settings file can name them


@dataclass(frozen=True)
class Prepared:
    """What a kind makes of the settings of a run.

    Attributes:
        task: to search.
        plan: of the search; a kind may keep calls for its end, or have a seed of its own for the search.
        method: the preset of this kind; used unless the settings have another.
        finish: what comes after the search, given its result and the folder of the run, if there is one: gives
            what was found, None if that is the result itself.
        introduction: what to show a person when the search begins, as text and tables of Rich.
        standing: what to show while it runs, the same for a width; None if there is nothing but the counts.
        focus: of the method, which no settings file can hold; see `DrawSettings`.
        maker: starts methods that learn inside the episodes of an environment; see `Practising`.
        reserve: seconds of the time limit that the kind needs after the search, as far as it can tell now.
        callback: watches the search beside those of the user.
        options: those of the task, where preparing has settled some; the folder of the run has them.
    """

    task: Task
    plan: Plan
    method: MethodSettings
    finish: Callable[[Result, Path | None], Any] = lambda result, folder: None
    introduction: Callable[[], Sequence[Any]] = lambda: ()
    standing: Callable[[int], Sequence[Any]] | None = None
    focus: Callable[[Space], Any] | None = None
    maker: Callable[..., Any] | None = None
    reserve: Callable[[], float] = lambda: 0.0
    callback: Any = None
    options: Any = None


@dataclass(frozen=True)
class Outcome:
    """What came of a run.

    Attributes:
        result: of the search.
        space: that was searched.
        found: what the kind made of it, such as a model or a policy; None if that is the result itself.
        note: a sentence for the user, such as that a damaged checkpoint was passed over.
    """

    result: Result
    space: Space
    found: Any = None
    note: str = ""


@dataclass(frozen=True)
class Shown:
    """A design for a page.

    Attributes:
        text: in a line, or as indented lines for a tree.
        math: MathML as nested lists; None unless it is an expression.
        svg: a picture; None unless it is a tree.
    """

    text: str
    math: list[Any] | None = None
    svg: str | None = None


def _plainly(ending: Any, designs: Sequence[Design], history: Sequence[Any]) -> list[Shown]:
    return [Shown(str(design)) for design in designs]


@dataclass(frozen=True)
class Kind:
    """A kind of task.

    Attributes:
        options: dataclass of its options, whose class attribute `kind` is its name: the table [task] of a settings
            file, options on the command line, keyword arguments.
        prepare: from the settings of a run, and what was handed over in Python, to what its search needs; what
            must be closed afterwards goes on the stack. The clock of the run has begun.
        whole: options with paths from the root, so that a run can be gone on with from anywhere.
        begin: what comes before a run that is new: from its settings to some with the designs that it begins
            with, and with `begun`, by which a run that goes on knows of them. The clock of the run has begun.
        title: the task for people, from the table [task] and from what `read` gives.
        told: whether the options say all of a run but what was handed over in Python, which `resume` needs again.
        template: of a settings file, for `discodso init`; files that belong to it are in `files`.
        budget, target: of the template; the command of a kind has the same budget.
        top: designs that a run keeps by default.
        executors: whether an executor may evaluate its designs; else what to use in its place.
        lines, data: what was found for people, as text and tables of Rich for a width, and for programs.
        draw: draws what was found into a file, whose ending says the format; None if there is no such picture.
        read: reads back what `finish` has written into a folder; None if nothing, or nothing that can be read.
        last: the file that `finish` writes last, JSON with the "calls" of the search; "" if it writes none.
        summary: what was found at the end, from what `read` gives: figures for programs and a line for people.
        shown: designs of a run for a page, given what `read` gives and the history.
        page: more for a page, from what `read` gives: "best", "front" and "score", as far as they are special.
    """

    options: type[Any]
    prepare: Callable[[Any, Any, ExitStack, Clock], Prepared]
    title: Callable[[Mapping[str, Any], Any], str]
    whole: Callable[[Any], Any] = lambda options: options
    begin: Callable[[Any, Clock], Any] = lambda settings, clock: settings
    told: bool = False
    template: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    budget: int = 10_000
    target: float = 0.999
    top: int = 10
    executors: bool | str = True
    lines: Callable[[Outcome, int], Sequence[Any]] | None = None
    data: Callable[[Outcome], dict[str, Any]] | None = None
    draw: Callable[[Any, Path], None] | None = None
    read: Callable[[Path], Any] = lambda folder: None
    last: str = ""
    summary: Callable[[Any], tuple[dict[str, Any] | None, str]] | None = None
    shown: Callable[[Any, Sequence[Design], Sequence[Any]], list[Shown]] = _plainly
    page: Callable[[Any], Mapping[str, Any]] = lambda ending: {}

    @property
    def name(self) -> str:
        """As settings files have it."""
        return str(self.options.kind)


def kind_named(name: Any, where: str = "task.kind") -> Kind:
    """The kind of that name."""
    if name != "python":
        require_known(where, name, kind_names())
    found: Kind = import_module(_IN_PYTHON if name == "python" else _registered()[name]).KIND
    return found


def require_known(where: str, name: Any, choices: Sequence[str]) -> None:
    """Require one of some names, which may have been mistyped."""
    if name not in choices:
        got = "nothing" if name is None else f"{name!r:.60}"
        hint = did_you_mean(name, choices)
        raise SettingsError(f"{where} must be one of {', '.join(choices)}, got {got}{hint}")


def kind_names() -> tuple[str, ...]:
    """All that a settings file may name."""
    return tuple(_registered())


def _registered() -> dict[str, str]:
    """The modules of the kinds by name; only names go from this layer to the tasks below it."""
    kinds: dict[str, str] = import_module("discodso.tasks").KINDS
    return kinds
