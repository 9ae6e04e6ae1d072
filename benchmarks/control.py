"""Cost of tree policies: one objective call against a plain Gymnasium loop, racing, and a whole search.

One call is the mean return of one tree over 100 episodes with fresh seeds, everything included: for the compiled
environments also their share of drawing the pool of initial states, spread over the calls of a default search.
The loop is what people write: reset, act, step. Both sides run in one process on one core, alternately, and the
best of several counts (CPU time).

    python benchmarks/control.py           prints, and writes benchmarks/results/control.json
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from harness import write_result

from discodso import DisCo, search_policy
from discodso.run.evaluation import child_seeds
from discodso.tasks.policies.environments import describe
from discodso.tasks.policies.episodes import open_runner
from discodso.tasks.policies.making import as_environment
from discodso.tasks.policies.objective import TreeObjective
from discodso.tasks.policies.policy_kind import default_settings
from discodso.tasks.policies.racing import Racing
from discodso.tasks.policies.tree import Forest
from discodso.tasks.policies.tree_policy import TreePolicy
from discodso.tasks.policies.tree_space import SEARCH_SEEDS, search_seeds, tree_space

EPISODES, DEFAULT_CALLS = 100, 10_000
RISK_FACTOR = 0.2  # share of a batch that is told apart exactly
COMPILED = ("CartPole-v1", "MountainCar-v0", "Acrobot-v1", "LunarLander-v3")


def leaf(action: int) -> dict[str, Any]:
    """A leaf."""
    return {"action": action}


def split(feature: int, threshold: float, left: Any, right: Any) -> dict[str, Any]:
    """A decision."""
    return {"feature": feature, "threshold": threshold, "left": left, "right": right}


# Small trees that act sensibly, so that episodes have the lengths that a search meets.
TREES = {
    "CartPole-v1": split(3, 0.0, split(2, 0.06, leaf(0), leaf(1)), split(2, -0.06, leaf(0), leaf(1))),
    "MountainCar-v0": split(1, 0.0, leaf(0), leaf(2)),
    "Acrobot-v1": split(4, 0.0, leaf(2), leaf(0)),
    "LunarLander-v3": split(3, -0.2, leaf(2), split(4, 0.0, leaf(1), leaf(3))),
}


def plain_loop(env: Any, policy: TreePolicy, seeds: range) -> float:
    """Mean return by the loop that people write."""
    totals = []
    for seed in seeds:
        observation, _ = env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(policy.act(observation))
            total += float(reward)
            over = terminated or truncated
        totals.append(total)
    return float(np.mean(totals))


def best_of(measure: Callable[[], float], rounds: int) -> float:
    """The shortest of several times."""
    return min(measure() for _ in range(rounds))


def timed(clock: Callable[[], float], work: Callable[[], object]) -> float:
    """Seconds of some work."""
    start = clock()
    work()
    return clock() - start


def compiled_call(environment: str) -> dict[str, Any]:
    """One call by the compiled simulator against the plain loop."""
    policy = TreePolicy.from_dict(TREES[environment])
    drawn = timed(
        time.process_time, lambda: open_runner(as_environment(environment), pool=search_seeds(0)).__enter__()
    )
    with open_runner(as_environment(environment), pool=search_seeds(0)) as runner:
        forest, tree = Forest.of([policy]), np.zeros(EPISODES, np.int64)
        rng = np.random.default_rng(0)
        env = gymnasium.make(environment)
        first = search_seeds(0)[0]

        def call() -> float:
            seeds = first + rng.choice(SEARCH_SEEDS, EPISODES, replace=False)
            return float(runner.returns(forest, tree, seeds)[0].mean())

        call()
        ours, theirs = [], []
        for number in range(5):
            seeds = range(1_000_000 + number * EPISODES, 1_000_000 + (number + 1) * EPISODES)
            theirs.append(timed(time.process_time, partial(plain_loop, env, policy, seeds)))
            ours.append(best_of(lambda: timed(time.process_time, call), 20))
        same = float(runner.returns(forest, tree, np.arange(EPISODES))[0].mean())
        assert same == plain_loop(env, policy, range(EPISODES))
    share = drawn / DEFAULT_CALLS
    return {
        "gymnasium_seconds": round(min(theirs), 4),
        "call_milliseconds": round(1e3 * (min(ours) + share), 3),
        "of_which_pool_milliseconds": round(1e3 * share, 3),
        "ratio": round(min(theirs) / (min(ours) + share), 1),
        "mean_return": round(same, 2),
    }


def racing_cost(environment: str, updates: int) -> dict[str, Any]:
    """What racing saves and what it changes, on batches after some updates: the same seeds with and without it."""
    interface = describe(as_environment(environment))
    space = tree_space(interface)
    settings = default_settings()
    racing = Racing(share=RISK_FACTOR)
    seeds = search_seeds(0)
    with open_runner(interface.environment, pool=seeds) as runner:
        whole = TreeObjective(interface, space, runner, seeds, EPISODES, None)
        raced = TreeObjective(interface, space, runner, seeds, EPISODES, racing)
        disco = DisCo(space, settings, seed=0)
        root = np.random.SeedSequence(0)
        for update in range(updates):
            designs = disco.ask()
            disco.tell(designs, raced(designs, child_seeds(root, update * 100, 100)).rewards)
        rows = []
        for number in range(20):
            designs = disco.ask()
            calls = child_seeds(np.random.SeedSequence(1), number * 100, 100)
            full, short = whole(designs, calls), raced(designs, calls)
            keep = round(RISK_FACTOR * 100)
            top = set(np.argsort(-full.rewards, kind="stable")[:keep].tolist())
            kept = set(np.argsort(-short.rewards, kind="stable")[:keep].tolist())
            rows.append(
                (
                    short.cost / full.cost,
                    len(top & kept) / keep,
                    np.sort(short.rewards)[-keep:].mean() - np.sort(full.rewards)[-keep:].mean(),
                    float(full.rewards.std()),
                )
            )
    share, overlap, bias, spread = np.array(rows).mean(axis=0)
    return {
        "after_updates": updates,
        "share_of_episodes": round(float(share), 3),
        "top_designs_kept": round(float(overlap), 3),
        "bias_of_top_mean": round(float(bias), 3),
        "spread_of_rewards": round(float(spread), 2),
    }


def search_speed() -> dict[str, Any]:
    """A whole search on CartPole, default settings."""
    found = {}
    for name, racing in (("racing", True), ("all episodes", False)):
        start = time.process_time()
        result = search_policy("CartPole-v1", budget=5000, seed=0, racing=racing)
        seconds = time.process_time() - start
        found[name] = {
            "calls_per_second": round(result.calls / result.search.seconds),
            "episodes": result.episodes,
            "cpu_seconds_with_choice_and_test": round(seconds, 1),
        }
    return found


def main() -> None:
    """Measure, print, write."""
    result = {
        "call": {name: compiled_call(name) for name in COMPILED},
        "racing": {name: [racing_cost(name, updates) for updates in (0, 50)] for name in COMPILED[:3]},
        "search_on_cartpole": search_speed(),
    }
    write_result("control", result, f"Gymnasium {gymnasium.__version__}")


if __name__ == "__main__":
    main()
