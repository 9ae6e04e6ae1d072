"""TreePolicy: a decision tree with all that one can do with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from discodso.base.arrays import Floats
from discodso.tasks.policies.episodes import node_shares as shares_of_nodes
from discodso.tasks.policies.episodes import returns_of
from discodso.tasks.policies.export import export as exported
from discodso.tasks.policies.tree import DecisionTree
from discodso.tasks.policies.tree_picture import draw, svg


@dataclass(frozen=True, repr=False, eq=False)
class TreePolicy(DecisionTree):
    """A policy that people can read; see `DecisionTree` for acting, pruning and JSON.

    `TreePolicy.load("policy.json")` reads one, `act(observation)` is what `env.step` takes.
    """

    def evaluate(
        self, environment: Any = None, seeds: Sequence[int] = range(1000), workers: int = 1
    ) -> Floats:
        """float[len(seeds)], the return of the episode that begins with each reset seed.

        Args:
            environment: an id such as "Acrobot-v1"; the one that the policy was made for by default.
            seeds: for `env.reset(seed=...)`.
            workers: processes, or threads where the environment has a compiled simulator.
        """
        return returns_of(self, environment, seeds, workers)

    def export(self, form: str) -> str | bytes:
        """The tree as "text", "python", "c", "dot" or "json", or as bytes for "onnx"."""
        return exported(self, form)

    def draw(self, path: str | Path, shares: ArrayLike | None = None, title: str | None = None) -> None:
        """Write a picture, SVG or PNG by the suffix.

        Args:
            path: where to.
            shares: for each node the share of decisions that pass it, see `node_shares`.
            title: above the tree.
        """
        draw(self, path, shares, title)

    def _repr_svg_(self) -> str:
        """The picture, for notebooks."""
        return svg(self)

    def node_shares(self, environment: Any = None, seeds: Sequence[int] = range(100)) -> Floats:
        """float[n], for each node the share of decisions that pass it, over the episodes of some seeds."""
        return shares_of_nodes(self, environment, seeds)
