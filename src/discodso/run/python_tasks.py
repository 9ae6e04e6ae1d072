"""Tasks that were made in Python: a run folder can name them only, and needs them again to go on."""

from __future__ import annotations

import inspect
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

from discodso.base.checks import require
from discodso.base.errors import DeclarationError, SettingsError
from discodso.disco.fronts import front_settings
from discodso.disco.presets import preset
from discodso.run.clock import Clock
from discodso.run.kinds import Kind, Prepared
from discodso.run.task import Task
from discodso.space.rule_checks import Rule, try_rules


@dataclass(frozen=True)
class PythonOptions:
    """[task] of a run that began in Python."""

    kind: ClassVar[str] = "python"
    name: str = "task"


def prepared(settings: Any, task: Task) -> Prepared:
    """The search of a task with the presets that are for all of them."""
    require_sound(task)
    refines = task.refine is not None
    if task.objectives and settings.preset == "default":
        return Prepared(task, settings.plan, front_settings(noisy=task.noisy, budget=settings.plan.budget))
    method = preset(settings.preset, noisy=task.noisy, refines=refines, budget=settings.plan.budget)
    return Prepared(task, settings.plan, method)


def require_sound(task: Task) -> None:
    """Look at a task before anything is spent, by what costs no objective call: what it takes, its own rules."""
    if task.called is not None:
        _require_arguments(task)
    space = task.space
    rules: tuple[Rule, ...] = (*space.constraints, *space.priors, space.bounds)
    own = [rule for rule in rules if not type(rule).__module__.startswith("discodso.")]
    try:
        try_rules(space, own)
    except AssertionError as error:
        raise DeclarationError(f"the task cannot be searched: {error}") from None


def _require_arguments(task: Task) -> None:
    given = ["a batch of designs" if task.batch_objective else "a design", "seeds"][: 1 + task.stochastic]
    try:
        signature = inspect.signature(task.called)
    except (TypeError, ValueError):  # of a compiled function, which does not tell
        signature = None
    try:
        if signature is not None:
            signature.bind(*given)
    except TypeError as error:
        raise DeclarationError(f"the objective must take {' and '.join(given)}: {error}") from None


def _prepare(settings: Any, given: Any, stack: ExitStack, clock: Clock) -> Prepared:
    if given is None:
        raise SettingsError(
            f"the run of {settings.task.name!r} began in Python; go on with it there, by resume(..., task=...)"
        )
    require("task", given, isinstance(given, Task), "a Task")
    return prepared(settings, given)


KIND = Kind(
    options=PythonOptions, prepare=_prepare, title=lambda task, ending: str(task.get("name", "A search"))
)
