"""Tasks that were made in Python: a run folder can name them only, and needs them again to go on."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

from discodso.base.checks import require
from discodso.base.errors import SettingsError
from discodso.disco.presets import preset
from discodso.run.clock import Clock
from discodso.run.kinds import Kind, Prepared
from discodso.run.task import Task


@dataclass(frozen=True)
class PythonOptions:
    """[task] of a run that began in Python."""

    kind: ClassVar[str] = "python"
    name: str = "task"


def prepared(settings: Any, task: Task) -> Prepared:
    """The search of a task with the presets that are for all of them."""
    refines = task.refine is not None
    method = preset(settings.preset, noisy=task.noisy, refines=refines, budget=settings.plan.budget)
    return Prepared(task, settings.plan, method)


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
