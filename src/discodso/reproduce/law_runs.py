"""Laws as a benchmark: settings of a run, how its equation is judged, and the table."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from discodso.base.statistics import bootstrap_interval
from discodso.base.text_tables import markdown
from discodso.reproduce.jobs import Job, scored, scores_of
from discodso.run.executors.dispatch import Executor
from discodso.run.kinds import Outcome
from discodso.run.plan import Plan
from discodso.run.settings import RunSettings
from discodso.tasks.regression.data import GivenData
from discodso.tasks.regression.export import text
from discodso.tasks.regression.law_judge import Formula, judge, judge_fit
from discodso.tasks.regression.laws import HALVES, SETS, Half, Law, laws, selected
from discodso.tasks.regression.nist import NistData, nist
from discodso.tasks.regression.options import RegressionOptions

ALL_SETS = (*SETS, "nist")
Figures = dict[str, Any]


def chosen(sets: str | Iterable[str], names: str | Iterable[str], half: Half) -> tuple[Law | NistData, ...]:
    """Laws and tables of NIST by set, name and half; "all" for no choice."""
    wanted = ALL_SETS if sets == "all" else (sets,) if isinstance(sets, str) else tuple(sets)
    found: list[Law | NistData] = list(laws([own for own in wanted if own != "nist"]))
    return selected([*found, *(nist() if "nist" in wanted else ())], names, half)


def law_settings(
    law: Law | NistData, noise: float, seed: int, budget: int, units: bool = False
) -> RunSettings:
    """A run for a law, with the default settings of equations, which may be told the units."""
    X, y = law.data(noise, seed)
    given = GivenData(X, y, np.ones(len(y)), law.columns, "target")
    known = None
    if units and isinstance(law, Law) and law.target_unit:
        known = {variable.name: variable.unit for variable in law.variables} | {"target": law.target_unit}
    options = RegressionOptions(table="", target="target", units=known)
    return RunSettings(options, Plan(budget, seed), given=given)


def figures(formula: Formula, law: Law | NistData, seed: int, noise: float) -> Figures:
    """What came of a search, for JSON; errors of a NIST table are shares of the certified residuals."""
    verdict = judge(formula, law, seed, noise) if isinstance(law, Law) else judge_fit(formula, law)
    return {
        "found": verdict.recovered,
        "agrees": verdict.agrees,
        "error": _short(verdict.error),
        "close": verdict.close,
        "wide_error": _short(verdict.wide_error),
        "wide_close": verdict.wide_close,
        "length": verdict.length,
        "tokens": law.tokens,
    }


def score(law: Law | NistData, noise: float, seed: int, outcome: Outcome) -> Figures:
    """Figures of the equation that was chosen."""
    found = outcome.found
    shown = {"calls": found.calls, "expression": text(found.expression)}
    return {**figures(found.expression, law, seed, noise), **shown}


def run(law: Law | NistData, noise: float, seed: int, budget: int, units: bool = False) -> Figures:
    """The score of a run that is kept nowhere, with its CPU seconds; it may be told the units."""
    return scored(law_settings(law, noise, seed, budget, units), partial(score, law, noise, seed))


def bench(
    wanted: Sequence[Law | NistData],
    noises: Sequence[float],
    seeds: int,
    budget: int,
    out: Path,
    executor: Executor,
    report: Callable[[str], None],
    units: bool = False,
) -> str:
    """Do what is missing of these runs, and write their scores as lines of JSON; gives the table.

    With `units` the search is told those of the laws that have some.
    """
    jobs, about = list[Job](), list[Figures]()
    variant = f"{budget} calls{', units' if units else ''}"
    for seed, noise, law in product(range(seeds), noises, wanted):
        if law.set != "nist" or noise == noises[0]:  # their noise is their own
            case = f"{law.set}, {law.name}, noise {noise:g}"
            settings = law_settings(law, noise, seed, budget, units)
            # The search plans for its budget, so that runs of another one are other runs.
            jobs.append(Job("laws", case, variant, settings, partial(score, law, noise, seed)))
            about.append({"set": law.set, "law": law.name, "noise": noise, "tuned": law.tuned})
    name = f"laws-{budget}{'-units' if units else ''}"
    return table(scores_of(jobs, about, out, name, executor, report))


def table(records: Sequence[Figures]) -> str:
    """Shares of laws found by set, noise and half, with 95 % intervals over the laws; then what was missed."""
    head = ("set", "noise", "half", "laws", "runs", "found", "95 %", "numbers agree", "length", "CPU seconds")
    rows = []
    names = list(dict.fromkeys(record["set"] for record in records))
    for noise, name in product(sorted({record["noise"] for record in records}), [*names, "all"]):
        for half in HALVES:
            own = [
                record
                for record in records
                if record["noise"] == noise
                and name in ("all", record["set"])
                and (half == "all" or record["tuned"] == (half == "tuned"))
            ]
            if own and (name != "all" or len(names) > 1):
                rows.append([name, f"{noise:g}", half, *summary(own)])
    missed = dict.fromkeys(f"{r['law']} (noise {r['noise']:g})" for r in records if not r["found"])
    return (
        "\n".join([*markdown(head, rows), "", f"Missed at least once: {', '.join(missed) or 'none'}"]) + "\n"
    )


def summary(records: Sequence[Figures]) -> list[str]:
    """Laws, runs, share found, its interval over laws, share that agrees, length beside the law's, seconds."""
    by_law: dict[Any, list[Figures]] = {}
    for record in records:
        by_law.setdefault((record["set"], record["law"]), []).append(record)
    shares = [statistics.fmean(float(record["found"]) for record in own) for own in by_law.values()]
    limits = bootstrap_interval(shares)
    length, tokens, agrees, seconds = (
        statistics.fmean(float(record[key]) for record in records)
        for key in ("length", "tokens", "agrees", "cpu_seconds")
    )
    return [
        f"{len(by_law)}",
        f"{len(records)}",
        f"**{statistics.fmean(shares):.0%}**",
        "" if limits is None else f"{limits[0]:.0%} to {limits[1]:.0%}",
        f"{agrees:.0%}",
        f"{length:.1f} ({tokens:.1f})",
        f"{seconds:.1f}",
    ]


def _short(value: float) -> float | None:
    """Three digits, None if infinite, which JSON lacks."""
    return float(f"{value:.3g}") if np.isfinite(value) else None
