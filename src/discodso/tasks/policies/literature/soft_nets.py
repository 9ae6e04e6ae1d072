"""Soft trees as parts of one array of numbers, how they begin, and what they are when made crisp."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.literature._agents import Net, Recorded, Room
from discodso.tasks.policies.literature.spaces import plain
from discodso.tasks.policies.splits import Nodes, Oblique


class Sizes(NamedTuple):
    """Of soft trees: features and actions, gates, features made, and nodes; see `_agents`."""

    features: int
    actions: int
    gates: int
    made: int
    nodes: int

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each part of a `Net`."""
        return (
            (self.gates, self.features + 1),
            (self.gates + 1, self.made, self.features),
            (self.nodes, self.made + 1),
            (self.nodes + 1, self.actions),
            (1,),
        )

    @property
    def numbers(self) -> int:
        """How many there are in all."""
        return sum(map(math.prod, self.shapes))


def net_of(numbers: Floats, sizes: Sizes) -> Net:
    """Soft trees whose parts are views of one array."""
    parts, at = [], 0
    for shape in sizes.shapes:
        size = math.prod(shape)
        parts.append(numbers[at : at + size].reshape(shape))
        at += size
    return Net(*parts)


def empty_net() -> Net:
    """In place of soft trees where there are none."""
    return net_of(np.zeros(Sizes(1, 1, 0, 1, 0).numbers), Sizes(1, 1, 0, 1, 0))


def room_of(net: Net) -> Room:
    """Room to compute in."""
    gates, nodes, made, actions = len(net.gates), len(net.nodes), net.features.shape[1], net.leaves.shape[1]
    return Room(
        np.zeros(gates),
        np.zeros(2 * gates + 1),
        np.zeros((gates + 1, made)),
        np.zeros((gates + 1, nodes)),
        np.zeros((gates + 1, 2 * nodes + 1)),
        np.zeros(nodes + 1),
        np.zeros((nodes + 1, actions)),
        np.zeros(actions),
        np.zeros(2 * max(gates, nodes) + 1),
        np.zeros(nodes + 1),
        np.zeros(gates + 1),
        np.zeros(made),
        np.zeros(actions),
    )


def trace_of(features: int, steps: int) -> Recorded:
    """Room for an episode; without features for the rewards only."""
    return Recorded(
        np.zeros((steps + 1, features)),
        np.zeros(steps, np.int64),
        np.zeros(steps),
        np.zeros(steps),
        np.zeros(2, np.int64),
    )


def crisp(net: Net, actions: Ints) -> Nodes:
    """The tree that remains if each node looks at the feature of its largest weight only and leaves choose.

    Where a learned feature is a sum of several features the split is oblique. `actions` int[A] are those of the
    environment.
    """
    return plain(_crisp_gates(net, actions, 0))


def _crisp_gates(net: Net, actions: Ints, i: int) -> Nodes:
    gates = len(net.gates)
    if i >= gates:
        return _crisp_nodes(net, actions, net.features[i - gates], 0)
    eye = np.eye(net.gates.shape[1] - 1)
    first, second = (_crisp_gates(net, actions, child) for child in (2 * i + 1, 2 * i + 2))
    return _decision(net.gates[i], eye, 1.0, first, second)


def _crisp_nodes(net: Net, actions: Ints, made: Floats, i: int) -> Nodes:
    count = len(net.nodes)
    if i >= count:
        return ((Leaf(int(actions[net.leaves[i - count].argmax()])), 0),)
    first, second = (_crisp_nodes(net, actions, made, child) for child in (2 * i + 1, 2 * i + 2))
    return _decision(net.nodes[i], made, float(net.scale[0]), first, second)


def _decision(node: Floats, made: Floats, scale: float, first: Nodes, second: Nodes) -> Nodes:
    """To the first child where sigmoid(scale (w_k f_k + b)) > 1/2, f_k = made[k] . x; k has the largest |w|."""
    k = int(np.abs(node[:-1]).argmax())
    sign = -1.0 if node[k] * scale < 0 else 1.0
    # sign f_k > -b / |w_k| (for a scale above 0), written as -sign f_k < b / |w_k|
    size = abs(node[k]) or 1e-300
    side = 1.0 if scale > 0 else -1.0
    terms = tuple((j, -sign * weight) for j, weight in enumerate(made[k].tolist()))
    split = Oblique(terms, float(np.clip(side * node[-1] / size, -1e300, 1e300)))
    return ((split, 1 + len(first)), *first, *second)
