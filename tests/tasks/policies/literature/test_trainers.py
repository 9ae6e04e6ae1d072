"""Trainers: optimisers and critic against torch, returns by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from discodso.tasks.policies.literature.trainers import (
    AveragedSteps,
    MomentSteps,
    critic_slope,
    critic_values,
    returns_to_go,
)


@pytest.mark.parametrize(
    ("own", "theirs"), [(AveragedSteps, torch.optim.RMSprop), (MomentSteps, torch.optim.Adam)]
)
def test_the_optimisers_are_those_of_torch(own, theirs):
    rng, start = np.random.default_rng(0), np.random.default_rng(1).normal(size=5)
    mine, other = own(start.copy(), 0.01), torch.tensor(start, requires_grad=True)
    optimiser = theirs([other], lr=0.01)
    for _ in range(20):
        slope = rng.normal(size=5)
        mine.step(slope)
        other.grad = torch.tensor(slope)
        optimiser.step()
    np.testing.assert_allclose(mine.numbers, other.detach().numpy(), rtol=1e-6)


def test_the_derivatives_of_the_critic_are_those_of_autograd():
    rng, hidden, inputs = np.random.default_rng(2), 6, 3
    numbers, seen = rng.normal(size=hidden * (inputs + 2) + 1), rng.normal(size=(8, inputs))
    target = rng.normal(size=8)
    value, layer = critic_values(numbers, seen, hidden)
    own = critic_slope(numbers, seen, layer, np.clip(value - target, -1, 1) / 8)
    theirs = torch.tensor(numbers, requires_grad=True)
    weights, rest = theirs[: hidden * inputs].reshape(hidden, inputs), theirs[hidden * inputs :]
    found = torch.relu(torch.tensor(seen) @ weights.T + rest[:hidden]) @ rest[hidden:-1] + rest[-1]
    torch.nn.functional.smooth_l1_loss(found, torch.tensor(target)).backward()
    np.testing.assert_allclose(value, found.detach().numpy(), rtol=1e-12)
    assert theirs.grad is not None
    np.testing.assert_allclose(own, theirs.grad.numpy(), rtol=1e-9, atol=1e-12)


def test_returns_to_go_by_hand():
    assert returns_to_go(np.array([1.0, 2.0, 4.0]), 0.5).tolist() == [3.0, 4.0, 4.0]
