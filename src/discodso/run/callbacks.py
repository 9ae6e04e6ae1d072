"""Watching a run: a small protocol, and callbacks for people, programs and TensorBoard. None can end a run."""

from __future__ import annotations

import io
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from html import escape
from importlib import import_module
from multiprocessing import current_process
from pathlib import Path
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, TextIO

from discodso.base.checks import module_of_extra
from discodso.base.errors import DeclarationError
from discodso.base.files import file_errors
from discodso.base.streams import Forgiving
from discodso.base.terminal import safe_console
from discodso.run.history import HistoryRow
from discodso.run.result import Ranking, Result, Scored

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What a callback is told at the start.

    Attributes:
        task: its name.
        budget: objective calls.
        seed: of the run.
        calls: more than 0 for a run that goes on.
        cost_unit: of the cost in history rows, empty if the task has none.
    """

    task: str
    budget: int
    seed: int
    calls: int
    cost_unit: str = ""


class Callback:
    """Base for callbacks; override what is wanted. An object with some of these methods will do as well."""

    def standing(self, lines: Callable[[int], Sequence[Any]]) -> None:
        """Before the run begins, if its kind of task can show more than counts while it runs.

        `lines` gives what stands now for a width, as text and tables of Rich; for the thread of the run only.
        """

    def start(self, info: RunInfo) -> None:
        """The run begins, or goes on."""

    def batch(self, row: HistoryRow, ranking: Ranking) -> None:
        """A batch was evaluated and learned from."""

    def improvement(self, best: Scored, row: HistoryRow) -> None:
        """The batch had a better design than all before; called before `batch`."""

    def note(self, words: str) -> None:
        """A line on what goes on: a phase of the run begins, or something is odd."""

    def end(self, result: Result) -> None:
        """The search has ended; notes on what comes after it may follow."""


_HOOKS = ("standing", "start", "batch", "improvement", "note", "end")


class Callbacks:
    """Calls the callbacks of one run; what one raises is told once as a warning, and the run goes on.

    Args:
        given: a function of (row, ranking), which is the hook `batch`; an object with some of the hooks; a list of
            these; or None.
    """

    def __init__(self, given: Any = None) -> None:
        several = list(given) if isinstance(given, (list, tuple)) else [given]
        self._callbacks = [callback for callback in several if callback is not None]
        self._warned: set[int] = set()
        for callback in self._callbacks:
            if not callable(callback) and not any(callable(getattr(callback, h, None)) for h in _HOOKS):
                raise DeclarationError(
                    f"callback must be a function, or an object with one of {', '.join(_HOOKS)}, got {callback!r}"
                )

    def add(self, callback: Any) -> None:
        """One more, behind those given; None for none."""
        if callback is not None:
            self._callbacks.append(callback)

    def __call__(self, hook: str, *arguments: Any) -> None:
        """Call one hook of all callbacks."""
        for index, callback in enumerate(self._callbacks):
            function = getattr(callback, hook, callback if hook == "batch" else None)
            if not callable(function):
                continue
            try:
                function(*arguments)
            except Exception as error:
                if index not in self._warned:
                    self._warned.add(index)
                    name = getattr(callback, "__name__", type(callback).__name__)
                    what = f"callback {name} failed in {hook} with {type(error).__name__}: {error}"
                    more = "the run goes on, and further failures of it are not told"
                    warnings.warn(f"{what}; {more}", UserWarning, stacklevel=2)


class JsonLines(Callback):
    """One JSON object a line, for programs: events start, batch, improvement, note and end.

    Args:
        target: a file to append to, or a stream such as sys.stdout.
    """

    def __init__(self, target: str | Path | TextIO) -> None:
        # Absolute, because an objective may change the current folder.
        self._target = Path(target).absolute() if isinstance(target, (str, Path)) else target
        if isinstance(self._target, Path):
            with file_errors(f"cannot write {target}"):
                self._target.open("a").close()  # better now than in the middle of a run

    def _write(self, event: str, data: dict[str, Any]) -> None:
        line = json.dumps({"event": event, **data}, allow_nan=False) + "\n"
        if isinstance(self._target, Path):
            with self._target.open("a", encoding="utf-8") as file:
                file.write(line)
        else:
            self._target.write(line)
            self._target.flush()

    def start(self, info: RunInfo) -> None:
        """Task, budget, seed, calls before."""
        self._write("start", asdict(info))

    def batch(self, row: HistoryRow, ranking: Ranking) -> None:
        """The history row."""
        self._write("batch", row.to_dict())

    def improvement(self, best: Scored, row: HistoryRow) -> None:
        """The better design."""
        self._write("improvement", best.to_dict())

    def note(self, words: str) -> None:
        """The line, as "words"."""
        self._write("note", {"words": words})

    def end(self, result: Result) -> None:
        """The result without its history, which was told row by row."""
        self._write("end", result.to_dict(history=False))


_SECONDS_BETWEEN = 0.5  # two looks at what stands
_NOTEBOOK_WIDTH = 100


def is_watched() -> bool:
    """Whether a person looks at standard error: on a terminal or in a notebook, and not from a worker."""
    from rich.console import Console

    inside = current_process().name != "MainProcess" or current_thread() is not main_thread()
    return not inside and (Forgiving(sys.stderr).isatty() or Console(file=io.StringIO()).is_jupyter)


class _Cell:
    """The output of a cell of a notebook, which is written again and again."""

    def __init__(self) -> None:
        self._text = ""
        self._handle = import_module("IPython.display").display(self, display_id=True)

    def write(self, text: str) -> None:
        """Show this in place of what was shown."""
        self._text = text
        self._handle.update(self)

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return f'<pre style="white-space:pre">{escape(self._text)}</pre>'


def _fallen(row: HistoryRow, before: float | None) -> str:
    """Why the best reward is lower than before; "" if it is not."""
    if row.best is None or before is None or row.best >= before:
        return ""
    why = "on fresh seeds" if row.confirming else "evaluated again its mean fell"
    return f" (before {before:.5f}: {why})"


class RichProgress(Callback):
    """What stands and a bar on a terminal and in a notebook; elsewhere a plain line for every tenth of the budget.

    If that cannot be written any more, as to a closed pipe or a full disk, it stays silent.

    Args:
        console: where to; standard error by default.
        leave: what stood last stays, for those who are shown nothing else at the end.
    """

    def __init__(self, console: Console | None = None, leave: bool = False) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        class Standing(Progress):
            """The bar, and what stands above it."""

            above: Sequence[Any] = ()

            def get_renderables(self) -> Iterable[Any]:
                yield from self.above
                yield self.make_tasks_table(self.tasks)

        if console is None:
            # Not Console(stderr=True), which ends the program if a pipe is closed.
            stream: Any = sys.stderr if isinstance(sys.stderr, Forgiving) else Forgiving(sys.stderr)
            console = safe_console(file=stream)
        self._console = console
        self._broken = False
        name, best = (
            TextColumn("{task.description}", markup=False),
            TextColumn("{task.fields[best]}{task.fields[cost]}", markup=False),
        )
        columns = (name, BarColumn(), MofNCompleteColumn(), best, TimeRemainingColumn())
        self._bar = Standing(*columns, console=console, disable=console.quiet or not console.is_terminal)
        self._line: Any = None
        self._leave, self._looked = leave, -math.inf
        self._standing: Callable[[int], Sequence[Any]] | None = None
        self._cell: _Cell | None = None
        self._info = RunInfo("", 1, 0, 0)
        self._tenths = 0
        self._shown: float | None = None
        self._printed: float | None = None
        self._fell = ""  # why the best is lower than it was shown
        self._said = ""

    def standing(self, lines: Callable[[int], Sequence[Any]]) -> None:
        """Show this, too."""
        self._standing = lines

    def start(self, info: RunInfo) -> None:
        """Show the bar."""
        self._info = info
        self._tenths = info.calls * 10 // info.budget
        self._show(self._begin)

    def _show(self, how: Callable[[], None]) -> None:
        """Show something, unless that went wrong before."""
        if self._broken:
            return
        try:
            how()
        except (OSError, ValueError, SystemExit):  # Rich raises the last if the pipe of a console is closed
            self._broken = True

    def _begin(self) -> None:
        info = self._info
        if self._console.is_jupyter:
            self._cell = _Cell()
            return
        self._line = self._bar.add_task(
            info.task, total=info.budget, completed=info.calls, best="best -", cost=""
        )
        self._bar.start()

    def batch(self, row: HistoryRow, ranking: Ranking) -> None:
        """Move it on."""
        self._show(lambda: self._move(row))

    def _look(self, last: bool = False) -> Sequence[Any] | None:
        """What stands, where it is time to show that again."""
        seen = self._console.is_terminal or self._cell is not None
        if (
            self._standing is None
            or not seen
            or not (last or time.monotonic() > self._looked + _SECONDS_BETWEEN)
        ):
            return None
        width = self._console.width if self._cell is None else _NOTEBOOK_WIDTH
        lines = self._standing(width)
        self._looked = time.monotonic()
        return lines

    def _write_cell(self, cell: _Cell, lines: Sequence[Any]) -> None:
        from rich.console import Console

        text = io.StringIO()
        Console(file=text, width=_NOTEBOOK_WIDTH, force_jupyter=False).print(*lines, self._said, sep="\n")
        cell.write(text.getvalue())

    def _move(self, row: HistoryRow) -> None:
        best = "best -" if row.best is None else f"best {row.best:.5f}"
        if row.hypervolume is not None:
            best = f"hypervolume {row.hypervolume:.5g}, {row.front} on the front"
        cost = "" if row.cost is None else f", {row.cost:.0f} {self._info.cost_unit}"
        self._said = f"{row.calls} of {self._info.budget} calls{cost}, {best}"
        lines = self._look()
        if self._cell is not None:
            if lines is not None or time.monotonic() > self._looked + _SECONDS_BETWEEN:
                self._looked = time.monotonic()
                self._write_cell(self._cell, lines or ())
            return
        if lines is not None:
            self._bar.above = lines
        self._fell = _fallen(row, self._shown) or ("" if row.best != self._shown else self._fell)
        self._shown = row.best
        self._bar.update(self._line, completed=row.calls, best=best + self._fell, cost=cost)
        tenths = row.calls * 10 // self._info.budget
        if not self._console.is_terminal and tenths > self._tenths:
            self._tenths = tenths
            mean = "-" if row.mean is None else f"{row.mean:.5f}"
            fallen = _fallen(row, self._printed)
            self._printed = row.best
            said = f"{row.calls} calls{cost}, {best}{fallen}" + ("" if row.front else f", mean {mean}")
            self._console.print(said, highlight=False, markup=False, soft_wrap=True)

    def note(self, words: str) -> None:
        """Print it."""
        self._show(lambda: self._console.print(words, highlight=False, markup=False, soft_wrap=True))

    def end(self, result: Result) -> None:
        """Take it away."""
        self._show(self._finish)

    def _finish(self) -> None:
        lines = self._look(last=True) or ()
        if self._cell is not None:
            self._write_cell(self._cell, lines)
            return
        self._bar.above = lines if self._leave else ()
        self._bar.stop()


class TensorBoard(Callback):
    """Rewards, entropy, lengths and speed for TensorBoard; needs the extra `discodso[tensorboard]`.

    Args:
        folder: for the event files.
    """

    _CURVES = (
        "best",
        "batch_best",
        "mean",
        "quantile",
        "entropy",
        "mean_length",
        "failures",
        "hypervolume",
        "front",
    )

    def __init__(self, folder: str | Path) -> None:
        writer = module_of_extra("torch.utils.tensorboard", "TensorBoard").SummaryWriter
        with file_errors(f"cannot write into {folder}"):
            self._writer = writer(str(Path(folder).absolute()))
        self._last = (time.monotonic(), 0)

    def start(self, info: RunInfo) -> None:
        """Begin to count."""
        self._last = (time.monotonic(), info.calls)

    def batch(self, row: HistoryRow, ranking: Ranking) -> None:
        """One point of every curve, over the objective calls."""
        for name in self._CURVES:
            if (value := getattr(row, name)) is not None:
                self._writer.add_scalar(f"search/{name}", value, row.calls)
        now, (before, calls) = time.monotonic(), self._last
        if now > before:
            speed = (row.calls - calls) / (now - before)
            self._writer.add_scalar("search/calls_per_second", speed, row.calls)
        self._last = (now, row.calls)

    def end(self, result: Result) -> None:
        """Bring all to the disk."""
        self._writer.close()
