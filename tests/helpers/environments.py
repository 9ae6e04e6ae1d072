"""Small environments for tests: a walk that can be dressed up in many ways, and one that makes trouble."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete


@contextmanager
def registered(name: str, kind: Any, **settings: Any) -> Iterator[str]:
    """An id for as long as it is needed; `kwargs` among the settings go to the class."""
    gymnasium.register(id=name, entry_point=kind, **settings)
    try:
        yield name
    finally:
        del gymnasium.registry[name]


def plain_view(x: float, t: int) -> Any:
    return np.array([x, t], np.float32)


class Walk(gymnasium.Env[Any, Any]):
    """A number that noise and the actions push about; each step costs its distance from 0.

    Args:
        observation_space, action_space: any.
        observe: what is seen of the number and the count of steps.
        length: steps until it is over; None for never.
    """

    def __init__(
        self,
        observation_space: Any = None,
        action_space: Any = None,
        observe: Callable[[float, int], Any] = plain_view,
        length: int | None = 20,
    ) -> None:
        self.observation_space = (
            Box(-np.inf, np.inf, (2,)) if observation_space is None else observation_space
        )
        self.action_space = Discrete(3) if action_space is None else action_space
        self.observe = observe
        self.length = length

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.x, self.t, self.seed = float(self.np_random.normal()), 0, seed
        return self.observe(self.x, self.t), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        push = (action - self.action_space.start) - (self.action_space.n - 1) / 2
        self.x += 0.5 * push + float(self.np_random.normal(0, 0.3))
        self.t += 1
        return self.observe(self.x, self.t), -abs(self.x), self.t == self.length, False, {}


class Trouble(Walk):
    """A walk in which something happens at the third step, for some seeds.

    Args:
        dies, raises, exits, unseen, unpaid, overpaid: seeds for which the process is killed, the step raises,
            exits, shows NaN, pays NaN, pays infinity.
        pause: seconds that a step takes.
        marks: folder in which every start of an episode leaves a file; empty for none.
    """

    def __init__(
        self,
        dies: Sequence[int] = (),
        raises: Sequence[int] = (),
        exits: Sequence[int] = (),
        unseen: Sequence[int] = (),
        unpaid: Sequence[int] = (),
        overpaid: Sequence[int] = (),
        pause: float = 0.0,
        marks: str = "",
    ) -> None:
        super().__init__()
        self.dies, self.raises, self.exits = dies, raises, exits
        self.unseen, self.unpaid, self.overpaid = unseen, unpaid, overpaid
        self.pause, self.marks = pause, marks

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        if self.marks:
            with open(os.path.join(self.marks, f"{seed}-{os.getpid()}-{time.monotonic_ns()}"), "w"):
                pass
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        time.sleep(self.pause)
        observation, reward, over, cut, info = super().step(action)
        if self.t == 3:
            if self.seed in self.dies:
                os.kill(os.getpid(), signal.SIGKILL)
            if self.seed in self.raises:
                raise RuntimeError("a wheel\n    came off")
            if self.seed in self.exits:
                raise SystemExit(5)
            if self.seed in self.unseen:
                observation = np.array([math.nan, self.t], np.float32)
            if self.seed in self.unpaid:
                reward = math.nan
            if self.seed in self.overpaid:
                reward = math.inf
        return observation, reward, over, cut, info
