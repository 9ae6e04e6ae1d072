"""One call from a task to a result, and going on with what such a call has left in a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discodso.base.checks import require
from discodso.base.errors import CheckpointError, DeclarationError
from discodso.baselines.methods import method_kind
from discodso.disco.method import MethodSettings
from discodso.disco.presets import Preset
from discodso.disco.presets import preset as settings_by_name
from discodso.run import checkpoint
from discodso.run.callbacks import Callbacks
from discodso.run.evaluation import Evaluator
from discodso.run.executors.dispatch import Executor
from discodso.run.folder import RunFolder, require_unused
from discodso.run.loop import KIND, Run, Standing
from discodso.run.plan import Limits, Plan
from discodso.run.race import Confirmer
from discodso.run.result import Result
from discodso.run.task import Task
from discodso.space.design import Design, DesignBatch
from discodso.space.replay import replay

__all__ = ["Limits", "Plan", "continue_search", "search", "start_search"]


def search(
    task: Task,
    *,
    budget: int,
    seed: int = 0,
    method: MethodSettings | None = None,
    preset: Preset | None = None,
    initial_designs: Sequence[Design] = (),
    target: float | None = None,
    patience: int | None = None,
    time_limit: float | None = None,
    top: int = 10,
    raise_on_failure: bool = False,
    callback: Any = None,
    executor: Executor | None = None,
    design_seconds: float | None = None,
    chunk_size: int | None = None,
    overlap: bool = False,
    confirm_calls: int | None = None,
    out: str | Path | None = None,
    checkpoint_seconds: float = 60.0,
) -> Result:
    """Search for the design of highest reward.

    Args:
        task: the space and the objective.
        budget: objective calls to spend; failed calls count.
        seed: the same seed gives the same run.
        method: settings of the method; those of the preset by default.
        preset: "default", DisCo with all that makes it stronger, or "paper", with the paper's hyperparameters and
            nothing else; see `preset`.
        initial_designs: designs to evaluate first and to learn from.
        target: stop at a reward of at least this; with `confirm_calls` at a mean of several evaluations that is
            two standard errors better, so only with a method that evaluates designs again.
        patience: stop after so many calls without a better design; looked at after every batch.
        time_limit: stop after so many seconds.
        top: how many distinct designs to keep.
        raise_on_failure: raise at the first failed evaluation instead of going on.
        callback: a function called after every batch with its history row and the best designs so far, a
            `Callback`, or a list of these.
        executor: evaluates the designs elsewhere: anything with `submit`, such as `Processes`.
            The result is the same, but that a target is looked at after every batch.
        design_seconds: a design that takes longer has failed.
        chunk_size: designs that travel together to a worker; chosen by the number of workers by default.
        overlap: ask for the next batch before learning from this one, so that an executor is never idle. The
            policy then learns one batch later.
        confirm_calls: where rewards are noisy, calls of the budget that are kept for the end: the best designs
            race on fresh seeds, which choose the winner; `result.top` has what they say of each, with its error.
            By default a tenth of the budget with the default preset, none with a method or "paper".
        out: folder for the run, which must be new or empty; `resume` goes on with it.
        checkpoint_seconds: between checkpoints in that folder; there is one at the end in any case.

    Ctrl-C ends the search and returns what was found.
    """
    if method is not None and preset is not None:
        raise DeclarationError("give search a method or a preset, not both")
    limits = Limits(budget, target, patience, time_limit)
    plan = Plan(
        limits,
        seed,
        top,
        raise_on_failure,
        overlap,
        checkpoint_seconds,
        design_seconds,
        chunk_size,
        confirm_calls,
    )
    if method is None:
        traits = _traits(task)
        method = settings_by_name(preset or "default", budget=limits.budget, **traits)
        plan = plan.confirming_noise(traits["noisy"] and preset != "paper")
    return start_search(
        task,
        method,
        plan,
        initial_designs=initial_designs,
        callback=callback,
        executor=executor,
        out=out,
    )


def start_search(
    task: Task,
    method: MethodSettings,
    plan: Plan,
    *,
    initial_designs: Sequence[Design] = (),
    callback: Any = None,
    executor: Executor | None = None,
    out: str | Path | None = None,
    record: Mapping[str, Any] | None = None,
    finish: Callable[[Result], None] = lambda result: None,
) -> Result:
    """`search` with a plan.

    `record` is what settings.toml of the folder shall hold. `finish` does what comes after the search, while the
    folder is still held.
    """
    _require_parts(task, method)
    if plan.confirm_calls and not task.noisy:
        raise DeclarationError(
            "confirm_calls is for tasks whose rewards are noisy, those with stochastic=True and not repeatable"
        )
    callbacks = Callbacks(callback)
    if isinstance(initial_designs, Design):
        raise DeclarationError(
            "initial_designs must be a list of designs, got a single one; put it in a list"
        )
    first = _encoded(task, list(initial_designs or ()))
    if out is not None:
        require_unused(Path(out))
    run = _run(task, method, plan, callbacks, executor, None)
    if out is None:
        result = run.execute(Standing(first))
        finish(result)
        return result
    if record is None:
        record = record_of(task, method, plan, initial_designs)
    with RunFolder.create(out, record) as folder:
        run.write_to(folder)
        result = run.execute(Standing(first))
        finish(result)
    return result


def continue_search(
    path: str | Path,
    task: Task,
    method: MethodSettings,
    plan: Plan,
    *,
    initial_designs: Sequence[Design] = (),
    callback: Any = None,
    executor: Executor | None = None,
    record: Mapping[str, Any] | None = None,
    finish: Callable[[Result], None] = lambda result: None,
) -> tuple[Result, str]:
    """Go on with the run in a folder; also gives a sentence about a checkpoint that had to be passed over.

    Task, method, plan and initial designs must be those that the run began with; the limits may be others.
    `record` replaces the settings of the folder; for `finish` see `start_search`.
    """
    _require_parts(task, method)
    callbacks = Callbacks(callback)
    with RunFolder.reopen(path) as folder:
        resumed = checkpoint.is_there(folder.path)
        run = _run(task, method, plan, callbacks, executor, folder)
        if not resumed:  # killed before the first one
            folder.take_history(0)
            standing, passed_over = Standing(_encoded(task, list(initial_designs))), ""
        else:
            state, passed_over = checkpoint.load(folder.path, KIND)
            standing = run.restore(state)
        if plan.limits.budget < (spent := run.spent(standing)):
            raise CheckpointError(
                f"{folder.path} has {spent} calls already; the budget must be at least that"
            )
        if passed_over:
            checkpoint.set_refused_aside(folder.path, KIND)
        if record is not None:
            folder.write_settings(record)
        result = run.execute(standing, resumed)
        finish(result)
    return result, passed_over


def record_of(
    task: Task, method: MethodSettings, plan: Plan, initial_designs: Sequence[Design] = ()
) -> dict[str, Any]:
    """A run as settings, for its folder; a task or a method that is a Python object is named only."""
    first = {"initial_designs": [design.to_json() for design in initial_designs]} if initial_designs else {}
    return {
        "task": {"kind": "python", "name": task.name},
        "method": method_record(method),
        "run": {**plan.to_record(), **first},
    }


def method_record(method: MethodSettings) -> dict[str, Any]:
    """A method as settings; one of one's own is named only."""
    kind = method_kind(method)
    if kind is not None and is_dataclass(method) and not isinstance(method, type):
        return {"kind": kind, **asdict(method)}
    return {"kind": "python", "name": type(method).__name__}


def _traits(task: Any) -> dict[str, bool]:
    """What the default settings depend on."""
    known = isinstance(task, Task)
    return {"noisy": known and task.noisy, "refines": known and task.refine is not None}


def _require_parts(task: Any, method: Any) -> None:
    require("task", task, isinstance(task, Task), "a Task")
    buildable = callable(getattr(method, "build", None))
    require("method", method, buildable, "the settings of a method, such as DisCoSettings()")


def _encoded(task: Task, given: list[Design]) -> DesignBatch | None:
    if not given:
        return None
    encoded = task.space.encode(given)
    replay(task.space, encoded)  # refuses designs that do not belong to the space
    return encoded


def _run(
    task: Task,
    method: MethodSettings,
    plan: Plan,
    callbacks: Callbacks,
    executor: Executor | None,
    folder: RunFolder | None,
) -> Run:
    for_method, for_objective, for_race = np.random.SeedSequence(int(plan.seed)).spawn(3)
    evaluator = Evaluator(
        task,
        for_objective,
        raise_on_failure=plan.raise_on_failure,
        executor=executor,
        design_seconds=plan.design_seconds,
        chunk_size=plan.chunk_size,
    )
    built = method.build(task.space, for_method)
    confirmer = Confirmer(evaluator.with_seed(for_race), plan.confirm_calls or 0)
    return Run(plan, built, evaluator, confirmer, callbacks, folder)
