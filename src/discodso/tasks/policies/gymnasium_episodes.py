"""Episodes of a tree through Gymnasium, one at a time; those of LunarLander without what Gymnasium does besides.

For LunarLander its Box2D world is stepped directly. The world, its terrain and its first state are those of
Gymnasium's own `reset`. The loop then fires the engines and keeps the score as `LunarLander.step` does, operation
by operation, so returns are equal to the last bit; it leaves out checks of actions, arrays, and random numbers one
at a time. Before it is used for the first time in a process, whole episodes must have the returns of the installed
Gymnasium.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from discodso.tasks.policies.columns import Columns, walk
from discodso.tasks.policies.environments import check_fits
from discodso.tasks.policies.leaves import ActionNumbers, Leaf
from discodso.tasks.policies.making import Environment, make, plain_spec
from discodso.tasks.policies.observations import flat
from discodso.tasks.policies.scoring import Scoring
from discodso.tasks.policies.splits import Split
from discodso.tasks.policies.tree import action_of

EpisodeFunction = Callable[[Any, Columns, int, int], float]  # environment, tree, seed and steps to the return
_ENTRY = "gymnasium.envs.box2d.lunar_lander:LunarLander"
_CHECKED_SEEDS = range(4)
_CHECKED_STEPS = 500
# Crashes, drifts off the screen, and fires every engine.
_CHECKED_TREES = (
    Columns.of(((Split(3, -0.2), 2), (Leaf(2), 0), (Split(4, 0.0), 2), (Leaf(1), 0), (Leaf(3), 0))),
    Columns.of(((Split(5, 0.0), 2), (Leaf(3), 0), (Split(6, 0.5), 2), (Leaf(2), 0), (Leaf(0), 0))),
)


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


def lander_episode(env: Any, tree: Columns, seed: int, max_steps: int) -> float:
    """The return of an episode of LunarLander-v3 as it is by default; the environment is unwrapped."""
    from gymnasium.envs.box2d import lunar_lander as constants  # here, because it needs Box2D

    scale, fps = constants.SCALE, constants.FPS
    half_width, half_height = constants.VIEWPORT_W / scale / 2, constants.VIEWPORT_H / scale / 2
    main_power, side_power = constants.MAIN_ENGINE_POWER, constants.SIDE_ENGINE_POWER
    nozzle, away = constants.MAIN_ENGINE_Y_LOCATION / scale, constants.SIDE_ENGINE_AWAY
    side_height = constants.SIDE_ENGINE_HEIGHT
    sine, cosine, root = math.sin, math.cos, math.sqrt

    observation, _ = env.reset(seed=seed)
    x: list[float] = observation.tolist()
    lander, (left, right), world = env.lander, env.legs, env.world
    ground = env.helipad_y + constants.LEG_DOWN / scale
    draws = iter((env.np_random.uniform(-1.0, 1.0, size=2 * max_steps) / scale).tolist())
    position, angle, shaping = lander.position, lander.angle, env.prev_shaping
    here, above = position.x, position.y
    total = 0.0
    for _ in range(max_steps):
        action = tree.jump[walk(tree, 0, x)]
        first, second = next(draws), next(draws)
        fuel = 0.0
        if action:
            tip, rise = sine(angle), cosine(angle)
            if action == 2:
                along = nozzle + 2 * first
                ox, oy = tip * along + -rise * second, -rise * along - tip * second
                power, place, fuel = main_power, (here + ox, above + oy), 0.30
            else:
                across = 3 * second + (action - 2) * away / scale
                ox, oy = tip * first + -rise * across, -rise * first - tip * across
                power, fuel = side_power, 0.03
                place = (here + ox - tip * 17 / scale, above + oy + rise * side_height / scale)
            lander.ApplyLinearImpulse((-ox * power, -oy * power), place, True)
        world.Step(1.0 / fps, 180, 60)
        position, velocity, angle = lander.position, lander.linearVelocity, lander.angle
        here, above = position.x, position.y
        px, py = (here - half_width) / half_width, (above - ground) / half_height
        vx, vy = velocity.x * half_width / fps, velocity.y * half_height / fps
        legs = 1.0 if left.ground_contact else 0.0, 1.0 if right.ground_contact else 0.0
        before = shaping
        shaping = -100 * root(px * px + py * py) - 100 * root(vx * vx + vy * vy) - 100 * abs(angle)
        shaping += 10 * legs[0]
        shaping += 10 * legs[1]
        asleep = not lander.awake
        if asleep or env.game_over or abs(px) >= 1.0:
            return float(total + (100 if asleep else -100))
        total += shaping - before - fuel
        seen = (px, py, vx, vy, angle, 20.0 * lander.angularVelocity / fps, *legs)
        x = np.array(seen, np.float32).tolist()
    return float(total)


def opened(environment: Environment, scoring: Scoring | None = None) -> tuple[Any, EpisodeFunction]:
    """An environment, and what runs an episode in it."""
    plain = environment.id == "LunarLander-v3" and plain_spec(environment, _ENTRY) is not None
    quick = plain and scoring is None and _is_exact()
    env = make(environment)
    if quick:
        return env.unwrapped, lander_episode
    numbers = check_fits(env, environment).numbers
    return env, partial(
        plain_episode, numbers=numbers, scoring=scoring
    ) if numbers or scoring else plain_episode


@lru_cache(maxsize=1)
def _is_exact() -> bool:
    """Whether whole episodes of LunarLander have Gymnasium's returns, to the last bit."""
    cases = [(tree, seed, _CHECKED_STEPS) for tree in _CHECKED_TREES for seed in _CHECKED_SEEDS]
    env = make(Environment("LunarLander-v3"))
    same = all(lander_episode(env.unwrapped, *case) == plain_episode(env, *case) for case in cases)
    env.close()
    return same
