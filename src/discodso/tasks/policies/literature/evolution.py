"""Evolutionary trees: genotypes evolve, and the leaves of their trees learn what to do by Q-learning."""

from __future__ import annotations

from typing import Any

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.baselines.literature import EvolutionaryTreesSettings
from discodso.disco.method import Searched
from discodso.space.state import State, generator_state, restore_generator
from discodso.tasks.policies.columns import LEAF, Columns
from discodso.tasks.policies.environments import Interface
from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.literature._agents import LEARNING_LEAVES, VALUES, Agent, LearningLeaves
from discodso.tasks.policies.literature.episode_count import EpisodeCount, rates_itself
from discodso.tasks.policies.literature.grammar import decode, grammar_for, room_for
from discodso.tasks.policies.literature.practice import Practice
from discodso.tasks.policies.literature.soft_nets import empty_net, room_of, trace_of
from discodso.tasks.policies.literature.spaces import plain
from discodso.tasks.policies.splits import Nodes
from discodso.tasks.policies.vocabulary import TreeSpace

_STEP = 20  # individuals
_BEST = 10  # of the population, that the search keeps


class EvolutionaryTrees:
    """The method in the middle of a run.

    Args:
        settings: see `EvolutionaryTreesSettings`.
        space: of the trees.
        interface: of the environment.
        practice: where trees act and learn.
        seeds: of the environment, for episodes.
        each: episodes that count as one objective call.
        seed: of all that is random.
    """

    batch_size = 1

    def __init__(
        self,
        settings: EvolutionaryTreesSettings,
        space: TreeSpace,
        interface: Interface,
        practice: Practice,
        seeds: range,
        each: int,
        seed: np.random.SeedSequence,
    ) -> None:
        self.settings, self.space, self.practice, self.seeds = settings, space, practice, seeds
        self.count = EpisodeCount(each)
        self._actions = tuple(action for action, _ in interface.action_names)
        self._rng = np.random.default_rng(seed)
        self._grammar = grammar_for(interface.environment.id, interface.ranges, settings.splits == "oblique")
        self._tree = room_for(settings.genes, self._grammar)
        self._trace = trace_of(0, practice.max_steps)
        size = settings.population
        self.genes: Ints = np.zeros((size, settings.genes), np.int64)
        self.fitness: Floats = np.full(size, -np.inf)
        self.generation, self._next = 0, 0
        self._offspring = self._rng.integers(0, settings.largest_gene + 1, self.genes.shape)

    ask, tell = rates_itself("evolutionary-trees")

    def search(self, room: int) -> Searched:
        """Rate individuals, one after the other, until one of the best is found, and make the next generation."""
        self.count.open(room)
        found: list[tuple[float, Nodes]] = []
        for _ in range(_STEP):
            if self.generation > self.settings.generations or not self.count.room(self.settings.episodes):
                break
            rated = self._rate(self._next)
            self._next += 1
            if self._next == len(self.genes):
                self._breed()
            if rated is not None:
                found.append(rated)
                break
        over = self.generation > self.settings.generations
        exhausted = f"all {self.settings.generations} generations are done" if over else ""
        return self.count.searched(self.space, found, exhausted)

    def _rate(self, row: int) -> tuple[float, Nodes] | None:
        """Let the tree of an offspring learn, which is taken if it is better than the individual in its place.

        Then it is given back with its fitness, if that is among the best.
        """
        genes, settings = self._offspring[row], self.settings
        size = decode(genes, self._grammar, self._tree)
        if size == 0:
            return None
        agent = self.agent(size)
        window = settings.window or settings.episodes
        parts: list[Floats] = []
        for begin in range(0, settings.episodes, window):
            seeds = self._rng.integers(
                self.seeds[0], self.seeds[-1] + 1, min(window, settings.episodes - begin)
            )
            parts.append(self.practice.run(agent, seeds, self._rng))
            self.count.spend(len(seeds))
            if len(parts) > 1 and parts[-1].mean() < parts[-2].mean():
                break
        fitness = float(parts[-1].mean())
        if fitness <= self.fitness[row]:
            return None
        self.genes[row], self.fitness[row] = genes, fitness
        better = int((self.fitness > fitness).sum())
        return (fitness, self.learned(agent)) if better < _BEST else None

    def agent(self, size: int) -> Agent:
        """The decoded tree of some nodes, whose leaves know nothing yet."""
        tree, settings, actions = self._tree, self.settings, len(self._actions)
        worth = self._rng.uniform(-1.0, 1.0, (size, actions)) * settings.spread
        leaves = LearningLeaves(
            tree,
            worth,
            np.zeros((size, actions), np.int64),
            np.full(size, settings.epsilon),
            settings.rate,
            settings.discount,
            settings.decay,
            np.full(2, -1),
        )
        net = empty_net()
        return Agent(LEARNING_LEAVES, leaves, VALUES, net, room_of(net), self._trace)

    def learned(self, agent: Agent) -> Nodes:
        """The tree of an agent, whose leaves have the action that they think the best."""
        worth = agent.leaves.worth
        tree, size = agent.leaves.columns, len(worth)
        feature = tree.feature[:size].copy()
        jump = np.where(feature == LEAF, 0, tree.jump[:size])
        rows = feature, tree.threshold[:size], jump, tree.first[:size], tree.count[:size]
        nodes = Columns(*rows, tree.term, tree.weight).nodes()
        best = worth.argmax(axis=1)
        named: Any = [
            (Leaf(self._actions[best[place]]), 0) if isinstance(node, Leaf) else (node, ahead)
            for place, (node, ahead) in enumerate(nodes)
        ]
        return plain(tuple(named))

    def _breed(self) -> None:
        """Parents by tournaments, crossover of neighbours, and mutations of all."""
        settings, rng, size = self.settings, self._rng, len(self.genes)
        entrants = rng.integers(0, size, (size, settings.tournament))
        parents = entrants[np.arange(size), self.fitness[entrants].argmax(axis=1)]
        children = self.genes[parents].copy()
        if settings.crossover > 0:
            for first in range(0, size - 1, 2):
                if rng.random() < settings.crossover:
                    cut = int(rng.integers(1, settings.genes))
                    pair = children[first : first + 2, cut:].copy()
                    children[first : first + 2, cut:] = pair[::-1]
        fresh = rng.integers(0, settings.largest_gene + 1, children.shape)
        self._offspring = np.where(rng.random(children.shape) < settings.mutation, fresh, children)
        self.generation, self._next = self.generation + 1, 0

    def state(self) -> State:
        """Everything that later steps depend on."""
        data = {
            "random": generator_state(self._rng),
            "count": self.count.data(),
            "generation": self.generation,
            "next": self._next,
        }
        known = np.isfinite(self.fitness)
        arrays = {
            "genes": self.genes.copy(),
            "offspring": self._offspring.copy(),
            "known": known,
            "fitness": np.where(known, self.fitness, 0.0),
        }
        return State(arrays, data)

    def restore(self, state: State) -> None:
        """Go back to a state."""
        restore_generator(self._rng, state.data["random"])
        self.count.set(state.data["count"])
        self.generation, self._next = int(state.data["generation"]), int(state.data["next"])
        arrays = state.arrays
        if arrays["genes"].shape != self.genes.shape:
            raise ValueError("the population has another size")
        self.genes, self._offspring = arrays["genes"].copy(), arrays["offspring"].copy()
        self.fitness = np.where(arrays["known"], arrays["fitness"], -np.inf)
