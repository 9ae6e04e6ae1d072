"""Ways to refine values without derivatives: the CMA-ES that discodso has, the package cma and a pattern search.

Alone, from the same starts, with the same number of objective calls: the best of 50 random designs of a filter or
a mirror (examples/) with at least three values, or a random point of a test function in ten numbers between 0 and
1. Then within the default method, where skeletons compete and values are found by policy and variation too.

    python benchmarks/refinement.py             prints, and writes benchmarks/results/refinement.{json,md}
"""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import intervals  # type: ignore[import-not-found]
import numpy as np

from discodso import preset, search
from discodso.base.arrays import Floats, Ints
from discodso.base.files import write_atomically
from discodso.baselines.random_search import UniformProposer
from discodso.disco.proposers import refinement
from discodso.disco.proposers.refinement import LocalSearch
from discodso.disco.sampling import sample
from discodso.run.task import Task
from discodso.space.skeletons import fill, parameters, units_of

RESULTS = Path(__file__).parent / "results"
sys.path.insert(0, str(Path(__file__).parent))
CALLS, SEEDS = 300, 20  # of a search alone
WHOLE_CALLS, WHOLE_SEEDS = 5_000, 10
STEP = 0.1  # the first, of all of them

# Units float[n, N] between 0 and 1, to rewards float[n].
Objective = Callable[[Floats], Floats]


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
    def begin(cls, tokens: Ints, units: Floats, reward: float, spread: Floats) -> PatternSearch:
        """A search round one design."""
        n = len(units)
        zeros, nothing = np.zeros(n), (np.empty((0, n)), np.empty(0))
        return cls(
            tokens, units, STEP * spread, np.ones(n), zeros.astype(int), zeros, spread, *nothing, reward
        )

    @property
    def generation_size(self) -> int:
        """As that of CMA-ES."""
        return 4 + int(3 * math.log(len(self.mean)))

    @property
    def done(self) -> bool:
        """Whether its steps are tiny."""
        return bool((self.steps / self.spread).max() < 1e-6)

    def propose(self, count: int, rng: np.random.Generator) -> Floats:
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
        nothing = np.empty(0, np.int64)
        going, best = kind.begin(nothing, start, reward, np.ones(len(start))), (reward, start)
        while objective.left:
            units = np.clip(going.propose(going.generation_size, rng), 0, 1)
            rewards = objective(units)
            top = int(rewards.argmax())
            best = max(best, (float(rewards[top]), units[top]), key=lambda pair: pair[0])
            going = going.told(units, rewards)
            if going.done:
                going = kind.begin(nothing, best[1], best[0], np.ones(len(start)))

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
    designs = sample(space, UniformProposer(space), 50, np.random.default_rng(seed)).designs
    enough = np.flatnonzero(parameters(space, designs.tokens).sum(axis=1) >= 3)
    rewards = _rewards(task, designs.select(enough))
    start = designs.select(enough[[int(rewards.argmax())]])
    places = parameters(space, start.tokens[0])

    def objective(units: Floats) -> Floats:
        skeletons = start.select(np.zeros(len(units), np.int64))
        whole = np.full(skeletons.tokens.shape, np.nan)
        whole[:, places] = units
        return _rewards(task, fill(space, skeletons, whole)[0])

    return objective, units_of(space, start)[0, places], float(rewards.max())


def _rewards(task: Task, designs: Any) -> Floats:
    if task.batch_objective is not None:
        found: Any = task.batch_objective(designs)  # type: ignore[call-arg]
    else:
        assert task.objective is not None
        found = [task.objective(design) for design in designs]  # type: ignore[call-arg]
    rewards: Floats = np.array(found, dtype=np.float64)
    return rewards


def of_function(rewards: Objective) -> Callable[[int], tuple[Objective, Floats, float]]:
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


def problems() -> dict[str, Callable[[int], tuple[Objective, Floats, float]]]:
    """By name: a function of the seed."""
    from defaults import coating_task, filter_task  # type: ignore[import-not-found]

    filters, coatings = filter_task(), coating_task()
    return {
        "ladder filter": lambda seed: of_task(filters, seed),
        "mirror coating": lambda seed: of_task(coatings, seed),
        "bowl, -log10": of_function(bowl),
        "valley, -log10": of_function(valley),
    }


def within(task: Task, kind: Any) -> list[float]:
    """Best rewards of the default method with this kind of search."""
    refinement.LocalSearch = kind  # type: ignore[misc]
    try:
        method = preset("default", budget=WHOLE_CALLS)
        found = [
            search(task, budget=WHOLE_CALLS, seed=seed, method=method).best for seed in range(WHOLE_SEEDS)
        ]
    finally:
        refinement.LocalSearch = LocalSearch  # type: ignore[misc]
    return [round(best.reward, 5) for best in found if best is not None]


def shown(rewards: list[float]) -> str:
    """Mean with its interval."""
    return intervals.shown(rewards, wanted=len(rewards), digits=4)


def main() -> None:
    """All ways on all problems."""
    warnings.filterwarnings("ignore", module="cma")
    named = problems()
    found: dict[str, dict[str, list[float]]] = {name: {problem: [] for problem in named} for name in METHODS}
    start: dict[str, list[float]] = {problem: [] for problem in named}
    seconds = dict.fromkeys(METHODS, 0.0)
    for problem, make in named.items():
        for seed in range(SEEDS):
            objective, units, reward = make(seed)
            start[problem].append(reward)
            for name, method in METHODS.items():
                counted, began = Counted(objective, reward), time.process_time()
                method(counted, units, reward, seed)
                seconds[name] += time.process_time() - began
                assert counted.calls == CALLS
                found[name][problem].append(round(counted.best, 5))
        print(problem, {name: shown(found[name][problem]) for name in METHODS}, flush=True)
    from defaults import coating_task, filter_task

    tasks = {"ladder filter": filter_task(), "mirror coating": coating_task()}
    whole = {name: {p: within(task, kind) for p, task in tasks.items()} for name, kind in KINDS.items()}
    command = "python benchmarks/refinement.py"
    lines = [
        f"Alone: best reward after {CALLS} objective calls from the same start, {SEEDS} seeds, 95 % intervals;",
        f"CPU seconds of all {SEEDS * len(named)} runs. Made by `{command}`.",
        "",
        "| search | " + " | ".join(named) + " | seconds |",
        "|---" * (len(named) + 2) + "|",
        "| start | " + " | ".join(shown(start[problem]) for problem in named) + " | |",
        *(
            f"| {name} | "
            + " | ".join(shown(found[name][problem]) for problem in named)
            + f" | {seconds[name]:.1f} |"
            for name in METHODS
        ),
        "",
        f"Within the default method: best reward after {WHOLE_CALLS:,} objective calls, {WHOLE_SEEDS} seeds.",
        "",
        "| search | " + " | ".join(tasks) + " |",
        "|---" * (len(tasks) + 1) + "|",
        *(f"| {name} | " + " | ".join(shown(whole[name][p]) for p in tasks) + " |" for name in KINDS),
    ]
    table = "\n".join(lines) + "\n"
    print(table)
    data = {
        "command": command,
        "calls": CALLS,
        "start": start,
        "alone": found,
        "seconds": seconds,
        "within": whole,
    }
    write_atomically(RESULTS / "refinement.json", json.dumps(data, indent=1) + "\n")
    write_atomically(RESULTS / "refinement.md", table)


if __name__ == "__main__":
    main()
