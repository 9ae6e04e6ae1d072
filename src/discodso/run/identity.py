"""What a run is a run of: its settings and the source of its objective, so that a resume is of the same search."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import textwrap
from collections.abc import Mapping
from typing import Any

from discodso.run.task import Task

# Limits may be others when a run goes on, and so may the place where its designs are evaluated.
_LIMITS = ("budget", "time_limit", "patience", "target", "checkpoint_seconds", "on_failure", "retries")
_FREE = {f"run.{name}" for name in _LIMITS}
OTHER_OBJECTIVE = "the source of the objective was changed"
_FREE_TABLES = ("executor", "run.begun")


def identity(task: Task, record: Mapping[str, Any]) -> dict[str, Any]:
    """For a checkpoint: the settings of a run, the name of its task and what stands for its objective."""
    return {"settings": _flat(record), "task": task.name, "objective": source_mark(task.called)}


def source_mark(function: Any) -> str | None:
    """Stands for the source of an objective; None for those of discodso itself, and where there is no source.

    Only the function itself is looked at, or the class of an object, not what it calls.
    """
    while isinstance(function, functools.partial):
        function = function.func
    own = inspect.unwrap(function)
    source = own if inspect.isroutine(own) or inspect.isclass(own) else type(own)
    if (getattr(source, "__module__", None) or "").split(".")[0] == "discodso":
        return None
    try:
        text = textwrap.dedent(inspect.getsource(source))
    except (OSError, TypeError):
        return None
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def differences(before: Any, now: Mapping[str, Any]) -> list[str]:
    """How a run differs from the one that began, in words; nothing where the same search goes on."""
    if not isinstance(before, Mapping):
        return []
    found = []
    if before.get("task") != now["task"]:
        found.append(f"the task was {before.get('task')!r:.60} and is {now['task']!r:.60}")
    if None not in (before.get("objective"), now["objective"]) and before["objective"] != now["objective"]:
        found.append(OTHER_OBJECTIVE)
    then, today = before.get("settings"), now["settings"]
    then = then if isinstance(then, Mapping) else {}
    for key in sorted(then.keys() & today.keys()):  # an option that is new was not there before
        free = key in _FREE or any(key.startswith(f"{table}.") for table in _FREE_TABLES)
        if not free and json.loads(then[key]) != json.loads(today[key]):
            found.append(f"{key} was {then[key]:.60} and is {today[key]:.60}")
    return found


def _flat(table: Any, start: str = "") -> dict[str, str]:
    """Nested dictionaries as one, with keys such as "run.seed", and the values as text."""
    if not isinstance(table, Mapping):
        return {start.rstrip("."): json.dumps(table, default=str)}
    flat: dict[str, str] = {}
    for key, value in table.items():
        flat |= _flat(value, f"{start}{key}.")
    return flat
