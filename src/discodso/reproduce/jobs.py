"""The runs of an experiment: each in a folder of its own, resumed where it stopped, shared among artefacts."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from discodso.base.errors import SettingsError
from discodso.base.files import FileError, read_object, write_atomically
from discodso.disco.method import MethodSettings
from discodso.reproduce.summaries import history_of, read_summary, thinned, write_summary
from discodso.run.executors.dispatch import Executor, as_completed
from discodso.run.folder import HISTORY, SETTINGS, read_history, read_settings, read_top
from discodso.run.kinds import Outcome
from discodso.run.plan import Plan
from discodso.run.result import HistoryRow
from discodso.run.settings import RunSettings, parse
from discodso.run.start import start
from discodso.space.design import Design

_UNFINISHED = (None, "interrupted", "executor")


@dataclass(frozen=True)
class Job:
    """One run.

    Attributes:
        experiment, case: "bitstring" and "f1, alpha 0.9", for instance.
        method: its name in the tables.
        settings: all of the run.
        score: makes figures for JSON of what came of it, which are kept in its folder for each budget, with the
            CPU seconds since it was begun or resumed; None if the files of the run are enough.
    """

    experiment: str
    case: str
    method: str
    settings: RunSettings
    score: Callable[[Outcome], dict[str, Any]] | None = None

    @property
    def seed(self) -> int:
        """Of the run."""
        return self.settings.plan.seed

    def folder(self, out: Path) -> Path:
        """Where it is kept."""
        return out / "runs" / self.experiment / slug(self.case) / slug(self.method) / f"seed-{self.seed}"

    def score_file(self, out: Path) -> Path:
        """Where its score is kept."""
        return self.folder(out) / f"score-{self.settings.plan.budget}.json"

    def summary_file(self, out: Path) -> Path:
        """Where is kept what artefacts need of this run, and of those with other seeds."""
        return out / "summaries" / self.experiment / slug(self.case) / f"{slug(self.method)}.json"

    def is_done(self, out: Path) -> bool:
        """Whether the run has come to its end."""
        if self.score is not None:
            return read_object(self.score_file(out)) is not None
        if read_summary(self.summary_file(out), self.settings) is not None:
            return True
        found = read_top(self.folder(out))
        if found is None or found.get("stop") in _UNFINISHED:
            return False
        return bool(found["stop"] != "budget" or found["calls"] >= self.settings.plan.budget)


def jobs_of(
    experiment: str,
    cases: Mapping[str, tuple[Any, int]],
    methods: Mapping[str, MethodSettings],
    seeds: int,
    bo_seconds: float,
) -> list[Job]:
    """All methods on all cases, each the options of a task and its calls; seed by seed, so that a table is early.

    Bayesian optimisation has so many seconds, since its calls become ever slower.
    """
    made = []
    for seed, (case, (task, calls)), (name, method) in product(range(seeds), cases.items(), methods.items()):
        plan = Plan(calls, seed, time_limit=bo_seconds if name.startswith("BO") else None, confirm_calls=0)
        made.append(Job(experiment, case, name, RunSettings(task, plan, method, "paper")))
    return made


@dataclass(frozen=True)
class Record:
    """What came of a run.

    Attributes:
        best, call: highest reward, and the call that gave it; None without success.
        design: that had it.
        calls, seconds: of the whole run.
        history: a few of its rows.
    """

    job: Job
    best: float | None
    call: int | None
    design: Design | None
    calls: int
    seconds: float
    history: tuple[HistoryRow, ...]


def slug(name: str) -> str:
    """A name as part of a path."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")


def execute(item: tuple[Job, Path]) -> tuple[str, bool]:
    """Do a run, or what is left of it; gives a line about it, and whether it was interrupted."""
    job, out = item
    folder = job.folder(out)
    begun = (folder / SETTINGS).is_file()
    if begun:
        _require_same(job, folder)
    outcome, seconds = _timed(job.settings, out=folder, resume=begun)
    result = outcome.result
    stop = result.stop.name.lower()
    if job.score is not None and stop not in _UNFINISHED:
        score = {**job.score(outcome), "cpu_seconds": seconds}
        write_atomically(job.score_file(out), json.dumps(score) + "\n")
    best = "nothing" if result.best is None else f"{result.best.reward:.4f}"
    line = (
        f"{job.experiment}, {job.case}, {job.method}, seed {job.seed}: {best} after {result.calls} calls, "
        f"{result.seconds:.1f} s"
    )
    return line, stop == "interrupted"


def scored(settings: RunSettings, score: Callable[[Outcome], dict[str, Any]]) -> dict[str, Any]:
    """The score of a run that is kept nowhere, with its CPU seconds."""
    outcome, seconds = _timed(settings)
    return {**score(outcome), "cpu_seconds": seconds}


def _timed(settings: RunSettings, **where: Any) -> tuple[Outcome, float]:
    started = time.process_time()
    outcome = start(settings, **where)
    return outcome, round(time.process_time() - started, 2)


def _require_same(job: Job, folder: Path) -> None:
    """Runs of another scale, or with other settings, must not be taken for these."""
    kept = parse(read_settings(folder / SETTINGS), str(folder / SETTINGS))
    limits = job.settings.plan
    kept = kept.with_limits(limits.budget, limits.time_limit)
    wanted = parse(job.settings.record())
    first, second = kept.record(), wanted.record()
    for record in (first, second):
        record["task"].pop("probe_steps", None)  # the run has settled it by its time limit
    if first != second:
        raise SettingsError(f"{folder} holds a run with other settings; give another folder as --out")


def execute_all(jobs: Sequence[Job], out: Path, executor: Executor, report: Callable[[str], None]) -> None:
    """Do all runs that are not done."""
    missing = [(job, out) for job in jobs if not kept(job, out)]
    for count, (line, interrupted) in enumerate(as_completed(executor, execute, missing), start=1):
        report(f"{count}/{len(missing)} {line}")
        for job, _ in missing:
            if job.folder(out).is_dir():  # not before it has begun
                kept(job, out)
        if interrupted:
            raise KeyboardInterrupt


def scores_of(
    jobs: Sequence[Job],
    about: Sequence[dict[str, Any]],
    out: Path,
    name: str,
    executor: Executor,
    report: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Do all runs that are not done; gives their scores, which are also kept as lines of JSON in a file.

    Args:
        about: what the score of each job begins with, beside its seed and budget.
        name: of the file, without its ending.
    """
    execute_all(jobs, out, executor, report)
    scores = [
        {
            **own,
            "seed": job.seed,
            "budget": job.settings.plan.budget,
            **(read_object(job.score_file(out)) or {}),
        }
        for job, own in zip(jobs, about, strict=True)
    ]
    write_atomically(out / f"{name}.jsonl", "".join(json.dumps(score) + "\n" for score in scores))
    return scores


def records_of(records: Sequence[Record], case: str, method: str) -> list[Record]:
    """The runs of a method on a case, by seed."""
    own = [r for r in records if r.job.case == case and r.job.method == method]
    return sorted(own, key=lambda record: record.job.seed)


def best_rewards(records: Sequence[Record], method: str, case: str) -> list[float]:
    """The best rewards of the runs of a method on a case; nothing of those without success."""
    return [r.best for r in records_of(records, case, method) if r.best is not None]


def kept(job: Job, out: Path) -> bool:
    """Whether a run has come to its end; its summary is then there."""
    if not job.is_done(out):
        return False
    folder, file = job.folder(out), job.summary_file(out)
    if folder.is_dir():
        _require_same(job, folder)
    if job.score is None and read_summary(file, job.settings) is None:
        found = read_top(folder)
        assert found is not None  # or it would not be done
        history = thinned(read_history(folder / HISTORY))
        best = {
            key: None if found["best"] is None else found["best"][key] for key in ("reward", "call", "design")
        }
        ended = {key: found[key] for key in ("stop", "calls", "seconds")}
        write_summary(file, job.settings, {**ended, **best, "history": history})
    return True


def read_record(job: Job, out: Path) -> Record:
    """A run of which a summary is kept."""
    found = read_summary(job.summary_file(out), job.settings)
    if found is None:
        raise FileError(f"{job.summary_file(out)} has no run with seed {job.seed} that can be read")
    design = None if found["design"] is None else Design.from_dict(found["design"])
    numbers = found["reward"], found["call"], design, found["calls"], found["seconds"]
    return Record(job, *numbers, history_of(found["history"]))
