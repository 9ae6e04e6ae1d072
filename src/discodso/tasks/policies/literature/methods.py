"""Which space a literature method needs, and how it starts in an environment."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np

from discodso.baselines.literature import EvolutionaryTreesSettings, Practising, SoftTreesSettings
from discodso.disco.method import Method
from discodso.space.space import Space
from discodso.tasks.policies.environments import Interface
from discodso.tasks.policies.literature.evolution import EvolutionaryTrees
from discodso.tasks.policies.literature.practice import practice_of
from discodso.tasks.policies.literature.soft_trees import SoftTrees
from discodso.tasks.policies.literature.spaces import wide_space
from discodso.tasks.policies.timed import TimedRunner
from discodso.tasks.policies.vocabulary import TreeSpace

Maker = Callable[[Any, Space, np.random.SeedSequence], Method]


def space_of(settings: Practising, interface: Interface) -> TreeSpace:
    """The space of the trees that a method ends with."""
    univariate = isinstance(settings, EvolutionaryTreesSettings) and settings.splits == "univariate"
    return wide_space(interface, "univariate" if univariate else "oblique")


def maker_in(
    interface: Interface, runner: TimedRunner, seeds: range, episodes: int, stack: ExitStack, kind: str
) -> Maker:
    """What starts the methods in an environment.

    Args:
        interface, runner: of the environment.
        seeds: for its episodes.
        episodes: of one objective call.
        stack: what is to be closed goes on it.
        kind: of the method, for errors.
    """
    practice = practice_of(interface, runner, stack, kind)

    def make(settings: Any, space: Space, seed: np.random.SeedSequence) -> Method:
        assert isinstance(space, TreeSpace)
        if isinstance(settings, EvolutionaryTreesSettings):
            return EvolutionaryTrees(settings, space, interface, practice, seeds, episodes, seed)
        assert isinstance(settings, SoftTreesSettings)
        return SoftTrees(settings, space, interface, practice, runner, seeds, episodes, seed)

    return make
