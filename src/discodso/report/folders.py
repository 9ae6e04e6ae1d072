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
from discodso.run.result import Scored
from discodso.tasks.regression.equation_files import read_equation

POLICY, SUMMARY, PICTURE = "policy.json", "summary.json", "tree.svg"


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
        equation: of a regression that has ended.
        policy, summary, picture: of a policy search that has ended; the tree as JSON, its score, and as SVG.
    """

    path: Path
    settings: Mapping[str, Any]
    settings_text: str
    environment: Mapping[str, Any]
    history: tuple[HistoryRow, ...]
    top: Mapping[str, Any]
    designs: tuple[Scored, ...]
    running: bool
    equation: Mapping[str, Any] | None = None
    policy: Mapping[str, Any] | None = None
    summary: Mapping[str, Any] | None = None
    picture: str | None = None

    @property
    def task(self) -> Mapping[str, Any]:
        """The table of the task."""
        if not self.settings and self.summary is not None:  # results/policies has such ones
            environment = _mapping(self.summary.get("environment"))
            return {"kind": "policy", "environment": environment.get("id", "environment")}
        return _mapping(self.settings.get("task"))

    @property
    def kind(self) -> str:
        """bitstring, regression, policy, custom or python."""
        if self.equation is not None:  # the estimator, from Python
            return "regression"
        return str(self.task.get("kind", "unknown"))

    @property
    def title(self) -> str:
        """The task, for people."""
        task = self.task
        match self.kind:
            case "bitstring":
                return f"Bitstring of {task.get('length')}, {task.get('objective')}, α = {task.get('alpha')}"
            case "regression":
                target = task.get("target") or (self.equation or {}).get("target", "y")
                table = Path(str(task["table"])).name if "table" in task else "given data"
                return f"An equation for {target} ({table})"
            case "policy":
                return f"A tree policy for {task.get('environment')}"
            case "custom":
                return str(task.get("task"))
        return str(task.get("name", "A search"))

    @property
    def seed(self) -> int | None:
        """Of the run."""
        seed = _mapping(self.settings.get("run")).get("seed", (self.summary or {}).get("seed"))
        return seed if isinstance(seed, int) else None

    @property
    def budget(self) -> int | None:
        """Objective calls to spend."""
        budget = _mapping(self.settings.get("run")).get("budget", (self.summary or {}).get("calls"))
        return budget if isinstance(budget, int) else None

    @property
    def state(self) -> str:
        """running, ended or stopped: the last can be gone on with."""
        if self.running:
            return "running"
        return "ended" if self.top.get("stop") or self.summary is not None else "stopped"

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
    return RunRecord(
        path=path,
        settings=read_settings(path / SETTINGS) if has_settings else {},
        settings_text=text,
        environment=read_object(path / ENVIRONMENT) or {},
        history=tuple(read_history(path / HISTORY)),
        top=top,
        designs=best_designs(top),
        running=is_running(path),
        equation=read_equation(path),
        policy=read_object(path / POLICY),
        summary=read_object(path / SUMMARY),
        picture=_text(path / PICTURE),
    )


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
    shown = [key for key in differing if key != "method.kind"]
    labels = []
    for flat, runs_of in zip(flats, members, strict=True):
        own = [f"{key.split('.')[-1]}={flat[key]}" for key in shown if key in flat][:4]
        labels.append(", ".join([_method_name(runs_of[0]), *own]))
    return [
        Group(label if labels.count(label) == 1 else f"{label} ({number + 1})", tuple(runs_of))
        for number, (label, runs_of) in enumerate(zip(labels, members, strict=True))
    ]


def _method_name(run: RunRecord) -> str:
    method = _mapping(run.settings.get("method"))
    kind = str(method.get("kind", "disco"))
    return {"disco": "DisCo-DSO", "random": "random search"}.get(kind, str(method.get("name", kind)))


def _sameness(run: RunRecord) -> dict[str, Any]:
    """What runs of one method share."""
    own = {k: v for k, v in _mapping(run.settings.get("run")).items() if k in ("overlap",) and v}
    return {
        "task": {k: v for k, v in run.task.items() if k != "seed"},
        "method": run.settings.get("method"),
        "run": own,
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


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
