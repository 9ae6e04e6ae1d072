"""Environments of one's own, as small as they can be: an inventory, a thermostat, lamps, gears, a screen, a text.
And a wrapper for states that are one number, such as Taxi's.

Run from this folder, or with it on PYTHONPATH:

    discodso policy own_environments:Thermostat-v0 --leaves linear
    discodso policy own_environments:Inventory-v0 --splits oblique --leaves linear
    discodso policy FrozenLake-v1 --wrapper 'own_environments:Decoded {"sizes": [4, 4]}'

`register` at the end makes `own_environments:NAME-v0` work anywhere that this module can be imported. The last two
show what is refused, in one line: an image and a text.
"""

# ruff: noqa: D102 - `reset` and `step` are Gymnasium's
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete, Text

DAY = 24


class Inventory(gymnasium.Env[Any, Any]):
    """Goods that arrive two days after they were ordered; who finds none goes elsewhere.

    An order costs 20 whatever its size, a piece in stock 1 a day, and a sale that is missed 8.
    """

    feature_names = ("stock", "arrives tomorrow", "arrives later")
    action_names = ("order",)
    observation_space = Box(0.0, 100.0, (3,))
    action_space = Box(0.0, 60.0, (1,))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.stock, self.tomorrow, self.later = 20, 0, 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        order = round(float(action[0]))
        demand = int(self.np_random.poisson(8))
        self.stock = min(self.stock + self.tomorrow, 100)
        self.tomorrow, self.later = self.later, order
        missed = max(demand - self.stock, 0)
        self.stock = max(self.stock - demand, 0)
        return self._seen(), -(20.0 * (order > 0) + self.stock + 8.0 * missed), False, False, {}

    def _seen(self) -> Any:
        return np.array([self.stock, self.tomorrow, self.later], np.float32)


class Thermostat(gymnasium.Env[Any, Any]):
    """A room to be kept at 21 degrees by day and 17 by night, with a heater that takes its time.

    A degree off costs its square each quarter of an hour; heat costs three times as much from 17 to 21 o'clock.
    """

    feature_names = ("room", "outside", "wanted", "wanted in an hour", "hour")
    action_names = ("power",)
    observation_space = Box(
        np.array([-10, -20, 10, 10, 0], np.float32), np.array([40, 30, 30, 30, DAY], np.float32)
    )
    action_space = Box(0.0, 1.0, (1,))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.quarters = 0
        self.weather = float(self.np_random.uniform(-5.0, 10.0))
        self.room, self.warmth = 17.0 + float(self.np_random.normal()), 0.0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        power, hour = float(np.clip(action[0], 0.0, 1.0)), self._hour()
        self.warmth += 0.4 * (power - self.warmth)
        self.room += 1.6 * self.warmth - 0.05 * (self.room - self._outside())
        self.room += 0.05 * float(self.np_random.normal())
        price = 0.6 if 17 <= hour < 21 else 0.2
        cost = (self.room - self._wanted(hour)) ** 2 + price * power
        self.quarters += 1
        return self._seen(), -cost, False, False, {}

    def _hour(self) -> float:
        return (self.quarters / 4.0) % DAY

    def _outside(self) -> float:
        return self.weather + 5.0 * math.sin(2 * math.pi * (self._hour() - 9.0) / DAY)

    @staticmethod
    def _wanted(hour: float) -> float:
        return 21.0 if 6 <= hour < 22 else 17.0

    def _seen(self) -> Any:
        hour = self._hour()
        wanted = self._wanted(hour), self._wanted((hour + 1.0) % DAY)
        return np.array([self.room, self._outside(), *wanted, hour], np.float32)


class Lamps(gymnasium.Env[Any, Any]):
    """Four lamps, each to be lit while its room is used (MultiBinary); they break if they are lit for nothing."""

    observation_space = MultiBinary(4)
    action_space = MultiBinary(4)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.used = self.np_random.integers(0, 2, 4).astype(np.int8)
        return self.used.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward = float(np.sum(np.asarray(action) == self.used)) / 4
        moved = self.np_random.random(4) < 0.2
        self.used = np.where(moved, 1 - self.used, self.used).astype(np.int8)
        return self.used.copy(), reward, False, False, {}


class Gears(gymnasium.Env[Any, Any]):
    """A cart to be kept near 0 with a gear from 0 to 4 and a direction (MultiDiscrete)."""

    feature_names = ("place", "speed")
    action_names = ("gear", "direction")
    observation_space = Box(-np.inf, np.inf, (2,))
    action_space = MultiDiscrete([5, 2])

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.speed = (float(x) for x in self.np_random.normal(0, (2.0, 0.5)))
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        gear, direction = int(action[0]), 2 * int(action[1]) - 1
        self.speed += 0.05 * gear * direction + 0.05 * float(self.np_random.normal())
        self.place += 0.2 * self.speed
        return self._seen(), -abs(self.place) - 0.02 * gear, False, False, {}

    def _seen(self) -> Any:
        return np.array([self.place, self.speed], np.float32)


class Decoded(gymnasium.ObservationWrapper[Any, Any, Any]):
    """One whole number that stands for several, as a cell of a map for its row and column: these in its place.

    Args:
        env: its observation is Discrete.
        sizes: how many values each of them has; the last one counts fastest.
        names: what they are called.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], sizes: Sequence[int], names: Sequence[str] = ()) -> None:
        super().__init__(env)
        if math.prod(sizes) != getattr(env.observation_space, "n", None):
            raise ValueError(f"sizes {list(sizes)} do not make the {env.observation_space} of {env}")
        self.sizes, self.feature_names = tuple(sizes), tuple(names)
        self.observation_space = MultiDiscrete(self.sizes)

    def observation(self, observation: Any) -> Any:
        return np.array(np.unravel_index(int(observation), self.sizes))


class Screen(gymnasium.Env[Any, Any]):
    """What an Atari game looks like: four grey pictures, too many numbers for a tree."""

    observation_space = Box(0, 255, (4, 84, 84), np.uint8)
    action_space = Discrete(6)


class Riddle(gymnasium.Env[Any, Any]):
    """A text, which no threshold compares."""

    observation_space = Text(100)
    action_space = Discrete(3)


def register() -> None:
    """Make `own_environments:NAME-v0` known to Gymnasium."""
    steps = {Inventory: 100, Thermostat: 4 * DAY, Lamps: 20, Gears: 100, Screen: 100, Riddle: 10}
    for kind, limit in steps.items():
        gymnasium.register(f"{kind.__name__}-v0", entry_point=kind, max_episode_steps=limit)


register()
