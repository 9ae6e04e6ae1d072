"""The noisy objective of tree policies: the mean return over N fresh episodes; racing saves most of them.

A design that was cut in a race keeps the mean of the episodes that it had, but counts no better than the worst of
those that came through: a few lucky episodes are not a record.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from discodso.base.arrays import Bools, Floats, Ints
from discodso.run.evaluation import Measured
from discodso.space.design import Design, DesignBatch
from discodso.tasks.policies.environments import Interface
from discodso.tasks.policies.limits import features_of
from discodso.tasks.policies.racing import Racing, means_and_errors, rounds
from discodso.tasks.policies.timed import Left, Runner, always, timed
from discodso.tasks.policies.tree import Forest
from discodso.tasks.policies.tree_policy import TreePolicy
from discodso.tasks.policies.vocabulary import TreeSpace


@dataclass(frozen=True)
class TreeObjective:
    """Mean return of the trees of a batch."""

    interface: Interface
    space: TreeSpace
    runner: Runner
    seeds: range  # for the search, a power of two of them
    episodes: int  # N
    racing: Racing | None  # None for N episodes for every design, as in the paper
    common: bool = False  # all designs of a run meet the same N episodes, rather than fresh ones each time
    left: Left = always  # seconds for the search
    prices: tuple[float, ...] = ()  # of features; () for none

    def __call__(self, designs: DesignBatch, call_seeds: NDArray[np.uint64]) -> Measured:
        """Rewards, the number of episodes, and what failed; of the first designs only if the time is out."""
        forest = self.forest(designs)
        count, charges = len(designs), self.charges(forest)
        returns, done, cut = np.full((count, self.episodes), np.nan), np.zeros(count, np.int64), False
        runner = timed(self.runner)
        alive, reasons, spent = np.arange(count), dict[int, str](), 0
        schedule = [self.episodes] if self.racing is None else rounds(self.episodes)
        order = np.random.default_rng(int(call_seeds[0])).permutation(self.episodes)
        for before, upto in pairwise([0, *schedule]):
            if not len(alive):
                break
            tree = np.repeat(alive, upto - before)
            if self.common:  # in another order for each batch, so that no few seeds decide all races
                seeds: Ints = np.tile(self.seeds[0] + order[before:upto], len(alive))
            else:
                seeds = self._fresh_seeds(call_seeds[alive], before, upto)
            # The first tree of a run is rated, whatever the time.
            needed = 0 if runner.episodes else upto - before
            news, failed = runner.returns_within(forest, tree, seeds, self.left, needed)
            spent += len(news)
            for episode, reason in failed.items():
                reasons.setdefault(int(tree[episode]), reason)
            if cut := len(news) < len(tree):
                alive = alive[: len(news) // (upto - before)]
            more = upto - before
            returns[alive, before:upto] = news[: len(alive) * more].reshape(len(alive), more)
            returns[alive, before:upto] -= charges[alive, None]
            done[alive] = upto
            if cut:
                break
            alive = alive[np.isfinite(returns[alive, :upto]).all(axis=1)]
            if upto < self.episodes and self.racing is not None and len(alive):
                alive = alive[self._on(returns[alive, :upto], count)]
        rated = int((done > 0).sum())  # the first ones: all others had no time
        returns, done = returns[:rated], done[:rated]
        rewards = np.array([own[:met].mean() for own, met in zip(returns, done, strict=True)])
        through = (done == (done.max(initial=0) if cut else self.episodes)) & np.isfinite(rewards)
        least = min(rewards[through], default=math.inf)
        rewards = np.where(through, rewards, np.minimum(rewards, least))
        reasons = {row: reason for row, reason in reasons.items() if row < rated}
        return Measured(rewards, float(spent), reasons, done, cut=rated < count)

    def _on(self, returns: Floats, count: int) -> Bools:
        """bool[n], which trees of a batch of `count` race on, by their returns so far, float[n, k]."""
        assert self.racing is not None
        # Episodes that are the same for all are hard or easy for all.
        field = returns.mean(axis=0) if self.common else np.zeros(returns.shape[1])
        return self.racing.who_goes_on(*means_and_errors(returns - field), count)

    def _fresh_seeds(self, call_seeds: NDArray[np.uint64], before: int, upto: int) -> Ints:
        """int[n * (upto - before)], seeds of the episodes before to upto of each call: distinct within a call."""
        stride = (call_seeds >> np.uint64(32)).astype(np.int64) | 1  # odd, so it meets each seed of 2^k once
        first = (call_seeds & np.uint64(0xFFFFFFFF)).astype(np.int64)
        positions = (first[:, None] + stride[:, None] * np.arange(before, upto)) & (len(self.seeds) - 1)
        chosen: Ints = (positions + self.seeds[0]).ravel()
        return chosen

    def charges(self, forest: Forest) -> Floats:
        """float[M], what each tree pays for the features that it looks at."""
        if not any(self.prices):
            return np.zeros(len(forest.offset) - 1)
        paid: Floats = features_of(forest, len(self.prices)) @ np.array(self.prices)
        return paid

    def forest(self, designs: DesignBatch) -> Forest:
        """The trees of a batch."""
        return Forest(*self.space.vocabulary.columns(designs))

    def policy(self, design: Design) -> TreePolicy:
        """A design as a policy, with its names."""
        i = self.interface
        nodes = self.space.vocabulary.nodes(design)
        return TreePolicy(nodes, i.environment, i.feature_names, i.action_names, i.numbers)
