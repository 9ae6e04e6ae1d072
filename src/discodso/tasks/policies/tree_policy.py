"""TreePolicy: a decision tree with all that one can do with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discodso.base.arrays import Floats
from discodso.base.files import FileError
from discodso.tasks.policies.episodes import node_shares as shares_of_nodes
from discodso.tasks.policies.episodes import returns_of
from discodso.tasks.policies.export import export as exported
from discodso.tasks.policies.observations import rows_of
from discodso.tasks.policies.tree import DecisionTree
from discodso.tasks.policies.tree_picture import draw, svg

POLICY = "policy.json"  # in the folder of a run


def policy_file(path: str | Path) -> Path:
    """The file of a policy: itself, or that in the folder of a run."""
    if not Path(path).is_dir():
        return Path(path)
    file = Path(path) / POLICY
    if not file.is_file() or file.is_symlink():
        raise FileError(f"{path} has no {POLICY}; a search for a policy writes it when it has ended")
    return file


@dataclass(frozen=True, repr=False, eq=False)
class TreePolicy(DecisionTree):
    """A policy that people can read; see `DecisionTree` for acting, pruning and JSON.

    `TreePolicy.load("policy.json")` reads one, `act(observation)` is what `env.step` takes.
    """

    def evaluate(
        self,
        environment: Any = None,
        seeds: Sequence[int] = range(1000),
        workers: int = 1,
        arguments: Mapping[str, Any] | None = None,
    ) -> Floats:
        """float[len(seeds)], the return of the episode that begins with each reset seed.

        Args:
            environment: an id such as "Acrobot-v1"; the one that the policy was made for by default. Another one
                is refused, unless it is what a function makes.
            seeds: for `env.reset(seed=...)`.
            workers: processes, or threads where the environment has a compiled simulator.
            arguments: of the environment that are others than those it was made with, such as {"gravity": -11.0}.
        """
        return returns_of(self, environment, seeds, workers, arguments)

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[Any, Any]:
        """The action for an observation, or an array of them for a batch, and the state as it came.

        It has the form that stable-baselines3 expects, for its `evaluate_policy`. A batch has one observation more
        than a policy takes along its first axis; of dictionaries each entry has.

        Args:
            observation: one, or a batch.
            state, episode_start, deterministic: play no part, for a tree remembers nothing and never draws.
        """
        parts = rows_of(observation, len(self.feature_names) or None)
        if parts is None:
            return self.act(observation), state
        return np.array([self.act(part) for part in parts]), state

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
