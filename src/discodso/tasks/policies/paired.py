"""Policies side by side: their returns in the same episodes, which none was searched, chosen or tested on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.errors import DeclarationError, EvaluationError
from discodso.base.statistics import bootstrap_interval
from discodso.base.text_tables import csv_text
from discodso.tasks.policies.episodes import environment_for, open_runner, paired_returns
from discodso.tasks.policies.tree_policy import TreePolicy

FRESH_SEEDS = range(10**6, 10**6 + 1000)  # above those of tests, below those of searches


@dataclass(frozen=True)
class PairedReturns:
    """Returns of some policies in the same episodes.

    Attributes:
        environment: where, for people.
        labels, nodes: of the policies.
        seeds: of the episodes.
        returns: float[policies, seeds].
    """

    environment: str
    labels: tuple[str, ...]
    nodes: tuple[int, ...]
    seeds: tuple[int, ...]
    returns: Floats

    @property
    def means(self) -> list[float]:
        """Mean return of each."""
        return [float(mean) for mean in self.returns.mean(axis=1)]

    @property
    def errors(self) -> list[float]:
        """Standard errors of these means."""
        return [_error(row) for row in self.returns]

    @property
    def pairs(self) -> list[dict[str, Any]]:
        """For every pair the mean "difference" of "first" and "second" in the same episodes, its standard "error",
        and its bootstrap "interval" of 95 %."""
        found = []
        for (first, one), (second, other) in combinations(zip(self.labels, self.returns, strict=True), 2):
            fall = one - other
            own = {"difference": float(fall.mean()), "error": _error(fall)}
            found.append({"first": first, "second": second, **own, "interval": bootstrap_interval(fall)})
        return found

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        columns = zip(self.labels, self.nodes, self.means, self.errors, strict=True)
        keys = ("label", "nodes", "mean", "error")
        policies = [dict(zip(keys, row, strict=True)) for row in columns]
        seeds = {"first": self.seeds[0], "last": self.seeds[-1], "count": len(self.seeds)}
        return {
            "environment": self.environment,
            "seeds": seeds,
            "policies": policies,
            "differences": self.pairs,
        }

    def to_csv(self) -> str:
        """One line for each policy."""
        rows = zip(self.labels, self.nodes, self.means, self.errors, strict=True)
        return csv_text(("policy", "nodes", "mean return", "standard error"), list(rows))


def _error(values: Floats) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values)))


def compare_policies(
    policies: Mapping[str, TreePolicy],
    seeds: Sequence[int] = FRESH_SEEDS,
    environment: Any = None,
    workers: int = 1,
    arguments: Mapping[str, Any] | None = None,
) -> PairedReturns:
    """Run policies in the same episodes.

    Args:
        policies: by the names that they shall have.
        seeds: for `env.reset(seed=...)`, two or more.
        environment: that of the first policy by default; all must be for it.
        workers: processes, or threads where the environment has a compiled simulator.
        arguments: of the environment that are others.
    """
    if not policies:
        raise DeclarationError("there is no policy to compare")
    if len(seeds) < 2:
        raise DeclarationError(f"seeds must be at least two, got {len(seeds)}")
    trees = list(policies.values())
    wanted = environment_for(trees[0], environment, arguments)
    for tree in trees[1:]:
        environment_for(tree, wanted)
    chosen = np.array(list(seeds), np.int64)
    with open_runner(wanted, workers) as runner:
        returns = paired_returns(trees, runner, chosen)
    good = np.isfinite(returns).all(axis=0)
    if good.sum() < 2:
        raise EvaluationError(f"nearly every episode of {wanted} failed; there is nothing to compare")
    kept = tuple(chosen[good].tolist())
    return PairedReturns(str(wanted), tuple(policies), tuple(map(len, trees)), kept, returns[:, good])
