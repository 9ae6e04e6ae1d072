"""Tasks of one's own, named in a settings file as "module:attribute"."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from discodso.base.checks import require
from discodso.base.errors import DeclarationError, DiscodsoError
from discodso.base.options import option
from discodso.run.clock import Clock
from discodso.run.kinds import Kind, Prepared
from discodso.run.loading import load_module
from discodso.run.python_tasks import prepared
from discodso.run.task import Task
from discodso.space.space import Space


@dataclass(frozen=True)
class CustomOptions:
    """[task] of one's own."""

    kind: ClassVar[str] = "custom"
    task: str = option(help='"module:attribute", a Task or a function that returns one.')
    path: str | None = option(None, "Folder of the module; the current one by default.")
    arguments: dict[str, Any] = option(factory=dict, help="Of the function.")

    def __post_init__(self) -> None:
        require("task", self.task, ":" in self.task, '"module:attribute"')


def load_task(name: str, path: str | None = None, arguments: dict[str, Any] | None = None) -> Task:
    """A task by "module:attribute": a Task, a Space for one without an objective, or a function that returns one.

    Args:
        path: folder to import the module from; the current one by default.
    """
    module_name, colon, attribute = name.partition(":")
    if not colon or not module_name or not attribute:
        raise DeclarationError(f"a task is named as module:attribute, got {name!r}")
    try:
        found: Any = load_module(module_name, path or ".")
        for part in attribute.split("."):
            found = getattr(found, part)
        if not isinstance(found, (Task, Space)) and callable(found):
            found = found(**(arguments or {}))
        elif arguments:
            raise DeclarationError(f"{name} is a task and takes no arguments; name a function that makes one")
    except DiscodsoError:
        raise
    except (Exception, SystemExit) as error:  # a script may end itself when it is imported
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        raise DeclarationError(f"the task {name} cannot be loaded: {what}") from None
    if isinstance(found, Space):
        return Task(found, outside=True, name=attribute)
    if not isinstance(found, Task):
        raise DeclarationError(
            f"{name} must be a Task, a Space or a function that returns one, got {found!r:.60}"
        )
    return found


def _prepare(settings: Any, given: Any, stack: ExitStack, clock: Clock) -> Prepared:
    own: CustomOptions = settings.task
    return prepared(settings, load_task(own.task, own.path, own.arguments))


_TEMPLATE = """# A task of one's own.

[task]
kind = "custom"
task = "my_task:task"      # module:attribute, a Task or a function that returns one
# path = "."               # folder of the module; the current one by default
# [task.arguments]         # of the function
"""

_TASK = '''"""A drive train: any number of stages, each with a ratio of its own."""

from discodso import OpenSequence, Space, Task, Token

space = Space(
    [Token("gears", range=(0.2, 5.0), scale="log"), Token("belt", range=(0.5, 2.0)), Token("coupling")],
    OpenSequence(min_length=1, max_length=6),
)


def objective(design):
    """Hit a total ratio of 12 with little loss; rewards are maximised."""
    ratio, efficiency = 1.0, 1.0
    for name, value in design:
        ratio *= value or 1.0
        efficiency *= {"gears": 0.97, "belt": 0.95, "coupling": 0.999}[name]
    return efficiency - abs(ratio - 12) / 12


task = Task(space, objective, name="drive train")
'''

KIND = Kind(
    options=CustomOptions,
    prepare=_prepare,
    whole=lambda options: replace(options, path=str(Path(options.path or ".").resolve())),
    title=lambda task, ending: str(task.get("task")),
    template=_TEMPLATE,
    files={"my_task.py": _TASK},
)
