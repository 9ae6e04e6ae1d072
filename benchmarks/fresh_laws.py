"""Laws of other fields that nothing was tuned on, written down after the search was finished: found again?

Kinetics, heat, gases, growth, drag, beats and oscillations; 200 rows, without noise and with 1 %, three seeds.
What counts as found is said in `law_judge.py`: right on fresh rows, over wider ranges, and not too long.

    python benchmarks/fresh_laws.py          makes what results/fresh_laws.jsonl lacks, and its table
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import product

from harness import Benchmark, Key, Record, main, markdown

from discodso.reproduce import law_runs
from discodso.tasks.regression.laws import Law, Variable

CALLS, ROWS = 100_000, 200
NOISES, SEEDS = (0.0, 0.01), 3


def law(name: str, formula: str, tokens: int, **ranges: tuple[float, float]) -> Law:
    """A law with inputs that are drawn evenly from their ranges."""
    variables = tuple(Variable(column, "uniform", *ends) for column, ends in ranges.items())
    return Law("fresh", 0, name, formula, tokens, ROWS, variables)


SECOND = (  # written down after radiation and logistic growth of the first ten had been looked at
    law("Gompertz growth", "k * exp(-3 * exp(-r * t))", 9, k=(1, 20), r=(0.2, 1), t=(0, 10)),
    law("Fermi occupation", "1 / (exp((e - m) / t) + 1)", 8, e=(0, 4), m=(1, 3), t=(0.2, 1)),
    law("square wave", "a * (sin(t) + sin(3 * t) / 3 + sin(5 * t) / 5)", 18, a=(1, 4), t=(0, 12)),
    law("tide", "2 + 1.2 * cos(0.5059 * t + 0.3) + 0.4 * cos(0.5236 * t - 1)", 19, t=(0, 400)),
    law("quartic well", "(x - 2)**4 / (y**2 + 2 * y + 5)", 13, x=(0, 5), y=(-3, 3)),
    law("steep Hill", "v * s**4 / (k**4 + s**4)", 13, v=(1, 5), s=(0.2, 3), k=(0.5, 2)),
    law("capacitor", "u * (1 - exp(-t / (r * c)))", 10, u=(1, 12), t=(0, 5), r=(0.5, 3), c=(0.5, 3)),
    law("two bells", "3 * exp(-(x - 2)**2 / 0.5) + 2 * exp(-(x - 5)**2 / 1.5)", 21, x=(0, 8)),
    law("Morse", "d * (1 - exp(-a * (r - 1.5)))**2", 11, d=(1, 5), a=(0.5, 2), r=(0.8, 4)),
    law("Weibull", "1 - exp(-(t / l)**1.7)", 9, t=(0.1, 6), l=(1, 4)),
    law("Lennard-Jones", "4 * e * ((s / r)**12 - (s / r)**6)", 15, e=(0.5, 2), s=(0.8, 1.2), r=(0.9, 2.5)),
    law("vapour pressure", "exp(2.302585 * (8.07 - 1730.63 / (t + 233.4)))", 9, t=(1, 100)),
)
LAWS = {
    own.name: own
    for own in (
        law("Hill", "v * s**2 / (k**2 + s**2)", 10, v=(1, 5), s=(0.2, 5), k=(0.5, 3)),
        law(
            "competing inhibitor",
            "v * s / (k * (1 + i / c) + s)",
            13,
            v=(1, 5),
            s=(0.2, 5),
            k=(0.5, 3),
            i=(0, 4),
            c=(0.5, 3),
        ),
        law("Arrhenius", "a * exp(-1200 * e / T)", 8, a=(1, 10), e=(0.5, 2), T=(280, 600)),
        law("radiation", "f**3 / (exp(4.8 * f / t) - 1)", 11, f=(0.2, 4), t=(1, 6)),
        law("van der Waals", "8.314 * t / (v - 0.04) - 3.6 / v**2", 14, t=(250, 500), v=(0.2, 2)),
        law("logistic growth", "k / (1 + 9 * exp(-r * t))", 11, k=(5, 50), r=(0.2, 1), t=(0, 12)),
        law(
            "Nernst",
            "e + 0.0000862 * t * log(a / b) / z",
            11,
            e=(-1, 1),
            t=(280, 350),
            a=(0.1, 5),
            b=(0.1, 5),
            z=(1, 3),
        ),
        law("drag", "0.4 * r * v + 1.7 * r**2 * v**2", 13, r=(0.1, 2), v=(0, 10)),
        law("beat", "2 * sin(5 * t) + 1.5 * sin(5.6 * t)", 13, t=(0, 12)),
        law("damped oscillation", "a * exp(-0.3 * t) * cos(4 * t + 0.5)", 13, a=(1, 3), t=(0, 8)),
        *SECOND,
    )
}
KEYS = [
    {"law": name, "noise": noise, "seed": seed} for seed, noise, name in product(range(SEEDS), NOISES, LAWS)
]


def run(key: Key) -> Record:
    """One search."""
    return law_runs.run(LAWS[key["law"]], key["noise"], key["seed"], CALLS)


def table(records: Sequence[Record]) -> str:
    """Shares of runs that found the law, and what the first seed wrote."""
    rows = []
    for name, own in LAWS.items():
        cells = []
        for noise in NOISES:
            found = [float(r["found"]) for r in records if (r["law"], r["noise"]) == (name, noise)]
            cells.append(f"{statistics.fmean(found):.0%}" if found else "-")
        wrote = [r["expression"] for r in records if (r["law"], r["noise"], r["seed"]) == (name, 0.0, 0)]
        rows.append([name, f"`{own.formula}`", *cells, f"`{wrote[0]}`" if wrote else ""])
    heads = ["law", "formula", *(f"found, noise {noise:.0%}" for noise in NOISES), "seed 0 without noise"]
    return "\n".join(["Made by `python benchmarks/fresh_laws.py`.", "", *markdown(heads, rows)])


BENCHMARK = Benchmark("fresh_laws", KEYS, run, table)
if __name__ == "__main__":
    main(BENCHMARK, __doc__)
