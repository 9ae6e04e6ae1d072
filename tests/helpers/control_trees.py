"""Trees of any shape for the tests of control."""

from __future__ import annotations

import numpy as np

from discodso.tasks.policies.tree_policy import TreePolicy


def random_tree(
    rng: np.random.Generator, decisions: int, features: int = 4, actions: int = 3, lean: float | None = None
) -> TreePolicy:
    """A tree with some decisions, of random shape; `lean` is the share of decisions that go left."""

    def grow(budget):
        if not budget:
            return {"action": int(rng.integers(actions))}
        left = int(rng.integers(budget)) if lean is None else int(rng.binomial(budget - 1, lean))
        return {
            "feature": int(rng.integers(features)),
            "threshold": float(rng.choice([rng.normal(), rng.normal() * 10.0 ** rng.integers(-12, 12), 0.0])),
            "left": grow(left),
            "right": grow(budget - 1 - left),
        }

    return TreePolicy.from_dict(grow(decisions))


def complete_tree(depth: int, features: int = 4, actions: int = 3) -> TreePolicy:
    def grow(level, place):
        if level == depth:
            return {"action": place % actions}
        left, right = grow(level + 1, 2 * place), grow(level + 1, 2 * place + 1)
        return {"feature": place % features, "threshold": place - 0.25, "left": left, "right": right}

    return TreePolicy.from_dict(grow(0, 0))


def chain(decisions: int, goes_left: bool = False) -> TreePolicy:
    tree: dict = {"action": 0}
    for step in range(decisions):
        leaf = {"action": step % 3}
        left, right = (tree, leaf) if goes_left else (leaf, tree)
        tree = {"feature": step % 4, "threshold": step / 7, "left": left, "right": right}
    return TreePolicy.from_dict(tree)
