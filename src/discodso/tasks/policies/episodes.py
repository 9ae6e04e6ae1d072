"""Running episodes: by a compiled simulator where there is one, else through Gymnasium in worker processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium
import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.base.checks import require_integer
from discodso.base.errors import DeclarationError, EvaluationError
from discodso.tasks.policies.environments import STEP_LIMIT, as_environment, check_fits, make
from discodso.tasks.policies.simulators import Forest, Simulator, Starts, simulator_for
from discodso.tasks.policies.tree import DecisionTree, Environment
from discodso.tasks.policies.workers import InProcess, WorkerPool

_LARGEST_SEED = 2**63 - 1


class Runner(Protocol):
    """Runs episodes of one environment."""

    def returns(self, forest: Forest, tree: Ints, seeds: Ints) -> tuple[Floats, dict[int, str]]:
        """float[E], the return of each episode, NaN where it failed, and the reasons, by episode.

        Episode e runs tree[e] of the forest from `reset(seed=seeds[e])`.
        """
        ...


@dataclass(frozen=True)
class CompiledRunner:
    """Episodes by a compiled simulator.

    Attributes:
        simulator: of the environment.
        pool: starts for the seeds first, first + 1, ..., drawn once; other seeds are drawn when they are met.
        threads: to run on.
    """

    simulator: Simulator
    pool: Starts | None
    threads: int

    def returns(self, forest: Forest, tree: Ints, seeds: Ints) -> tuple[Floats, dict[int, str]]:
        """See `Runner.returns`."""
        if self.pool is not None:
            start = seeds - self.pool.seeds[0]
            if len(start) and start.min() >= 0 and start.max() < len(self.pool.seeds):
                return self.simulator.returns(forest, self.pool, tree, start, threads=self.threads), {}
        distinct, start = np.unique(seeds, return_inverse=True)
        starts = self.simulator.starts(distinct.tolist())
        return self.simulator.returns(forest, starts, tree, start, threads=self.threads), {}


@contextmanager
def open_runner(
    environment: Environment, workers: int = 1, pool: range = range(0), max_steps: int | None = None
) -> Iterator[Runner]:
    """A runner for an environment; worker processes are ended on leaving.

    Args:
        environment: which one.
        workers: processes, or threads where there is a compiled simulator.
        pool: consecutive seeds that will be used over and over.
        max_steps: steps after which an episode is cut off, for environments without a limit.
    """
    require_integer("workers", workers, 1)
    simulator = simulator_for(environment)
    if simulator is not None:
        yield CompiledRunner(simulator, simulator.starts(pool) if len(pool) else None, workers)
        return
    env = make(environment)
    check_fits(env, environment)
    limit = getattr(env.spec, "max_episode_steps", None) or max_steps or STEP_LIMIT
    env.close()
    if multiprocessing.current_process().daemon:
        yield InProcess(environment, limit)
        return
    with WorkerPool(environment, workers, limit) as running:
        yield running


def paired_returns(policies: Sequence[DecisionTree], runner: Runner, seeds: Ints) -> Floats:
    """float[len(policies), len(seeds)], returns of all policies for the same seeds, NaN for failed episodes."""
    tree = np.repeat(np.arange(len(policies)), len(seeds))
    returns, _ = runner.returns(Forest.of(policies), tree, np.tile(seeds, len(policies)))
    return returns.reshape(len(policies), len(seeds))


def returns_of(policy: DecisionTree, environment: Any, seeds: Sequence[int], workers: int = 1) -> Floats:
    """float[len(seeds)], see `DecisionTree.evaluate`."""
    wanted = as_environment(environment)
    chosen = _checked_seeds(seeds)
    check_actions(policy, wanted)
    if not len(chosen):
        return np.empty(0)
    with open_runner(wanted, workers) as runner:
        returns, reasons = runner.returns(Forest.of([policy]), np.zeros(len(chosen), np.int64), chosen)
    if reasons:
        episode, reason = next(iter(reasons.items()))
        raise EvaluationError(
            f"{len(reasons)} of {len(chosen)} episodes of {wanted} failed; seed {chosen[episode]} {reason}"
        )
    return returns


def node_shares(policy: DecisionTree, environment: Any, seeds: Sequence[int] = range(100)) -> Floats:
    """float[n], for each node the share of decisions that pass it, over the episodes of some seeds."""
    wanted = as_environment(environment)
    chosen = _checked_seeds(seeds)
    check_actions(policy, wanted)
    simulator = simulator_for(wanted)
    visits = np.zeros(len(policy), np.int64)
    if simulator is not None:
        zeros, order = np.zeros(len(chosen), np.int64), np.arange(len(chosen))
        starts = simulator.starts(chosen.tolist())
        simulator.returns(Forest.of([policy]), starts, zeros, order, visits=visits)
    else:
        _count_visits(policy, wanted, chosen, visits)
    return visits / max(1, int(visits[0]))


def _count_visits(policy: DecisionTree, environment: Environment, seeds: Ints, visits: Ints) -> None:
    env = make(environment)
    try:
        for seed in seeds.tolist():
            observation, _ = env.reset(seed=seed)
            for _ in range(STEP_LIMIT):
                node = int(policy.leaves_of(np.asarray(observation).reshape(1, -1))[0])
                action, parents = policy.jump[node], policy.parents()
                while node >= 0:
                    visits[node] += 1
                    node = parents[node]
                observation, _, terminated, truncated, _ = env.step(action)
                if terminated or truncated:
                    break
    finally:
        env.close()


def _checked_seeds(seeds: Sequence[int]) -> Ints:
    chosen = list(seeds)
    for seed in chosen:
        require_integer("seeds: each", seed, 0)
        if seed > _LARGEST_SEED:
            raise DeclarationError(f"seeds: {seed} is too large")
    return np.array(chosen, dtype=np.int64)


def check_actions(policy: DecisionTree, environment: Environment) -> None:
    """Refuse a tree whose features or actions the environment does not have."""
    env = make(environment)
    try:
        check_fits(env, environment)
        space, size = env.action_space, int(np.prod(env.observation_space.shape or ()))
        assert isinstance(space, gymnasium.spaces.Discrete)
        first, last = int(space.start), int(space.start + space.n - 1)
    finally:
        env.close()
    actions = {jump for feature, _, jump in policy.nodes if feature < 0}
    if strange := sorted(action for action in actions if not first <= action <= last):
        raise DeclarationError(
            f"the tree has action {strange[0]}, but {environment} has the actions {first} to {last}"
        )
    if max(policy.feature) >= size:
        raise DeclarationError(
            f"the tree looks at feature {max(policy.feature)}, but {environment} has only {size} (0 to {size - 1})"
        )
