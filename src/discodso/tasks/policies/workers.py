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
from discodso.tasks.policies.lander import QuickLander, quick_lander
from discodso.tasks.policies.plain_episode import Nodes, PlainEpisodes
from discodso.tasks.policies.simulators import Forest
from discodso.tasks.policies.tree import Environment

# Workers are here and end by the fault of an environment, so each episode goes alone after the first time.
_RETRIES = Retries(together=1, afresh=False)
_CHUNKS_PER_WORKER = 8
Item = tuple[int, int]  # which tree of the chunk, seed
Answer = float | str  # a return, or what went wrong


@dataclass(frozen=True)
class _Episodes:
    """Consecutive episodes and the trees that they run."""

    trees: list[Nodes]
    items: list[Item]

    def __len__(self) -> int:
        return len(self.items)

    def singles(self) -> list[_Episodes]:
        """Each episode by itself: one that ends its worker must not take others with it."""
        return [_Episodes([self.trees[tree]], [(0, seed)]) for tree, seed in self.items]


@dataclass
class Stage:
    """Where episodes of an environment are run; every worker has one, and its environment stays open."""

    environment: Environment
    max_steps: int
    episodes: QuickLander | PlainEpisodes | None = None

    def run(self, trees: list[Nodes], items: list[Item]) -> list[Answer]:
        """The return of each episode, or what went wrong in it."""
        return [self._run_one(trees[tree], seed) for tree, seed in items]

    def _run_one(self, nodes: Nodes, seed: int) -> Answer:
        try:
            if self.episodes is None:
                self.episodes = quick_lander(self.environment) or PlainEpisodes(make(self.environment))
            return self.episodes.run(nodes, seed, self.max_steps)
        except (Exception, SystemExit) as error:
            self.episodes = None  # who knows what state it is in
            return f"raised {type(error).__name__}: {error}"


class _Answers:
    """Returns of episodes, NaN where there is none, and the reasons for that."""

    def __init__(self, count: int) -> None:
        self.returns = np.full(count, np.nan)
        self.reasons: dict[int, str] = {}

    def put(self, first: int, answers: Sequence[Answer]) -> None:
        for episode, answer in enumerate(answers, first):
            if isinstance(answer, str):
                self.reasons[episode] = answer
            else:
                self.returns[episode] = answer


@dataclass(frozen=True)
class InProcess:
    """Episodes in this process: for processes that are workers themselves, which may have no others."""

    environment: Environment
    max_steps: int

    def returns(self, forest: Forest, tree: Ints, seeds: Ints) -> tuple[Floats, dict[int, str]]:
        """See `WorkerPool.returns`."""
        found, stage = _Answers(len(tree)), Stage(self.environment, self.max_steps)
        for first, load in _loads(forest, tree, seeds, 1):
            found.put(first, stage.run(load.trees, load.items))
        if stage.episodes is not None:
            stage.episodes.close()
        return found.returns, found.reasons


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
        """float[E], the return of each episode, and the reasons of those that failed (NaN), by episode.

        Episode e runs tree[e] of the forest from `reset(seed=seeds[e])`.
        """
        found = _Answers(len(tree))
        loads = _loads(forest, tree, seeds, self.processes.workers)
        chunks: Chunks[_Episodes, list[Answer]] = Chunks(self.processes, self._send, loads, _RETRIES)
        try:
            for chunk, answer in chunks.answers():
                found.put(chunk.first, [_reason(answer)] if isinstance(answer, GivenUp) else answer)
        except BaseException:  # Ctrl-C above all: late answers must not be taken for something else
            chunks.abandon()
            raise
        return found.returns, found.reasons

    def _send(self, load: _Episodes) -> Future[list[Answer]]:
        return self.processes.submit(Stage.run, self._stage, load.trees, load.items)


def _reason(given_up: GivenUp) -> str:
    return f"ended its worker process {given_up.lost} times, the last time because {given_up.error}"


def _loads(forest: Forest, tree: Ints, seeds: Ints, workers: int) -> list[tuple[int, _Episodes]]:
    """Episodes by the position of the first, in pieces small enough that no worker waits long for another."""
    size = max(1, math.ceil(len(tree) / (workers * _CHUNKS_PER_WORKER)))
    loads = []
    for first in range(0, len(tree), size):
        used = list(dict.fromkeys(tree[first : first + size].tolist()))
        nodes = [
            tuple(
                array[forest.offset[t] : forest.offset[t + 1]].tolist()
                for array in (forest.feature, forest.threshold, forest.jump)
            )
            for t in used
        ]
        place = {t: i for i, t in enumerate(used)}
        pairs = zip(tree[first : first + size].tolist(), seeds[first : first + size].tolist(), strict=True)
        loads.append((first, _Episodes(nodes, [(place[t], seed) for t, seed in pairs])))
    return loads
