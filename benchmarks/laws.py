"""Laws of physics and of classical sets, and NIST's tables: how many are found again?

120 laws of the Feynman lectures with inputs over decades, Nguyen, Keijzer, Korns and Vladislavleva, and 27 tables
of NIST; without noise and with 1 %. `laws.py` and `law_judge.py` of `discodso.tasks.regression` say what they are
and when one counts as found. All methods but one have as many evaluations; CPU seconds of one core are counted.

    default            DisCoRegressor as it is
    default, 1e6 calls     the same with a million calls
    default, with units    the same with 100,000, told the units of inputs and target; of the lectures' laws
    pyoperon           its own settings, the columns as they are
    pyoperon-best      scaled columns, fit and length as objectives, local search, known noise
    gplearn            scaled columns, largest correlation, offset and slope solved at the end

    python benchmarks/laws.py --only method=default --only set=nguyen      makes what results/laws.jsonl lacks

Laws with odd numbers may be tuned on; the others only show.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from itertools import product

import numpy as np
import peers
from harness import Benchmark, Key, Record, main, markdown

from discodso.reproduce import law_runs
from discodso.tasks.regression.laws import Law

CALLS = 100_000
NOISES = (0.0, 0.01, 0.1)
SEEDS = 3
UNITS, MORE = "default, with units", "default, 1e6 calls"
METHODS = ("default", MORE, UNITS, "pyoperon", "pyoperon-best", "gplearn")
SYMBOLS = "add sub mul div sin cos exp log sqrt square constant variable".split()  # of pyoperon
LAWS = {(law.set, law.name): law for law in law_runs.chosen("all", "all", "all")}
KEYS = [
    {"method": method, "set": group, "law": name, "noise": noise, "seed": seed}
    for seed, noise, (group, name), method in product(range(SEEDS), NOISES, LAWS, METHODS)
    if group != "nist" or noise == 0  # their noise is their own
    if method != UNITS or group == "feynman"
]


def run(key: Key) -> Record:
    """One search for one law."""
    law, noise, seed = LAWS[key["set"], key["law"]], key["noise"], key["seed"]
    if key["method"] in ("default", MORE, UNITS):
        calls = 10 * CALLS if key["method"] == MORE else CALLS
        return {"tuned": law.tuned, **law_runs.run(law, noise, seed, calls, key["method"] == UNITS)}
    X, y = law.data(noise, seed)
    started = time.process_time()
    if key["method"] == "pyoperon":
        found = peers.operon_as_it_is(X, y, SYMBOLS, seed, CALLS)
    elif key["method"] == "pyoperon-best":
        known = noise if isinstance(law, Law) else float(np.sqrt(law.residuals / len(y)) / np.std(y))
        found = peers.operon_at_its_best(X, y, SYMBOLS, seed, CALLS, known)
    else:
        found = peers.gplearn(X, y, seed, CALLS)
    seconds = round(time.process_time() - started, 2)
    figures = law_runs.figures(found, law, seed, noise)
    return {"tuned": law.tuned, **figures, "cpu_seconds": seconds, "calls": CALLS, "expression": found.text}


def table(records: Sequence[Record]) -> str:
    """Shares by set, noise and method, halves apart, then the laws that were missed."""
    head = "set|noise|method|half|laws|runs|found|95 %|numbers agree|length (law's)|CPU seconds".split("|")
    rows = []
    groups = list(dict.fromkeys(group for group, _ in LAWS))
    for noise, group, method, half in product(NOISES, [*groups, "all"], METHODS, ("tuned", "shown", "all")):
        own = [
            record
            for record in records
            if (record["noise"], record["method"]) == (noise, method)
            and group in ("all", record["set"])
            and (half == "all" or record["tuned"] == (half == "tuned"))
        ]
        if own:
            rows.append([group, f"{noise:.0%}", method, half, *law_runs.summary(own)])
    shares: dict[tuple[str, ...], list[float]] = {}
    for record in records:
        column = f"{record['method']}, {record['noise']:.0%}"
        shares.setdefault((record["set"], record["law"], column), []).append(float(record["found"]))
    names = [f"{method}, {noise:.0%}" for method, noise in product(METHODS, NOISES)]
    names = [name for name in names if any(name == own[2] for own in shares)]
    missed = []
    for (group, name), law in LAWS.items():
        found = [shares.get((group, name, column)) for column in names]
        if min(shares.get((group, name, f"{METHODS[0]}, 0%"), [1.0])) < 1:
            cells = ["-" if own is None else f"{statistics.fmean(own):.0%}" for own in found]
            missed.append([name, f"{law.tokens}", *cells])
    return "\n".join(
        [
            f"Made by `python benchmarks/laws.py`; {CALLS:,} evaluations; seconds of one busy core.",
            "",
            *markdown(head, rows),
            "",
            "Laws that the default has missed at least once without noise:",
            "",
            *markdown(["law", "tokens", *names], missed),
        ]
    )


BENCHMARK = Benchmark("laws", KEYS, run, table)
if __name__ == "__main__":
    main(BENCHMARK, __doc__)
