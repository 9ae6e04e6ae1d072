"""Cutting out of a tree what its returns do not need: fewer nodes at the same score.

`DecisionTree.pruned` keeps every action; this looks at returns. A decision gives way to one of its sides if the
mean return does not fall by more than the standard error of that fall, measured on the same fresh episodes. So
nodes that are never visited go, and those that earn nothing. All steps together are held to the tree at the
beginning, so that small losses do not add up.
"""

from __future__ import annotations

import math

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.tasks.policies.episodes import Runner, paired_returns
from discodso.tasks.policies.tree_policy import TreePolicy

_TRIED = 3  # cuts that look best on few episodes, and are then tried on many


def trim(policy: TreePolicy, runner: Runner, few: Ints, many: Ints, more: Ints) -> tuple[TreePolicy, int]:
    """The tree without what earns nothing, and the episodes that it took to find out.

    Args:
        policy: with rewards that are means over episodes.
        runner: of its environment.
        few: seeds on which all cuts are compared.
        many: others, on which the best of them must hold.
        more: others, for trees whose episodes all end alike, as those of perfect policies do: without a spread
            there is no error to go by, so such a tree must end all of these likewise.
    """
    policy = policy.pruned()
    base, spent = paired_returns([policy], runner, many)[0], len(many)
    perfect = len(set(base.tolist())) == 1
    while cuts := policy.cuts():
        screened = paired_returns(cuts, runner, few).mean(axis=1)
        screened = np.where(np.isfinite(screened), screened, -np.inf)  # a failed episode is NaN
        spent += len(cuts) * len(few)
        order = sorted(range(len(cuts)), key=lambda row: (-screened[row], len(cuts[row])))
        for row in order[:_TRIED]:
            spent += len(many)
            holds = _as_good(paired_returns([cuts[row]], runner, many)[0], base)
            if holds and perfect:
                spent += len(more)
                holds = bool((paired_returns([cuts[row]], runner, more) == base[0]).all())
            if holds:
                policy = cuts[row]
                break
        else:
            break
    return policy, spent


def _as_good(returns: Floats, base: Floats) -> bool:
    fall = base - returns
    error = fall.std(ddof=1) / math.sqrt(len(fall))
    return bool(np.isfinite(returns).all() and fall.mean() <= error)
