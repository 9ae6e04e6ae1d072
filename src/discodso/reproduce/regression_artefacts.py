"""Symbolic regression: evaluation rewards and calls, their tables and gaps, lengths, networks."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from discodso.disco.method import MethodSettings
from discodso.reproduce.jobs import Job, Record, jobs_of
from discodso.reproduce.paper import (
    ARCHITECTURES,
    DIMENSIONS,
    DISCO,
    QUOTED_REGRESSION,
    REGRESSION,
    REGRESSION_GAPS,
)
from discodso.reproduce.paper_figures import draw_bars, draw_lengths
from discodso.reproduce.regression_runs import evaluation_reward
from discodso.reproduce.scales import Scale
from discodso.reproduce.tables import Entry, compared, deviation, gap, mean, write_rows, write_table
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.problems import Problem, ProblemOptions, problems

_LONGEST = 32


def jobs(scale: Scale) -> list[Job]:
    """All methods on the problems."""
    return _jobs("regression", scale, scale.regression_methods(), scale.problem_seeds)


def architecture_jobs(scale: Scale) -> list[Job]:
    """DisCo with six networks on the problems."""
    return _jobs("architectures", scale, scale.architectures(), scale.network_seeds)


def _jobs(experiment: str, scale: Scale, methods: Mapping[str, MethodSettings], seeds: int) -> list[Job]:
    cases = {name: (ProblemOptions(problem=name), scale.problem_calls) for name in scale.problems}
    return jobs_of(experiment, cases, methods, seeds, scale.bo_seconds)


def figure(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """Evaluation reward and calls to the best expression for all methods, and the table of both groups."""
    heads = "problem inputs method seed train evaluation call calls length seconds".split()
    rows = []
    for r in records:
        reached = r.best, _evaluation(r), r.call, r.calls, None if r.design is None else len(r.design)
        rows.append((r.job.case, _problem(r).inputs, r.job.method, r.job.seed, *reached, r.seconds))
    write_rows(out / "regression-runs", heads, rows)
    methods = scale.regression_methods()
    every, ours = (*methods, *QUOTED_REGRESSION), partial(_rewards, records)
    entries = compared(every, DIMENSIONS, ours, REGRESSION, quoted=QUOTED_REGRESSION)
    title = "Regression: mean reward on the evaluation sets"
    write_table(out / "regression", title, _caption(scale, scale.problem_seeds), entries)
    panels: dict[str, dict[str, Sequence[float]]] = {
        "mean reward on the evaluation sets": {name: _rewards(records, name) for name in methods},
        "objective calls to the best expression": {
            name: [r.call for r in records if r.job.method == name and r.call is not None] for name in methods
        },
    }
    draw_bars(out / "regression", panels)


def gaps(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """The mean reward of DisCo less that of each method; those from the literature as the paper quotes them."""

    def ours(name: str, group: str) -> list[float]:
        quoted = name in QUOTED_REGRESSION
        other = REGRESSION[name].get(group) if quoted else mean(_rewards(records, name, group))
        return gap(mean(_rewards(records, DISCO, group)), other)

    others = [name for name in (*scale.regression_methods(), *QUOTED_REGRESSION) if name != DISCO]
    caption = _caption(scale, scale.problem_seeds)
    entries = compared(others, DIMENSIONS, ours, REGRESSION_GAPS)
    write_table(out / "regression-gaps", "Regression: objective gaps", caption, entries)


def lengths(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """Lengths of the best expressions."""
    found = {
        name: [len(r.design) for r in records if r.job.method == name and r.design is not None]
        for name in scale.regression_methods()
    }
    rows = [(name, n, own.count(n)) for name, own in found.items() for n in range(1, _LONGEST + 1)]
    write_rows(out / "lengths", ("method", "length", "expressions"), rows)
    draw_lengths(out / "lengths", found, _LONGEST)
    entries = []
    for name, own in found.items():
        entries.append(Entry(name, "mean length", mean(own), deviation(own)))
        share = mean([float(length == _LONGEST) for length in own])
        entries.append(Entry(name, f"share of length {_LONGEST}", share))
    caption = _caption(scale, scale.problem_seeds) + " The paper shows a histogram without numbers."
    title = "Regression: lengths of the best expressions"
    write_table(out / "lengths-summary", title, caption, entries, digits=2)


def architectures(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """Mean and deviation over the problems for six networks."""
    entries = []
    for name, paper in ARCHITECTURES.items():
        own = _rewards(records, name)
        entries.append(Entry(name, "mean", mean(own), None, paper["mean"]))
        entries.append(Entry(name, "deviation", deviation(own), None, paper["deviation"]))
    write_table(out / "architectures", "Regression: networks", _caption(scale, scale.network_seeds), entries)


def _problem(record: Record) -> Problem:
    (problem,) = problems(record.job.case)
    return problem


def _evaluation(record: Record) -> float:
    """Reward of a run's best expression on the evaluation set; 0 without one."""
    if record.design is None:
        return 0.0
    expression = Expression(record.design, _problem(record).truth.columns)
    return evaluation_reward(record.job.case, expression)


def _rewards(records: Sequence[Record], method: str, group: str = "all") -> list[float]:
    """For each problem of a group the mean evaluation reward of a method over the seeds."""
    found: dict[str, list[float]] = {}
    most = 3 if group == DIMENSIONS[0] else 10**9
    for record in records:
        if record.job.method == method and _problem(record).inputs <= most:
            found.setdefault(record.job.case, []).append(_evaluation(record))
    return [statistics.fmean(rewards) for rewards in found.values()]


def _caption(scale: Scale, seeds: int) -> str:
    return (
        f"{len(scale.problems)} of the paper's 45 problems, {scale.problem_calls} objective calls, "
        f"{seeds} seed{'s' * (seeds > 1)}; means over seeds first, then mean ± standard deviation over problems. "
        f"BO had {scale.bo_seconds:g} s."
    )
