"""Designs whose parts carry several values: the default beside Optuna's TPE, genetic programming, random search,
and CMA-ES on a structure that an engineer would fix.

Four problems of examples/: a scikit-learn pipeline, a controller for a resonant plant, a circuit that prepares a
state of three qubits, a schedule. TPE suggests tokens and values one by one, under the rules of the space
(define-by-run). CMA-ES has these structures: scaler and SVR; PID, notch and low pass; three layers of rotations
with two rows of controlled nots between them; and for the schedule keys by which jobs are ordered, a key for the
machine, and waits. The pipeline, whose calls take 20 ms each, has 2,000 calls at most, and so has TPE, whose own
time grows with the square of the calls.

    python benchmarks/designs.py                      makes what results/designs.jsonl lacks, and its table
    python benchmarks/designs.py --only calls=500     of the short searches
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from harness import Benchmark, Key, Record, grid, main, shown

from discodso import (
    Choice,
    Design,
    DesignBatch,
    GPSettings,
    Integer,
    MethodSettings,
    RandomSettings,
    Space,
    Task,
    search,
)
from discodso.space.skeletons import fill, parameters

SEEDS = 8
PROBLEMS = ("pipeline", "controller", "circuit", "schedule")
METHODS = ("default", "TPE", "genetic programming", "random search", "CMA-ES, fixed structure")
CALLS = (500, 2_000, 10_000)
KEYS = [
    {"problem": problem, "method": method, "calls": calls, "seed": seed}
    for seed in range(SEEDS)
    for calls in CALLS
    for problem in PROBLEMS
    for method in METHODS
    if calls <= (2_000 if problem == "pipeline" or method == "TPE" else 10_000)
]


def task_of(problem: str) -> Task:
    """A problem of the examples."""
    import job_schedule
    import pid_controller
    import pipeline
    import quantum_circuit

    made: dict[str, Callable[[], Task]] = {
        "pipeline": pipeline.task,
        "controller": pid_controller.task,
        "circuit": quantum_circuit.state_task,
        "schedule": job_schedule.task,
    }
    return made[problem]()


def rated(task: Task) -> Callable[[Design], float]:
    """The objective of a task; the worst reward for a design that fails."""

    def reward(design: Design) -> float:
        assert task.objective is not None
        try:
            return float(task.objective(design))
        except Exception:
            return task.worst_reward

    return reward


# ------------------------------------------------------------------------------------------------ peers


def tpe(task: Task, calls: int, seed: int) -> float:
    """Optuna's TPE, a suggestion for every token and value."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space, reward = task.space, rated(task)

    def objective(trial: Any) -> float:
        return reward(suggested(space, trial))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.optimize(objective, n_trials=calls)
    return float(study.best_value)


def suggested(space: Space, trial: Any) -> Design:
    """A design by the suggestions of a trial; a token is chosen from those that the rules leave."""
    library, prefix, parts = space.library, space.start(1), list[Any]()
    while len(prefix):
        options, position = space.options(prefix), prefix.position
        allowed = [library.names[k] for k in np.flatnonzero(~options.forbidden[0])]
        name = allowed[0]
        if len(allowed) > 1:
            name = trial.suggest_categorical(f"{position}: {' '.join(allowed)}", allowed)
        token = library.id(name)
        values = np.full(library.slots, np.nan)
        chosen = {}
        for slot, (own, value) in enumerate(library.tokens[token].values):
            label = f"{position} {name} {own}"
            if isinstance(value, Choice):
                chosen[own] = trial.suggest_categorical(label, list(value.options))
            elif isinstance(value, Integer):
                chosen[own] = trial.suggest_int(label, value.low, value.high, log=value.log)
            else:
                chosen[own] = trial.suggest_float(label, value.low, value.high, log=value.log)
            number = value.encode(chosen[own])
            assert number is not None
            values[slot] = number
        if token != library.end:
            parts.append((name, chosen) if chosen else name)
        prefix = prefix.advance(np.array([token]), library.narrow(values[None]))
    return Design.of(*parts)


FIXED: dict[str, list[Any]] = {
    "pipeline": [("scale", {"how": "standard"}), "svr"],
    "controller": ["pid", "notch", "lowpass"],
    "circuit": [
        *((gate, {"qubit": qubit}) for qubit in range(3) for gate in ("ry", "rz")),
        *(("cx", {"pair": pair}) for pair in ("0-1", "1-2")),
        *((gate, {"qubit": qubit}) for qubit in range(3) for gate in ("ry", "rz")),
        *(("cx", {"pair": pair}) for pair in ("0-1", "1-2")),
        *(("ry", {"qubit": qubit}) for qubit in range(3)),
    ],
}


def fixed_structure(problem: str, task: Task) -> tuple[int, Callable[[Any], Design]]:
    """How many numbers in [0, 1] a fixed structure has, and the design that they make."""
    if problem == "schedule":
        return 3 * len(task.space.library), by_keys
    space = task.space
    options = [item if isinstance(item, tuple) else (item, {}) for item in FIXED[problem]]
    library, width = space.library, space.grammar.max_positions
    tokens = np.full((1, width), -1, np.int64)
    values = np.full((1, width, library.slots), np.nan)
    ids = [library.id(name) for name, _ in options] + ([] if library.end is None else [library.end])
    tokens[0, : len(ids)] = ids
    for at, (name, given) in enumerate(options):
        for own, option in given.items():
            slot = library.place(name, own)[1]
            values[0, at, slot] = library.tokens[ids[at]].values[slot][1].encode(option)
    skeleton = DesignBatch(library, tokens, library.narrow(values), np.array([len(ids)]), space)
    places = parameters(space, tokens)

    def design(point: Any) -> Design:
        units = np.full(places.shape, np.nan)
        units[places] = point
        made: Design = fill(space, skeleton, units)[0][0]
        return made

    return int(places.sum()), design


def by_keys(point: Any) -> Design:
    """A schedule: of the jobs that may come the one with the largest key is next."""
    from job_schedule import BEFORE, HOURS

    jobs, parts, done = list(HOURS), [], set[str]()
    order, machine, wait = np.asarray(point).reshape(3, len(jobs))
    while len(done) < len(jobs):
        ready = [k for k, job in enumerate(jobs) if job not in done and BEFORE.get(job) in (None, *done)]
        k = max(ready, key=lambda k: order[k])
        parts.append(
            (jobs[k], {"machine": "A" if machine[k] < 0.5 else "B", "wait": 6 * float(wait[k]) ** 2})
        )
        done.add(jobs[k])
    return Design.of(*parts)


def cma_es(problem: str, task: Task, calls: int, seed: int) -> float:
    """CMA-ES on the numbers of a fixed structure, with restarts that double the population."""
    import cma

    count, design = fixed_structure(problem, task)
    reward, rng = rated(task), np.random.default_rng(seed)
    best, spent, population = -np.inf, 0, 4 + int(3 * np.log(count))
    while spent < calls:
        options = {
            "bounds": [0, 1],
            "popsize": population,
            "seed": int(rng.integers(1, 2**31)),
            "verbose": -9,
        }
        strategy = cma.CMAEvolutionStrategy(rng.random(count), 0.3, options)
        while not strategy.stop() and spent < calls:
            points = strategy.ask()
            rewards = [reward(design(point)) for point in points]
            strategy.tell(points, [-r for r in rewards])
            counted = rewards[: calls - spent]
            best, spent = max(best, *counted), spent + len(counted)
        population *= 2
    return float(best)


def run(key: Key) -> Record:
    """One search."""
    problem, method, calls, seed = (key[field] for field in ("problem", "method", "calls", "seed"))
    task = task_of(problem)
    if method == "TPE":
        best = tpe(task, calls, seed)
    elif method.startswith("CMA-ES"):
        best = cma_es(problem, task, calls, seed)
    else:
        settings: dict[str, MethodSettings] = {
            "genetic programming": GPSettings(population=100),
            "random search": RandomSettings(100),
        }
        result = search(task, budget=calls, seed=seed, method=settings.get(method))
        assert result.best is not None
        best = result.best.reward
    return {"best": round(best, 5)}


def table(records: Sequence[Record]) -> str:
    """Mean rewards with their intervals."""
    lines = ["Mean best reward and its 95 % interval. Made by `python benchmarks/designs.py`.", ""]
    for calls in CALLS:

        def cell(method: str, problem: str, calls: int = calls) -> str:
            own = [
                r["best"]
                for r in records
                if (r["calls"], r["method"], r["problem"]) == (calls, method, problem)
            ]
            return shown(own, wanted=SEEDS, digits=3)

        lines += [f"## {calls:,} calls, {SEEDS} seeds", "", *grid("method", METHODS, PROBLEMS, cell), ""]
    return "\n".join(lines)


BENCHMARK = Benchmark("designs", KEYS, run, table)
if __name__ == "__main__":
    main(BENCHMARK, __doc__)
