"""With 50, 200 and 500 objective calls: the default beside Optuna's TPE and its GP sampler, SMAC3, random search,
and CMA-ES on a structure that an engineer would fix.

Eight problems: the four of benchmarks/designs.py, and four of benchmarks/fresh.py that nobody tuned on. One run of
a peer gives its best after as many calls and all fewer; the default, which depends on the budget, is run for each.
The GP sampler and SMAC3 have 200 calls at most: their own time grows faster than the calls, to many minutes for
500. Of them, and of TPE, there are short runs too, so that all seeds have at least these.

- TPE suggests tokens and values one by one under the rules of the space, multivariate and in groups.
- SMAC3 and the GP sampler have variables: a length where it is open, a token for each position, and the values
  that tokens may carry there; tokens that declare a value alike share it. A token that the rules forbid is
  replaced by the next that they allow, which costs no call. Neither is told which variables count: the GP sampler
  takes no conditions, and the local search of SMAC3 2.4 passes over all neighbours of a design that has some.
- SMAC3 has its random forest, begins with 12 designs instead of 125, fits anew after 4 calls instead of 8, and
  bounds its own search for the next design (30 steps, 2,000 random ones), which took more than a minute for one
  design of the schedule.
- CMA-ES has the structures of benchmarks/designs.py, and of STRUCTURES in benchmarks/fresh.py.

    python benchmarks/small_budgets.py                        makes what results/small_budgets.jsonl lacks, and its
                                                              table
    python benchmarks/small_budgets.py --only method=default  of the default
"""

from __future__ import annotations

import statistics
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from designs import FIXED, PROBLEMS, cma_es, rated, task_of, tpe
from fresh import FRESH, STRUCTURES
from harness import Benchmark, Key, Record, grid, half_width, main, shown

from discodso import (
    Choice,
    Design,
    FixedSequence,
    Integer,
    OpenSequence,
    RandomSettings,
    Real,
    Space,
    Task,
    search,
)

SEEDS = 10
CALLS = (50, 200, 500)
ALL = (*PROBLEMS, *FRESH)
LEAST = 3  # runs of a method that is compared
METHODS = ("default", "TPE", "GP sampler", "SMAC3", "random search", "CMA-ES, fixed structure")
SLOW = {"TPE": (200, 500), "SMAC3": (50, 200), "GP sampler": (50, 200)}  # runs of so many calls
CHEAP_FIRST = ("random search", "CMA-ES, fixed structure", "default", "TPE", "SMAC3", "GP sampler")
KEYS = [
    {"problem": problem, "method": method, "calls": calls, "seed": seed}
    for seed in range(SEEDS)
    for method in CHEAP_FIRST
    for calls in (CALLS if method == "default" else SLOW.get(method, CALLS[-1:]))
    for problem in ALL
]
# The GP sampler has whole numbers of more values as reals, rounded: 30 calls of the pipeline then took 14 s of CPU
# in place of 90 s.
FEW = 16
FIXED.update(STRUCTURES)  # where designs.py looks for them


# ------------------------------------------------------------------------------------------------ flat variables

Value = Real | Integer | Choice


class Flat:
    """A space as a fixed list of variables, and the design that their values make.

    A sequence of open length has the variable "length"; the rules then are those for designs of that length. A
    position of a tree is one in pre-order, used or not.
    """

    def __init__(self, space: Space) -> None:
        self.space, self.variables = space, dict[str, Value]()
        self._spaces = of_length(space) if isinstance(space.shape, OpenSequence) else {}
        self._shared: dict[tuple[int, str, str], str] = {}  # position, token and value to the variable
        if self._spaces:
            self.variables["length"] = Integer(min(self._spaces), max(self._spaces))
        self._names = possible(space)
        for position, names in enumerate(self._names):
            self._add(position, names)

    def _add(self, position: int, names: Sequence[str]) -> None:
        """The variables of a position."""
        if len(names) > 1:
            self.variables[f"token {position}"] = Choice(*names)
        alike: dict[tuple[str, Value], list[str]] = {}
        for name in names:
            for own, value in self.space.library.tokens[self.space.library.id(name)].values:
                alike.setdefault((own, value), []).append(name)
        for (own, value), tokens in alike.items():
            label = f"{position} {own} of {' '.join(tokens)}"
            self.variables[label] = value
            self._shared |= {(position, name, own): label for name in tokens}

    def design(self, chosen: Mapping[str, Any]) -> Design:
        """The design of values by variable, of options their numbers."""
        space = self.space
        if self._spaces:
            space = self._spaces[meant(self.variables["length"], chosen["length"])]
        library, prefix, parts = space.library, space.start(1), list[Any]()
        while len(prefix):
            position, allowed = prefix.position, ~space.options(prefix).forbidden[0]
            names, wanted = self._names[position], chosen.get(f"token {position}", 0)
            name = next(name for name in names[wanted:] + names[:wanted] if allowed[library.id(name)])
            token = library.id(name)
            values, given = np.full(library.slots, np.nan), dict[str, Any]()
            for slot, (own, value) in enumerate(library.tokens[token].values):
                given[own] = meant(value, chosen[self._shared[position, name, own]])
                number = value.encode(given[own])
                assert number is not None
                values[slot] = number
            parts.append((name, given) if given else name)
            prefix = prefix.advance(np.array([token]), library.narrow(values[None]))
        return Design.of(*parts)


def of_length(space: Space) -> dict[int, Space]:
    """The designs of an open sequence by their length; its rules look ahead to the end."""
    assert isinstance(space.shape, OpenSequence)
    tokens = [token for k, token in enumerate(space.library.tokens) if k != space.library.end]
    lengths = range(max(1, space.shape.min_length), space.shape.max_length + 1)
    return {n: Space(tokens, FixedSequence(n), space.constraints) for n in lengths}


def possible(space: Space) -> list[list[str]]:
    """The tokens that a position may have, in the order of their declaration: those that the rules allow after any
    of many random beginnings."""
    library, rng, prefix = space.library, np.random.default_rng(0), space.start(2_000)
    found = list[list[str]]()
    while len(prefix):
        allowed = (~space.options(prefix).forbidden).any(axis=0)
        found.append([library.names[k] for k in np.flatnonzero(allowed) if k != library.end])
        prefix = prefix.advance(*space.random_step(prefix, rng))
    return [names for names in found if names]  # at last there is the end alone


def meant(value: Value, chosen: Any) -> Any:
    """A value as designs have it: an option for its number, a rounded whole number."""
    if isinstance(value, Choice):
        return value.options[chosen]
    return round(chosen) if isinstance(value, Integer) else float(chosen)


# ------------------------------------------------------------------------------------------------ peers


def gp_sampler(task: Task, calls: int, seed: int) -> None:
    """Optuna's Gaussian process on all variables at once."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    flat, reward = Flat(task.space), rated(task)

    def objective(trial: Any) -> float:
        chosen = dict[str, Any]()
        for name, value in flat.variables.items():
            if isinstance(value, Choice):
                chosen[name] = trial.suggest_categorical(name, list(range(len(value.options))))
            elif isinstance(value, Integer) and value.high - value.low < FEW:
                chosen[name] = trial.suggest_int(name, value.low, value.high, log=value.log)
            else:
                chosen[name] = trial.suggest_float(name, value.low, value.high, log=value.log)
        return reward(flat.design(chosen))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler = optuna.samplers.GPSampler(seed=seed, deterministic_objective=True)
        optuna.create_study(direction="maximize", sampler=sampler).optimize(objective, n_trials=calls)


def smac3(task: Task, calls: int, seed: int) -> None:
    """SMAC3 with the random forest of its facade for hyperparameters, for which 4,096 leaves are enough."""
    from smac import HyperparameterOptimizationFacade as Facade
    from smac import Scenario
    from smac.acquisition.maximizer import LocalAndSortedRandomSearch
    from smac.model.random_forest import RandomForest

    flat, reward = Flat(task.space), rated(task)
    space = config_space(flat, seed)

    def cost(config: Any, seed: int = 0) -> float:
        return -reward(flat.design(dict(config)))

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scenario = Scenario(
            space, output_directory=Path(folder), deterministic=True, n_trials=calls, seed=seed
        )
        forest = RandomForest(
            space,
            log_y=True,
            n_trees=10,
            ratio_features=1.0,
            min_samples_split=2,
            min_samples_leaf=1,
            max_leaf_nodes=2**12,  # its 2**20 are allocated for each tree
            n_jobs=1,
            seed=seed,
        )
        Facade(
            scenario,
            cost,
            model=forest,
            acquisition_maximizer=LocalAndSortedRandomSearch(
                space, challengers=2_000, max_steps=30, seed=seed
            ),
            initial_design=Facade.get_initial_design(scenario, n_configs=CALLS[0] // 4),
            config_selector=Facade.get_config_selector(scenario, retrain_after=4),
            logging_level=False,
            overwrite=True,
        ).optimize()


def config_space(flat: Flat, seed: int) -> Any:
    """The variables of ConfigSpace."""
    import ConfigSpace as cs

    space = cs.ConfigurationSpace(seed=seed)
    for name, value in flat.variables.items():
        if isinstance(value, Choice):
            space.add(cs.CategoricalHyperparameter(name, list(range(len(value.options)))))
        elif isinstance(value, Integer):
            space.add(cs.UniformIntegerHyperparameter(name, value.low, value.high, log=value.log))
        else:
            space.add(cs.UniformFloatHyperparameter(name, value.low, value.high, log=value.log))
    return space


# ------------------------------------------------------------------------------------------------ runs


def problem_of(problem: str) -> Task:
    """An old or a fresh one."""
    return FRESH[problem]() if problem in FRESH else task_of(problem)


def recorded(task: Task) -> tuple[Task, list[float]]:
    """The same task, and the rewards of its calls as they come."""
    rewards, reward = list[float](), rated(task)

    def objective(design: Design) -> float:
        rewards.append(reward(design))
        return rewards[-1]

    return replace(task, objective=objective), rewards


def run(key: Key) -> Record:
    """One search: the best reward after so many calls."""
    problem, method, calls, seed = (key[field] for field in ("problem", "method", "calls", "seed"))
    task, rewards = recorded(problem_of(problem))
    began = time.perf_counter()
    match method:
        case "default":
            search(task, budget=calls, seed=seed)
        case "random search":
            search(task, budget=calls, seed=seed, method=RandomSettings(50))
        case "TPE":
            tpe(task, calls, seed)
        case "GP sampler":
            gp_sampler(task, calls, seed)
        case "SMAC3":
            smac3(task, calls, seed)
        case _:
            cma_es(problem, task, calls, seed)
    told = (calls,) if method == "default" else tuple(count for count in CALLS if count <= calls)
    best = {str(count): round(max(rewards[:count]), 5) for count in told}
    return {"best": best, "seconds": round(time.perf_counter() - began, 1)}


# ------------------------------------------------------------------------------------------------ table


def table(records: Sequence[Record]) -> str:
    """Mean rewards with their intervals, and who is first."""
    lines = ["Mean best reward and its 95 % interval. Made by `python benchmarks/small_budgets.py`.", ""]
    for calls in CALLS:
        by_seed: dict[tuple[str, str], dict[int, float]] = {}  # a long run begins as the short one
        for record in records:
            if str(calls) in record["best"]:
                own = by_seed.setdefault((record["method"], record["problem"]), {})
                own[record["seed"]] = record["best"][str(calls)]
        found = {names: list(own.values()) for names, own in by_seed.items()}

        def cell(method: str, problem: str, found: Mapping[Any, list[float]] = found) -> str:
            return shown(found.get((method, problem), []), wanted=SEEDS, digits=3)

        lines += [f"## {calls:,} calls, {SEEDS} seeds", "", *grid("method", METHODS, ALL, cell), ""]
        for problem in ALL:
            runs = {method: found.get((method, problem), []) for method in METHODS}
            rewards = {method: own for method, own in runs.items() if len(own) >= LEAST}
            if len(rewards) > 1:
                lines.append(f"- {problem}: {standing(rewards)}")
        lines.append("")
    return "\n".join(lines)


def standing(rewards: Mapping[str, Sequence[float]]) -> str:
    """Who has the best mean, and where the default is."""
    means = {method: statistics.fmean(own) for method, own in rewards.items()}
    first = max(means, key=lambda method: means[method])
    if first == "default":
        return "the default is first"
    if "default" not in means:
        return f"first is {first}; the default was not run yet"
    own = rewards[first]
    near = len(own) > 1 and means["default"] >= means[first] - half_width(own)
    return f"first is {first}; the default is {'within its interval' if near else 'behind its interval'}"


BENCHMARK = Benchmark("small_budgets", KEYS, run, table)
if __name__ == "__main__":
    main(BENCHMARK, __doc__)
