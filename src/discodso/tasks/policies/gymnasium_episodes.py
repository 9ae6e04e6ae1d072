"""Episodes of a tree through Gymnasium, one at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from discodso.tasks.policies.columns import Columns
from discodso.tasks.policies.environments import check_fits
from discodso.tasks.policies.leaves import ActionNumbers
from discodso.tasks.policies.making import Environment, make
from discodso.tasks.policies.observations import flat
from discodso.tasks.policies.scoring import Scoring
from discodso.tasks.policies.tree import action_of

EpisodeFunction = Callable[[Any, Columns, int, int], float]  # environment, tree, seed and steps to the return


def plain_episode(
    env: Any,
    tree: Columns,
    seed: int,
    max_steps: int,
    numbers: ActionNumbers | None = None,
    scoring: Scoring | None = None,
) -> float:
    """The return of one episode through `env.step`, or its score; ValueError for observations or rewards that are
    no numbers."""
    observation, _ = env.reset(seed=seed)
    total, rewards, infos = 0.0, list[float](), list[Any]()
    for _ in range(max_steps):
        x = flat(observation)
        if math.isnan(sum(x)) and any(math.isnan(number) for number in x):
            raise ValueError(f"the environment gave an observation with NaN, seed {seed}")
        observation, reward, terminated, truncated, info = env.step(action_of(tree, numbers, x))
        try:
            total += float(reward)
        except (TypeError, ValueError):
            raise ValueError(f"the environment gave a reward that is no number, {reward!r:.60}") from None
        if scoring is not None:
            rewards.append(float(reward))
            infos.append(info)
        if terminated or truncated:
            break
    if not math.isfinite(total):
        raise ValueError(f"the rewards of an episode add up to {total}, seed {seed}")
    return total if scoring is None else scoring.of(rewards, infos)


def opened(environment: Environment, scoring: Scoring | None = None) -> tuple[Any, EpisodeFunction]:
    """An environment, and what runs an episode in it."""
    env = make(environment)
    numbers = check_fits(env, environment).numbers
    return env, partial(
        plain_episode, numbers=numbers, scoring=scoring
    ) if numbers or scoring else plain_episode
