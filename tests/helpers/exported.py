"""Trees and observations for exports: nasty names, numbers at the edges."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.splits import Split
from discodso.tasks.policies.tree_policy import TreePolicy

NASTY = (
    "a\nraise SystemExit",
    "b */ #error",
    "c \\",
    "??/",
    "coding: utf-16",
    'q" -> x; "',
    "\u2028\x85\r\x00",
    "/*/ \ud800 \u202e x",
    "&lt; \\N <b>",
    "",
)
seeds = st.integers(0, 2**32 - 1)


def named(policy: TreePolicy, names=NASTY) -> TreePolicy:
    return policy.with_names(None, names, [(action, names[action % len(names)]) for action in range(30)])


def observations(policy: TreePolicy, rng: np.random.Generator, rows: int = 60, kind=np.float64) -> np.ndarray:
    """Rows of numbers on, just below and just above the thresholds, special values, and others."""
    width = policy.width or 1
    limits = [np.finfo(kind).max, -np.finfo(kind).max, np.finfo(kind).smallest_subnormal]
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, *limits, *rng.normal(size=9)], kind)
    with np.errstate(all="ignore"):
        near = np.array([getattr(split, "threshold", 0.0) for split, _ in policy.nodes]).astype(kind)
        pool = np.concatenate((near, *(np.nextafter(near, kind(end)) for end in (-np.inf, np.inf)), special))
    x = rng.choice(pool, size=(rows, width))
    # Some have the very thresholds in their own columns, so that deep nodes are met on their edges too.
    for node, (split, _) in enumerate(policy.nodes):
        if not isinstance(split, Leaf):
            x[rng.integers(rows, size=rows // 8), split.feature] = near[node]
    return x


def stump(threshold: float, left: int, right: int) -> TreePolicy:
    return TreePolicy(((Split(0, threshold), 2), (Leaf(left), 0), (Leaf(right), 0)))
