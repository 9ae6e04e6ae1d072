"""Episodes in which an agent acts and learns: in a compiled environment where there is one, else in Gymnasium."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.base.errors import DeclarationError
from discodso.tasks.policies.environments import Interface
from discodso.tasks.policies.literature._agents import Agent, act, finish, practise
from discodso.tasks.policies.making import make, step_limit
from discodso.tasks.policies.observations import flat
from discodso.tasks.policies.simulators import Classic, Simulator, gymnasium_maths
from discodso.tasks.policies.timed import TimedRunner


class Practice(Protocol):
    """An environment to act in."""

    @property
    def max_steps(self) -> int:
        """Where episodes are cut off."""

    def run(self, agent: Agent, seeds: Ints, rng: np.random.Generator) -> Floats:
        """float[E], returns of episodes from `reset` with each seed; the agent has the last one in its trace."""


@dataclass(frozen=True)
class CompiledPractice:
    """CartPole, MountainCar or Acrobot."""

    simulator: Simulator

    @property
    def max_steps(self) -> int:
        """Where episodes are cut off."""
        return self.simulator.max_steps

    def run(self, agent: Agent, seeds: Ints, rng: np.random.Generator) -> Floats:
        """See `Practice.run`."""
        starts, start = self.simulator.starts_of(seeds)
        kernel, returns = self.simulator.kernel, np.empty(len(seeds))
        assert isinstance(kernel, Classic)
        given = kernel.kind, starts.states, starts.observations, start, self.max_steps, gymnasium_maths()
        practise(*given, agent, rng, returns)
        return returns


@dataclass(frozen=True)
class GymnasiumPractice:
    """Any environment with choices, step by step."""

    env: Any
    max_steps: int
    first: int  # number of the first action

    def run(self, agent: Agent, seeds: Ints, rng: np.random.Generator) -> Floats:
        """See `Practice.run`."""
        returns = np.zeros(len(seeds))
        for episode, seed in enumerate(seeds.tolist()):
            x = np.array(flat(self.env.reset(seed=seed)[0]), np.float64)
            reward, over, cut, at = 0.0, False, False, 0
            while not (over or cut) and at < self.max_steps:
                action = act(agent, x, reward, at, rng)
                observation, given, over, cut, _ = self.env.step(self.first + action)
                x, reward = np.array(flat(observation), np.float64), float(given)
                agent.trace.rewards[at] = reward
                returns[episode] += reward
                at += 1
            finish(agent, x, reward, at, bool(over))
        return returns


def practice_of(interface: Interface, runner: TimedRunner, stack: ExitStack, method: str) -> Practice:
    """Where agents practise; what must be closed goes on the stack."""
    if interface.numbers is not None:
        raise DeclarationError(
            f"{method} choose among actions, but those of {interface.environment} are numbers; use another method"
        )
    if isinstance(runner.runner, Simulator) and isinstance(runner.runner.kernel, Classic):
        return CompiledPractice(runner.runner)
    env = stack.enter_context(make(interface.environment))
    return GymnasiumPractice(env, step_limit(env), interface.action_names[0][0])
