"""The runs behind an artefact: each in a folder of its own, resumed where it stopped, shared among artefacts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discodso.base.errors import SettingsError
from discodso.base.files import FileError
from discodso.disco.method import MethodSettings
from discodso.run.executors.dispatch import Executor, as_completed
from discodso.run.folder import HISTORY, SETTINGS, read_history, read_settings, read_top
from discodso.run.plan import Plan
from discodso.run.result import HistoryRow
from discodso.run.settings import RunSettings, parse
from discodso.run.start import settings_of, start
from discodso.space.design import Design

_UNFINISHED = (None, "interrupted", "executor")


@dataclass(frozen=True)
class Job:
    """One run.

    Attributes:
        experiment, case: "bitstring" and "f1, alpha 0.9", for instance.
        method: its name in the tables.
        settings: all of the run.
    """

    experiment: str
    case: str
    method: str
    settings: RunSettings

    @classmethod
    def of(
        cls,
        experiment: str,
        case: str,
        method: str,
        task: Any,
        settings: MethodSettings,
        seed: int,
        calls: int,
        seconds: float | None,
    ) -> Job:
        """A run of so many calls, or so many seconds if they are given and end first."""
        plan = Plan(calls, seed, time_limit=seconds, confirm_calls=0)
        return cls(experiment, case, method, RunSettings(task, plan, settings, "paper"))

    @property
    def seed(self) -> int:
        """Of the run."""
        return self.settings.plan.seed

    def folder(self, out: Path) -> Path:
        """Where it is kept."""
        return out / "runs" / self.experiment / slug(self.case) / slug(self.method) / f"seed-{self.seed}"


@dataclass(frozen=True)
class Record:
    """What came of a run.

    Attributes:
        best, call: highest reward, and the call that gave it; None without success.
        design: that had it.
        calls, cost, seconds: of the whole run.
        history: one row for each batch.
    """

    job: Job
    best: float | None
    call: int | None
    design: Design | None
    calls: int
    cost: float | None
    seconds: float
    history: tuple[HistoryRow, ...]

    @property
    def seconds_to_best(self) -> float:
        """Until the best reward was there."""
        reached = (row.seconds for row in self.history if row.best is not None and row.best == self.best)
        return next(reached, self.seconds)


def slug(name: str) -> str:
    """A name as part of a path."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")


def execute(item: tuple[Job, Path]) -> tuple[str, str]:
    """Do a run, or what is left of it; gives a line about it, and the reason for which it stopped."""
    job, out = item
    folder = job.folder(out)
    if (folder / SETTINGS).is_file():
        _require_same(job, folder)
        limits = job.settings.plan
        settings = settings_of(folder, limits.budget, limits.time_limit)
        result = start(settings, out=folder, resume=True).result
    else:
        result = start(job.settings, out=folder).result
    best = "nothing" if result.best is None else f"{result.best.reward:.4f}"
    line = (
        f"{job.experiment}, {job.case}, {job.method}, seed {job.seed}: {best} after {result.calls} calls, "
        f"{result.seconds:.1f} s"
    )
    return line, result.stop.name.lower()


def _require_same(job: Job, folder: Path) -> None:
    """Runs of another scale, or with other settings, must not be taken for these."""
    kept = parse(read_settings(folder / SETTINGS), str(folder / SETTINGS))
    limits = job.settings.plan
    kept = kept.with_limits(limits.budget, limits.time_limit)
    same = kept.record() == parse(job.settings.record()).record()
    if not same:
        raise SettingsError(f"{folder} holds a run with other settings; give another folder as --out")


def is_done(job: Job, out: Path) -> bool:
    """Whether the run has come to its end."""
    found = read_top(job.folder(out))
    if found is None or found.get("stop") in _UNFINISHED:
        return False
    return bool(found["stop"] != "budget" or found["calls"] >= job.settings.plan.budget)


def execute_all(
    jobs: Sequence[Job], out: Path, executor: Executor, report: Callable[[str], None]
) -> list[Record]:
    """Do all runs that are not done; gives the records of all."""
    for job in jobs:
        if is_done(job, out):
            _require_same(job, job.folder(out))
    missing = [(job, out) for job in jobs if not is_done(job, out)]
    for count, (line, stop) in enumerate(as_completed(executor, execute, missing), start=1):
        report(f"{count}/{len(missing)} {line}")
        if stop == "interrupted":
            raise KeyboardInterrupt
    return [read_record(job, out) for job in jobs]


def records_of(records: Sequence[Record], case: str, method: str) -> list[Record]:
    """The runs of a method on a case, by seed."""
    own = [r for r in records if r.job.case == case and r.job.method == method]
    return sorted(own, key=lambda record: record.job.seed)


def read_record(job: Job, out: Path) -> Record:
    """A run that is done."""
    folder = job.folder(out)
    found: dict[str, Any] | None = read_top(folder)
    if found is None:
        raise FileError(f"{folder} has no result that can be read; remove the folder to run it again")
    best = found["best"]
    return Record(
        job,
        None if best is None else float(best["reward"]),
        None if best is None else int(best["call"]),
        None if best is None else Design.from_dict(best["design"]),
        int(found["calls"]),
        found.get("cost"),
        float(found["seconds"]),
        tuple(read_history(folder / HISTORY)),
    )
