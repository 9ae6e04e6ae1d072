"""Episodes of any Gymnasium environment, in processes that stay alive.

A worker holds one environment and runs chunks of (tree, seed) pairs. If it dies another takes its place and its
episodes run again, one by one; what an environment raises comes back as a reason. Workers are forked where the
system can: they then know environments that were registered or defined by the caller.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.run.executors.chunks import Chunks, GivenUp, Retries
from discodso.run.executors.processes import Processes
from discodso.tasks.policies.columns import Columns
from discodso.tasks.policies.gymnasium_episodes import EpisodeFunction, opened
from discodso.tasks.policies.making import Environment
from discodso.tasks.policies.scoring import Scoring
from discodso.tasks.policies.tree import Forest

# Workers are here and end by the fault of an environment, so each episode goes alone after the first time.
_RETRIES = Retries(together=1, afresh=False)
_CHUNKS_PER_WORKER = 8
Answer = float | str  # a return, or what went wrong


class _Episodes(list[tuple[Columns, int]]):
    """Consecutive episodes, each a tree and a seed."""

    @classmethod
    def of(cls, forest: Forest, tree: Ints, seeds: Ints) -> Self:
        trees = {number: forest.columns_of(number) for number in set(tree.tolist())}
        return cls((trees[number], seed) for number, seed in zip(tree.tolist(), seeds.tolist(), strict=True))

    def singles(self) -> list[Self]:
        """Each episode by itself: one that ends its worker must not take others with it."""
        return [type(self)([episode]) for episode in self]


@dataclass
class Stage:
    """Where episodes of an environment are run; every worker has one, and its environment stays open.

    As a runner it is for processes that are workers themselves, which may have no others.
    """

    environment: Environment
    max_steps: int
    scoring: Scoring | None = None
    opened: tuple[Any, EpisodeFunction] | None = None

    def run(self, load: _Episodes) -> list[Answer]:
        """The return of each episode, or what went wrong in it."""
        return [self._run_one(tree, seed) for tree, seed in load]

    def _run_one(self, tree: Columns, seed: int) -> Answer:
        try:
            if self.opened is None:
                self.opened = opened(self.environment, self.scoring)
            env, episode = self.opened
            return episode(env, tree, seed, self.max_steps)
        except (Exception, SystemExit) as error:
            self.opened = None  # who knows what state it is in
            return f"raised {type(error).__name__}: {' '.join(str(error).split())}"

    def returns(self, forest: Forest, tree: Ints, seeds: Ints) -> tuple[Floats, dict[int, str]]:
        """See `Runner.returns`."""
        return _sorted_out(self.run(_Episodes.of(forest, tree, seeds)))

    def close(self) -> None:
        """Close the environment."""
        if self.opened is not None:
            self.opened[0].close()


def _sorted_out(answers: Sequence[Answer]) -> tuple[Floats, dict[int, str]]:
    """Returns of episodes, NaN where there is none, and the reasons for that."""
    reasons = {episode: answer for episode, answer in enumerate(answers) if isinstance(answer, str)}
    return np.array([math.nan if isinstance(a, str) else a for a in answers], np.float64), reasons


class WorkerPool:
    """Worker processes for one environment; a context manager. Nothing is left behind when it closes.

    Episodes are cut off after `max_steps`, for environments without a limit.
    """

    def __init__(
        self, environment: Environment, workers: int, max_steps: int, scoring: Scoring | None = None
    ) -> None:
        self.processes = Processes(workers)
        self._stage = self.processes.share(Stage(environment, max_steps, scoring))
        self.processes.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.processes.close()

    def returns(self, forest: Forest, tree: Ints, seeds: Ints) -> tuple[Floats, dict[int, str]]:
        """See `Runner.returns`."""
        # Pieces small enough that no worker waits long for another.
        size = max(1, math.ceil(len(tree) / (self.processes.workers * _CHUNKS_PER_WORKER)))
        episodes = _Episodes.of(forest, tree, seeds)
        loads = [(i, _Episodes(episodes[i : i + size])) for i in range(0, len(tree), size)]
        chunks: Chunks[_Episodes, list[Answer]] = Chunks(
            self.processes, lambda load: self.processes.submit(Stage.run, self._stage, load), loads, _RETRIES
        )
        found: list[Answer] = [math.nan] * len(tree)
        try:
            for chunk, answer in chunks.answers():
                if isinstance(answer, GivenUp):
                    why = (
                        f"ended its worker process {answer.lost} times, the last time because {answer.error}"
                    )
                    answer = [why]
                found[chunk.first : chunk.first + len(answer)] = answer
        except BaseException:  # Ctrl-C above all: late answers must not be taken for something else
            chunks.abandon()
            raise
        return _sorted_out(found)
