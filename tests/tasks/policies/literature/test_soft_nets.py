"""Crisp trees act as the most probable path of soft ones."""

from __future__ import annotations

import numpy as np
import pytest

from discodso.tasks.policies.literature._agents import SUM_OF_SOFTMAX, VALUES, forward
from discodso.tasks.policies.literature.soft_nets import Sizes, crisp, net_of, room_of
from discodso.tasks.policies.tree import DecisionTree


def likeliest(net, x):
    """The action at the end of the most probable path, at each node by the feature of the largest weight."""

    def descend(nodes, scale, seen):
        i = 0
        while i < len(nodes):
            k = np.abs(nodes[i, :-1]).argmax()
            i = 2 * i + (1 if scale * (nodes[i, k] * seen[k] + nodes[i, -1]) > 0 else 2)
        return i - len(nodes)

    made = net.features[descend(net.gates, 1.0, x)] @ x
    return net.leaves[descend(net.nodes, net.scale[0], made)].argmax()


@pytest.mark.parametrize("scale", [1.0, -0.7])
@pytest.mark.parametrize("gates", [0, 3])
def test_a_crisp_tree_takes_the_most_probable_path(gates, scale):
    rng, sizes = np.random.default_rng(gates), Sizes(4, 3, gates, 4 if gates == 0 else 2, 7)
    net = net_of(rng.normal(size=sizes.numbers), sizes)
    net.scale[0] = scale
    if gates == 0:
        net.features[0] = np.eye(4)
    tree = DecisionTree(crisp(net, np.array([5, 6, 7])))
    assert len(tree) == 15 if gates == 0 else len(tree) == 3 + 4 * 15
    for x in rng.normal(size=(300, 4)):
        assert tree.act(x) == 5 + likeliest(net, x)


def test_a_soft_tree_with_steep_nodes_acts_like_its_crisp_tree():
    rng, sizes = np.random.default_rng(5), Sizes(3, 2, 3, 2, 3)
    net = net_of(rng.normal(size=sizes.numbers), sizes)
    for part in (net.gates, net.nodes):  # one weight each, and steep
        for row in part:
            row[:-1][np.arange(len(row) - 1) != np.abs(row[:-1]).argmax()] = 0.0
            row *= 1e6
    tree, room = DecisionTree(crisp(net, np.arange(2))), room_of(net)
    for x in rng.normal(size=(200, 3)):
        for output in (VALUES, SUM_OF_SOFTMAX):
            forward(net, output, x, room)
            assert tree.act(x) == room.out.argmax()
