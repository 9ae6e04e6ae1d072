"""Episodes of any Gymnasium environment, in processes that stay alive.

A worker holds one environment and runs chunks of (tree, seed) pairs. If it dies another takes its place and its
episodes run again, one by one; what an environment raises comes back as a reason. Workers are forked where the
system can: they then know environments that were registered or defined by the caller.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.run.executors.chunks import Chunks, GivenUp, Retries
from discodso.run.executors.processes import Processes
from discodso.tasks.policies.environments import make
from discodso.tasks.policies.gymnasium_episodes import PlainEpisodes, quick_lander
from discodso.tasks.policies.splits import Columns
from discodso.tasks.policies.tree import Environment, Forest

# Workers are here and end by the fault of an environment, so each episode goes alone after the first time.
_RETRIES = Retries(together=1, afresh=False)
_CHUNKS_PER_WORKER = 8
Answer = float | str  # a return, or what went wrong


@dataclass(frozen=True)
class _Episodes:
    """Consecutive episodes, each a tree and a seed, and the trees by their numbers."""

    trees: dict[int, Columns]
    items: list[tuple[int, int]]

    @classmethod
    def of(cls, forest: Forest, tree: Ints, seeds: Ints) -> _Episodes:
        items = list(zip(tree.tolist(), seeds.tolist(), strict=True))
        return cls({t: forest.columns_of(t) for t in set(tree.tolist())}, items)

    def __len__(self) -> int:
        return len(self.items)

    def singles(self) -> list[_Episodes]:
        """Each episode by itself: one that ends its worker must not take others with it."""
        return [_Episodes({tree: self.trees[tree]}, [(tree, seed)]) for tree, seed in self.items]


@dataclass
class Stage:
    """Where episodes of an environment are run; every worker has one, and its environment stays open."""

    environment: Environment
    max_steps: int
    episodes: PlainEpisodes | None = None

    def run(self, load: _Episodes) -> list[Answer]:
        """The return of each episode, or what went wrong in it."""
        return [self._run_one(load.trees[tree], seed) for tree, seed in load.items]

    def _run_one(self, tree: Columns, seed: int) -> Answer:
        try:
            if self.episodes is None:
                self.episodes = quick_lander(self.environment) or PlainEpisodes(make(self.environment))
            return self.episodes.run(tree, seed, self.max_steps)
        except (Exception, SystemExit) as error:
            self.episodes = None  # who knows what state it is in
            return f"raised {type(error).__name__}: {error}"


def _sorted_out(answers: Sequence[Answer]) -> tuple[Floats, dict[int, str]]:
    """Returns of episodes, NaN where there is none, and the reasons for that."""
    reasons = {episode: answer for episode, answer in enumerate(answers) if isinstance(answer, str)}
    return np.array(
        [np.nan if isinstance(answer, str) else answer for answer in answers], np.float64
    ), reasons


@dataclass(frozen=True)
class InProcess:
    """Episodes in this process: for processes that are workers themselves, which may have no others."""

    environment: Environment
    max_steps: int

    def returns(self, forest: Forest, tree: Ints, seeds: Ints) -> tuple[Floats, dict[int, str]]:
        """See `Runner.returns`."""
        stage = Stage(self.environment, self.max_steps)
        answers = stage.run(_Episodes.of(forest, tree, seeds))
        if stage.episodes is not None:
            stage.episodes.env.close()
        return _sorted_out(answers)


class WorkerPool:
    """Worker processes for one environment; a context manager. Nothing is left behind when it closes.

    Args:
        environment: which one.
        workers: how many processes.
        max_steps: steps after which an episode is cut off, for environments without a limit.
    """

    def __init__(self, environment: Environment, workers: int, max_steps: int) -> None:
        self.processes = Processes(workers)
        self._stage = self.processes.share(Stage(environment, max_steps))
        self.processes.start()

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.processes.close()

    def returns(self, forest: Forest, tree: Ints, seeds: Ints) -> tuple[Floats, dict[int, str]]:
        """See `Runner.returns`."""
        # Pieces small enough that no worker waits long for another.
        size = max(1, math.ceil(len(tree) / (self.processes.workers * _CHUNKS_PER_WORKER)))
        loads = [
            (first, _Episodes.of(forest, tree[first : first + size], seeds[first : first + size]))
            for first in range(0, len(tree), size)
        ]
        chunks: Chunks[_Episodes, list[Answer]] = Chunks(self.processes, self._send, loads, _RETRIES)
        found: list[Answer] = [math.nan] * len(tree)
        try:
            for chunk, answer in chunks.answers():
                answers = [_reason(answer)] if isinstance(answer, GivenUp) else answer
                found[chunk.first : chunk.first + len(answers)] = answers
        except BaseException:  # Ctrl-C above all: late answers must not be taken for something else
            chunks.abandon()
            raise
        return _sorted_out(found)

    def _send(self, load: _Episodes) -> Future[list[Answer]]:
        return self.processes.submit(Stage.run, self._stage, load)


def _reason(given_up: GivenUp) -> str:
    return f"ended its worker process {given_up.lost} times, the last time because {given_up.error}"
