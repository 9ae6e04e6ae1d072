"""Requirements: the default told violations, beside a penalty of one's own and Optuna's TPE with constraints.

Two problems whose feasible designs are rare (fewer than one of 1,000 random ones). The mirror: as thin as can be,
with an error of the reflectance of at most 0.25. The ladder filter: as little inductance as can be, in microhenry,
with an error of the response of at most 3 dB. The same search is told

    violations    Measured(-cost, violation=...)
    a penalty     -cost - weight * violation, by a weight that someone might choose: 10 or 1,000
    failures      NaN for all that is not feasible

TPE has its `constraints_func`, and suggests tokens and values one by one, as in designs.py. A run without a
feasible design counts as the worst cost there can be.

    python benchmarks/requirements.py       makes what results/requirements.jsonl lacks, and its table
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from designs import suggested
from fronts import problem_of
from harness import Benchmark, Key, Record, grid, main, shown

from discodso import Design, DesignBatch, Measured, Space, Task, search

SEEDS, TPE_SEEDS = 4, 1
CALLS = 1_000
PROBLEMS = ("mirror", "ladder")
PENALTIES = {"a penalty of 10": 10.0, "a penalty of 1,000": 1_000.0}
TPE = "Optuna, TPE with constraints"
METHODS = ("violations", *PENALTIES, "failures", TPE)
LIMITS = {"mirror": 0.25, "ladder": 3.0}
WORST = {"mirror": 1.2, "ladder": 100.0}
KEYS = [
    {"problem": problem, "method": method, "calls": CALLS, "seed": seed}
    for seed in range(SEEDS)
    for method in METHODS
    for problem in PROBLEMS
    if method != TPE or seed < TPE_SEEDS
]


def rater(problem: str) -> tuple[Space, Any]:
    """The space, and a function of designs to their costs and violations."""
    space, rated, _ = problem_of(problem)

    def inductance(design: Design) -> float:
        henry = float(sum(value for kind, value in design if kind.endswith("_L")))
        return min(WORST["ladder"], 1e6 * henry)

    def rate(designs: DesignBatch) -> tuple[Any, Any]:
        found = rated(designs)
        cost = found[:, 1]
        if problem == "ladder":
            cost = np.array([inductance(design) for design in designs])
        return cost, found[:, 0] - LIMITS[problem]

    return space, rate


def by_tpe(problem: str, seed: int) -> list[tuple[float, float]]:
    """Costs and violations of what Optuna evaluates."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space, rate = rater(problem)
    found: list[tuple[float, float]] = []

    def objective(trial: Any) -> float:
        cost, violation = rate(space.encode([suggested(space, trial)]))
        found.append((float(cost[0]), float(violation[0])))
        trial.set_user_attr("violation", found[-1][1])
        return found[-1][0]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler = optuna.samplers.TPESampler(
            seed=seed, multivariate=True, group=True, constraints_func=lambda t: (t.user_attrs["violation"],)
        )
        optuna.create_study(sampler=sampler).optimize(objective, n_trials=CALLS)
    return found


def by_search(problem: str, method: str, seed: int) -> list[tuple[float, float]]:
    """Costs and violations of what the default evaluates."""
    space, rate = rater(problem)
    found: list[tuple[float, float]] = []

    def objective(designs: DesignBatch) -> Any:
        cost, violation = rate(designs)
        found.extend(zip(cost.tolist(), violation.tolist(), strict=True))
        if method == "violations":
            return Measured(-cost, violation=violation)
        if method == "failures":
            return np.where(violation > 0, math.nan, -cost)
        return -cost - PENALTIES[method] * np.maximum(0, violation)

    search(Task(space, batch_objective=objective), budget=CALLS, seed=seed, on_failure="continue")
    return found


def run(key: Key) -> Record:
    """One search: the least cost of a feasible design, and the call of the first one."""
    problem, method, seed = key["problem"], key["method"], key["seed"]
    found = by_tpe(problem, seed) if method == TPE else by_search(problem, method, seed)
    calls = [call for call, (_, violation) in enumerate(found, start=1) if violation <= 0]
    least = min((found[call - 1][0] for call in calls), default=WORST[problem])
    return {"cost": round(least, 5), "first": calls[0] if calls else None, "feasible": len(calls)}


def table(records: Sequence[Record]) -> str:
    """Mean least costs with their intervals, and how soon a feasible design came."""

    def own(method: str, problem: str) -> list[Record]:
        return [r for r in records if (r["method"], r["problem"]) == (method, problem)]

    def cost(method: str, problem: str) -> str:
        wanted = TPE_SEEDS if method == TPE else SEEDS
        return shown([r["cost"] for r in own(method, problem)], wanted, 3 if problem == "mirror" else 1)

    def first(method: str, problem: str) -> str:
        runs = own(method, problem)
        calls = sorted(CALLS if r["first"] is None else r["first"] for r in runs)
        if not runs:
            return "-"
        reached = sum(r["first"] is not None for r in runs)
        return f"{reached} of {len(runs)}; {calls[len(calls) // 2]}; {np.mean([r['feasible'] for r in runs]):.0f}"

    return "\n".join(
        [
            f"Least cost of a feasible design after {CALLS:,} calls: mean and its 95 % interval. Micrometres of "
            "the mirror, microhenry of the ladder.",
            "Made by `python benchmarks/requirements.py`.",
            "",
            *grid("told", METHODS, PROBLEMS, cost),
            "",
            "Runs with a feasible design; the call of the first, median; feasible designs, mean:",
            "",
            *grid("told", METHODS, PROBLEMS, first),
        ]
    )


BENCHMARK = Benchmark("requirements", KEYS, run, table)
if __name__ == "__main__":
    main(BENCHMARK, __doc__)
