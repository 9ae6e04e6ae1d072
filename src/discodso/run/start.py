"""Starting a run, and going on with one: one function does both, and `search` and `resume` call it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from discodso.base.checks import require, require_one_of
from discodso.base.errors import CheckpointError, DeclarationError, SettingsError
from discodso.base.options import require_nothing_left, taken, with_options
from discodso.base.signals import endings_interrupt
from discodso.baselines.literature import Practising
from discodso.disco.disco import DisCoSettings
from discodso.disco.method import MethodSettings
from discodso.disco.presets import PRESETS, Preset
from discodso.run import checkpoint
from discodso.run.asynchronous import AsynchronousLoop
from discodso.run.callbacks import Callbacks
from discodso.run.clock import Clock
from discodso.run.executors.dispatch import Executor
from discodso.run.executors.registry import make_executor
from discodso.run.folder import SETTINGS, RunFolder, require_run_folder, require_unused
from discodso.run.identity import identity
from discodso.run.kinds import Outcome, Prepared
from discodso.run.known import (
    KNOWN,
    csv_of_known,
    encoded,
    first_designs,
    known_designs,
    numbered,
    outcomes_of,
)
from discodso.run.loop import Loop, Pending
from discodso.run.objective_calls import Answer
from discodso.run.plan import Limits, Plan
from discodso.run.python_tasks import PythonOptions
from discodso.run.result import Result
from discodso.run.settings import RunSettings, changed, read
from discodso.run.task import Task
from discodso.space.design import Design


@with_options(Plan)
def search(
    task: Task,
    *,
    budget: int,
    method: MethodSettings | None = None,
    preset: Preset | None = None,
    initial_designs: Sequence[Design | str] | Path = (),
    known: Any = (),
    callback: Any = None,
    executor: Executor | None = None,
    out: str | Path | None = None,
    **plan: Any,
) -> Result:
    """Search for the design of highest reward.

    Args:
        task: the space and the objective.
        budget: objective calls to spend; failed calls count.
        method: settings of the method; those of the preset by default.
        preset: "default", DisCo with all that makes it stronger, "paper", the paper's to the letter, or
            "paper-scaled", the same on the scale of ranges and rewards; see `preset`.
        initial_designs: designs to evaluate first and to learn from, or the path of a CSV file that has them.
        known: designs that were evaluated before, as pairs of a design and a reward, paths of CSV files (see
            `discodso export`) or of run folders, or a list of all these. They cost no call, the method learns from
            them, and they are among the best with call 0. Where rewards are exact they are not evaluated again.
        callback: a function called after every batch with its history row and the best designs so far, a
            `Callback`, or a list of these.
        executor: evaluates the designs elsewhere: anything with `submit`, such as `Processes`.
            The result is the same, but that a target is looked at after every batch.
        out: folder for the run, which must be new or empty; `resume` goes on with it.
        {options}

    Ctrl-C ends the search and returns what was found.
    """
    if method is not None and preset is not None:
        raise DeclarationError("give search a method or a preset, not both")
    require("task", task, isinstance(task, Task), "a Task")
    own = taken(Plan, plan)
    require_nothing_left("search", plan, Plan)
    settings = RunSettings(
        PythonOptions(task.name),
        Plan(budget, **own),
        method,
        preset or "default",
        initial_designs=first_designs(initial_designs or ()),
        known=known_designs(known),
        given=task,
    )
    return start(settings, out=out, callback=callback, executor=executor).result


@with_options(Limits)
def resume(
    folder: str | Path,
    *,
    task: Any = None,
    method: MethodSettings | None = None,
    executor: Executor | None = None,
    callback: Any = None,
    force: bool = False,
    **limits: Any,
) -> Any:
    """Go on with the run in a folder, exactly as if it had never stopped.

    Args:
        folder: `out` of the run.
        task: for runs that began in Python, the same task again; for policies what makes the environment, where
            that was no id.
        method: for runs that began with a method of one's own, its settings.
        executor: evaluates designs elsewhere; that of the settings by default.
        callback: watches the run; see `search`.
        force: go on although settings, task or source of the objective are others than those that it began with.
        {options}

    Returns:
        What the function returned that began the run: a `Result`, or a `PolicySearch`; a `FoundEquation` where the
        run began as an equation for a table.
    """
    own = Limits(**taken(Limits, limits))
    require_nothing_left("resume", limits, Limits)
    settings = replace(settings_of(folder, own.budget, own.time_limit), given=task)
    if isinstance(task, Task):
        settings = replace(settings, task=PythonOptions(task.name))
    if method is not None:
        settings = replace(settings, method=method)
    outcome = start(settings, out=folder, resume=True, callback=callback, executor=executor, force=force)
    return outcome.result if outcome.found is None else outcome.found


def settings_of(
    folder: str | Path, budget: int | None = None, time_limit: float | None = None
) -> RunSettings:
    """The settings of the run in a folder, with other limits where given."""
    require_run_folder(Path(folder))
    return read(Path(folder) / SETTINGS).with_limits(budget, time_limit)


def start(
    settings: RunSettings,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    callback: Any = None,
    executor: Executor | None = None,
    introduce: Callable[[Sequence[Any]], None] | None = None,
    clock: Clock | None = None,
    force: bool = False,
) -> Outcome:
    """Do what settings say: start a run, or go on with the one in `out`.

    Args:
        settings: all of the run.
        out: folder for the run.
        resume: go on with the run in the folder. The settings must be those that it began with; the limits may be
            others.
        callback: watches the run; see `search`.
        executor: in place of that of the settings.
        introduce: is told what the kind of task has to show before the search begins.
        clock: of the run, if it has begun already.
        force: see `resume`.
    """
    with (
        endings_interrupt(),
        opened(
            settings,
            out=out,
            resume=resume,
            callback=callback,
            executor=executor,
            introduce=introduce,
            clock=clock,
            force=force,
        ) as run,
    ):
        result = run.loop.execute(run.pending, run.resumed)
        return Outcome(result, run.loop.space, run.prepared.finish(result, run.path), run.note)


@dataclass(frozen=True)
class Opened:
    """A run that is about to begin, or to go on.

    Attributes:
        loop: of the search.
        pending, resumed: what it has to do first, and whether it goes on from a checkpoint.
        prepared: by the kind of task.
        path: of its folder, None if it has none.
        note: see `Outcome`.
    """

    loop: Loop
    pending: Pending
    resumed: bool
    prepared: Prepared
    path: Path | None
    note: str


@contextmanager
def opened(
    settings: RunSettings,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    callback: Any = None,
    executor: Executor | None = None,
    introduce: Callable[[Sequence[Any]], None] | None = None,
    clock: Clock | None = None,
    force: bool = False,
    queue: bool = False,
    wait: float | None = None,
) -> Iterator[Opened]:
    """All that a run needs before its first step; closed at the end.

    Args:
        queue: designs are handed out and told from outside; see `Queue`.
        wait: seconds until a folder is given up that another process works in.
    """
    require_one_of("preset", settings.preset, PRESETS)
    kind = settings.kind
    settings = replace(settings, task=kind.whole(settings.task))
    if settings.executor.kind != "none" and isinstance(kind.executors, str):
        raise SettingsError(f"executor.kind must be 'none' for {kind.name}: {kind.executors}")
    callbacks = Callbacks(callback)
    clock = clock or Clock(settings.plan.time_limit, partial(callbacks, "note"))
    if out is not None and not resume:
        require_unused(Path(out))
    texts = tuple(design for design in settings.initial_designs if isinstance(design, str))
    whole = tuple(design for design in settings.initial_designs if isinstance(design, Design))
    settings = kind.begin(replace(settings, initial_designs=whole), clock)
    with ExitStack() as stack:
        prepared = kind.prepare(settings, settings.given, stack, clock)
        callbacks.add(prepared.callback)
        if prepared.options is not None:
            settings = replace(settings, task=prepared.options)
        task = prepared.task
        method = _method(settings, prepared)
        own = settings.method is None and settings.preset == "default"
        _require_several(task, method, prepared.plan)
        plan = prepared.plan.confirming_noise(task.noisy and own and not queue and not task.objectives)
        if queue:
            plan = replace(plan, asynchronous=True)
        if plan.confirm_calls and not task.noisy:
            raise DeclarationError(
                "confirm_calls is for tasks whose rewards are noisy: stochastic=True and not repeatable"
            )
        pending, resumed, note = Pending(), False, ""
        if settings.initial_designs or texts:
            first = encoded(task.space, numbered((*settings.initial_designs, *texts)))
            settings = replace(settings, initial_designs=tuple(first))
            pending = Pending(first)
        known = encoded(task.space, settings.known)
        if executor is None and not queue:
            made = make_executor(**asdict(settings.executor))
            executor = None if made is None else stack.enter_context(closing(made))
        if task.outside and not queue:
            raise DeclarationError(
                f"{task.name} has no objective; run it by `discodso ask` and `discodso tell`"
            )
        if plan.asynchronous and executor is None and not queue:
            raise SettingsError("asynchronous=True needs workers; give an executor, such as Processes(8)")
        if introduce is not None:
            introduce(prepared.introduction())
        if prepared.standing is not None:
            callbacks("standing", prepared.standing)
        record = settings.record()
        record["run"]["confirm_calls"] = plan.confirm_calls  # as it was chosen, and so is the method
        record["run"]["asynchronous"] = plan.asynchronous
        record["method"] = settings.method_table(method)
        files = {}
        if settings.known:
            record["run"]["known"], files[KNOWN] = KNOWN, csv_of_known(task, settings.known, known)
        which = identity(task, record)
        kind_of_loop = AsynchronousLoop if plan.asynchronous else Loop
        loop = kind_of_loop(task, method, plan, callbacks, executor, clock, prepared.reserve, which)
        path: Path | None = None
        if out is not None:
            folder = RunFolder.reopen(out, wait) if resume else RunFolder.create(out, record, files, wait)
            path = stack.enter_context(folder).path
            loop.write_to(folder)
            if resume:
                pending, resumed, note = _restored(loop, folder, pending, force)
                folder.write_settings(record)
        if settings.known and not resumed:
            loop.know(known, Answer.of_outcomes(outcomes_of(task, settings.known)))
        yield Opened(loop, pending, resumed, prepared, path, note)


def _restored(loop: Loop, folder: RunFolder, pending: Pending, force: bool) -> tuple[Pending, bool, str]:
    """What a run that goes on has to do next, whether it has a checkpoint, and a sentence about a damaged one.

    A run that was killed before its first checkpoint begins as it would have, with `pending`.
    """
    resumed, note = checkpoint.is_there(folder.path), ""
    if resumed:
        state, note = checkpoint.load(folder.path)
        pending = loop.restore(state, force)
    else:
        folder.take_history(0)
    if loop.plan.budget < (spent := loop.spent(pending)):
        raise CheckpointError(f"{folder.path} has {spent} calls already; the budget must be at least that")
    if note:
        checkpoint.set_refused_aside(folder.path)
    return pending, resumed, note


def _require_several(task: Task, method: MethodSettings, plan: Plan) -> None:
    """Refuse what is for one objective where there are several."""
    if not task.objectives:
        if getattr(method, "several_objectives", None) == "only":
            raise DeclarationError(f"{type(method).__name__} is for several objectives; the task has one")
        return
    count = f"the task has {len(task.objectives)} ({', '.join(task.objectives)})"
    if not getattr(method, "several_objectives", False):
        what = "leave the method out, or take FrontSettings, NSGA2Settings or RandomSettings"
        raise DeclarationError(f"{type(method).__name__} is for one objective, and {count}; {what}")
    if plan.target is not None or plan.confirm_calls:
        key = "target" if plan.target is not None else "confirm_calls"
        raise DeclarationError(f"{key} is for one objective, and {count}; leave it out")


def _method(settings: RunSettings, prepared: Prepared) -> MethodSettings:
    """The method that the settings ask for."""
    if settings.method is not None:
        buildable = callable(getattr(settings.method, "build", None))
        require("method", settings.method, buildable, "the settings of a method, such as DisCoSettings()")
        if isinstance(settings.method, Practising):
            return replace(settings.method, maker=prepared.maker)
        return _focused(settings.method, prepared)
    if settings.changes and not isinstance(prepared.method, DisCoSettings):
        raise SettingsError("method has settings that the preset of this task does not have; name its kind")
    return _focused(changed(prepared.method, settings.changes), prepared)


def _focused(method: Any, prepared: Prepared) -> MethodSettings:
    """The method with the focus of the task, if it has none of its own and can have one."""
    able = isinstance(method, DisCoSettings) and method.archive is not None and method.draws.focus is None
    if able and prepared.focus is not None:
        method = replace(method, draws=replace(method.draws, focus=prepared.focus))
    made: MethodSettings = method
    return made
