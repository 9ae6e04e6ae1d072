"""Differentiable and cascading trees: soft trees are trained; what remains when they are made crisp is rated."""

from __future__ import annotations

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.baselines.literature import (
    CascadingTreesSettings,
    DifferentiableTreesSettings,
    SoftTreesSettings,
)
from discodso.disco.method import Searched
from discodso.space.state import State, generator_state, restore_generator
from discodso.tasks.policies.columns import Columns
from discodso.tasks.policies.environments import Interface
from discodso.tasks.policies.literature._agents import GREEDY, SOFT, Agent, LearningLeaves
from discodso.tasks.policies.literature.episode_count import EpisodeCount, rates_itself
from discodso.tasks.policies.literature.practice import Practice
from discodso.tasks.policies.literature.soft_nets import crisp, room_of, trace_of
from discodso.tasks.policies.literature.trainers import CascadingTrainer, DifferentiableTrainer, Trainer
from discodso.tasks.policies.splits import Nodes
from discodso.tasks.policies.timed import Runner
from discodso.tasks.policies.tree import DecisionTree, Forest
from discodso.tasks.policies.vocabulary import TreeSpace

_STEP = 10  # episodes


class SoftTrees:
    """The method in the middle of a run.

    Args:
        settings: of differentiable or of cascading trees.
        space: of the crisp trees.
        interface: of the environment.
        practice: where soft trees act.
        runner: of episodes of crisp trees.
        seeds: of the environment, for episodes.
        each: episodes that count as one objective call.
        seed: of all that is random.

    Attributes:
        trainer: what is trained.
        run, episode: of training, how many are done.
        best_soft: the highest mean return of training episodes between two checks, of the soft tree that is.
    """

    batch_size = 1
    ask, tell = rates_itself("soft trees")

    def __init__(
        self,
        settings: SoftTreesSettings,
        space: TreeSpace,
        interface: Interface,
        practice: Practice,
        runner: Runner,
        seeds: range,
        each: int,
        seed: np.random.SeedSequence,
    ) -> None:
        self.settings, self.space, self.practice, self.runner = settings, space, practice, runner
        self.seeds, self.count = seeds, EpisodeCount(each)
        self._actions = np.array([action for action, _ in interface.action_names], np.int64)
        self._features = len(interface.feature_names)
        self._rng = np.random.default_rng(seed)
        self._trace = trace_of(self._features, practice.max_steps)
        self.run, self.episode, self._checked = 0, 0, False
        self.best_soft, self._lately = -np.inf, list[float]()
        self.trainer = self._fresh()

    def _fresh(self) -> Trainer:
        given = self._features, len(self._actions), self._rng
        if isinstance(self.settings, CascadingTreesSettings):
            return CascadingTrainer(self.settings, *given)
        assert isinstance(self.settings, DifferentiableTreesSettings)
        return DifferentiableTrainer(self.settings, *given)

    def search(self, room: int) -> Searched:
        """Train on, and now and then rate what the tree is when made crisp."""
        own, found = self.settings, list[tuple[float, Nodes]]()
        self.count.open(room)
        for _ in range(_STEP):
            if self.run == own.runs or found:
                break
            due = self.episode % own.check_every == 0 or self.episode == own.episodes
            if due and not self._checked:
                if not self.count.room(own.check_episodes):
                    break
                found = [pair for pair in [self._rate()] if np.isfinite(pair[0])]
            elif self.episode < own.episodes:
                if not self.count.room(1):
                    break
                self._learn()
            else:
                self.run, self.episode, self._checked = self.run + 1, 0, False
                if self.run < own.runs:
                    self.trainer = self._fresh()
        over = self.run == own.runs
        exhausted = f"all {own.runs * own.episodes} episodes of training are done" if over else ""
        return self.count.searched(self.space, found, exhausted)

    def _learn(self) -> None:
        """An episode."""
        self._lately += self.practice.run(self.agent(), self._drawn(1), self._rng).tolist()
        self.count.spend(1)
        self.trainer.learn(self._trace, self._rng)
        self.episode, self._checked = self.episode + 1, False

    def _rate(self) -> tuple[float, Nodes]:
        """The crisp tree with its mean return."""
        nodes, episodes = crisp(self.trainer.net, self._actions), self.settings.check_episodes
        forest = Forest.of([DecisionTree(nodes)])
        returns, _ = self.runner.returns(forest, np.zeros(episodes, np.int64), self._drawn(episodes))
        self.count.spend(episodes)
        self._checked = True
        if self._lately:
            self.best_soft = max(self.best_soft, float(np.mean(self._lately)))
        self._lately = []
        return float(returns.mean()), nodes

    def _drawn(self, count: int) -> Ints:
        return self._rng.integers(self.seeds[0], self.seeds[-1] + 1, count)

    def agent(self, kind: int = SOFT) -> Agent:
        """The soft tree as it is now."""
        net = self.trainer.net
        return Agent(kind, no_leaves(), self.trainer.output, net, room_of(net), self._trace)

    def soft_returns(self, seeds: range, greedy: bool = False) -> Floats:
        """Returns of the soft tree for some seeds, actions drawn, or the likeliest; they do not count."""
        agent, rng = self.agent(GREEDY if greedy else SOFT), np.random.default_rng(0)
        return self.practice.run(agent, np.array(seeds, np.int64), rng)

    def state(self) -> State:
        """Everything that later steps depend on."""
        data = {
            "random": generator_state(self._rng),
            "count": self.count.data(),
            "run": self.run,
            "episode": self.episode,
            "checked": self._checked,
            "best_soft": self.best_soft if np.isfinite(self.best_soft) else None,
            "lately": self._lately,
        }
        return State.of_parts({"own": State({}, data), "trainer": self.trainer.state()})

    def restore(self, state: State) -> None:
        """Go back to a state."""
        data = state.part("own").data
        self.trainer.restore(state.part("trainer"))
        restore_generator(self._rng, data["random"])
        self.count.set(data["count"])
        self.run, self.episode, self._checked = int(data["run"]), int(data["episode"]), bool(data["checked"])
        self.best_soft = -np.inf if data["best_soft"] is None else float(data["best_soft"])
        self._lately = [float(own) for own in data["lately"]]


def no_leaves() -> LearningLeaves:
    """In place of a tree whose leaves learn, where there is none."""
    ints, floats = np.zeros(1, np.int64), np.zeros(1)
    columns = Columns(ints, floats, ints, ints, ints, ints, floats)
    return LearningLeaves(
        columns, np.zeros((1, 1)), np.zeros((1, 1), np.int64), floats, 0.0, 0.0, 1.0, np.full(2, -1)
    )
