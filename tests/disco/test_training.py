"""The policy gradient against the exact gradient, and the pieces of the update."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from enumeration import valid_skeletons
from spaces import small_tree

from discodso import Design, DisCo, DisCoSettings, FixedSequence, NetworkSettings, Space, Token, TrainingError
from discodso.disco.network import Policy, Score
from discodso.disco.sampling import sample
from discodso.disco.settings import LearnerSettings
from discodso.disco.training import Baseline, policy_gradient_loss, quantile, require_finite, select
from discodso.space.replay import replay


def flat_gradient(policy) -> np.ndarray:
    return np.concatenate([p.grad.numpy().ravel() for p in policy.parameters()])


def exact_gradient(policy, value) -> np.ndarray:
    policy.zero_grad()
    value.backward()
    return flat_gradient(policy)


def estimates(space, policy, reward_of, threshold, batches, size, seed=0) -> np.ndarray:
    """One gradient estimate for each batch, by the training code: float[batches, weights]."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(batches):
        designs = sample(space, policy.stepper(), size, rng).designs
        rewards = np.array([reward_of(design) for design in designs])
        kept = rewards >= threshold
        if not kept.any():
            continue
        policy.zero_grad()
        score = policy.score(replay(space, designs.select(kept)))
        policy_gradient_loss(score, rewards[kept] - threshold, 0.0).backward()
        found.append(-flat_gradient(policy))
    return np.array(found)


def agree(found: np.ndarray, want: np.ndarray) -> None:
    """The mean estimate lies within its standard errors: z-scores look standard normal."""
    error = found.std(axis=0, ddof=1) / math.sqrt(len(found))
    seen = error > 1e-9
    assert seen.sum() > 50
    np.testing.assert_allclose(found.mean(axis=0)[~seen], want[~seen], atol=1e-7)
    z = (found.mean(axis=0)[seen] - want[seen]) / error[seen]
    assert np.abs(z).max() < 5.5
    # The z-scores of different weights are strongly correlated, so their mean square scatters round 1.
    assert np.mean(z**2) < 3


def rewards_of_tree(design: Design) -> float:
    """Some reward with many levels."""
    return sum(
        (i + 1) * {"add": 0.3, "sin": 1.0, "cos": -0.5, "x": 0.7, "y": 0.1}[n]
        for i, n in enumerate(design.tokens)
    )


@pytest.mark.parametrize("risk_factor", [1.0, 0.3])
def test_policy_gradient_agrees_with_the_exact_gradient(risk_factor):
    """J for epsilon = 1; J_epsilon = c + E[(R - c)+] / P(R >= c) at a fixed threshold c else."""
    space = small_tree()
    policy = Policy(space, NetworkSettings(units=6), np.random.default_rng(1))
    designs = [Design(s, (None,) * len(s)) for s in sorted(valid_skeletons(space))]
    rewards = np.array([rewards_of_tree(design) for design in designs])
    p = policy.score(replay(space, space.encode(designs))).log_prob.exp()
    order = np.argsort(-rewards)
    mass = np.cumsum(p.detach().numpy()[order])
    threshold = rewards.min() if risk_factor == 1 else rewards[order][np.searchsorted(mass, risk_factor)]
    above = torch.from_numpy(np.maximum(rewards - threshold, 0.0))
    share = p.detach()[torch.from_numpy(rewards >= threshold)].sum()
    want = exact_gradient(policy, (p * above).sum() / share)
    if risk_factor == 1:
        p = policy.score(replay(space, space.encode(designs))).log_prob.exp()
        plain = exact_gradient(policy, (p * torch.from_numpy(rewards)).sum())
        np.testing.assert_allclose(want, plain, atol=1e-5)  # a constant baseline changes nothing
    agree(estimates(space, policy, rewards_of_tree, threshold, batches=250, size=150), want)


@pytest.mark.parametrize("learn_scale", [False, True])
def test_policy_gradient_agrees_on_tokens_with_values(learn_scale):
    """The exact gradient by quadrature over the value."""
    space = Space([Token("v", range=(0, 1)), Token("d")], FixedSequence(1))
    policy = Policy(space, NetworkSettings(units=6, learn_scale=learn_scale), np.random.default_rng(2))

    def reward_of(design):
        return 0.4 if design.values[0] is None else 1 - (design.values[0] - 0.7) ** 2

    threshold = 0.5
    nodes, weights = np.polynomial.legendre.leggauss(60)
    lowest = 0.0  # 1 - (v - 0.7)^2 >= 0.5 on [0, 1] for v >= 0.7 - sqrt(0.5), which is below 0
    z, w = lowest + 0.5 * (nodes + 1), 0.5 * weights
    designs = [Design.of(("v", float(x))) for x in z]
    p = policy.score(replay(space, space.encode(designs))).log_prob.exp() * torch.from_numpy(w)
    above = torch.from_numpy(np.array([reward_of(d) for d in designs]) - threshold)
    want = exact_gradient(policy, (p * above).sum() / p.detach().sum())
    found = estimates(space, policy, reward_of, threshold, batches=250, size=100)
    agree(found, want)


def test_quantile_is_one_of_the_rewards_and_failures_count_as_worst():
    rewards = np.arange(10.0)
    assert quantile(rewards, 0.2) == 8.0
    assert quantile(rewards, 1.0) == 0.0
    rewards[5:] = [np.nan, np.inf, -np.inf, np.nan, np.nan]
    assert quantile(rewards, 0.2) == 3.0


def test_selection_follows_algorithm_1():
    rewards = np.array([0.1, 0.9, 0.5, 0.7, 0.3, 0.2, 0.8, 0.6, 0.4, 1.0])
    chosen = select(rewards, 0.2, Baseline(), 0.5, normalise=False)
    assert chosen.quantile == 0.9
    assert chosen.kept.tolist() == [r >= 0.9 for r in rewards]
    np.testing.assert_allclose(chosen.advantages, [0.0, 0.1])
    assert chosen.baseline.quantile == 0.9


def test_the_baseline_is_a_running_average_of_the_batch_quantiles():
    first = select(np.full(10, 1.0), 0.2, Baseline(), 0.5, normalise=False)
    second = select(np.full(10, 3.0), 0.2, first.baseline, 0.5, normalise=False)
    third = select(np.full(10, 0.0), 0.2, second.baseline, 0.5, normalise=False)
    assert [s.baseline.quantile for s in (first, second, third)] == [1.0, 2.0, 1.0]
    np.testing.assert_allclose(second.advantages, 1.0)
    np.testing.assert_allclose(third.advantages, 0.0)  # below the baseline: the indicator of the appendix


def test_normalised_advantages_do_not_depend_on_the_units_of_the_reward():
    rewards = np.random.default_rng(0).normal(size=100)
    plain = select(rewards, 0.2, Baseline(), 0.5, normalise=True).advantages
    scaled = select(1e6 * rewards - 3e7, 0.2, Baseline(), 0.5, normalise=True).advantages
    np.testing.assert_allclose(plain, scaled, rtol=1e-6)
    assert np.sqrt(np.mean(plain**2)) == pytest.approx(1)


def test_equal_rewards_and_mostly_failed_batches_are_harmless():
    equal = select(np.full(50, 0.3), 0.2, Baseline(), 0.5, normalise=True)
    assert equal.kept.all()
    assert np.all(equal.advantages == 0)
    rewards = np.full(50, -np.inf)
    rewards[:3] = [1.0, 2.0, 3.0]
    failed = select(rewards, 0.2, Baseline(), 0.5, normalise=True)
    assert failed.kept.sum() == 3
    assert np.isfinite(failed.advantages).all()


def test_entropy_is_a_bonus():
    score = Score(torch.zeros(2), torch.tensor([1.0, 3.0]), torch.zeros(2))
    assert policy_gradient_loss(score, np.zeros(2), 0.01).item() == pytest.approx(-0.02)


def test_a_non_finite_loss_says_where_it_came_from():
    good, bad = torch.zeros(2, dtype=torch.float64), torch.tensor([0.0, math.nan], dtype=torch.float64)
    loss = torch.tensor(math.nan)
    for score, advantages, word in (
        (Score(good, bad, good), np.ones(2), "entropy"),
        (Score(bad, good, bad), np.ones(2), "log_prob of the tokens"),
        (Score(bad, good, good), np.ones(2), "log_prob of the values"),
        (Score(good, good, good), np.array([1.0, np.inf]), "advantages"),
    ):
        with pytest.raises(TrainingError, match=word):
            require_finite(loss, score, advantages)


def test_entropy_bonus_widens_and_rewards_sharpen_the_policy():
    """One token carries the reward: the plain policy gradient raises it; the bonus alone evens all out."""
    space = Space([Token("good"), Token("bad"), Token("ugly")], FixedSequence(1))

    def share(settings, reward):
        disco = DisCo(
            space, DisCoSettings(batch_size=100, learner=replace(settings, learning_rate=0.02)), seed=0
        )
        for _ in range(60):
            designs = disco.ask()
            disco.tell(designs, [reward(d) for d in designs])
        tokens = disco.ask(2000).tokens[:, 0]
        return np.bincount(tokens, minlength=3) / 2000

    learned = share(LearnerSettings(risk_factor=1.0), lambda d: float(d.tokens[0] == "good"))
    assert learned[0] > 0.8
    even = share(LearnerSettings(entropy_coefficient=1.0), lambda d: 0.0)
    np.testing.assert_allclose(even, 1 / 3, atol=0.05)
