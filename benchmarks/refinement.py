"""Ways to refine values without derivatives: the CMA-ES that discodso has, the package cma and a pattern search.

Alone, from the same starts, with the same number of objective calls: the best of 50 random designs of a filter or
a mirror (examples/) with at least three values, or a random point of a test function in ten numbers between 0 and
1. Then within the default method, where skeletons compete and values are found by policy and variation too.

    python benchmarks/refinement.py             makes what results/refinement.jsonl lacks (minutes), and its table
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from harness import Benchmark, Key, Record, grid, main, shown
from ladder_filter import butterworth, ladder_task
from mirror_coating import coating_task

from discodso import preset, search
from discodso.base.arrays import Floats, Ints
from discodso.disco.proposers import refinement
from discodso.disco.proposers.refinement import LocalSearch
from discodso.disco.sampling import sample
from discodso.disco.uniform import UniformStepper
from discodso.run.task import Task
from discodso.space.skeletons import fill, parameters, units_of

CALLS, SEEDS = 300, 20  # of a search alone
WHOLE_CALLS, WHOLE_SEEDS = 5_000, 10
STEP = 0.1  # the first, of all of them

# Units float[n, N] between 0 and 1, to rewards float[n].
Objective = Callable[[Floats], Floats]
# Of a seed: an objective, where its search begins, and the reward there.
Problem = Callable[[int], tuple[Objective, Floats, float]]


class Counted:
    """An objective with its calls; more than there may be are not answered."""

    def __init__(self, objective: Objective, best: float) -> None:
        self._objective = objective
        self.calls, self.best = 0, best

    @property
    def left(self) -> int:
        """Calls."""
        return CALLS - self.calls

    def __call__(self, units: Floats) -> Floats:
        """Rewards, -inf for those that were too many."""
        rewards = np.full(len(units), -np.inf)
        count = min(len(units), self.left)
        rewards[:count] = self._objective(np.clip(units[:count], 0, 1))
        self.calls += count
        self.best = max(self.best, float(rewards.max(initial=-np.inf)))
        return rewards


@dataclass(frozen=True)
class PatternSearch:
    """Steps of its own length for each number, up or down: longer after a gain, half as long after two without.

    What several numbers gained alone is tried together with the next generation. It can stand for `LocalSearch`.
    """

    tokens: Ints
    options: Ints
    mean: Floats
    steps: Floats
    signs: Floats
    losses: Ints
    together: Floats
    spread: Floats
    units: Floats
    rewards: Floats
    best: float

    @classmethod
    def begin(
        cls, tokens: Ints, options: Ints, units: Floats, reward: float, low: Floats, high: Floats
    ) -> PatternSearch:
        """A search round one design."""
        n, spread = len(units), high - low
        zeros, nothing = np.zeros(n), (np.empty((0, n)), np.empty(0))
        moves = STEP * spread, np.ones(n), zeros.astype(int), zeros, spread
        return cls(tokens, options, units, *moves, *nothing, reward)

    @property
    def generation_size(self) -> int:
        """As that of CMA-ES."""
        return 4 + int(3 * math.log(len(self.mean)))

    @property
    def done(self) -> bool:
        """Whether its steps are tiny."""
        return bool((self.steps / self.spread).max() < 1e-6)

    def propose(self, count: int, rng: np.random.Generator, modelled: bool = False) -> Floats:
        """units[count, N]: what gained, together; then each number, up, down, and by half."""
        tried = [self.mean + self.together] if self.together.any() else []
        turn = 0
        while len(tried) < count:
            for place in rng.permutation(len(self.mean)).tolist():
                moved = self.mean.copy()
                moved[place] += (-1.0) ** turn * 0.5 ** (turn // 2) * self.signs[place] * self.steps[place]
                tried.append(moved)
            turn += 1
        return np.array(tried[:count])

    def distance(self, units: Floats) -> float:
        """How far a design is, in steps."""
        return float(np.linalg.norm((units - self.mean) / self.steps))

    def told(self, units: Floats, rewards: Floats) -> PatternSearch:
        """After units[M, N] with rewards[M], those not finite being failed."""
        units = np.concatenate((self.units, units))
        rewards = np.concatenate((self.rewards, np.where(np.isfinite(rewards), rewards, -np.inf)))
        moves = units - self.mean
        alone = (np.abs(moves) > 1e-12).sum(axis=1) == 1
        places = np.abs(moves).argmax(axis=1)
        steps, signs, losses = self.steps.copy(), self.signs.copy(), self.losses.copy()
        together = np.zeros(len(steps))
        for place in np.unique(places[alone]).tolist():
            rows = np.flatnonzero(alone & (places == place))
            top = rows[rewards[rows].argmax()]
            if rewards[top] > self.best:
                together[place] = move = moves[top, place]
                signs[place], losses[place] = np.sign(move), 0
                steps[place] = min(0.5 * self.spread[place], 1.5 * abs(move))
            else:
                signs[place], losses[place] = -signs[place], losses[place] + len(rows)
                if losses[place] >= 2:
                    steps[place], losses[place] = steps[place] / 2, 0
        top, mean, best = int(rewards.argmax()), self.mean, self.best
        if rewards[top] > best:
            mean, best = units[top], float(rewards[top])
            together[places[top]] *= not alone[top]
        else:
            together[:] = 0.0
        return replace(
            self,
            mean=mean,
            best=best,
            steps=steps,
            signs=signs,
            losses=losses,
            together=together,
            units=units[:0],
            rewards=rewards[:0],
        )


def alone_with(kind: Any) -> Callable[[Counted, Floats, float, int], None]:
    """A search for one skeleton; anew from the best when it is done."""

    def run(objective: Counted, start: Floats, reward: float, seed: int) -> None:
        rng = np.random.default_rng(seed)
        nothing, limits = np.empty(0, np.int64), (np.zeros(len(start)), np.ones(len(start)))
        going, best = kind.begin(nothing, nothing, start, reward, *limits), (reward, start)
        while objective.left:
            units = np.clip(going.propose(going.generation_size, rng), 0, 1)
            rewards = objective(units)
            top = int(rewards.argmax())
            best = max(best, (float(rewards[top]), units[top]), key=lambda pair: pair[0])
            going = going.told(units, rewards)
            if going.done:
                going = kind.begin(nothing, nothing, best[1], best[0], *limits)

    return run


def with_cma(objective: Counted, start: Floats, reward: float, seed: int) -> None:
    """The package, with bounds; anew from the best when it is done."""
    import cma

    best, rounds = (reward, start), 0
    while objective.left:
        options = {"bounds": [0, 1], "seed": 1000 * seed + rounds + 1, "verbose": -9}
        search, rounds = cma.CMAEvolutionStrategy(best[1], STEP, options), rounds + 1
        while objective.left and not search.stop():
            units = np.array(search.ask())
            rewards = objective(units)
            top = int(rewards.argmax())
            best = max(best, (float(rewards[top]), units[top]), key=lambda pair: pair[0])
            search.tell(list(units), np.where(np.isfinite(rewards), -rewards, 1e30))


METHODS = {"discodso": alone_with(LocalSearch), "cma": with_cma, "pattern search": alone_with(PatternSearch)}
KINDS = {"discodso": LocalSearch, "pattern search": PatternSearch}  # that can work within the method


def of_task(task: Task, seed: int) -> tuple[Objective, Floats, float]:
    """Rewards by the values of one skeleton, where they begin, and the reward there."""
    space = task.space
    designs = sample(space, UniformStepper(space), 50, np.random.default_rng(seed)).designs
    enough = np.flatnonzero(parameters(space, designs.tokens).sum(axis=1) >= 3)
    rewards = _rewards(task, designs.select(enough))
    start = designs.select(enough[[int(rewards.argmax())]])
    places = parameters(space, start.tokens[0])

    def objective(units: Floats) -> Floats:
        skeletons = start.select(np.zeros(len(units), np.int64))
        whole = np.full((len(units), *places.shape), np.nan)
        whole[:, places] = units
        return _rewards(task, fill(space, skeletons, whole)[0])

    return objective, units_of(space, start)[0, places], float(rewards.max())


def _rewards(task: Task, designs: Any) -> Floats:
    if task.batch_objective is not None:
        found: Any = task.batch_objective(designs)
    else:
        assert task.objective is not None
        found = [task.objective(design) for design in designs]
    rewards: Floats = np.array(found, dtype=np.float64)
    return rewards


def of_function(rewards: Objective) -> Problem:
    """A test function, from a random point."""

    def problem(seed: int) -> tuple[Objective, Floats, float]:
        start = np.random.default_rng(seed).random(10)
        return rewards, start, float(rewards(start[None])[0])

    return problem


def bowl(units: Floats) -> Floats:
    """Axes whose weights differ by a thousand, optimum inside; log10 of the distance, negative."""
    z = units - np.linspace(0.3, 0.7, units.shape[1])
    rewards: Floats = -np.log10((10 ** np.linspace(0, 3, units.shape[1]) * z**2).sum(axis=1) + 1e-12)
    return rewards


def valley(units: Floats) -> Floats:
    """Rosenbrock's, from -2 to 2; negative log10."""
    z = 4 * units - 2
    value = (100 * (z[:, 1:] - z[:, :-1] ** 2) ** 2 + (1 - z[:, :-1]) ** 2).sum(axis=1)
    rewards: Floats = -np.log10(value + 1e-12)
    return rewards


TASKS = {"ladder filter": lambda: ladder_task(butterworth()), "mirror coating": coating_task}
PROBLEMS: dict[str, Problem] = {
    "ladder filter": lambda seed: of_task(TASKS["ladder filter"](), seed),
    "mirror coating": lambda seed: of_task(TASKS["mirror coating"](), seed),
    "bowl, -log10": of_function(bowl),
    "valley, -log10": of_function(valley),
}
START = "start"
KEYS = [
    *(
        {"part": "alone", "search": name, "problem": problem, "seed": seed}
        for problem in PROBLEMS
        for seed in range(SEEDS)
        for name in (START, *METHODS)
    ),
    *(
        {"part": "within", "search": name, "problem": task, "seed": seed}
        for name in KINDS
        for task in TASKS
        for seed in range(WHOLE_SEEDS)
    ),
]


def alone(name: str, problem: str, seed: int) -> Record:
    """The reward where a search begins, or the best after all of its calls."""
    objective, units, reward = PROBLEMS[problem](seed)
    if name == START:
        return {"best": reward}
    counted, began = Counted(objective, reward), time.process_time()
    METHODS[name](counted, units, reward, seed)
    assert counted.calls == CALLS
    return {"best": round(counted.best, 5), "cpu_seconds": time.process_time() - began}


def within(kind: Any, task: str, seed: int) -> Record:
    """Best reward of the default method with this kind of search."""
    refinement.LocalSearch = kind  # type: ignore[misc]
    try:
        method = preset("default", budget=WHOLE_CALLS)
        best = search(TASKS[task](), budget=WHOLE_CALLS, seed=seed, method=method).best
    finally:
        refinement.LocalSearch = LocalSearch  # type: ignore[misc]
    assert best is not None
    return {"best": round(best.reward, 5)}


def run(key: Key) -> Record:
    """One search."""
    warnings.filterwarnings("ignore", module="cma")
    if key["part"] == "within":
        return within(KINDS[key["search"]], key["problem"], key["seed"])
    return alone(key["search"], key["problem"], key["seed"])


def table(records: Sequence[Record]) -> str:
    """Rewards alone and within, and the CPU seconds of the searches alone."""

    def rewards(part: str, name: str, problem: str) -> str:
        kind, wanted = (part, name, problem), SEEDS if part == "alone" else WHOLE_SEEDS
        own = [r["best"] for r in records if (r["part"], r["search"], r["problem"]) == kind]
        return shown(own, wanted=wanted, digits=4)

    def cell(name: str, column: str) -> str:
        if column != "seconds":
            return rewards("alone", name, column)
        own = [r["cpu_seconds"] for r in records if r["search"] == name and "cpu_seconds" in r]
        return f"{sum(own):.1f}" if own else ""

    lines = [
        f"Alone: best reward after {CALLS} objective calls from the same start, {SEEDS} seeds, 95 % intervals;",
        f"CPU seconds of all {SEEDS * len(PROBLEMS)} runs. Made by `python benchmarks/refinement.py`.",
        "",
        *grid("search", (START, *METHODS), [*PROBLEMS, "seconds"], cell),
        "",
        f"Within the default method: best reward after {WHOLE_CALLS:,} objective calls, {WHOLE_SEEDS} seeds.",
        "",
        *grid("search", KINDS, list(TASKS), lambda name, task: rewards("within", name, task)),
    ]
    return "\n".join(lines)


BENCHMARK = Benchmark("refinement", KEYS, run, table)
if __name__ == "__main__":
    main(BENCHMARK, __doc__)
