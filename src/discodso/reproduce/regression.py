"""Symbolic regression: evaluation rewards and calls, their tables and gaps, lengths, networks."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from discodso.disco.method import MethodSettings
from discodso.reproduce.figures import draw_bars, draw_lengths
from discodso.reproduce.jobs import Job, Record
from discodso.reproduce.paper import (
    ARCHITECTURES,
    DIMENSIONS,
    DISCO,
    QUOTED_REGRESSION,
    REGRESSION,
    REGRESSION_GAPS,
)
from discodso.reproduce.scales import Scale
from discodso.reproduce.tables import Entry, deviation, mean, write_rows, write_table
from discodso.space.space import Space
from discodso.tasks.regression.expression_space import Fit
from discodso.tasks.regression.problems import ProblemOptions, problem_task, problems

_LONGEST = 32


def jobs(scale: Scale) -> list[Job]:
    """All methods on the problems, seed by seed."""
    return _jobs(scale, scale.regression_methods(), "regression", scale.problem_seeds)


def architecture_jobs(scale: Scale) -> list[Job]:
    """DisCo with six networks on the problems."""
    return _jobs(scale, scale.architectures(), "architectures", scale.network_seeds)


def _jobs(scale: Scale, methods: dict[str, MethodSettings], experiment: str, seeds: int) -> list[Job]:
    return [
        Job.of(
            experiment,
            problem,
            name,
            ProblemOptions(problem=problem),
            settings,
            seed,
            scale.problem_calls,
            scale.bo_seconds if name == "BO" else None,
        )
        for seed in range(seeds)
        for problem in scale.problems
        for name, settings in methods.items()
    ]


def figure(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """Evaluation reward and calls to the best expression for all methods, and the table of both groups."""
    means = _means(records)
    write_rows(
        out / "regression-runs",
        ("problem", "inputs", "method", "seed", "train", "evaluation", "call", "calls", "length", "seconds"),
        [
            (
                r.job.case,
                _inputs(r.job.case),
                r.job.method,
                r.job.seed,
                r.best,
                evaluation_reward(r),
                r.call,
                r.calls,
                None if r.design is None else len(r.design),
                r.seconds,
            )
            for r in records
        ],
    )
    entries = []
    for name in (*scale.regression_methods(), *QUOTED_REGRESSION):
        quoted = name in QUOTED_REGRESSION
        for column in DIMENSIONS:
            own = [] if quoted else _group(means[name], column)
            paper = REGRESSION.get(name, {}).get(column)
            entries.append(Entry(name, column, mean(own), deviation(own), paper, quoted))
    title = "Regression: mean reward on the evaluation sets"
    write_table(out / "regression", title, _caption(scale, scale.problem_seeds), entries)
    rewards = {
        name: (statistics.fmean(cases.values()), _spread(cases.values()))
        for name in scale.regression_methods()
        if (cases := means[name])
    }
    calls = {
        name: (statistics.fmean(found), _spread(found))
        for name in scale.regression_methods()
        if (found := [r.call for r in records if r.job.method == name and r.call is not None])
    }
    panels = {"mean reward on the evaluation sets": rewards, "objective calls to the best expression": calls}
    draw_bars(out / "regression", panels)


def gaps(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """The mean reward of DisCo less that of each method; those from the literature as the paper quotes them."""
    means, entries = _means(records), []
    for column in DIMENSIONS:
        disco = mean(_group(means[DISCO], column))
        for name in (*scale.regression_methods(), *QUOTED_REGRESSION):
            if name == DISCO:
                continue
            quoted = name in QUOTED_REGRESSION
            other = REGRESSION[name].get(column) if quoted else mean(_group(means[name], column))
            ours = None if disco is None or other is None else disco - other
            entries.append(Entry(name, column, ours, None, REGRESSION_GAPS.get(name, {}).get(column)))
    entries.sort(key=lambda entry: list(means).index(entry.row) if entry.row in means else len(means))
    write_table(
        out / "regression-gaps", "Regression: objective gaps", _caption(scale, scale.problem_seeds), entries
    )


def lengths(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """Lengths of the best expressions."""
    found = {
        name: [len(r.design) for r in records if r.job.method == name and r.design is not None]
        for name in scale.regression_methods()
    }
    rows = [
        (name, length, own.count(length)) for name, own in found.items() for length in range(1, _LONGEST + 1)
    ]
    write_rows(out / "lengths", ("method", "length", "expressions"), rows)
    draw_lengths(out / "lengths", found, _LONGEST)
    entries = []
    for name, own in found.items():
        entries.append(Entry(name, "mean length", mean(own), deviation(own)))
        share = mean([float(length == _LONGEST) for length in own])
        entries.append(Entry(name, f"share of length {_LONGEST}", share))
    caption = _caption(scale, scale.problem_seeds) + " The paper shows a histogram without numbers."
    write_table(
        out / "lengths-summary", "Regression: lengths of the best expressions", caption, entries, digits=2
    )


def architectures(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """Mean and deviation over the problems for six networks."""
    means, entries = _means(records), []
    for name in scale.architectures():
        own = _group(means[name], "all")
        entries.append(Entry(name, "mean", mean(own), None, ARCHITECTURES[name]["mean"]))
        entries.append(Entry(name, "deviation", deviation(own), None, ARCHITECTURES[name]["deviation"]))
    write_table(out / "architectures", "Regression: networks", _caption(scale, scale.network_seeds), entries)


def evaluation_reward(record: Record) -> float:
    """Reward of a run's best expression on the evaluation set; 0 without one."""
    if record.design is None:
        return 0.0
    space, fit = _evaluation(record.job.case)
    return float(fit(space.encode([record.design]))[0])


@lru_cache(maxsize=64)
def _evaluation(name: str) -> tuple[Space, Fit]:
    (problem,) = problems(name)
    task = problem_task(problem)
    assert isinstance(task.batch_objective, Fit)
    return task.space, Fit.of(task.batch_objective.program, *problem.evaluation_set())


def _inputs(name: str) -> int:
    (problem,) = problems(name)
    return problem.inputs


def _means(records: Sequence[Record]) -> dict[str, dict[str, float]]:
    """For each method and problem the mean evaluation reward over the seeds."""
    found: dict[str, dict[str, list[float]]] = {}
    for record in records:
        own = found.setdefault(record.job.method, {}).setdefault(record.job.case, [])
        own.append(evaluation_reward(record))
    return {
        name: {problem: statistics.fmean(rewards) for problem, rewards in cases.items()}
        for name, cases in found.items()
    }


def _group(means: dict[str, float], column: str) -> list[float]:
    most = 3 if column == DIMENSIONS[0] else 10**9
    return [reward for problem, reward in means.items() if _inputs(problem) <= most]


def _spread(numbers: Iterable[float]) -> float:
    return deviation(list(numbers)) or 0.0


def _caption(scale: Scale, seeds: int) -> str:
    return (
        f"{len(scale.problems)} of the paper's 45 problems, {scale.problem_calls} objective calls, "
        f"{seeds} seed{'s' * (seeds > 1)}; means over seeds first, then mean ± standard deviation over problems. "
        f"BO had {scale.bo_seconds:g} s."
    )
