"""Agents: Q-learning by hand, derivatives of soft trees against autograd, and the same steps as Gymnasium."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from discodso.tasks.policies.columns import Columns
from discodso.tasks.policies.environments import describe
from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.literature._agents import (
    GREEDY,
    LEARNING_LEAVES,
    SOFT,
    SOFTMAX_OF_SUM,
    SUM_OF_SOFTMAX,
    VALUES,
    Agent,
    LearningLeaves,
    act,
    finish,
    forward,
    policy_slope,
    value_slope,
)
from discodso.tasks.policies.literature.practice import CompiledPractice, GymnasiumPractice
from discodso.tasks.policies.literature.soft_nets import Sizes, empty_net, net_of, room_of, trace_of
from discodso.tasks.policies.literature.soft_trees import no_leaves
from discodso.tasks.policies.making import as_environment, make
from discodso.tasks.policies.simulators import simulator_for
from discodso.tasks.policies.splits import Split

STUMP = Columns.of(((Split(0, 0.0), 2), (Leaf(), 0), (Leaf(), 0)))


def learning(worth, rate=0.001, epsilon=0.0, decay=1.0, discount=0.05, steps=500):
    arrays = (np.asarray(column) for column in STUMP[:5])
    tree = Columns(*arrays, np.zeros(0, np.int64), np.zeros(0))
    worth = np.array(worth)
    leaves = LearningLeaves(
        tree,
        worth,
        np.zeros(worth.shape, np.int64),
        np.full(3, epsilon),
        rate,
        discount,
        decay,
        np.full(2, -1),
    )
    net = empty_net()
    return Agent(LEARNING_LEAVES, leaves, VALUES, net, room_of(net), trace_of(0, steps))


def soft(sizes, output, seed=0, kind=SOFT, steps=500):
    net = net_of(np.random.default_rng(seed).normal(size=sizes.numbers), sizes)
    return Agent(kind, no_leaves(), output, net, room_of(net), trace_of(sizes.features, steps))


def test_leaves_learn_what_was_computed_by_hand():
    agent, rng = learning([[0.0, 0.0], [0.2, 0.5], [-0.3, -0.1]]), np.random.default_rng(0)
    assert act(agent, np.array([-1.0]), 0.0, 0, rng) == 1
    assert act(agent, np.array([1.0]), 2.0, 1, rng) == 1
    first = 0.5 + 0.001 * (2.0 + 0.05 * -0.1 - 0.5)
    assert agent.leaves.worth[1].tolist() == pytest.approx([0.2, first])
    finish(agent, np.array([-1.0]), -1.0, 2, True)
    second = -0.1 + 0.001 * (-1.0 + 0.05 * first + 0.1)
    assert agent.leaves.worth[2].tolist() == pytest.approx([-0.3, second])
    act(agent, np.array([-1.0]), 5.0, 0, rng)  # a new episode: there is no step before
    assert agent.leaves.worth[1, 1] == pytest.approx(first)


def test_a_rate_of_zero_is_one_over_the_visits_and_epsilon_fades():
    agent, rng = (
        learning(np.zeros((3, 2)), rate=0.0, epsilon=1.0, decay=0.5, discount=0.0),
        np.random.default_rng(1),
    )
    rewards = {0: [], 1: []}
    action = act(agent, np.array([-1.0]), 0.0, 0, rng)
    for at, reward in enumerate([3.0, 1.0, 4.0, 1.0, 5.0], start=1):
        rewards[action].append(reward)
        action = act(agent, np.array([-1.0]), reward, at, rng)
    means = [np.mean(own) if own else 0.0 for own in rewards.values()]
    assert agent.leaves.worth[1].tolist() == pytest.approx(means)
    assert agent.leaves.epsilon[1] == 0.5**6


def torch_output(parts, output, x):
    """What soft trees give, written down again: float[B, A]."""
    gates, features, nodes, leaves, scale = parts

    def arrives(weights, z):
        shares = [torch.ones(len(z), dtype=torch.float64)]
        for i in range(len(weights)):
            shares += [shares[i] * torch.sigmoid(z[:, i]), shares[i] * torch.sigmoid(-z[:, i])]
        return torch.stack(shares[len(weights) :], dim=1)

    gate = arrives(gates, x @ gates[:, :-1].T + gates[:, -1])
    total = 0
    for m in range(len(gates) + 1):
        made = x @ features[m].T
        path = arrives(nodes, scale * (made @ nodes[:, :-1].T + nodes[:, -1]))
        table = torch.softmax(leaves, dim=1) if output == SUM_OF_SOFTMAX else leaves
        total = total + gate[:, m : m + 1] * (path @ table)
    return torch.softmax(total, dim=1) if output == SOFTMAX_OF_SUM else total


SHAPES = ((Sizes(3, 2, 0, 3, 7), SOFTMAX_OF_SUM), (Sizes(4, 3, 3, 2, 3), SUM_OF_SOFTMAX))


def torch_parts(net):
    return [torch.tensor(part, requires_grad=True) for part in net]


@pytest.mark.parametrize(("sizes", "output"), SHAPES)
def test_the_derivatives_of_the_loss_of_ppo_are_those_of_autograd(sizes, output):
    agent, rng, count = soft(sizes, output), np.random.default_rng(2), 9
    seen, chosen = rng.normal(size=(count, sizes.features)), rng.integers(0, sizes.actions, count)
    chance, advantage = rng.uniform(0.1, 0.6, count), rng.normal(size=count)
    slope = np.zeros(sizes.numbers)
    given = seen, chosen, chance, advantage, 0.2, 0.05
    loss = policy_slope(agent.net, output, *given, agent.room, net_of(slope, sizes))

    parts = torch_parts(agent.net)
    chances = torch_output(parts, output, torch.tensor(seen))
    ratio = chances[torch.arange(count), torch.tensor(chosen)] / torch.tensor(chance)
    held, worth = torch.clamp(ratio, 0.8, 1.2), torch.tensor(advantage)
    entropy = -(chances * torch.log(chances)).sum(dim=1)
    expected = (-torch.minimum(ratio * worth, held * worth) - 0.05 * entropy).mean()
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=1e-12)
    assert (ratio > 1.2).any()
    for part, own in zip(net_of(slope, sizes), parts, strict=True):
        expected_slope = np.zeros(part.shape) if own.grad is None else own.grad.numpy()
        np.testing.assert_allclose(part, expected_slope, rtol=1e-9, atol=1e-12)
    forward(agent.net, output, seen[0], agent.room)
    np.testing.assert_allclose(agent.room.out, chances[0].detach().numpy(), rtol=1e-12)
    assert agent.room.out.sum() == pytest.approx(1.0)


def test_the_derivatives_of_values_are_those_of_autograd():
    sizes, rng, count = SHAPES[0][0], np.random.default_rng(3), 7
    agent = soft(sizes, VALUES, seed=1)
    seen, chosen = rng.normal(size=(count, sizes.features)), rng.integers(0, sizes.actions, count)
    target, slope = rng.normal(size=count), np.zeros(sizes.numbers)
    loss = value_slope(agent.net, seen, chosen, target, agent.room, net_of(slope, sizes))
    parts = torch_parts(agent.net)
    values = torch_output(parts, VALUES, torch.tensor(seen))[torch.arange(count), torch.tensor(chosen)]
    expected = torch.nn.functional.mse_loss(values, torch.tensor(target))
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=1e-12)
    for part, own in zip(net_of(slope, sizes), parts, strict=True):
        expected_slope = np.zeros(part.shape) if own.grad is None else own.grad.numpy()
        np.testing.assert_allclose(part, expected_slope, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("environment", ["CartPole-v1", "MountainCar-v0", "Acrobot-v1"])
def test_compiled_episodes_are_those_of_gymnasium(environment):
    known = as_environment(environment)
    interface, simulator = describe(known), simulator_for(known)
    assert simulator is not None
    sizes = Sizes(len(interface.feature_names), len(interface.action_names), 1, 2, 3)
    seeds, found = np.array([3, 0, 2**30 + 5]), []
    for kind in (SOFT, GREEDY):
        with make(known) as env:
            for practice in (CompiledPractice(simulator), GymnasiumPractice(env, simulator.max_steps, 0)):
                agent = soft(sizes, SUM_OF_SOFTMAX, 4, kind, simulator.max_steps)
                returns = practice.run(agent, seeds, np.random.default_rng(1))
                steps, over = agent.trace.length.tolist()
                found.append((returns, over, agent.trace.seen[: steps + 1], agent.trace.rewards[:steps]))
    for compiled, plain in (found[:2], found[2:]):
        for own, other in zip(compiled, plain, strict=True):
            np.testing.assert_array_equal(own, other)
    assert not np.array_equal(found[0][2], found[2][2])
