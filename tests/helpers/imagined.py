"""Trees whose returns are made up, so that a test knows which of them is better."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from discodso.disco.sampling import sample
from discodso.disco.uniform import UniformStepper
from discodso.tasks.policies.environments import Interface
from discodso.tasks.policies.making import Environment
from discodso.tasks.policies.objective import TreeObjective
from discodso.tasks.policies.tree_space import tree_space

INTERFACE = Interface(
    environment=Environment("Imagined-v0"),
    feature_names=("height", "constant", "speed", "heat"),
    ranges=((0.0, 1.0), None, (-5.0, 5.0), (100.0, 200.0)),
    sources=("declared", "probed", "declared", "declared"),
    action_names=((5, "up"), (6, "stay"), (7, "down")),
    max_steps=10,
)
SPACE = tree_space(INTERFACE, max_nodes=15)
SEEDS = range(2**20, 2**20 + 2**10)


def designs_of(count, seed=0, space=SPACE):
    return sample(space, UniformStepper(space), count, np.random.default_rng(seed)).designs


def call_seeds_of(count, seed=0):
    return np.random.default_rng(seed).integers(0, 2**63, count, dtype=np.uint64)


class Imagined:
    """A runner whose returns are whole numbers: the worth of the tree and some noise that follows from the seed.

    Args:
        worth: of the trees by position, or a function of the forest.
        noise: the largest.
        fails: the reason for which episode (tree, seed) fails, or None.
    """

    def __init__(self, worth, noise=10, fails=lambda tree, seed: None):
        self.worth, self.noise, self.fails = worth, noise, fails
        self.seen = defaultdict(list)  # by tree: (seed, return)
        self.episodes = 0
        self.rounds = []

    def returns(self, forest, tree, seeds):
        worth = self.worth(forest) if callable(self.worth) else np.asarray(self.worth)
        mixed = (seeds.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
        values = worth[tree] + (mixed % np.uint64(2 * self.noise + 1)).astype(float) - self.noise
        reasons = {}
        for episode, (t, s) in enumerate(zip(tree.tolist(), seeds.tolist(), strict=True)):
            reason = self.fails(t, s)
            if reason is not None:
                reasons[episode], values[episode] = reason, np.nan
            self.seen[t].append((s, values[episode]))
        self.episodes += len(tree)
        self.rounds.append(sorted(set(tree.tolist())))
        return values, reasons

    def counts(self, designs):
        return np.array([len(self.seen[row]) for row in range(len(designs))])


def measure(runner, designs, racing, episodes=80, seeds=SEEDS, call_seed=0):
    objective = TreeObjective(INTERFACE, SPACE, runner, seeds, episodes, racing)
    return objective(designs, call_seeds_of(len(designs), call_seed))
