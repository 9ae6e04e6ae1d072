"""Running episodes: by a compiled simulator where there is one, else through Gymnasium in worker processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.base.checks import is_integer, require, require_integer
from discodso.base.errors import DeclarationError, EvaluationError
from discodso.tasks.policies.columns import walk
from discodso.tasks.policies.environments import check_fits
from discodso.tasks.policies.making import (
    STEP_LIMIT,
    Environment,
    as_environment,
    family_of,
    frozen_arguments,
    is_named,
    make,
    step_limit,
)
from discodso.tasks.policies.observations import flat
from discodso.tasks.policies.scoring import Scoring
from discodso.tasks.policies.simulators import simulator_for
from discodso.tasks.policies.timed import Runner, TimedRunner
from discodso.tasks.policies.tree import DecisionTree, Forest, action_of
from discodso.tasks.policies.workers import Stage, WorkerPool


@contextmanager
def open_runner(
    environment: Environment, workers: int = 1, pool: range = range(0), scoring: Scoring | None = None
) -> Iterator[TimedRunner]:
    """A runner with worker processes, which are ended on leaving, or threads where there is a compiled simulator.

    `pool` has consecutive seeds that will be used over and over. With `scoring` returns are scores, which no
    compiled simulator knows.
    """
    require_integer("workers", workers, 1)
    simulator = simulator_for(environment) if scoring is None else None
    if simulator is not None:
        started = simulator.starts(pool) if len(pool) else None
        yield TimedRunner(replace(simulator, pool=started, threads=workers), workers)
        return
    with make(environment) as env:
        check_fits(env, environment)
        limit = step_limit(env)
    if multiprocessing.current_process().daemon:
        with closing(Stage(environment, limit, scoring)) as stage:
            yield TimedRunner(stage)
    else:
        with WorkerPool(environment, workers, limit, scoring) as running:
            yield TimedRunner(running, workers)


def paired_returns(policies: Sequence[DecisionTree], runner: Runner, seeds: Ints) -> Floats:
    """float[len(policies), len(seeds)], returns of all policies for the same seeds, NaN for failed episodes."""
    tree = np.repeat(np.arange(len(policies)), len(seeds))
    returns, _ = runner.returns(Forest.of(policies), tree, np.tile(seeds, len(policies)))
    return returns.reshape(len(policies), len(seeds))


def returns_of(
    policy: DecisionTree,
    environment: Any,
    seeds: Sequence[int],
    workers: int = 1,
    arguments: Mapping[str, Any] | None = None,
) -> Floats:
    """float[len(seeds)], see `TreePolicy.evaluate`."""
    wanted, chosen = environment_for(policy, environment, arguments), _checked_seeds(seeds)
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


def node_shares(policy: DecisionTree, environment: Any, seeds: Sequence[int]) -> Floats:
    """float[n], see `TreePolicy.node_shares`."""
    wanted, chosen = environment_for(policy, environment), _checked_seeds(seeds)
    simulator = simulator_for(wanted)
    visits = np.zeros(len(policy), np.int64)
    if simulator is not None:
        simulator.returns(Forest.of([policy]), np.zeros(len(chosen), np.int64), chosen, visits)
    else:
        _count_visits(policy, wanted, chosen, visits)
    for node, left, right in reversed(list(policy.decisions())):  # so far only leaves were counted
        visits[node] = visits[left] + visits[right]
    return visits / max(1, int(visits[0]))


def _count_visits(policy: DecisionTree, environment: Environment, seeds: Ints, visits: Ints) -> None:
    with make(environment) as env:
        for seed in seeds.tolist():
            observation, _ = env.reset(seed=seed)
            for _ in range(STEP_LIMIT):
                x = flat(observation)
                visits[walk(policy.columns, 0, x)] += 1
                observation, _, terminated, truncated, _ = env.step(
                    action_of(policy.columns, policy.numbers, x)
                )
                if terminated or truncated:
                    break


def _checked_seeds(seeds: Sequence[int]) -> Ints:
    chosen = list(seeds)
    for seed in chosen:
        fits = is_integer(seed) and 0 <= seed < 2**63
        require("seeds: each", seed, fits, "an integer >= 0, and below 2^63")
    return np.array(chosen, dtype=np.int64)


def environment_for(
    policy: DecisionTree, given: Any = None, arguments: Mapping[str, Any] | None = None
) -> Environment:
    """The environment to act in, the policy's own by default; refused if the policy is for another one, or if it
    lacks its features or actions. Arguments go before those that it has."""
    own = policy.environment
    if given is None and own is None:
        raise DeclarationError("the policy does not say which environment it is for; name one")
    environment = as_environment(own if given is None else given)
    if arguments:
        if environment.factory is not None:
            raise DeclarationError("arguments are for ids; make what you hand over as it should be")
        more = frozen_arguments(environment.id, arguments, DeclarationError)
        whole = tuple(sorted((dict(environment.arguments) | dict(more)).items()))
        environment = replace(environment, arguments=whole)
    ids = [each.id for each in (own, environment) if each is not None and is_named(each)]
    if len(ids) == 2 and family_of(ids[0]) != family_of(ids[1]):
        raise DeclarationError(f"the policy is for {ids[0]}, not for {ids[1]}")
    with make(environment) as env:
        fit = check_fits(env, environment)
    size, first, last = len(fit.features), fit.start, fit.start + fit.choices - 1
    theirs, mine = (0 if numbers is None else len(numbers) for numbers in (fit.numbers, policy.numbers))
    if theirs != mine:
        kinds = [f"{count} numbers" if count else "choices" for count in (mine, theirs)]
        raise DeclarationError(f"actions of the tree are {kinds[0]}, those of {environment} are {kinds[1]}")
    if strange := sorted(action for action in policy.actions if not first <= action <= last):
        raise DeclarationError(
            f"the tree has action {strange[0]}, but {environment} has the actions {first} to {last}"
        )
    if own is not None and len(policy.feature_names) not in (0, size):
        known = len(policy.feature_names)
        raise DeclarationError(f"the policy knows {known} features, {environment} has {size}")
    if policy.width > size:
        raise DeclarationError(
            f"the tree looks at feature {policy.width - 1}, but {environment} has only {size} (0 to {size - 1})"
        )
    return environment
