"""Genotypes as trees: the grammar of Custode and Iacca, in which every non-terminal takes the next gene.

    root -> if;  if -> "if condition: action else: action";  action -> leaf | if
    condition -> x_i op const_i, op -> < | >;  oblique: condition -> sum_i const x_i < 0

A production is the gene modulo how many there are. The leftmost non-terminal comes first, which gives the tree in
pre-order. A genotype that runs out of genes is no tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.base.compiled import compiled
from discodso.tasks.policies.columns import LEAF, OBLIQUE, Columns
from discodso.tasks.policies.terms import Limits

_STEPS = 100  # of a grid over a range
_FINE = 0.001  # step of weights from -1 to 1
# Published grids: low, high, step of each feature.
_GRIDS = {
    "CartPole": ((-4.8, 4.8, 0.5), (-5.0, 5.0, 0.5), (-0.418, 0.418, 0.005), (-0.836, 0.836, 0.005)),
    "MountainCar": ((-1.2, 0.6, 0.05), (-0.07, 0.07, 0.005)),
}


class Productions(NamedTuple):
    """Constants of conditions: constant k of feature i is low[i] + k step[i], one of constants[i].

    Attributes:
        features: int[F], those that conditions may be about.
        oblique: whether conditions are sums of all of them.
    """

    features: Ints
    low: Floats
    step: Floats
    constants: Ints
    oblique: bool


def grammar_for(environment: str, ranges: Sequence[Limits | None], oblique: bool) -> Productions:
    """The grammar for an environment: its published grid, or a hundred steps over the range of each feature."""
    used = [n for n, limits in enumerate(ranges) if limits is not None]
    if oblique:
        grid: Sequence[tuple[float, float, float]] = [(-1.0, 1.0, _FINE)] * len(ranges)
    else:
        spread = [(low, high, (high - low) / _STEPS) for low, high in (own or (0.0, 1.0) for own in ranges)]
        published = _GRIDS.get(environment.split("-")[0], ())
        grid = published if len(published) == len(ranges) else spread
    low, high, step = np.array([grid[n] for n in used]).T
    count = np.floor((high - low) / step + 1e-9).astype(np.int64) + 1
    return Productions(np.array(used, np.int64), low, step, count, oblique)


def room_for(genes: int, grammar: Productions) -> Columns:
    """Columns for the largest tree that a genotype can give."""
    nodes, terms = genes + 1, max(genes, 1) * (len(grammar.features) if grammar.oblique else 1)
    ints = (np.zeros(nodes, np.int64) for _ in range(4))
    feature, jump, first, count = ints
    return Columns(feature, np.zeros(nodes), jump, first, count, np.zeros(terms, np.int64), np.zeros(terms))


@compiled()
def decode(genes: Ints, grammar: Productions, tree: Columns) -> int:
    """Fill the tree of a genotype, and give the number of its nodes; 0 if the genes run out.

    "x > c" is written as "-x < -c", so that the first action comes first either way.
    """
    waiting = np.empty(genes.shape[0] + 1, np.int64)
    node, stacked, at, term = 0, 0, 1, 0  # the root takes the first gene, which has no choice
    size = grammar.features.shape[0]
    need = 2 + size if grammar.oblique else 4
    while True:
        decides = True
        if node > 0:
            if at >= genes.shape[0]:
                return 0
            decides = genes[at] % 2 == 1
            at += 1
        if decides:
            if at + need > genes.shape[0]:
                return 0
            at += 1  # "if" has one production
            tree.first[node] = term
            if grammar.oblique:
                at += 1  # and so has a condition
                tree.feature[node], tree.threshold[node] = OBLIQUE, 0.0
                for n in range(size):
                    tree.term[term] = grammar.features[n]
                    tree.weight[term] = grammar.low[n] + genes[at] % grammar.constants[n] * grammar.step[n]
                    at += 1
                    term += 1
            else:
                n = genes[at] % size
                above = genes[at + 1] % 2 == 1
                constant = grammar.low[n] + genes[at + 2] % grammar.constants[n] * grammar.step[n]
                at += 3
                tree.feature[node], tree.threshold[node] = grammar.features[n], constant
                if above:
                    tree.feature[node], tree.threshold[node] = OBLIQUE, -constant
                    tree.term[term], tree.weight[term] = grammar.features[n], -1.0
                    term += 1
            tree.count[node] = term - tree.first[node]
            waiting[stacked] = node
            stacked += 1
            node += 1
        else:
            tree.feature[node], tree.threshold[node], tree.jump[node] = LEAF, 0.0, 0
            tree.first[node], tree.count[node] = term, 0
            node += 1
            if stacked == 0:
                return node
            stacked -= 1
            tree.jump[waiting[stacked]] = node - waiting[stacked]
