"""Agents that act in an environment, compiled: trees whose leaves learn, and soft trees that draw actions.

One function acts for both, so that each loop over an environment's steps is compiled once. A soft tree goes both
ways at every node, by shares: share s = sigmoid(scale (w . x + b)) of what arrives goes to the first child. Nodes
are in the order of a heap, children of i at 2 i + 1 and 2 i + 2, leaves at the end.

Shapes: F features, A actions, T steps of an episode at most; a soft policy has G gates, each of their G + 1 leaves
makes K features, and one tree with N nodes and N + 1 leaves looks at these.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.base.compiled import compiled
from discodso.tasks.policies._simulators import Maths, step
from discodso.tasks.policies.columns import Columns, walk

_compiled = compiled(nogil=True)
_inner = compiled(nogil=True, inner=True)
_inlined = compiled(nogil=True, inner=True, inline="always")

LEARNING_LEAVES, SOFT, GREEDY = 0, 1, 2  # kinds of agents; the last takes the likeliest action of a soft tree
VALUES, SOFTMAX_OF_SUM, SUM_OF_SOFTMAX = 0, 1, 2  # what comes out of soft trees


class LearningLeaves(NamedTuple):
    """A tree whose leaves learn by Q-learning what their actions are worth.

    Attributes:
        columns: the tree.
        worth: float[nodes, A], Q.
        tried: int[nodes, A], how often each action was taken.
        epsilon: float[nodes], chance of an action at random; times `decay` at each visit.
        rate: of learning; 0 for one over how often the action was taken in that leaf.
        discount, decay: gamma, and of epsilon.
        before: int[2], leaf and action of the step before; a leaf below 0 for none.
    """

    columns: Columns
    worth: Floats
    tried: Ints
    epsilon: Floats
    rate: float
    discount: float
    decay: float
    before: Ints


class Net(NamedTuple):
    """The numbers of soft trees; all are parts of one array, see `soft_trees.net_of`."""

    gates: Floats  # float[G, F + 1], weights and bias of the tree that learns features
    features: Floats  # float[G + 1, K, F], of its leaves
    nodes: Floats  # float[N, K + 1], of the tree on these
    leaves: Floats  # float[N + 1, A]
    scale: Floats  # float[1], of its nodes


class Room(NamedTuple):
    """What soft trees compute for one observation."""

    gate_share: Floats  # float[G], to the first child
    gate: Floats  # float[2 G + 1], what arrives
    made: Floats  # float[G + 1, K], features
    share: Floats  # float[G + 1, N]
    path: Floats  # float[G + 1, 2 N + 1]
    weight: Floats  # float[N + 1], of each leaf in all
    table: Floats  # float[N + 1, A], leaves, or their softmax
    out: Floats  # float[A]
    back: Floats  # float[2 max(G, N) + 1], derivatives by what arrives
    d_leaf: Floats  # float[N + 1]
    d_gate: Floats  # float[G + 1]
    d_made: Floats  # float[K]
    d_out: Floats  # float[A]


class Recorded(NamedTuple):
    """An episode, step by step; `rewards` and `length` of every agent, the rest of soft ones."""

    seen: Floats  # float[T + 1, F], with the observation at the end
    chosen: Ints  # int[T]
    chance: Floats  # float[T], of the action that was chosen
    rewards: Floats  # float[T]
    length: Ints  # int[2], steps, and whether the environment ended it


class Agent(NamedTuple):
    """An agent of either kind; what belongs to the other kind is empty."""

    kind: int
    leaves: LearningLeaves
    output: int
    net: Net
    room: Room
    trace: Recorded


# ------------------------------------------------------------------------------------- learning leaves


@_inlined
def learn_step(own: LearningLeaves, leaf: int, reward: float) -> None:
    """Q of the last action, now that it led to a leaf: Q += rate (reward + gamma max Q' - Q)."""
    last, action = own.before[0], own.before[1]
    if last < 0:
        return
    own.tried[last, action] += 1
    rate = own.rate if own.rate > 0 else 1.0 / own.tried[last, action]
    worth = own.worth
    own.worth[last, action] += rate * (reward + own.discount * worth[leaf].max() - worth[last, action])


@_inlined
def try_action(own: LearningLeaves, leaf: int, rng: np.random.Generator) -> int:
    """An action of a leaf: at random now and then, else the best, ties at random."""
    worth, count = own.worth[leaf], own.worth.shape[1]
    epsilon = own.epsilon[leaf]
    own.epsilon[leaf] = epsilon * own.decay
    if rng.random() < epsilon:
        action = int(rng.random() * count)
    else:
        best, ties, action = worth.max(), 0, 0
        for other in range(count):
            if worth[other] == best:
                ties += 1
                if ties == 1 or rng.random() * ties < 1.0:
                    action = other
    own.before[0], own.before[1] = leaf, action
    return action


@_inlined
def leaf_action(own: LearningLeaves, x: Floats, reward: float, at: int, rng: np.random.Generator) -> int:
    """The action at the leaf of observation x; learns from the reward of the step before."""
    leaf = walk(own.columns, 0, x)
    if at == 0:
        own.before[0] = -1
    learn_step(own, leaf, reward)
    action: int = try_action(own, leaf, rng)
    return action


# ------------------------------------------------------------------------------------- soft trees


@_inner
def _descend(nodes: Floats, scale: float, x: Floats, share: Floats, path: Floats) -> None:
    """What of 1 arrives at each node and leaf."""
    width = nodes.shape[1] - 1
    path[0] = 1.0
    for i in range(nodes.shape[0]):
        z = nodes[i, width]
        for j in range(width):
            z += nodes[i, j] * x[j]
        share[i] = 1.0 / (1.0 + math.exp(-scale * z))
        path[2 * i + 1] = path[i] * share[i]
        path[2 * i + 2] = path[i] * (1.0 - share[i])


@_inner
def _ascend(
    nodes: Floats,
    scale: float,
    x: Floats,
    share: Floats,
    path: Floats,
    d_leaf: Floats,
    back: Floats,
    d_nodes: Floats,
    d_x: Floats,
) -> float:
    """Derivatives by nodes and x are added to d_nodes and d_x, given those by leaves; gives that by the scale."""
    count, width = nodes.shape[0], nodes.shape[1] - 1
    for leaf in range(count + 1):
        back[count + leaf] = d_leaf[leaf]
    d_scale = 0.0
    for i in range(count - 1, -1, -1):
        first, second, s = back[2 * i + 1], back[2 * i + 2], share[i]
        back[i] = s * first + (1.0 - s) * second
        d = path[i] * (first - second) * s * (1.0 - s)
        z = nodes[i, width]
        for j in range(width):
            z += nodes[i, j] * x[j]
            d_nodes[i, j] += d * scale * x[j]
            d_x[j] += d * scale * nodes[i, j]
        d_nodes[i, width] += d * scale
        d_scale += d * z
    return d_scale


@_inner
def _soft_max(row: Floats, out: Floats) -> None:
    top, total = row.max(), 0.0
    for a in range(row.shape[0]):
        out[a] = math.exp(row[a] - top)
        total += out[a]
    for a in range(row.shape[0]):
        out[a] /= total


@_compiled
def forward(net: Net, output: int, x: Floats, room: Room) -> None:
    """Chances of the actions, or their values, for observation x float[F] into room.out."""
    gates, count = net.gates.shape[0], net.nodes.shape[0]
    if gates > 0:
        _descend(net.gates, 1.0, x, room.gate_share, room.gate)
    else:
        room.gate[0] = 1.0
    room.weight[:] = 0.0
    for m in range(gates + 1):
        for k in range(room.made.shape[1]):
            total = 0.0
            for j in range(x.shape[0]):
                total += net.features[m, k, j] * x[j]
            room.made[m, k] = total
        _descend(net.nodes, net.scale[0], room.made[m], room.share[m], room.path[m])
        for leaf in range(count + 1):
            room.weight[leaf] += room.gate[gates + m] * room.path[m, count + leaf]
    room.out[:] = 0.0
    for leaf in range(count + 1):
        if output == SUM_OF_SOFTMAX:
            _soft_max(net.leaves[leaf], room.table[leaf])
        else:
            for a in range(room.out.shape[0]):
                room.table[leaf, a] = net.leaves[leaf, a]
        for a in range(room.out.shape[0]):
            room.out[a] += room.weight[leaf] * room.table[leaf, a]
    if output == SOFTMAX_OF_SUM:
        _soft_max(room.out, room.out)


@_inner
def backward(net: Net, output: int, x: Floats, room: Room, slope: Net) -> None:
    """Add derivatives to `slope`, given those by the output in room.d_out, after `forward`."""
    gates, count, actions = net.gates.shape[0], net.nodes.shape[0], room.out.shape[0]
    d_out = room.d_out
    if output == SOFTMAX_OF_SUM:
        mean = 0.0
        for a in range(actions):
            mean += room.out[a] * d_out[a]
        for a in range(actions):
            d_out[a] = room.out[a] * (d_out[a] - mean)
    for leaf in range(count + 1):
        room.d_leaf[leaf] = 0.0
        for a in range(actions):
            room.d_leaf[leaf] += d_out[a] * room.table[leaf, a]
        for a in range(actions):
            d = d_out[a]
            if output == SUM_OF_SOFTMAX:
                d = room.table[leaf, a] * (d - room.d_leaf[leaf])
            slope.leaves[leaf, a] += room.weight[leaf] * d
    by_leaf = room.d_leaf.copy()
    for m in range(gates + 1):
        arrives = room.gate[gates + m]
        room.d_gate[m] = 0.0
        for leaf in range(count + 1):
            room.d_gate[m] += room.path[m, count + leaf] * by_leaf[leaf]
            room.d_leaf[leaf] = arrives * by_leaf[leaf]
        room.d_made[:] = 0.0
        slope.scale[0] += _ascend(
            net.nodes,
            net.scale[0],
            room.made[m],
            room.share[m],
            room.path[m],
            room.d_leaf,
            room.back,
            slope.nodes,
            room.d_made,
        )
        for k in range(room.d_made.shape[0]):
            for j in range(x.shape[0]):
                slope.features[m, k, j] += room.d_made[k] * x[j]
    if gates > 0:
        nowhere = np.zeros(x.shape[0])
        _ascend(net.gates, 1.0, x, room.gate_share, room.gate, room.d_gate, room.back, slope.gates, nowhere)


@_compiled
def policy_slope(
    net: Net,
    output: int,
    seen: Floats,
    chosen: Ints,
    chance: Floats,
    advantage: Floats,
    clip: float,
    entropy: float,
    room: Room,
    slope: Net,
) -> float:
    """The loss of PPO over B steps, the mean of -min(r A, clip(r) A) - entropy H; derivatives go to `slope`.

    r is the chance of the chosen action over that when it was chosen, `chance`; seen float[B, F].
    """
    count, loss = seen.shape[0], 0.0
    for t in range(count):
        forward(net, output, seen[t], room)
        ratio = room.out[chosen[t]] / chance[t]
        held = min(max(ratio, 1.0 - clip), 1.0 + clip)
        loss -= min(ratio * advantage[t], held * advantage[t]) / count
        for a in range(room.out.shape[0]):
            log = math.log(max(room.out[a], 1e-300))
            loss += entropy * room.out[a] * log / count
            room.d_out[a] = entropy * (log + 1.0) / count
        if ratio * advantage[t] <= held * advantage[t]:
            room.d_out[chosen[t]] -= advantage[t] / chance[t] / count
        backward(net, output, seen[t], room, slope)
    return loss


@_compiled
def value_slope(net: Net, seen: Floats, chosen: Ints, target: Floats, room: Room, slope: Net) -> float:
    """The mean of (V(s, a) - target)^2 over B steps; its derivatives are added to `slope`."""
    count, loss = seen.shape[0], 0.0
    for t in range(count):
        forward(net, VALUES, seen[t], room)
        gap = room.out[chosen[t]] - target[t]
        loss += gap * gap / count
        room.d_out[:] = 0.0
        room.d_out[chosen[t]] = 2.0 * gap / count
        backward(net, VALUES, seen[t], room, slope)
    return loss


@_compiled
def values_of(net: Net, seen: Floats, chosen: Ints, room: Room, out: Floats) -> None:
    """V(s, a) for B steps into out float[B]."""
    for t in range(seen.shape[0]):
        forward(net, VALUES, seen[t], room)
        out[t] = room.out[chosen[t]]


# ------------------------------------------------------------------------------------- acting


@_compiled
def act(agent: Agent, x: Floats, reward: float, at: int, rng: np.random.Generator) -> int:
    """The action for observation x at a step; learns from the reward of the step before."""
    if agent.kind == LEARNING_LEAVES:
        return int(leaf_action(agent.leaves, x, reward, at, rng))
    forward(agent.net, agent.output, x, agent.room)
    action = int(agent.room.out.argmax())
    if agent.kind == SOFT:
        rest, action = rng.random(), 0
        while action < agent.room.out.shape[0] - 1 and rest >= agent.room.out[action]:
            rest -= agent.room.out[action]
            action += 1
    for j in range(x.shape[0]):
        agent.trace.seen[at, j] = x[j]
    agent.trace.chosen[at], agent.trace.chance[at] = action, agent.room.out[action]
    return action


@_compiled
def finish(agent: Agent, x: Floats, reward: float, steps: int, over: bool) -> None:
    """The end of an episode: its last observation and reward."""
    agent.trace.length[0], agent.trace.length[1] = steps, over
    if agent.kind == LEARNING_LEAVES:
        learn_step(agent.leaves, walk(agent.leaves.columns, 0, x), reward)
    else:
        for j in range(x.shape[0]):
            agent.trace.seen[steps, j] = x[j]


@_compiled
def practise(
    kind: int,
    states: Floats,
    observations: Floats,
    start: Ints,
    max_steps: int,
    maths: Maths,
    agent: Agent,
    rng: np.random.Generator,
    returns: Floats,
) -> None:
    """Episodes of CartPole, MountainCar or Acrobot (see `_simulators.step`), one by one; fills returns."""
    s = np.empty(states.shape[1])
    x = np.empty(observations.shape[1])
    seen = np.ones(observations.shape[1], np.int64)
    leaves, rewards = agent.leaves, agent.trace.rewards
    for e in range(start.shape[0]):
        s[:] = states[start[e]]
        x[:] = observations[start[e]]
        total, reward, over, at = 0.0, 0.0, False, 0
        while not over and at < max_steps:
            if agent.kind == LEARNING_LEAVES:  # not by `act`: a tuple of so many arrays is dear to hand over
                action = leaf_action(leaves, x, reward, at, rng)
            else:
                action = act(agent, x, reward, at, rng)
            reward, over = step(kind, s, x, float(action), at == 0, seen, maths)
            rewards[at] = reward
            total += reward
            at += 1
        finish(agent, x, reward, at, over)
        returns[e] = total
