"""Reading run folders for people to look at, and sorting them: by task, by method, by seed.

Only files are read; nothing of a folder is imported or executed. A folder may be that of a run that goes on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discodso.base.files import FileError, read_object
from discodso.run.curves import Curve, Track
from discodso.run.folder import (
    ENVIRONMENT,
    HISTORY,
    SETTINGS,
    best_designs,
    is_running,
    read_history,
    read_settings,
    read_top,
)
from discodso.run.history import HistoryRow
from discodso.run.kinds import Kind, kind_named, kind_names
from discodso.run.result import Scored


@dataclass(frozen=True)
class RunRecord:
    """What a run folder says.

    Attributes:
        path: as it was given.
        settings, settings_text: what was asked for; empty for a folder without settings.
        environment: versions, command, machine.
        history: one row for each batch.
        top: counts, failures and why the run ended.
        designs: the best designs, best first.
        running: whether a process is at work in it.
        kind: what is special about its task.
        ending: what the kind has written at the end, None before that.
    """

    path: Path
    settings: Mapping[str, Any]
    settings_text: str
    environment: Mapping[str, Any]
    history: tuple[HistoryRow, ...]
    top: Mapping[str, Any]
    designs: tuple[Scored, ...]
    running: bool
    kind: Kind
    ending: Any = None

    @property
    def task(self) -> Mapping[str, Any]:
        """The table of the task."""
        return _mapping(self.settings.get("task"))

    @property
    def title(self) -> str:
        """The task, for people."""
        return self.kind.title(self.task, self.ending)

    @property
    def seed(self) -> int | None:
        """Of the run."""
        seed = _mapping(self.settings.get("run")).get("seed")
        return seed if isinstance(seed, int) else None

    @property
    def budget(self) -> int | None:
        """Objective calls to spend."""
        budget = _mapping(self.settings.get("run")).get("budget")
        return budget if isinstance(budget, int) else None

    @property
    def status(self) -> str:
        """running, ended or stopped: the last can be gone on with."""
        if self.running:
            return "running"
        return "ended" if self.top.get("stop") or (self.ending and not self.top) else "stopped"

    @property
    def track(self) -> Track:
        """Best reward over objective calls."""
        return Track.of(self.history, settled=self.top.get("stop") == "target")


@dataclass(frozen=True)
class Group:
    """Runs of one method on one task; they differ in their seeds."""

    label: str
    runs: tuple[RunRecord, ...]

    @property
    def curve(self) -> Curve:
        """Best reward over objective calls."""
        return Curve.of(self.label, [run.track for run in self.runs])

    @property
    def leading(self) -> RunRecord:
        """The run with the best reward."""

        def best(run: RunRecord) -> float:
            track = run.track
            return float(track.best[-1]) if len(track.best) else float("-inf")

        return max(self.runs, key=best)


def read_run(path: Path) -> RunRecord:
    """Read a run folder; what is not there yet is empty."""
    if not path.is_dir():
        raise FileError(f"there is no folder {path}")
    has_settings = (path / SETTINGS).is_file()
    if not has_settings and not (path / HISTORY).is_file():
        raise FileError(f"{path} is no run folder: it has no {SETTINGS}; name folders that --out has made")
    text = (path / SETTINGS).read_text(encoding="utf-8", errors="replace") if has_settings else ""
    top = read_top(path) or {}
    settings = read_settings(path / SETTINGS) if has_settings else {}
    return RunRecord(
        path=path,
        settings=settings,
        settings_text=text,
        environment=read_object(path / ENVIRONMENT) or {},
        history=tuple(read_history(path / HISTORY)),
        top=top,
        designs=best_designs(top),
        running=is_running(path),
        kind=(kind := _kind(path, settings)),
        ending=kind.read(path),
    )


def _kind(path: Path, settings: Mapping[str, Any]) -> Kind:
    """The kind of task of a folder: that which has written into it at the end, else that of its settings."""
    name = _mapping(settings.get("task")).get("kind")
    if name in kind_names():
        return kind_named(name)
    ended = (kind for kind in map(kind_named, kind_names()) if kind.last and (path / kind.last).is_file())
    return next(ended, kind_named("python"))


def by_task(runs: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    """Runs by the title of their task, in the order that they were given."""
    found: dict[str, list[RunRecord]] = {}
    for run in runs:
        found.setdefault(run.title, []).append(run)
    return found


def by_method(runs: Sequence[RunRecord]) -> list[Group]:
    """Runs of one task in groups that share all settings but seed and limits, named by what sets them apart."""
    groups: dict[str, list[RunRecord]] = {}
    for run in runs:
        groups.setdefault(json.dumps(_sameness(run), sort_keys=True, default=str), []).append(run)
    members = list(groups.values())
    flats = [_flat(_sameness(run[0])) for run in members]
    differing = [key for key in dict.fromkeys(k for flat in flats for k in flat) if _differs(flats, key)]
    shown = [key for key in differing if key not in ("method.kind", "method.preset")]
    names = [_method_name(runs_of[0]) for runs_of in members]
    labels = []
    for flat, name in zip(flats, names, strict=True):
        own = [f"{key.split('.')[-1]}={flat[key]}" for key in shown if key in flat][:4]
        # A preset is known by its name; only two that differ otherwise need more words.
        labels.append(name if "method.preset" in flat and names.count(name) == 1 else ", ".join([name, *own]))
    return [
        Group(label if labels.count(label) == 1 else f"{label} ({number + 1})", tuple(runs_of))
        for number, (label, runs_of) in enumerate(zip(labels, members, strict=True))
    ]


def _method_name(run: RunRecord) -> str:
    """The method for people, with the name of its preset where that is not the default."""
    method = _mapping(run.settings.get("method"))
    kind = str(method.get("kind", "disco"))
    if kind == "disco":
        return f"DisCo-DSO, {method['preset']}" if "preset" in method else "DisCo-DSO"
    return {"random": "random search"}.get(kind, str(method.get("name", kind)))


def _sameness(run: RunRecord) -> dict[str, Any]:
    """What runs of one method share."""
    return {
        "task": {k: v for k, v in run.task.items() if k != "seed"},
        "method": run.settings.get("method"),
    }


def _flat(tree: Mapping[str, Any], start: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{start}{key}.")
        elif value is not None:
            found[f"{start}{key}"] = value
    return found


def _differs(flats: Sequence[Mapping[str, Any]], key: str) -> bool:
    """Whether the methods that have a setting disagree in it; what only one kind has says nothing."""
    values = [repr(flat[key]) for flat in flats if key in flat]
    return len(set(values)) > 1


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
