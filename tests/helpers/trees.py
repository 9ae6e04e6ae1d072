"""Random and sensible trees, and the plainest way to read and to run one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from discodso.tasks.policies.splits import Split
from discodso.tasks.policies.tree_policy import TreePolicy

Ranges = Sequence[tuple[float, float]]


def leaf(action: int) -> dict[str, Any]:
    return {"action": action}


def decision(feature: int, threshold: float, left: Any, right: Any) -> dict[str, Any]:
    """Left and right may be actions, for short."""
    parts = [leaf(part) if isinstance(part, int) else part for part in (left, right)]
    return {"feature": feature, "threshold": threshold, "left": parts[0], "right": parts[1]}


def tree(data: Any) -> TreePolicy:
    return TreePolicy.from_dict(leaf(data) if isinstance(data, int) else data)


def chain(depth: int) -> dict[str, Any]:
    """A tree of the given depth where everything hangs on the right."""
    data = leaf(0)
    for level in range(depth):
        data = decision(0, float(depth - level), level % 2, data)
    return data


def random_tree(
    rng: np.random.Generator,
    ranges: Ranges,
    actions: Sequence[int],
    nodes: int | None = None,
    grid: int | None = None,
) -> TreePolicy:
    """A tree of 1, 3, ... 31 nodes, or as many as wanted; thresholds anywhere in the ranges or on a grid."""
    size = int(2 * rng.integers(0, 16) + 1) if nodes is None else nodes

    def part(count: int) -> dict[str, Any]:
        if count == 1:
            return leaf(int(rng.choice(actions)))
        left = int(2 * rng.integers(0, (count - 1) // 2) + 1)
        feature = int(rng.integers(len(ranges)))
        low, high = ranges[feature]
        share = rng.uniform() if grid is None else rng.integers(grid + 1) / grid
        return decision(feature, float(low + (high - low) * share), part(left), part(count - 1 - left))

    return TreePolicy.from_dict(part(size))


@st.composite
def any_tree(draw: Any, features: int = 3, actions: int = 3, grid: int | None = 4) -> TreePolicy:
    """Trees for hypothesis; on a coarse grid, so that decisions repeat and contradict each other."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    nodes = 2 * draw(st.integers(0, 15)) + 1
    return random_tree(rng, [(-1.0, 1.0)] * features, range(actions), nodes, grid)


def sensible_tree(rng: np.random.Generator, environment: str) -> TreePolicy:
    """A tree near one that solves the environment; some are good, some are not, returns vary."""
    normal = rng.normal
    if environment == "CartPole-v1":
        falling_left = decision(3, normal(0.5, 0.4), 0, 1)
        falling_right = decision(3, normal(-0.5, 0.4), 0, 1)
        core = decision(2, normal(0, 0.05), falling_left, falling_right)
        if rng.uniform() < 0.5:
            core = decision(0, normal(-1, 1), decision(3, normal(0.2, 0.2), 0, 1), core)
        return tree(core)
    if environment == "MountainCar-v0":
        core = decision(1, normal(0, 0.004), 0, 2)
        if rng.uniform() < 0.5:
            core = decision(0, normal(-0.9, 0.2), decision(1, normal(-0.02, 0.02), 0, 2), core)
        return tree(core)
    assert environment == "Acrobot-v1"
    first, second = decision(4, normal(0, 0.3), 2, 0), decision(5, normal(0, 0.4), 0, 2)
    core = first if rng.uniform() < 0.5 else second
    if rng.uniform() < 0.5:
        core = decision(int(rng.integers(4)), normal(0, 0.5), core, first)
    return tree(core)


def actions(policy: TreePolicy, observations: np.ndarray) -> list[int]:
    return [policy.act(row) for row in observations]


def naive_action(part: dict[str, Any], observation: Sequence[float]) -> int:
    """The action by reading the nested dictionary as it is written."""
    if "action" in part:
        return int(part["action"])
    goes_left = float(observation[part["feature"]]) < part["threshold"]
    return naive_action(part["left"] if goes_left else part["right"], observation)


def plain_return(env: Any, data: dict[str, Any], seed: int, limit: int = 10**9) -> float:
    """The return of one episode, by the loop of Gymnasium's documentation."""
    observation, _ = env.reset(seed=seed)
    total = 0.0
    for _ in range(limit):
        flat = np.asarray(observation).ravel().tolist()
        observation, reward, terminated, truncated, _ = env.step(naive_action(data, flat))
        total += float(reward)
        if terminated or truncated:
            break
    return total


def telling_points(trees: Sequence[TreePolicy]) -> np.ndarray:
    """One observation for every way in which the trees can decide: the product of what each feature can be.

    For each feature its thresholds, a number between each two of them, infinities and NaN.
    """
    width = max(1, *(t.width for t in trees))
    columns = []
    for feature in range(width):
        cuts = sorted(
            {s.threshold for t in trees for s, _ in t.nodes if isinstance(s, Split) and s.feature == feature}
        )
        between = [(a + b) / 2 for a, b in itertools.pairwise(cuts)]
        columns.append([-math.inf, *cuts, *between, math.inf, math.nan])
    return np.array(list(itertools.product(*columns)))


def edge_points(rng: np.random.Generator, of: TreePolicy, width: int, count: int) -> np.ndarray:
    """Observations [count, width]: thresholds, their neighbours among the floats, NaN, infinities, others."""
    cuts = np.array([split.threshold for split, _ in of.nodes if isinstance(split, Split)] or [0.0])
    special = np.concatenate(
        [cuts, np.nextafter(cuts, -np.inf), np.nextafter(cuts, np.inf), [np.nan, np.inf, -np.inf, 0.0, -0.0]]
    )
    chosen = rng.choice(special, (count, width))
    return np.where(rng.uniform(size=(count, width)) < 0.7, chosen, rng.uniform(-1.2, 1.2, (count, width)))
