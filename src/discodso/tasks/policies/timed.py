"""A runner of episodes that knows how long they take, and stops where there is no time for more."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.tasks.policies.tree import DecisionTree, Forest

_GROWTH = 4  # of pieces, whose episodes may be longer than those before
_PIECE = 0.2  # of the time that is left, for a piece at most
_LATELY = 2.0  # seconds after which calls weigh a third
_SHORTEST = 0.05  # seconds of a piece, below which the time between pieces would count
Left = Callable[[], float]  # seconds that there are still


class Runner(Protocol):
    """Runs episodes of one environment."""

    def returns(self, forest: Forest, tree: Ints, seeds: Ints) -> tuple[Floats, dict[int, str]]:
        """float[E], the return of each episode, NaN where it failed, and the reasons, by episode.

        Episode e runs tree[e] of the forest from `reset(seed=seeds[e])`.
        """


class OutOfTimeError(Exception):
    """There is no time for all of some episodes."""


def always() -> float:
    """No limit."""
    return math.inf


@dataclass
class TimedRunner:
    """A runner that counts.

    Attributes:
        runner, workers: what runs the episodes, and how many of them side by side.
        episodes, seconds: of all that was run.
        lately: episodes and seconds of the last calls, those further back with less weight.
    """

    runner: Runner
    workers: int = 1
    episodes: int = 0
    seconds: float = 0.0
    lately: tuple[float, float] = (0.0, 0.0)

    @property
    def latest(self) -> float:
        """Seconds for an episode of the last calls."""
        return self.lately[1] / max(self.lately[0], 1e-9)

    @property
    def pace(self) -> float:
        """Seconds for an episode: on the whole or lately, what is more, for good trees may have long ones."""
        return max(self.seconds / max(self.episodes, 1), self.latest)

    def returns(self, forest: Forest, tree: Ints, seeds: Ints) -> tuple[Floats, dict[int, str]]:
        """See `Runner.returns`."""
        began = time.monotonic()
        found = self.runner.returns(forest, tree, seeds)
        if len(tree):
            took = time.monotonic() - began
            self.episodes, self.seconds = self.episodes + len(tree), self.seconds + took
            fading = math.exp(-took / _LATELY)
            self.lately = fading * self.lately[0] + len(tree), fading * self.lately[1] + took
        return found

    def returns_within(
        self, forest: Forest, tree: Ints, seeds: Ints, left: Left, least: int = 0
    ) -> tuple[Floats, dict[int, str]]:
        """The same, for as many of the first episodes as there is time for, and for `least` of them anyway."""
        if math.isinf(left()):
            return self.returns(forest, tree, seeds)
        returns, reasons, done, piece = [np.empty(0)], dict[int, str](), 0, self.workers
        # An episode that would end behind the limit by more than it is before it is not begun.
        while done < len(tree) and ((on := left() > 0.5 * self.latest * self.workers) or done < least):
            part = slice(done, done + piece if on else least)
            found, failed = self.returns(forest, tree[part], seeds[part])
            returns.append(found)
            reasons |= {done + episode: reason for episode, reason in failed.items()}
            done += len(found)
            fits = int(max(_SHORTEST, _PIECE * left()) / max(self.latest, 1e-9))
            piece = min(_GROWTH * piece, max(fits // self.workers, 1) * self.workers)
        return np.concatenate(returns), reasons


def timed(runner: Runner) -> TimedRunner:
    """A runner that knows the time."""
    return runner if isinstance(runner, TimedRunner) else TimedRunner(runner)


@dataclass(frozen=True)
class Hurried:
    """A runner that raises `OutOfTimeError` where the time ends before the episodes."""

    runner: TimedRunner
    left: Left

    def returns(self, forest: Forest, tree: Ints, seeds: Ints) -> tuple[Floats, dict[int, str]]:
        """See `Runner.returns`."""
        found, reasons = self.runner.returns_within(forest, tree, seeds, self.left)
        if len(found) < len(tree):
            raise OutOfTimeError
        return found, reasons


def paired_within(policies: Sequence[DecisionTree], runner: TimedRunner, seeds: Ints, left: Left) -> Floats:
    """float[len(policies), n], returns of all policies for the first n seeds, as many as there is time for."""
    tree, count = np.tile(np.arange(len(policies)), len(seeds)), len(policies)
    returns, _ = runner.returns_within(Forest.of(policies), tree, np.repeat(seeds, count), left)
    whole = len(returns) // count
    return returns[: whole * count].reshape(whole, count).T
