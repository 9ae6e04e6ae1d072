"""Several objectives: hypervolume of the default beside NSGA-II, Optuna's NSGA-II and TPE, and random search.

Five problems whose designs have no fixed length: the ladder filter (error in dB, number of parts), the mirror
(error of the reflectance, thickness), and ZDT1 to 3 (Zitzler, Deb and Thiele) with a sequence of tokens in place
of the vector: g counts how far values are from 0, how many tokens are not the wanted ones and how far the length
is from 12. Optuna suggests tokens and values one by one, under the rules of the space, as in designs.py.
Hypervolumes are those down to one point for each problem. TPE, whose own time grows with the square of the calls,
has 2,000 calls at most and fewer seeds.

    python benchmarks/fronts.py                       makes what results/fronts.jsonl lacks, and its table
    python benchmarks/fronts.py --only calls=2000     of the short searches
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from designs import suggested
from harness import Benchmark, Key, Record, gaps, grid, main, shown, signed_gap

from discodso import (
    Design,
    DesignBatch,
    MethodSettings,
    NSGA2Settings,
    OpenSequence,
    RandomSettings,
    Space,
    Task,
    Token,
    search,
)
from discodso.base.dominance import hypervolume

SEEDS, TPE_SEEDS = 10, 3
PROBLEMS = ("ladder", "mirror", "zdt1", "zdt2", "zdt3")
OPTUNA = ("Optuna, NSGA-II", "Optuna, TPE")
METHODS = ("default", "NSGA-II", *OPTUNA, "random search")
CALLS = (2_000, 10_000)
KEYS = [
    {"problem": problem, "method": method, "calls": calls, "seed": seed}
    for calls in CALLS
    for seed in range(SEEDS)
    for method in METHODS
    for problem in PROBLEMS
    if method != "Optuna, TPE" or (calls == 2_000 and seed < TPE_SEEDS)
]
# Values of the objectives to minimise, and the point down to which hypervolumes count.
Rated = Callable[[DesignBatch], Any]
WANTED = 12  # tokens


def ladder() -> tuple[Space, Rated, tuple[float, float]]:
    """Error of the response in dB, number of parts."""
    from ladder_filter import butterworth, decibels, ladder_task, response

    target = decibels(butterworth())

    def rated(designs: DesignBatch) -> Any:
        errors = [np.sqrt(np.mean((decibels(response(design)) - target) ** 2)) for design in designs]
        return np.stack((errors, designs.design_lengths()), axis=1)

    return ladder_task(butterworth()).space, rated, (30.0, 9.0)


def mirror() -> tuple[Space, Rated, tuple[float, float]]:
    """Error of the reflectance, thickness in micrometres."""
    from mirror_coating import COUNTS, coating_task, spectra
    from mirror_coating import WANTED as REFLECTANCE

    def rated(designs: DesignBatch) -> Any:
        error = np.sqrt(np.mean((spectra(designs) - REFLECTANCE)[:, COUNTS] ** 2, axis=1))
        return np.stack((error, np.nansum(designs.values, axis=1) / 1000), axis=1)

    return coating_task().space, rated, (0.6, 1.2)


def zdt(number: int) -> tuple[Space, Rated, tuple[float, float]]:
    """The first value is f1, and all others are to be those that make g small."""
    tokens = [Token(name, range=(0, 1)) for name in "abc"]
    moved: dict[str, Callable[[float], float]] = {
        "a": lambda x: x,
        "b": lambda x: 1 - x,
        "c": lambda x: 2 * abs(x - 0.5),
    }

    def one(design: Design) -> tuple[float, float]:
        (_, first), *rest = list(design)
        far = statistics.fmean(moved[name](value) for name, value in rest)
        others = statistics.fmean(name != "abc"[place % 3] for place, (name, _) in enumerate(rest))
        g = 1 + 4 * far + 2 * others + 0.25 * abs(len(design) - WANTED)
        share = first / g
        shape = {
            1: 1 - np.sqrt(share),
            2: 1 - share**2,
            3: 1 - np.sqrt(share) - share * np.sin(10 * np.pi * first),
        }
        return first, g * float(shape[number])

    def rated(designs: DesignBatch) -> Any:
        return np.array([one(design) for design in designs])

    return Space(tokens, OpenSequence(2, 20)), rated, (1.1, 6.0)


def problem_of(name: str) -> tuple[Space, Rated, tuple[float, float]]:
    """The space of a problem, its objectives, and the point of its hypervolume."""
    makers = {"ladder": ladder, "mirror": mirror}
    return makers[name]() if name in makers else zdt(int(name[-1]))


def optuna_volume(name: str, method: str, calls: int, seed: int) -> float:
    """The hypervolume that a sampler of Optuna reaches."""
    import optuna

    space, rated, reference = problem_of(name)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    found: list[Any] = []

    def objective(trial: Any) -> tuple[float, ...]:
        found.append(rated(space.encode([suggested(space, trial)]))[0])
        return tuple(found[-1].tolist())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler: Any = optuna.samplers.NSGAIISampler(seed=seed)
        if method == "Optuna, TPE":
            sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True)
        study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
        study.optimize(objective, n_trials=calls)
    return hypervolume(-np.array(found), -np.array(reference))


def run(key: Key) -> Record:
    """One search."""
    name, method, calls, seed = (key[field] for field in ("problem", "method", "calls", "seed"))
    if method in OPTUNA:
        return {"hypervolume": round(optuna_volume(name, method, calls, seed), 5)}
    space, rated, reference = problem_of(name)
    task = Task(
        space,
        batch_objective=rated,
        objectives=("first", "second"),
        directions=("min", "min"),
        reference=reference,
    )
    settings: dict[str, MethodSettings] = {"NSGA-II": NSGA2Settings(), "random search": RandomSettings(100)}
    result = search(task, budget=calls, seed=seed, method=settings.get(method))
    assert result.hypervolume is not None
    return {"hypervolume": round(result.hypervolume, 5)}


def table(records: Sequence[Record]) -> str:
    """Mean hypervolumes with their intervals, and what the default has more than each peer."""
    lines = ["Mean hypervolume and its 95 % interval. Made by `python benchmarks/fronts.py`.", ""]
    for calls in CALLS:

        def found(method: str, problem: str, calls: int = calls) -> dict[int, float]:
            return {
                r["seed"]: r["hypervolume"]
                for r in records
                if (r["calls"], r["method"], r["problem"]) == (calls, method, problem)
            }

        def cell(method: str, problem: str, found: Any = found) -> str:
            digits = 1 if problem == "ladder" else 3
            wanted = TPE_SEEDS if method == "Optuna, TPE" else SEEDS
            return shown(list(found(method, problem).values()), wanted, digits)

        def more(method: str, problem: str, found: Any = found) -> str:
            pairs = gaps(found("default", problem), found(method, problem))
            mean, interval = signed_gap(pairs, 1 if problem == "ladder" else 3) if pairs else ("-", "")
            return f"{mean} ({interval})" if interval else mean

        lines += [f"## {calls:,} calls", "", *grid("method", METHODS, PROBLEMS, cell), ""]
        lines += ["What the default has more, seed by seed:", ""]
        lines += [*grid("than", METHODS[1:], PROBLEMS, more), ""]
    return "\n".join(lines)


BENCHMARK = Benchmark("fronts", KEYS, run, table)
if __name__ == "__main__":
    main(BENCHMARK, __doc__)
