"""The paper's regression experiment: DisCo on the benchmark problems, many seeds, resumable, and its table."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from discodso.disco import DisCoSettings
from discodso.dispatch import Executor, as_completed
from discodso.errors import DeclarationError
from discodso.files import FileError
from discodso.result import HistoryRow, Ranking, Scored
from discodso.search import search
from discodso.tasks.regression.problems import Problem, problem_task, problems
from discodso.tasks.regression.task import Fit

PAPER = DisCoSettings(batch_size=1000)


@dataclass(frozen=True)
class Run:
    """One search: which problem, with what budget and seed. `checkpoints` are calls to report on the way."""

    problem: str
    seed: int
    calls: int
    variant: Literal["A", "B"] = "A"
    checkpoints: tuple[int, ...] = ()
    settings: DisCoSettings = PAPER

    @property
    def key(self) -> tuple[str, int, int, str]:
        """What tells runs apart in a file of results."""
        return self.problem, self.seed, self.calls, self.variant


def execute(run: Run) -> dict[str, Any]:
    """Search, and score the best expression on the evaluation set; returns one record."""
    (problem,) = problems(run.problem)
    started = time.process_time()
    task = problem_task(problem, run.variant)
    fit = task.batch_objective
    assert isinstance(fit, Fit)
    evaluation = Fit.of(fit.program, *problem.evaluation_set(run.variant))
    on_the_way: dict[int, Scored] = {}

    def watch(row: HistoryRow, ranking: Ranking) -> None:
        for calls in run.checkpoints:
            if row.calls >= calls and calls not in on_the_way and ranking.best is not None:
                on_the_way[calls] = ranking.best

    result = search(task, budget=run.calls, seed=run.seed, method=run.settings, callback=watch)

    def report(scored: Scored | None) -> dict[str, Any]:
        if scored is None:
            return {"train": 0.0, "evaluation": 0.0, "length": 0}
        reward = float(evaluation(task.space.encode([scored.design]))[0])
        return {
            "train": scored.reward,
            "evaluation": reward,
            "length": len(scored.design),
            "call": scored.call,
        }

    best = result.best
    return {
        "problem": run.problem,
        "inputs": problem.inputs,
        "seed": run.seed,
        "calls": result.calls,
        "budget": run.calls,
        "variant": run.variant,
        **report(best),
        "expression": None if best is None else task.space.render(best.design),
        "design": None if best is None else best.design.to_dict(),
        "checkpoints": {str(calls): report(scored) for calls, scored in sorted(on_the_way.items())},
        "stop": result.stop.name.lower(),
        "cpu_seconds": round(time.process_time() - started, 2),
    }


def read_records(path: Path) -> list[dict[str, Any]]:
    """Records of a file of JSON lines; a last line cut short by a crash is passed over."""
    records = []
    if path.exists():
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            raise FileError(f"cannot read {path}: {error.strerror or error}") from None
        for line in lines:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and "problem" in record:
                records.append(record)
    return records


def _key(record: dict[str, Any]) -> tuple[str, int, int, str]:
    return record["problem"], record["seed"], record["budget"], record["variant"]


def execute_all(
    runs: Iterable[Run], path: Path, executor: Executor, report: Callable[[dict[str, Any], int, int], None]
) -> list[dict[str, Any]]:
    """Execute what the file does not have yet, one JSON line for each run as it ends; returns all records."""
    wanted = list(runs)
    done = {_key(record) for record in read_records(path)}
    missing = [run for run in wanted if run.key not in done]
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size and not path.read_bytes().endswith(b"\n"):
        with path.open("a") as file:  # a line that a crash cut short stays alone
            file.write("\n")
    for count, record in enumerate(as_completed(executor, execute, missing), start=1):
        if record["stop"] == "interrupted":  # half a run is none; it is done again next time
            raise KeyboardInterrupt
        with path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        report(record, count, len(missing))
    keys = {run.key for run in wanted}
    return [record for record in read_records(path) if _key(record) in keys]


def table(records: Sequence[dict[str, Any]], calls: int) -> str:
    """Means over seeds for each problem, and over problems, in Markdown; `calls` is the budget or a checkpoint.

    The seconds are CPU time of whole runs.
    """
    if not records:
        raise DeclarationError("no records to make a table of")
    keys = ("train", "evaluation", "length")
    rows: dict[str, dict[str, float]] = {}
    for problem in dict.fromkeys(record["problem"] for record in records):
        own = [record for record in records if record["problem"] == problem]
        reports = [_at(record, calls) for record in own]
        rows[problem] = {
            "inputs": own[0]["inputs"],
            "seconds": statistics.fmean(record["cpu_seconds"] for record in own),
            **{key: statistics.fmean(report[key] for report in reports) for key in keys},
        }
    lines = ["| problem | inputs | train | evaluation | length | calls | seconds |", "|---" * 7 + "|"]
    lines += [_line(name, str(row["inputs"]), row, calls) for name, row in rows.items()]
    for label, most in (("dim <= 3", 3), ("all", 10**9)):
        chosen = [row for row in rows.values() if row["inputs"] <= most]
        if chosen:
            mean = {key: statistics.fmean(row[key] for row in chosen) for key in (*keys, "seconds")}
            lines.append(_line(f"**mean, {label}**", f"{len(chosen)} problems", mean, calls))
    return "\n".join(lines) + "\n"


def _line(name: str, inputs: str, row: dict[str, float], calls: int) -> str:
    return (
        f"| {name} | {inputs} | {row['train']:.4f} | {row['evaluation']:.4f} | {row['length']:.1f} | {calls} "
        f"| {row['seconds']:.0f} |"
    )


def _at(record: dict[str, Any], calls: int) -> dict[str, Any]:
    if calls == record["budget"]:
        return record
    found = record["checkpoints"].get(str(calls))
    if found is None:
        raise DeclarationError(f"{record['problem']} has no record at {calls} calls")
    return dict(found)


def runs_of(
    chosen: Sequence[Problem],
    seeds: int,
    calls: int,
    variant: Literal["A", "B"] = "A",
    checkpoints: tuple[int, ...] = (),
    settings: DisCoSettings = PAPER,
) -> list[Run]:
    """All runs of an experiment, seed by seed, so that a table of all problems is there early."""
    return [
        Run(problem.name, seed, calls, variant, checkpoints, settings)
        for seed in range(seeds)
        for problem in chosen
    ]
