"""How soft trees learn by PPO: differentiable trees as Silva et al. have it, cascading ones as Ding et al."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.baselines.literature import CascadingTreesSettings, DifferentiableTreesSettings
from discodso.space.state import State
from discodso.tasks.policies.literature._agents import (
    SOFTMAX_OF_SUM,
    SUM_OF_SOFTMAX,
    Net,
    Recorded,
    policy_slope,
    value_slope,
    values_of,
)
from discodso.tasks.policies.literature.soft_nets import Sizes, net_of, room_of

_SMALL = 1e-8  # epsilon of both optimisers
_FADING = 0.99  # of RMSprop
_FIRST, _SECOND = 0.9, 0.999  # of Adam


class Trainer(Protocol):
    """Soft trees that learn.

    Attributes:
        net, output: what acts; see `_agents.forward`.
    """

    net: Net
    output: int

    def learn(self, trace: Recorded, rng: np.random.Generator) -> None:
        """Learn from an episode."""

    def state(self) -> State:
        """All numbers."""

    def restore(self, state: State) -> None:
        """Inverse of `state`."""


@dataclass
class AveragedSteps:
    """RMSprop: g^2 is averaged as v; steps are rate g / (sqrt(v) + epsilon)."""

    numbers: Floats
    rate: float

    def __post_init__(self) -> None:
        self.square = np.zeros_like(self.numbers)

    def step(self, slope: Floats) -> None:
        """Move the numbers downhill."""
        self.square *= _FADING
        self.square += (1 - _FADING) * slope * slope
        self.numbers -= self.rate * slope / (np.sqrt(self.square) + _SMALL)

    def arrays(self) -> list[Floats]:
        """All that it remembers, with the numbers."""
        return [self.numbers, self.square]


@dataclass
class MomentSteps:
    """Adam, for arrays; `disco/adam.py` has it for torch."""

    numbers: Floats
    rate: float

    def __post_init__(self) -> None:
        self.mean, self.square = np.zeros_like(self.numbers), np.zeros_like(self.numbers)
        self.steps = np.zeros(1)

    def step(self, slope: Floats) -> None:
        """Move the numbers downhill."""
        self.steps += 1
        self.mean += (1 - _FIRST) * (slope - self.mean)
        self.square += (1 - _SECOND) * (slope * slope - self.square)
        mean = self.mean / (1 - _FIRST ** self.steps[0])
        self.numbers -= self.rate * mean / (np.sqrt(self.square / (1 - _SECOND ** self.steps[0])) + _SMALL)

    def arrays(self) -> list[Floats]:
        """All that it remembers, with the numbers."""
        return [self.numbers, self.mean, self.square, self.steps]


def returns_to_go(rewards: Floats, discount: float) -> Floats:
    """float[T], the discounted sum of the rewards from each step on."""
    found, later = np.empty(len(rewards)), 0.0
    for t in range(len(rewards) - 1, -1, -1):
        later = rewards[t] + discount * later
        found[t] = later
    return found


class DifferentiableTrainer:
    """One soft tree acts, another of the same shape has a value for each action."""

    output = SOFTMAX_OF_SUM

    def __init__(
        self, settings: DifferentiableTreesSettings, features: int, actions: int, rng: np.random.Generator
    ) -> None:
        self.settings = settings
        self.sizes = Sizes(features, actions, 0, features, 2**settings.depth - 1)
        self._actor, self._critic = (AveragedSteps(self._fresh(rng), settings.rate) for _ in range(2))
        self.net, self.critic = (net_of(own.numbers, self.sizes) for own in (self._actor, self._critic))
        self._room = room_of(self.net)

    def _fresh(self, rng: np.random.Generator) -> Floats:
        """Weights and leaves from U(0, 1), thresholds 1 / F; each feature as it is."""
        numbers = np.zeros(self.sizes.numbers)
        net = net_of(numbers, self.sizes)
        net.features[0] = np.eye(self.sizes.features)
        net.nodes[:] = rng.random(net.nodes.shape)
        net.nodes[:, -1] = -1.0 / self.sizes.features
        net.leaves[:] = rng.random(net.leaves.shape)
        net.scale[0] = 1.0
        return numbers

    def learn(self, trace: Recorded, rng: np.random.Generator) -> None:
        """See `Trainer.learn`."""
        own, steps = self.settings, int(trace.length[0])
        seen, chosen, chance = trace.seen[:steps], trace.chosen[:steps], trace.chance[:steps]
        target, value = returns_to_go(trace.rewards[:steps], own.discount), np.empty(steps)
        values_of(self.critic, seen, chosen, self._room, value)
        advantage, size = target - value, max(steps // own.parts, 1)
        order = rng.permutation(steps)
        for part in range(steps // size):
            rows = order[part * size : (part + 1) * size]
            slope, by_value = np.zeros(self.sizes.numbers), np.zeros(self.sizes.numbers)
            down, down_value = net_of(slope, self.sizes), net_of(by_value, self.sizes)
            policy = seen[rows], chosen[rows], chance[rows], advantage[rows], own.clip, own.entropy
            policy_slope(self.net, self.output, *policy, self._room, down)
            value_slope(self.critic, seen[rows], chosen[rows], target[rows], self._room, down_value)
            down.features[:] = 0.0  # these stay
            down_value.features[:] = 0.0
            self._actor.step(slope)
            self._critic.step(by_value)

    def state(self) -> State:
        """See `Trainer.state`."""
        return _kept([*self._actor.arrays(), *self._critic.arrays()])

    def restore(self, state: State) -> None:
        """See `Trainer.restore`."""
        _put_back([*self._actor.arrays(), *self._critic.arrays()], state)


class CascadingTrainer:
    """A soft tree whose leaves make features, one on these that acts, and a layer of units as critic."""

    output = SUM_OF_SOFTMAX

    def __init__(
        self, settings: CascadingTreesSettings, features: int, actions: int, rng: np.random.Generator
    ) -> None:
        self.settings = settings
        inner = 2**settings.depth - 1
        self.sizes = Sizes(features, actions, inner, settings.features, inner)
        self._actor = MomentSteps(np.zeros(self.sizes.numbers), settings.rate)
        self.net = net_of(self._actor.numbers, self.sizes)
        # As linear layers begin: evenly within one over the root of their inputs; leaves are normal.
        for part, inputs in ((self.net.gates, features), (self.net.nodes, settings.features)):
            part[:] = rng.uniform(-1.0, 1.0, part.shape) / math.sqrt(inputs)
        for part in (self.net.features, self.net.leaves):
            part[:] = rng.standard_normal(part.shape)
        self.net.scale[0] = 1.0
        self._room = room_of(self.net)
        self._critic = MomentSteps(_fresh_critic(features, settings.hidden, rng), settings.rate)

    def learn(self, trace: Recorded, rng: np.random.Generator) -> None:
        """See `Trainer.learn`."""
        own, steps = self.settings, int(trace.length[0])
        for first in range(0, steps, own.horizon):
            last = min(first + own.horizon, steps)
            ended = bool(trace.length[1]) and last == steps
            part = slice(first, last)
            given = trace.chosen[part], trace.chance[part], trace.rewards[part]
            self._learn_part(trace.seen[first : last + 1], *given, ended)

    def _learn_part(self, seen: Floats, chosen: Ints, chance: Floats, rewards: Floats, ended: bool) -> None:
        """Learn from steps that follow each other; seen[B + 1, F] has the observation after them."""
        own = self.settings
        for _ in range(own.epochs):
            value, layer = critic_values(self._critic.numbers, seen, own.hidden)
            after = value[1:].copy()
            if ended:
                after[-1] = 0.0
            target = rewards + own.discount * after
            advantage = returns_to_go(target - value[:-1], own.discount * own.trace)
            slope = np.zeros(self.sizes.numbers)
            down = net_of(slope, self.sizes)
            policy = seen[:-1], chosen, chance, advantage, own.clip, 0.0
            policy_slope(self.net, self.output, *policy, self._room, down)
            down.scale[0] = 0.0  # it stays 1
            miss = np.clip(value[:-1] - target, -1.0, 1.0) / len(rewards)  # of smooth L1
            self._critic.step(critic_slope(self._critic.numbers, seen[:-1], layer[:-1], miss))
            self._actor.step(slope)

    def state(self) -> State:
        """See `Trainer.state`."""
        return _kept([*self._actor.arrays(), *self._critic.arrays()])

    def restore(self, state: State) -> None:
        """See `Trainer.restore`."""
        _put_back([*self._actor.arrays(), *self._critic.arrays()], state)


def _fresh_critic(features: int, hidden: int, rng: np.random.Generator) -> Floats:
    first = rng.uniform(-1.0, 1.0, hidden * (features + 1)) / math.sqrt(features)
    return np.concatenate([first, rng.uniform(-1.0, 1.0, hidden + 1) / math.sqrt(hidden)])


def critic_values(numbers: Floats, seen: Floats, hidden: int) -> tuple[Floats, Floats]:
    """float[B], values of observations float[B, F], and float[B, H], what the hidden units have.

    The numbers are weights [H, F] and biases [H] of the units, then weights [H] and a bias of the value.
    """
    inputs = seen.shape[1]
    weights, rest = numbers[: hidden * inputs].reshape(hidden, inputs), numbers[hidden * inputs :]
    layer = np.maximum(seen @ weights.T + rest[:hidden], 0.0)
    return layer @ rest[hidden:-1] + rest[-1], layer


def critic_slope(numbers: Floats, seen: Floats, layer: Floats, by_value: Floats) -> Floats:
    """Derivatives by the numbers, given float[B], those by the values."""
    hidden = layer.shape[1]
    second = numbers[-1 - hidden : -1]
    by_layer = np.where(layer > 0, by_value[:, None] * second, 0.0)
    return np.concatenate(
        [(by_layer.T @ seen).ravel(), by_layer.sum(axis=0), layer.T @ by_value, [by_value.sum()]]
    )


def _kept(arrays: list[Floats]) -> State:
    return State({str(place): array.copy() for place, array in enumerate(arrays)})


def _put_back(arrays: list[Floats], state: State) -> None:
    for place, array in enumerate(arrays):
        kept = state.arrays[str(place)]
        if kept.shape != array.shape:
            raise ValueError("the soft trees have another size")
        array[:] = kept
