"""Genotypes as trees: decoded by hand, and what runs out of genes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.literature.grammar import decode, grammar_for, room_for
from discodso.tasks.policies.literature.spaces import plain
from discodso.tasks.policies.splits import Oblique, Split

RANGES = ((-4.8, 4.8), (-2.0, 2.0), (-0.4, 0.4), (-2.0, 2.0))


def tree_of(genes, grammar):
    """The nodes of a genotype; their leaves have no actions yet."""
    genes = np.array(genes)
    tree = room_for(len(genes), grammar)
    size = decode(genes, grammar, tree)
    return tree.tree(0, size).nodes() if size else None


def test_a_genotype_is_decoded_by_hand():
    grammar = grammar_for("CartPole-v1", RANGES, False)
    # root; if; condition of feature 2, <, constant 80; a decision: if, feature 1, >, constant 9; leaf, leaf; leaf
    genes = [5, 7, 4 + 2, 2, 80, 1, 3, 8 + 1, 5, 21 + 9, 0, 2, 4, 99]
    nodes = tree_of(genes, grammar)
    low, step = -0.418, 0.005
    above = -5.0 + 9 * 0.5
    assert nodes == (
        (Split(2, low + 80 * step), 4),
        (Oblique(((1, -1.0),), -above), 2),
        (Leaf(), 0),
        (Leaf(), 0),
        (Leaf(), 0),
    )


def test_the_constants_are_the_published_grids_else_a_hundred_steps():
    cartpole = grammar_for("CartPole-v1", RANGES, False)
    assert cartpole.constants.tolist() == [20, 21, 168, 335]
    last = cartpole.low + (cartpole.constants - 1) * cartpole.step
    np.testing.assert_allclose(last, [4.7, 5.0, 0.417, 0.834])
    other = grammar_for("Acrobot-v1", (None, (-1.0, 1.0)), False)
    assert (other.features.tolist(), other.constants.tolist()) == ([1], [101])
    np.testing.assert_allclose([other.low[0], other.step[0]], [-1.0, 0.02])


def test_an_oblique_condition_takes_a_gene_for_each_feature():
    grammar = grammar_for("LunarLander-v3", ((-1.0, 1.0), (-1.0, 1.0)), True)
    nodes = tree_of([0, 0, 0, 2000, 1500, 0, 0], grammar)
    assert nodes is not None
    split = nodes[0][0]
    assert isinstance(split, Oblique)
    assert dict(split.terms) == pytest.approx({0: 1.0, 1: 0.5})
    assert split.threshold == 0.0


@pytest.mark.parametrize("genes", [[0], [0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 0, 0, 0]])
def test_a_genotype_that_runs_out_is_no_tree(genes):
    assert tree_of(genes, grammar_for("CartPole-v1", RANGES, False)) is None


def test_plain_splits_act_like_sums_of_one_feature():
    above = ((Oblique(((0, -2.0),), -1.0), 2), (Leaf(1), 0), (Leaf(2), 0))  # x > 0.5
    assert plain(above) == ((Split(0, math.nextafter(0.5, 1.0)), 2), (Leaf(2), 0), (Leaf(1), 0))
    below = ((Oblique(((0, 2.0), (1, 0.0)), 1.0), 2), (Leaf(1), 0), (Leaf(2), 0))
    assert plain(below) == ((Split(0, 0.5), 2), (Leaf(1), 0), (Leaf(2), 0))
    assert plain(((Oblique(((0, 0.0),), 1.0), 2), (Leaf(1), 0), (Leaf(2), 0))) == ((Leaf(1), 0),)
