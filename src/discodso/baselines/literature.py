"""Settings of the three tree methods that the paper compares with; they learn inside episodes of an environment.

Defaults are those published for CartPole, or for all; `published` has those of the paper's environments. What
carries them out needs the environment itself, which the kind of task hands over (`Practising.maker`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from discodso.base.checks import require, require_number, require_one_of, seed_sequence, settle_integers
from discodso.base.errors import DeclarationError
from discodso.disco.method import Method
from discodso.space.space import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class Practising:
    """Settings of a method that acts in an environment while it learns.

    Args:
        maker: starts it on a space with these settings and a seed; a kind of task that has an environment sets it.
    """

    maker: Callable[[Any, Space, np.random.SeedSequence], Method] | None = None

    IN_FILES: ClassVar[Mapping[str, Any]] = {"maker": None}
    kind: ClassVar[str] = ""

    def build(self, space: Space, seed: int | np.random.SeedSequence = 0) -> Method:
        """Start the method on a space."""
        if self.maker is None:
            raise DeclarationError(
                f"method.kind {self.kind!r} learns inside episodes of an environment: it is for task.kind 'policy'"
            )
        return self.maker(self, space, seed_sequence(seed))


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolutionaryTreesSettings(Practising):
    """Evolutionary DTs (Custode and Iacca): grammatical evolution of a tree, Q-learning in its leaves.

    Args:
        population, generations: each individual has an offspring in a generation, which replaces it if better.
        episodes: of learning for an individual; its fitness is the mean return of the last `window` of them.
        window: episodes; 0 for all. With it learning ends early, when the mean of a window falls below that of the
            window before.
        splits: "univariate" or "oblique".
        genes, largest_gene: of a genotype, integers from 0.
        mutation: chance of each gene of an offspring.
        crossover: chance of a pair of offspring.
        tournament: individuals that a parent is the best of.
        rate: of learning; 0 for one over how often an action was tried in a leaf.
        discount: gamma.
        epsilon, decay: chance of an action at random, and what it is multiplied by at each visit of a leaf.
        spread: Q begins evenly in [-spread, spread].
    """

    kind: ClassVar[str] = "evolutionary-trees"

    population: int = 200
    generations: int = 100
    episodes: int = 10
    window: int = 0
    splits: Literal["univariate", "oblique"] = "univariate"
    genes: int = 100
    largest_gene: int = 40_000
    mutation: float = 0.1
    crossover: float = 0.0
    tournament: int = 2
    rate: float = 0.001
    discount: float = 0.05
    epsilon: float = 0.05
    decay: float = 1.0
    spread: float = 1.0

    def __post_init__(self) -> None:
        least = {"population": 2, "generations": 0, "episodes": 1, "window": 0, "genes": 7, "largest_gene": 1}
        settle_integers(self, {**least, "tournament": 1})
        require_one_of("splits", self.splits, ("univariate", "oblique"))
        for name in ("mutation", "crossover", "rate", "discount", "epsilon", "decay"):
            require_number(name, getattr(self, name), least=0, most=1)
        require_number("spread", self.spread, least=0)
        require("window", self.window, self.window <= self.episodes, "at most as many as episodes")


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftTreesSettings(Practising):
    """What both methods have that train soft trees by PPO and make them crisp.

    Args:
        runs: trainings one after the other, from the beginning; the best crisp tree of all counts.
        episodes: of a training.
        depth: decisions on the way to a leaf.
        rate: of the optimiser.
        discount: gamma.
        clip: of PPO.
        check_every, check_episodes: after how many episodes of training the tree is made crisp and rated, and by
            how many episodes. All of them count.
    """

    runs: int = 1
    episodes: int = 2000
    depth: int = 3
    rate: float = 1e-2
    discount: float = 0.99
    clip: float = 0.2
    check_every: int = 50
    check_episodes: int = 15

    def __post_init__(self) -> None:
        least = {"runs": 1, "episodes": 1, "depth": 1, "check_every": 1, "check_episodes": 2}
        settle_integers(self, least)
        require("depth", self.depth, self.depth <= 6, "at most 6")
        require_number("rate", self.rate, above=0)
        require_number("discount", self.discount, least=0, most=1)
        require_number("clip", self.clip, above=0, most=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferentiableTreesSettings(SoftTreesSettings):
    """Interpretable DDTs (Silva et al.): a differentiable tree, and another that rates its actions.

    Args:
        entropy: weight of the entropy bonus.
        parts: an episode of T steps is learnt from in T // B minibatches of B = max(T // parts, 1).
    """

    kind: ClassVar[str] = "differentiable-trees"

    runs: int = 5
    entropy: float = 0.01
    parts: int = 16

    def __post_init__(self) -> None:
        SoftTreesSettings.__post_init__(self)
        settle_integers(self, {"parts": 1})
        require_number("entropy", self.entropy, least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadingTreesSettings(SoftTreesSettings):
    """Cascading DTs (Ding et al.): a soft tree whose leaves make features, and one that decides on these.

    Args:
        features: K, that each leaf of the first tree makes.
        trace: lambda of the advantages.
        horizon: an episode is learnt from in parts of so many steps.
        epochs: times that each part is learnt from.
        hidden: units of the critic.
    """

    kind: ClassVar[str] = "cascading-trees"

    episodes: int = 3000
    depth: int = 2
    rate: float = 5e-4
    discount: float = 0.98
    clip: float = 0.1
    features: int = 2
    trace: float = 0.95
    horizon: int = 5
    epochs: int = 3
    hidden: int = 128

    def __post_init__(self) -> None:
        SoftTreesSettings.__post_init__(self)
        settle_integers(self, {"features": 1, "horizon": 1, "epochs": 1, "hidden": 1})
        require_number("trace", self.trace, least=0, most=1)


LITERATURE = ("Evolutionary DTs", "Cascading DTs", "Interpretable DDTs")


def published(environment: str) -> dict[str, Practising]:
    """The three methods by the paper's names, with the settings that were published for an environment."""
    own = environment.split("-")[0]
    evolved = {
        "MountainCar": EvolutionaryTreesSettings(generations=1000, mutation=0.05),
        "LunarLander": EvolutionaryTreesSettings(
            population=100, episodes=1000, window=30, splits="oblique", largest_gene=4000, mutation=0.05,
            crossover=0.1, rate=0.0, discount=0.9, epsilon=1.0, decay=0.99, spread=0.0,
        ),
    }  # fmt: skip
    cascading = {
        "MountainCar": CascadingTreesSettings(
            episodes=5000, rate=5e-3, discount=0.999, features=1, trace=0.98, epochs=10, hidden=32
        ),
        "LunarLander": CascadingTreesSettings(episodes=5000, depth=3),
        "Acrobot": CascadingTreesSettings(episodes=7000),
    }
    first, second, third = LITERATURE
    return {
        first: evolved.get(own, EvolutionaryTreesSettings()),
        second: cascading.get(own, CascadingTreesSettings()),
        third: DifferentiableTreesSettings(),
    }
