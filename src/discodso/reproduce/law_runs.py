"""Laws as a benchmark: one search for each law, noise and seed, kept as a line of JSON, and their table."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from discodso.base.errors import DeclarationError
from discodso.base.files import write_atomically
from discodso.base.statistics import bootstrap_interval
from discodso.run.executors.dispatch import Executor, as_completed
from discodso.tasks.regression.estimator import DisCoRegressor
from discodso.tasks.regression.export import text
from discodso.tasks.regression.law_judge import Formula, judge, judge_fit
from discodso.tasks.regression.laws import SETS, Half, Law, laws
from discodso.tasks.regression.nist import NistData, nist

ALL_SETS = (*SETS, "nist")
KEY = ("set", "law", "noise", "seed", "budget", "units")
Key = tuple[str, str, float, int, int, bool]
Record = dict[str, Any]


def chosen(sets: str | Iterable[str], names: str | Iterable[str], half: Half) -> tuple[Law | NistData, ...]:
    """Laws and tables of NIST by set, name and half; "all" for no choice."""
    wanted = ALL_SETS if sets == "all" else (sets,) if isinstance(sets, str) else tuple(sets)
    asked = None if names == "all" else {names} if isinstance(names, str) else set(names)
    found: list[Law | NistData] = list(laws([own for own in wanted if own != "nist"], half=half))
    if "nist" in wanted:
        found += [table for table in nist() if half == "all" or table.tuned == (half == "tuned")]
    if asked is None:
        return tuple(found)
    if missing := sorted(asked - {law.name for law in found}):
        raise DeclarationError(f"no law {', '.join(missing)} in {', '.join(wanted)}, half {half!r}")
    return tuple(law for law in found if law.name in asked)


def figures(formula: Formula, law: Law | NistData, seed: int, noise: float) -> Record:
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


def run(law: Law | NistData, noise: float, seed: int, budget: int, units: bool = False) -> Record:
    """Search for one law with the default estimator, which may be told the units."""
    X, y = law.data(noise, seed)
    known = {}
    if units and isinstance(law, Law) and law.target_unit:
        known = {f"x{i + 1}": variable.unit for i, variable in enumerate(law.variables)}
        known["y"] = law.target_unit
    started = time.process_time()
    model = DisCoRegressor(budget=budget, random_state=seed, units=known).fit(X, y)
    seconds = time.process_time() - started
    shown = {"cpu_seconds": round(seconds, 2), "calls": int(model.calls_)}
    return {**figures(model.expression_, law, seed, noise), **shown, "expression": text(model.expression_)}


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
    """Make the runs that the file lacks, each kept as it ends, and return the table of all that were asked for.

    With `units` the search is told those of the laws that have some.
    """
    records = _read(out)
    keys = {
        (law.set, law.name, noise, seed, budget, units): law
        for seed, noise, law in product(range(seeds), noises, wanted)
        if law.set != "nist" or noise == noises[0]  # their noise is their own
    }
    missing = [key for key in keys if key not in records]
    for count, (key, found) in enumerate(as_completed(executor, _run_key, missing), start=1):
        own = {**dict(zip(KEY, key, strict=True)), "tuned": keys[key].tuned, **found}
        records[key] = own
        write_atomically(out, "".join(json.dumps(record) + "\n" for record in records.values()))
        outcome = "found" if own["found"] else "missed"
        report(
            f"{count} of {len(missing)}: {own['law']}, noise {own['noise']:g}, seed {own['seed']}: {outcome}"
        )
    return table([records[key] for key in keys])


def _run_key(key: Key) -> tuple[Key, Record]:
    set_name, name, noise, seed, budget, units = key
    (law,) = chosen(set_name, name, "all")
    return key, run(law, noise, seed, budget, units)


def _read(path: Path) -> dict[Key, Record]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    try:
        records = [json.loads(line) for line in lines if line.strip()]
        return {
            (own["set"], own["law"], own["noise"], own["seed"], own["budget"], own["units"]): own
            for own in records
        }
    except (ValueError, KeyError, TypeError) as error:
        raise DeclarationError(f"{path} is no file of runs: {error!r}; name another, or remove it") from None


def table(records: Sequence[Record]) -> str:
    """Shares of laws found by set, noise and half, with 95 % intervals over the laws; then what was missed."""
    head = ("set", "noise", "half", "laws", "runs", "found", "95 %", "numbers agree", "length", "CPU seconds")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    names = list(dict.fromkeys(record["set"] for record in records))
    for noise, name in product(sorted({record["noise"] for record in records}), [*names, "all"]):
        for half in ("tuned", "shown", "all"):
            own = [
                record
                for record in records
                if record["noise"] == noise
                and name in ("all", record["set"])
                and (half == "all" or record["tuned"] == (half == "tuned"))
            ]
            if own and (name != "all" or len(names) > 1):
                lines.append(f"| {name} | {noise:g} | {half} | {' | '.join(summary(own))} |")
    missed = dict.fromkeys(f"{r['law']} (noise {r['noise']:g})" for r in records if not r["found"])
    return "\n".join([*lines, "", f"Missed at least once: {', '.join(missed) or 'none'}"]) + "\n"


def summary(records: Sequence[Record]) -> list[str]:
    """Laws, runs, share found, its interval over laws, share that agrees, length beside the law's, seconds."""
    by_law: dict[Any, list[Record]] = {}
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
