"""Episodes of LunarLander without what Gymnasium does besides: its Box2D world is stepped directly.

The world, its terrain and its first state are those of Gymnasium's own `reset`. The loop below then fires the
engines and keeps the score as `LunarLander.step` does, operation by operation, so returns are equal to the last
bit; it leaves out checks of actions, arrays, and random numbers one at a time. Before it is used for the first
time in a process, whole episodes must have the returns of the installed Gymnasium.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import gymnasium
import numpy as np

from discodso.tasks.policies.environments import make
from discodso.tasks.policies.plain_episode import Nodes, PlainEpisodes
from discodso.tasks.policies.tree import Environment

_ENTRY = "gymnasium.envs.box2d.lunar_lander:LunarLander"
_CHECKED_SEEDS = range(4)
_CHECKED_STEPS = 500
# Crashes, drifts off the screen, and fires every engine.
_CHECKED_TREES: tuple[Nodes, ...] = (
    ([3, -1, 4, -1, -1], [-0.2, 0.0, 0.0, 0.0, 0.0], [2, 2, 4, 1, 3]),
    ([5, -1, 6, -1, -1], [0.0, 0.0, 0.5, 0.0, 0.0], [2, 3, 4, 2, 0]),
)


class QuickLander:
    """LunarLander-v3 as it is by default: no wind, four actions.

    Args:
        env: Gymnasium's environment, unwrapped.
    """

    def __init__(self, env: Any) -> None:
        self.env = env

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def run(self, nodes: Nodes, seed: int, max_steps: int) -> float:
        """The return of one episode of a tree."""
        from gymnasium.envs.box2d import lunar_lander as constants  # here, because it needs Box2D

        scale, fps = constants.SCALE, constants.FPS
        half_width, half_height = constants.VIEWPORT_W / scale / 2, constants.VIEWPORT_H / scale / 2
        main_power, side_power = constants.MAIN_ENGINE_POWER, constants.SIDE_ENGINE_POWER
        nozzle, away = constants.MAIN_ENGINE_Y_LOCATION / scale, constants.SIDE_ENGINE_AWAY
        side_height = constants.SIDE_ENGINE_HEIGHT
        sine, cosine, root = math.sin, math.cos, math.sqrt

        feature, threshold, jump = nodes
        env = self.env
        observation, _ = env.reset(seed=seed)
        x: list[float] = observation.tolist()
        lander, (left, right), world = env.lander, env.legs, env.world
        ground = env.helipad_y + constants.LEG_DOWN / scale
        draws = iter((env.np_random.uniform(-1.0, 1.0, size=2 * max_steps) / scale).tolist())
        position, angle, shaping = lander.position, lander.angle, env.prev_shaping
        here, above = position.x, position.y
        total = 0.0
        for _ in range(max_steps):
            node = 0
            while feature[node] >= 0:
                node = node + 1 if x[feature[node]] < threshold[node] else jump[node]
            action = jump[node]
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
            shaping = (
                -100 * root(px * px + py * py)
                - 100 * root(vx * vx + vy * vy)
                - 100 * abs(angle)
                + 10 * legs[0]
                + 10 * legs[1]
            )
            asleep = not lander.awake
            if asleep or env.game_over or abs(px) >= 1.0:
                return float(total + (100 if asleep else -100))
            total += shaping - before - fuel
            seen = (px, py, vx, vy, angle, 20.0 * lander.angularVelocity / fps, *legs)
            x = np.array(seen, np.float32).tolist()
        return float(total)


def quick_lander(environment: Environment) -> QuickLander | None:
    """For the plain LunarLander-v3 of a Gymnasium that scores as this does; None for anything else."""
    if environment.id != "LunarLander-v3" or environment.arguments:
        return None
    spec = gymnasium.spec(environment.id)
    if spec.entry_point != _ENTRY or spec.kwargs or spec.additional_wrappers:
        return None  # registered anew by someone
    return QuickLander(make(environment).unwrapped) if _is_exact() else None


@lru_cache(maxsize=1)
def _is_exact() -> bool:
    """Whether whole episodes have Gymnasium's returns, to the last bit."""
    env = make(Environment("LunarLander-v3"))
    quick, plain = QuickLander(env.unwrapped), PlainEpisodes(env)
    same = all(
        quick.run(nodes, seed, _CHECKED_STEPS) == plain.run(nodes, seed, _CHECKED_STEPS)
        for nodes in _CHECKED_TREES
        for seed in _CHECKED_SEEDS
    )
    env.close()
    return same
