"""One episode of a tree in any Gymnasium environment."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Nodes = tuple[list[int], list[float], list[int]]  # feature, threshold, jump


class PlainEpisodes:
    """Episodes through the `step` of an environment."""

    def __init__(self, env: Any) -> None:
        self.env = env

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def run(self, nodes: Nodes, seed: int, max_steps: int) -> float:
        """The return of one episode; ValueError for an observation or a reward that is not a number."""
        feature, threshold, jump = nodes
        observation, _ = self.env.reset(seed=seed)
        total = 0.0
        for _ in range(max_steps):
            x = np.asarray(observation, np.float64).ravel().tolist()
            if math.isnan(sum(x)) and any(math.isnan(number) for number in x):
                raise ValueError(f"the environment gave an observation with NaN, seed {seed}")
            node = 0
            while feature[node] >= 0:
                node = node + 1 if x[feature[node]] < threshold[node] else jump[node]
            observation, reward, terminated, truncated, _ = self.env.step(jump[node])
            total += float(reward)
            if terminated or truncated:
                break
        if not math.isfinite(total):
            raise ValueError(f"the rewards of an episode add up to {total}, seed {seed}")
        return total
