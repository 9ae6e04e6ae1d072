"""Trees with sums in their splits and numbers in their leaves, and the plainest way to read them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discodso.space.bounds import DecisionTreeBounds
from discodso.space.tokens import Tree
from discodso.tasks.policies.leaves import ActionNumbers
from discodso.tasks.policies.tree_policy import TreePolicy
from discodso.tasks.policies.vocabulary import TreeSpace, Vocabulary

RANGES = ((-2.0, 6.0), (-1.0, 1.0), (100.0, 101.0))
NUMBERS = ActionNumbers(("steer", "gas"), (-1.0, 0.0), (1.0, 5.0), (2,), "float64")
FEATURES = ("a", "b b", "c")


def mixed_space(
    splits: Any = "oblique",
    numbers: ActionNumbers | None = NUMBERS,
    linear: bool = True,
    whole: tuple[bool, ...] = (False,) * 3,
    ranges: Any = RANGES,
    nodes: int = 15,
) -> TreeSpace:
    actions = () if numbers else ((0, "left"), (1, "right"), (2, "wait"))
    vocabulary = Vocabulary.of(FEATURES, ranges, actions, numbers, whole, splits, None, linear)
    bounds = DecisionTreeBounds()
    return TreeSpace(vocabulary.tokens, Tree(1, nodes), bounds=bounds, vocabulary=vocabulary)


def mixed_policies(
    space: TreeSpace, count: int, seed: int, numbers: ActionNumbers | None = NUMBERS
) -> list[TreePolicy]:
    designs = space.sample(count, seed)
    return [TreePolicy(space.vocabulary.nodes(d), None, FEATURES, (), numbers) for d in designs]


def naive(data: dict[str, Any], x: list[float], numbers: ActionNumbers | None) -> Any:
    """The action of a tree in JSON; a choice, or a list of numbers."""
    while "left" in data:
        if "weights" in data:
            total = 0.0
            for feature, weight in data["weights"].items():
                total += weight * x[int(feature)]
        else:
            total = x[data["feature"]]
        data = data["left"] if total < data["threshold"] else data["right"]
    if numbers is None:
        return data["action"]
    found = []
    weights = data.get("weights", [{}] * len(numbers))
    for number, own, low, high in zip(data["action"], weights, numbers.low, numbers.high, strict=True):
        for feature, weight in own.items():
            number += weight * x[int(feature)]
        found.append(low if not number >= low else min(number, high))
    return found


def any_points(rng: np.random.Generator, count: int, wild: bool = False) -> np.ndarray:
    """Observations inside the ranges and a little outside; `wild` ones have infinities and NaN as well."""
    low, high = (np.array(end) for end in zip(*RANGES, strict=True))
    x = rng.uniform(low - 0.2 * (high - low), high + 0.2 * (high - low), (count, 3))
    if wild:
        x[rng.random(x.shape) < 0.2] = rng.choice([math.nan, math.inf, -math.inf, 0.0, 1.0])
    return x
