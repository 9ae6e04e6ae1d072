"""The paper's regression experiment: DisCo on the benchmark problems, many seeds, resumable, and its table."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from discodso.base.errors import DeclarationError
from discodso.base.files import FileError
from discodso.disco.disco import DisCoSettings
from discodso.disco.presets import Preset, preset
from discodso.run.executors.dispatch import Executor, as_completed
from discodso.run.result import HistoryRow, Ranking, Result, Scored
from discodso.run.start import search
from discodso.run.task import Task
from discodso.tasks.regression.evaluator import Program, evaluate
from discodso.tasks.regression.export import text
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.expression_space import Fit, RegressionSpace
from discodso.tasks.regression.front import FrontKeeper
from discodso.tasks.regression.losses import prediction_reward
from discodso.tasks.regression.models import calls_for_choice, kept_expressions, make_model
from discodso.tasks.regression.problems import FUNCTION_SETS, Problem, problem_task, problems

PAPER = DisCoSettings(batch_size=1000)
_SCALE_TOKENS = 4  # of a + b f beside those of f


@dataclass(frozen=True)
class Trial:
    """One search: which problem, with what budget and seed.

    Attributes:
        checkpoints: calls to report on the way.
        method: its settings, None for those of the preset.
        preset: "paper" returns the best design, "default" the model that is chosen after the search. Both have
            the same operators and the same longest expression.
        selection: how "default" chooses; see `make_model`.
        scaled: whether "default" searches for the f of a + b f.
    """

    problem: str
    seed: int
    budget: int
    variant: Literal["A", "B"] = "A"
    checkpoints: tuple[int, ...] = ()
    method: DisCoSettings | None = None
    preset: Preset = "paper"
    selection: str = "auto"
    scaled: bool = True

    @property
    def key(self) -> tuple[str, int, int, str, str]:
        """What tells runs apart in a file of results."""
        return self.problem, self.seed, self.budget, self.variant, self.preset


@dataclass(frozen=True)
class Found:
    """An expression, its reward on the training set, and the calls that it took."""

    expression: Expression
    train: float
    call: int


def execute(run: Trial) -> dict[str, Any]:
    """Search, and score what was found on the evaluation set; returns one record."""
    (problem,) = problems(run.problem)
    started = time.process_time()
    find = _by_paper if run.preset == "paper" else _by_default
    found, on_the_way, result, calls = find(run, problem)
    X, y = problem.evaluation_set(run.variant)

    def report(found: Found | None) -> dict[str, Any]:
        if found is None:
            return {"train": 0.0, "evaluation": 0.0, "length": 0}
        return {
            "train": found.train,
            "evaluation": prediction_reward(evaluate(found.expression, X), y),
            "length": len(found.expression),
            "call": found.call,
        }

    return {
        "problem": run.problem,
        "inputs": problem.inputs,
        "seed": run.seed,
        "calls": calls,
        "budget": run.budget,
        "variant": run.variant,
        "preset": run.preset,
        **report(found),
        "expression": None if found is None else text(found.expression),
        "design": None if found is None else found.expression.design.to_dict(),
        "checkpoints": {str(calls): report(found) for calls, found in sorted(on_the_way.items())},
        "stop": result.stop.name.lower(),
        "cpu_seconds": round(time.process_time() - started, 2),
    }


_Outcome = tuple[Found | None, dict[int, Found], Result, int]


def _by_paper(run: Trial, problem: Problem) -> _Outcome:
    """The paper's task and method; the best design is what is found."""
    task = problem_task(problem, run.variant)
    columns = _columns(problem)
    on_the_way: dict[int, Found] = {}

    def found(scored: Scored) -> Found:
        return Found(Expression(scored.design, columns), scored.reward, scored.call)

    def watch(row: HistoryRow, ranking: Ranking) -> None:
        for calls in run.checkpoints:
            if row.calls >= calls and calls not in on_the_way and ranking.best is not None:
                on_the_way[calls] = found(ranking.best)

    settings = PAPER if run.method is None else run.method
    result = search(task, budget=run.budget, seed=run.seed, method=settings, callback=watch)
    best = None if result.best is None else found(result.best)
    return best, on_the_way, result, result.calls


def _by_default(run: Trial, problem: Problem) -> _Outcome:
    """The default search, and the choice of a model, with the same operators and as many tokens as the paper."""
    X, y = problem.training_set(run.variant)
    longest = RegressionSpace().max_length - (_SCALE_TOKENS if run.scaled else 0)
    space = RegressionSpace(library=FUNCTION_SETS[problem.function_set], max_length=longest)
    built = space.build(problem.inputs)
    keeper = FrontKeeper(built, Fit.of(Program.of(built.library), X, y, scaled=run.scaled))
    task = Task(
        built,
        batch_objective=keeper,
        worst_reward=0.0,
        name=problem.name,
        refine=keeper.refine,
    )
    seen = X, y, keeper.fit.weights
    on_the_way: dict[int, Found] = {}

    def model(calls: int, budget: int) -> Found:
        room = budget - calls
        expressions, scaling = kept_expressions(keeper, _columns(problem), (), seen, room)
        made = make_model(expressions, seen, room=room - scaling, selection=run.selection)
        reward = prediction_reward(evaluate(made.expression, X), y)
        return Found(made.expression, reward, calls + scaling + made.calls)

    def watch(row: HistoryRow, ranking: Ranking) -> None:
        for budget in run.checkpoints:
            if row.calls >= _search_calls(budget) and budget not in on_the_way:
                on_the_way[budget] = model(row.calls, max(budget, row.calls))

    settings = run.method or preset(refines=True)
    budget = _search_calls(run.budget)
    result = search(task, budget=budget, seed=run.seed, method=settings, callback=watch)
    if result.best is None:
        return None, on_the_way, result, result.calls
    found = model(result.calls, run.budget)
    return found, on_the_way, result, found.call


def _search_calls(budget: int) -> int:
    return budget - calls_for_choice(budget)


def _columns(problem: Problem) -> tuple[str, ...]:
    return tuple(f"x{i + 1}" for i in range(problem.inputs))


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


def _key(record: dict[str, Any]) -> tuple[str, int, int, str, str]:
    own = record["problem"], record["seed"], record["budget"], record["variant"]
    return *own, record.get("preset", "paper")


def execute_all(
    runs: Iterable[Trial], path: Path, executor: Executor, report: Callable[[dict[str, Any], int, int], None]
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
    method: DisCoSettings | None = None,
    preset: Preset = "paper",
) -> list[Trial]:
    """All runs of an experiment, seed by seed, so that a table of all problems is there early."""
    return [
        Trial(problem.name, seed, calls, variant, checkpoints, method, preset)
        for seed in range(seeds)
        for problem in chosen
    ]
