"""Reading run folders for people to look at, and sorting them: by task, by method, by seed.

Only files are read; nothing of a folder is imported or executed. A folder may be that of a run that goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discodso.base.files import MOST_WORDS, read_object, read_plain
from discodso.run.curves import Curve, Lines, Track, batch_rewards, lengths, proposer_shares, token_shares
from discodso.run.folder import (
    ENVIRONMENT,
    HISTORY,
    SETTINGS,
    best_designs,
    is_running,
    read_history,
    read_settings,
    read_top,
    require_run_folder,
)
from discodso.run.history import HistoryRow
from discodso.run.kinds import Kind, kind_named, kind_names
from discodso.run.result import Scored


@dataclass(frozen=True)
class RunRecord:
    """What a run folder says.

    Attributes:
        path: as it was given.
        settings, settings_text: what was asked for.
        environment: versions, command, machine.
        history: one row for each batch.
        top: counts, failures and why the run ended.
        designs: the best designs, best first.
        running: whether a process is at work in it.
        kind: what is special about its task.
        ending: what the kind has written at the end, None before that.
        complete: whether the last file of the kind, if it has one, is that of this search, not of a shorter one.
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
    complete: bool = True

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
        return self._planned("seed")

    @property
    def budget(self) -> int | None:
        """Objective calls to spend."""
        return self._planned("budget")

    def _planned(self, key: str) -> int | None:
        value = _mapping(self.settings.get("run")).get(key)
        return value if isinstance(value, int) else None

    @property
    def status(self) -> str:
        """running, ended or stopped: the last can be gone on with."""
        if self.running:
            return "running"
        ended = self.top.get("stop") and self.complete if self.top else self.ending
        return "ended" if ended else "stopped"

    @property
    def objectives(self) -> tuple[str, ...]:
        """Names of several objectives; empty where there is one."""
        names = self.top.get("objectives")
        return tuple(map(str, names)) if isinstance(names, list) else ()

    @property
    def reference(self) -> tuple[Any, ...] | None:
        """The point down to which the hypervolume of several objectives counts."""
        point = self.top.get("reference")
        return tuple(point) if isinstance(point, list) else None

    @property
    def measure(self) -> str:
        """What its track is of."""
        return "hypervolume" if self.objectives else "best reward"

    @property
    def lines(self) -> dict[str, Lines]:
        """What its batches were like, over objective calls."""
        made = {
            "rewards": batch_rewards,
            "lengths": lengths,
            "proposers": proposer_shares,
            "tokens": token_shares,
        }
        return {name: make(self.history) for name, make in made.items()}

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
        return max(self.runs, key=lambda run: float(run.track.best[-1:].max(initial=-np.inf)))


def read_run(path: Path) -> RunRecord:
    """Read a run folder; what is not there yet is empty."""
    require_run_folder(path)
    top = read_top(path) or {}
    settings = read_settings(path / SETTINGS)
    kind = _kind(settings)
    return RunRecord(
        path=path,
        settings=settings,
        settings_text=read_plain(path / SETTINGS, MOST_WORDS).decode("utf-8", errors="replace"),
        environment=read_object(path / ENVIRONMENT) or {},
        history=tuple(read_history(path / HISTORY)),
        top=top,
        designs=best_designs(top),
        running=is_running(path),
        kind=kind,
        ending=kind.read(path),
        complete=not kind.last or (read_object(path / kind.last) or {}).get("calls") == top.get("calls"),
    )


def _kind(settings: Mapping[str, Any]) -> Kind:
    """The kind of task that settings name; that of tasks made in Python if they name none that is known."""
    name = _mapping(settings.get("task")).get("kind")
    return kind_named(name if name in kind_names() else "python")


def by_task(runs: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    """Runs by the title of their task, in the order that they were given."""
    return _grouped(runs, lambda run: run.title)


def _grouped(runs: Sequence[RunRecord], key: Callable[[RunRecord], str]) -> dict[str, list[RunRecord]]:
    found: dict[str, list[RunRecord]] = {}
    for run in runs:
        found.setdefault(key(run), []).append(run)
    return found


def by_method(runs: Sequence[RunRecord]) -> list[Group]:
    """Runs of one task in groups that share all settings but seed and limits, named by what sets them apart."""
    members = list(_grouped(runs, lambda run: repr(sorted(_sameness(run).items()))).values())
    flats = [_sameness(own[0]) for own in members]
    names = [_method_name(own[0]) for own in members]
    keys = dict.fromkeys(key for flat in flats for key in flat if key not in ("method.kind", "method.preset"))
    # Settings in which the methods that have them disagree; what only one kind has says nothing.
    telling = [key for key in keys if len({repr(flat[key]) for flat in flats if key in flat}) > 1]
    labels = []
    for flat, name in zip(flats, names, strict=True):
        own = [f"{key.split('.')[-1]}={flat[key]}" for key in telling if key in flat][:4]
        # A preset is known by its name; only two that differ otherwise need more words.
        labels.append(name if "method.preset" in flat and names.count(name) == 1 else ", ".join([name, *own]))
    return [
        Group(label if labels.count(label) == 1 else f"{label} ({number})", tuple(own))
        for number, (label, own) in enumerate(zip(labels, members, strict=True), start=1)
    ]


def _method_name(run: RunRecord) -> str:
    """The method for people, with the name of its preset where that is not the default."""
    method = _mapping(run.settings.get("method"))
    kind = str(method.get("kind", "disco"))
    if kind == "disco":
        return f"DisCo-DSO, {method['preset']}" if "preset" in method else "DisCo-DSO"
    return {"random": "random search"}.get(kind, str(method.get("name", kind)))


def _sameness(run: RunRecord) -> dict[str, Any]:
    """The settings that runs of one method share, by the path of their keys."""
    task = {key: value for key, value in run.task.items() if key != "seed"}
    return _flat({"task": task, "method": run.settings.get("method")})


def _flat(tree: Mapping[str, Any], start: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{start}{key}.")
        elif value is not None:
            found[f"{start}{key}"] = value
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
