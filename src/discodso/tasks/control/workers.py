"""Episodes of any Gymnasium environment, in processes that stay alive.

A worker holds one environment and runs chunks of (tree, seed) pairs that come through a pipe. A worker that dies
is replaced and its episodes run again, one by one; what an environment raises comes back as a reason. Workers
are forked where the system can: they then know environments that were registered or defined by the caller.
"""

from __future__ import annotations

import math
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discodso.arrays import Floats, Ints
from discodso.errors import DiscodsoError
from discodso.tasks.control.environments import make
from discodso.tasks.control.simulators import Forest
from discodso.tasks.control.tree import Environment

_ATTEMPTS = 3  # an episode that ends its worker so often is given up
_CHUNKS_PER_WORKER = 8
Nodes = tuple[list[int], list[float], list[int]]  # feature, threshold, jump
Item = tuple[int, int]  # which tree of the chunk, seed
Answer = float | str  # a return, or what went wrong


class WorkerError(DiscodsoError):
    """Worker processes cannot be started."""


def run_episode(env: Any, nodes: Nodes, seed: int, max_steps: int) -> float:
    """The return of one episode; raises ValueError for an observation or a reward that is not a number."""
    feature, threshold, jump = nodes
    observation, _ = env.reset(seed=seed)
    total = 0.0
    for _ in range(max_steps):
        x = np.asarray(observation, np.float64).ravel().tolist()
        if math.isnan(sum(x)) and any(math.isnan(number) for number in x):
            raise ValueError(f"the environment gave an observation with NaN, seed {seed}")
        node = 0
        while feature[node] >= 0:
            node = node + 1 if x[feature[node]] < threshold[node] else jump[node]
        observation, reward, terminated, truncated, _ = env.step(jump[node])
        total += float(reward)
        if terminated or truncated:
            break
    if not math.isfinite(total):
        raise ValueError(f"the rewards of an episode add up to {total}, seed {seed}")
    return total


@dataclass
class _Chunk:
    """Consecutive episodes, by the position of the first, and how often they were tried."""

    first: int
    trees: list[Nodes]
    items: list[Item]
    attempts: int = 0

    def singly(self) -> list[_Chunk]:
        """A chunk for each episode: one that ends its worker must not take others with it."""
        return [
            _Chunk(self.first + i, [self.trees[tree]], [(0, seed)], self.attempts)
            for i, (tree, seed) in enumerate(self.items)
        ]


def _serve(connection: Any, others: Sequence[Any], environment: Environment, max_steps: int) -> None:
    """A worker: answers chunks until the other end of the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends the workers
    for (
        other
    ) in others:  # inherited by the fork; as long as they are open a sibling would not see the parent die
        other.close()
    env: Any = None
    parent = os.getppid()
    while True:
        try:
            trees, items = connection.recv()
        except (EOFError, OSError):
            return
        answers: list[Answer] = []
        for tree, seed in items:
            if os.getppid() != parent:  # killed; nobody waits for the rest
                return
            answer, env = _guarded_episode(env, environment, trees[tree], seed, max_steps)
            answers.append(answer)
        try:
            connection.send(answers)
        except (BrokenPipeError, OSError):
            return


def _guarded_episode(
    env: Any, environment: Environment, nodes: Nodes, seed: int, max_steps: int
) -> tuple[Answer, Any]:
    """The return of an episode or what went wrong, and the environment for the next, None to make another."""
    try:
        env = make(environment) if env is None else env
        return run_episode(env, nodes, seed, max_steps), env
    except (Exception, SystemExit) as error:
        return f"raised {type(error).__name__}: {error}", None  # who knows what state it is in


@dataclass(frozen=True)
class InProcess:
    """Episodes in this process: for processes that are workers themselves, which may have no others."""

    environment: Environment
    max_steps: int

    def returns(self, forest: Forest, tree: Ints, seeds: Ints) -> tuple[Floats, dict[int, str]]:
        """See `WorkerPool.returns`."""
        returns, reasons, env = np.full(len(tree), np.nan), dict[int, str](), None
        for chunk in _chunks(forest, tree, seeds, 1):
            for episode, (own, seed) in enumerate(chunk.items, chunk.first):
                nodes = chunk.trees[own]
                answer, env = _guarded_episode(env, self.environment, nodes, seed, self.max_steps)
                if isinstance(answer, str):
                    reasons[episode] = answer
                else:
                    returns[episode] = answer
        if env is not None:
            env.close()
        return returns, reasons


class WorkerPool:
    """Worker processes for one environment; a context manager. Nothing is left behind when it closes.

    Args:
        environment: which one.
        workers: how many processes.
        max_steps: steps after which an episode is cut off, for environments without a limit.
    """

    def __init__(self, environment: Environment, workers: int, max_steps: int) -> None:
        self.environment = environment
        self.max_steps = max_steps
        self.replaced = 0
        methods = multiprocessing.get_all_start_methods()
        forking = "fork" in methods and sys.platform != "darwin"
        self._context: Any = multiprocessing.get_context("fork" if forking else "spawn")
        self._workers: list[tuple[Any, Any]] = []
        try:
            for _ in range(workers):
                self._workers.append(self._start())
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the workers."""
        return tuple(process.pid for process, _ in self._workers)

    def _start(self) -> tuple[Any, Any]:
        ours, theirs = self._context.Pipe()
        forked = self._context.get_start_method() == "fork"
        others = [connection for _, connection in self._workers] + [ours] if forked else []
        process = self._context.Process(
            target=_serve,
            args=(theirs, others, self.environment, self.max_steps),
            daemon=True,
            name="discodso-episodes",
        )
        try:
            process.start()
        except OSError as error:
            raise WorkerError(f"cannot start a worker process: {error.strerror or error}") from None
        theirs.close()
        return process, ours

    def close(self) -> None:
        """End the workers."""
        workers, self._workers = self._workers, []
        for process, connection in workers:
            connection.close()
            process.terminate()
        for process, _ in workers:
            process.join(2)
            if process.is_alive():
                process.kill()
                process.join()

    def returns(self, forest: Forest, tree: Ints, seeds: Ints) -> tuple[Floats, dict[int, str]]:
        """float[E], the return of each episode, and the reasons of those that failed (NaN), by episode.

        Episode e runs tree[e] of the forest from `reset(seed=seeds[e])`.
        """
        waiting = deque(_chunks(forest, tree, seeds, len(self._workers)))
        busy: dict[int, _Chunk] = {}  # by position of the worker
        returns = np.full(len(tree), np.nan)
        reasons: dict[int, str] = {}
        try:
            while waiting or busy:
                for position in range(len(self._workers)):
                    if position not in busy and waiting:
                        self._send(position, waiting, busy)
                self._receive(waiting, busy, returns, reasons)
        except (
            BaseException
        ):  # Ctrl-C above all: what the workers still send must not be taken for something else
            for position in list(busy):
                self._replace(position)
            raise
        return returns, reasons

    def _send(self, position: int, waiting: deque[_Chunk], busy: dict[int, _Chunk]) -> None:
        chunk = waiting.popleft()
        chunk.attempts += 1
        busy[position] = chunk
        try:
            self._workers[position][1].send((chunk.trees, chunk.items))
        except (BrokenPipeError, OSError):
            return  # dead; found out when its answer is awaited

    def _receive(
        self, waiting: deque[_Chunk], busy: dict[int, _Chunk], returns: Floats, reasons: dict[int, str]
    ) -> None:
        connections: dict[Any, int] = {self._workers[position][1]: position for position in busy}
        connection: Any
        for connection in multiprocessing.connection.wait(list(connections)):
            position = connections[connection]
            chunk = busy[position]  # stays until it is read: a Ctrl-C meanwhile must replace the worker
            try:
                answers: list[Answer] = connection.recv()
            except (EOFError, OSError):
                code = self._replace(position)
                if chunk.attempts < _ATTEMPTS:
                    del busy[position]
                    waiting.extendleft(reversed(chunk.singly()))
                    continue
                answers = [f"ended its worker process {_ATTEMPTS} times (exit code {code})"] * len(
                    chunk.items
                )
            del busy[position]
            for episode, answer in enumerate(answers, chunk.first):
                if isinstance(answer, str):
                    reasons[episode] = answer
                else:
                    returns[episode] = answer

    def _replace(self, position: int) -> int | None:
        process, connection = self._workers[position]
        connection.close()
        process.terminate()
        process.join(2)
        if process.is_alive():
            process.kill()
            process.join()
        self.replaced += 1
        self._workers[position] = self._start()
        return int(process.exitcode) if process.exitcode is not None else None


def _chunks(forest: Forest, tree: Ints, seeds: Ints, workers: int) -> list[_Chunk]:
    """Episodes in pieces small enough that no worker waits long for another."""
    size = max(1, math.ceil(len(tree) / (workers * _CHUNKS_PER_WORKER)))
    chunks = []
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
        chunks.append(_Chunk(first, nodes, [(place[t], seed) for t, seed in pairs]))
    return chunks
