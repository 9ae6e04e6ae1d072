"""Probabilities of integers, options and several values of a token, against enumeration and quadrature."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
import torch
from scipy import integrate, stats
from stepping import log_prob_by_steps

from discodso import (
    Bounds,
    Choice,
    Constraint,
    DeclarationError,
    Design,
    FixedSequence,
    Integer,
    NetworkSettings,
    OpenSequence,
    Real,
    Space,
    Task,
    Token,
    search,
)
from discodso.disco.distributions import TruncatedNormal, entropy_of_bins, log_mass_between
from discodso.disco.network import NetworkStepper, Policy
from discodso.disco.sampling import sample
from discodso.disco.uniform import UniformStepper
from discodso.space.replay import replay

LEARNED = NetworkSettings(learn_scale=True, inputs=("neighbours", "position"))


FIXED = NetworkSettings()


def policy_of(space: Space, settings: NetworkSettings = FIXED, sharpen: float = 4.0) -> Policy:
    policy = Policy(space, settings, np.random.default_rng(0))
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter *= sharpen
    return policy


def log_probs(space: Space, policy: Policy, designs: list[Design]) -> np.ndarray:
    return policy.score(replay(space, space.encode(designs))).log_prob.detach().numpy()


def tensor(*numbers: float) -> list[torch.Tensor]:
    return [torch.tensor(float(x), dtype=torch.float64) for x in numbers]


# --------------------------------------------------------------------------------------------- own units

OWN = NetworkSettings(coordinates="value", shift=0.7)


def first_outputs(policy: Policy) -> np.ndarray:
    """psi and phi at the first position, where the network sees nothing."""
    hidden, _ = policy.recurrent(torch.zeros(1, 1, policy.inputs))
    return policy.heads(hidden).detach().numpy().ravel().astype(np.float64)


def truncated(mean, low, high, scale=0.5):
    return stats.truncnorm((low - mean) / scale, (high - mean) / scale, mean, scale)


def test_in_their_own_units_values_have_the_density_and_entropy_of_the_paper():
    ranges = {"a": (-3.0, 5.0), "b": (10.0, 10.4), "c": (1.0, np.inf)}
    tokens = [
        *(Token(name, range=ends) for name, ends in ranges.items()),
        Token("d", r=Real(0.1, 40, log=True)),
    ]
    space = Space(tokens, FixedSequence(1))
    policy = policy_of(space, OWN)
    raw = first_outputs(policy)
    p, means = np.exp(raw[:4]) / np.exp(raw[:4]).sum(), raw[4:] + 0.7
    ends = [*ranges.values(), (np.log(0.1), np.log(40))]
    laws = [truncated(mean, *own) for mean, own in zip(means, ends, strict=True)]
    drawn = sample(space, policy.stepper(), 4000, np.random.default_rng(0)).designs
    scored = policy.score(replay(space, drawn))
    token, value = drawn.tokens[:, 0], drawn.values[:, 0].copy()
    value[token == 3] = np.log(value[token == 3])
    want = [np.log(p[k]) + laws[k].logpdf(x) for k, x in zip(token, value, strict=True)]
    np.testing.assert_allclose(scored.log_prob.detach().numpy(), want, rtol=1e-5, atol=1e-5)
    entropy = stats.entropy(p)
    for own, law, (low, high) in zip(p, laws, ends, strict=True):
        entropy += own * integrate.quad(lambda x, law=law: -law.pdf(x) * law.logpdf(x), low, min(high, 20))[0]
    np.testing.assert_allclose(scored.entropy.detach().numpy(), entropy, rtol=1e-4)
    for k, law in enumerate(laws):
        assert stats.kstest(value[token == k], law.cdf).pvalue > 1e-3


def test_in_their_own_units_later_values_and_positions_see_values_as_they_are():
    space = Space([Token("a", x=Real(-3, 5), y=Real(10, 14))], FixedSequence(2))
    policy = policy_of(space, OWN, sharpen=1.0)
    raw, weights = first_outputs(policy)[1:], policy.values.conditions.weight.detach().numpy()
    drawn = sample(space, policy.stepper(), 2000, np.random.default_rng(0)).designs
    x, y = drawn.values[:, 0].T
    mean = raw[1] + 0.7 + weights[1, 0] * x
    assert stats.kstest(truncated(mean, 10, 14).cdf(y), "uniform").pvalue > 1e-3
    again = policy.score(replay(space, drawn)).log_prob.detach().numpy()
    in_shares = log_prob_by_steps(space, policy, drawn)  # of ranges that are 8 and 4 wide
    np.testing.assert_allclose(in_shares - 2 * np.log(32), again, rtol=1e-5, atol=1e-5)
    ids, z = replay(space, drawn).neighbours[:1, 1], replay(space, drawn).neighbour_z[:1, 1]
    seen = policy.dense_inputs(ids, z, 1).numpy()[:, 1:3]
    np.testing.assert_allclose(
        seen, np.stack((x, np.full_like(y, 10.0)), axis=1), rtol=1e-6
    )  # 10 is the most


def test_shares_and_units_are_the_same_where_ranges_go_from_0_to_1():
    space = Space([Token("a", range=(0, 1)), Token("b", x=Real(0, 1), o=Choice("u", "v"))], FixedSequence(3))

    def drawn(settings):
        return sample(space, policy_of(space, settings).stepper(), 50, np.random.default_rng(0)).designs

    shares, own = drawn(FIXED), drawn(NetworkSettings(coordinates="value"))
    np.testing.assert_array_equal(shares.values[..., 0], own.values[..., 0])


# ------------------------------------------------------------------------------------------------- integers


@pytest.mark.parametrize("mean", [-40.0, -3.0, 0.2, 0.5, 1.7, 60.0])
@pytest.mark.parametrize("scale", [0.5, 0.01, 3.0])
def test_the_mass_of_an_interval_is_exact_far_out(mean, scale):
    lower, upper, low, high = 0.3, 0.35, 0.0, 1.0
    got = log_mass_between(*tensor(lower, upper, mean, scale, low, high)).item()
    with mpmath.workdps(50):  # erfc has that many digits however small it is

        def mass(a, b):
            a, b = ((mpmath.mpf(x) - mpmath.mpf(mean)) / mpmath.mpf(scale) for x in (a, b))
            if a + b < 0:
                a, b = -b, -a
            return (mpmath.erfc(a / mpmath.sqrt(2)) - mpmath.erfc(b / mpmath.sqrt(2))) / 2

        want = mpmath.log(mass(lower, upper) / mass(low, high))
        assert got == pytest.approx(float(want), rel=1e-9, abs=1e-9)


def test_the_mass_has_the_right_gradient():
    mean, scale = (x.requires_grad_() for x in tensor(0.7, 0.2))
    lower, upper, low, high = tensor(0.1, 0.3, 0.0, 1.0)
    assert torch.autograd.gradcheck(
        lambda m, s: log_mass_between(lower, upper, m, s, low, high), (mean, scale)
    )


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (0.3, 0.8)])
def test_the_entropy_of_bins_is_their_sum(bounds):
    edges = torch.linspace(0, 1, 11, dtype=torch.float64)
    mean, scale, low, high = tensor(0.35, 0.15, *bounds)
    cdf = stats.truncnorm((bounds[0] - 0.35) / 0.15, (bounds[1] - 0.35) / 0.15, 0.35, 0.15).cdf
    p = np.diff(cdf(edges.numpy()))
    assert entropy_of_bins(edges, mean, scale, low, high).item() == pytest.approx(stats.entropy(p))


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("high", [2, 30, 1_000_000])
def test_integers_have_probabilities_that_add_up_to_one(high, log):
    space = Space([Token("a", k=Integer(1, high, log=log))], FixedSequence(1))
    for settings in (NetworkSettings(), LEARNED):
        policy = policy_of(space, settings)
        if high <= 30:
            designs = [Design.of(("a", {"k": k})) for k in range(1, high + 1)]
            assert np.exp(log_probs(space, policy, designs)).sum() == pytest.approx(1, abs=1e-12)
        drawn = sample(space, policy.stepper(), 3000, np.random.default_rng(1))
        again = policy.score(replay(space, drawn.designs)).log_prob.detach().numpy()
        np.testing.assert_allclose(
            log_prob_by_steps(space, policy, drawn.designs), again, rtol=1e-5, atol=1e-6
        )
        assert (drawn.designs.values == np.round(drawn.designs.values)).all()
        assert drawn.designs.values.min() >= 1
        assert drawn.designs.values.max() <= high


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(("low", "count"), [(1, 2), (1, 40), (1, 101), (1, 8000), (2000, 3000)])
def test_the_entropy_of_integers_is_that_of_their_enumeration(low, count, log):
    """By a sum up to a hundred of them; for more the Normal and the density of integers are as good as exact."""
    space = Space([Token("a", k=Integer(low, low + count - 1, log=log))], FixedSequence(1))
    policy = policy_of(space)
    designs = [Design.of(("a", {"k": k})) for k in range(low, low + count)]
    scored = policy.score(replay(space, space.encode(designs)))
    p = scored.log_prob.detach().exp().numpy()
    assert p.sum() == pytest.approx(1, abs=1e-9)
    assert scored.entropy[0].item() == pytest.approx(stats.entropy(p), abs=1e-6 if count < 100 else 2e-5)


def test_uniform_draws_of_integers_are_even():
    space = Space([Token("a", k=Integer(-2, 3))], FixedSequence(1))
    drawn = sample(space, UniformStepper(space), 6000, np.random.default_rng(0))
    counts = np.unique(drawn.designs.values, return_counts=True)[1]
    assert len(counts) == 6
    assert stats.chisquare(counts).pvalue > 1e-3


# -------------------------------------------------------------------------------------------------- options


@pytest.mark.parametrize("count", [1, 3, 500])
def test_options_are_a_softmax(count):
    space = Space([Token("a", which=Choice(*range(count))), Token("b")], FixedSequence(1))
    policy = policy_of(space)
    designs = [Design.of(("a", {"which": k})) for k in range(count)] + [Design.of("b")]
    p = np.exp(log_probs(space, policy, designs))
    assert p.sum() == pytest.approx(1, abs=1e-6)
    drawn = sample(space, policy.stepper(), 4000, np.random.default_rng(3))
    again = policy.score(replay(space, drawn.designs)).log_prob.detach().numpy()
    np.testing.assert_allclose(log_prob_by_steps(space, policy, drawn.designs), again, rtol=1e-5, atol=1e-6)
    if count == 3:
        keys = [d.tokens[0] if d.values[0] is None else d.values[0]["which"] for d in drawn.designs]
        seen = [keys.count(k) for k in (0, 1, 2, "b")]
        assert stats.chisquare(seen, 4000 * p / p.sum()).pvalue > 1e-3


class NotTwice(Constraint):
    """The option of the token before may not come again."""

    def forbidden(self, prefix):
        return prefix.forbid_nothing()

    def forbidden_options(self, prefix):
        mask = np.zeros((len(prefix), 3), np.bool_)
        if prefix.position:
            last = prefix.value("which")[:, -1]
            rows = np.flatnonzero(~np.isnan(last))
            mask[rows, last[rows].astype(int)] = True
        return {("a", "which"): mask}


def test_options_that_a_rule_forbids_have_probability_zero():
    space = Space([Token("a", which=Choice("x", "y", "z")), Token("b")], FixedSequence(2), [NotTwice()])
    policy = policy_of(space)
    parts = [("a", {"which": w}) for w in "xyz"] + ["b"]
    every = [Design.of(*pair) for pair in itertools.product(parts, parts)]
    good = [design for design in every if not space.violations(design)]
    assert len(good) == 16 - 3
    scored = policy.score(replay(space, space.encode(good)))
    p = scored.log_prob.detach().exp().numpy()
    assert p.sum() == pytest.approx(1, abs=1e-6)
    assert float((torch.from_numpy(p) * scored.entropy.detach()).sum()) == pytest.approx(
        stats.entropy(p), abs=1e-6
    )
    for design in sample(space, policy.stepper(), 300, np.random.default_rng(0)).designs:
        assert not space.violations(design)
    (broken,) = space.violations(Design.of(("a", {"which": "x"}), ("a", {"which": "x"})))
    assert "which=x is forbidden by NotTwice" in str(broken)


# --------------------------------------------------------------------------------- several values of a token


MIXED = Space(
    [
        Token("gate", qubit=Choice(0, 1, 2), level=Integer(1, 4), sign=Choice("+", "-")),
        Token("wait", steps=Integer(0, 2)),
        Token("stop"),
    ],
    FixedSequence(2),
)


def mixed_parts() -> list:
    gates = [
        ("gate", {"qubit": q, "level": n, "sign": s})
        for q in range(3)
        for n in range(1, 5)
        for s in ("+", "-")
    ]
    return [*gates, *(("wait", {"steps": n}) for n in range(3)), "stop"]


@pytest.mark.parametrize("settings", [NetworkSettings(), LEARNED])
def test_mixed_values_sum_to_one_and_entropy_follows_the_chain_rule(settings):
    """The expected sum of conditional entropies along designs is the entropy of all of them."""
    policy = policy_of(MIXED, settings)
    designs = [Design.of(*pair) for pair in itertools.product(mixed_parts(), repeat=2)]
    scored = policy.score(replay(MIXED, MIXED.encode(designs)))
    log_p = scored.log_prob.detach().numpy()
    p = np.exp(log_p)
    assert p.sum() == pytest.approx(1, abs=1e-6)
    assert float(p @ scored.entropy.detach().numpy()) == pytest.approx(-float(p @ log_p), rel=1e-5)
    drawn = sample(MIXED, policy.stepper(), 5000, np.random.default_rng(5))
    again = policy.score(replay(MIXED, drawn.designs)).log_prob.detach().numpy()
    np.testing.assert_allclose(log_prob_by_steps(MIXED, policy, drawn.designs), again, rtol=1e-4, atol=1e-5)
    index = {design: k for k, design in enumerate(designs)}
    counts = np.bincount([index[design] for design in drawn.designs], minlength=len(designs))
    expected = 5000 * p / p.sum()
    usual = expected > 5
    seen, wanted = (np.append(own[usual], own[~usual].sum()) for own in (counts, expected))
    assert stats.chisquare(seen, wanted).pvalue > 1e-3


def test_the_gradient_of_the_expected_reward_is_that_of_the_enumeration():
    policy = policy_of(MIXED, sharpen=2.0)
    designs = [Design.of(*pair) for pair in itertools.product(mixed_parts(), repeat=2)]
    rewards = torch.from_numpy(np.random.default_rng(0).random(len(designs)))
    log_p = policy.score(replay(MIXED, MIXED.encode(designs))).log_prob
    exact = torch.autograd.grad((log_p.exp() * rewards).sum(), list(policy.parameters()), retain_graph=True)
    by_score = torch.autograd.grad((log_p.exp().detach() * rewards * log_p).sum(), list(policy.parameters()))
    for one, other in zip(exact, by_score, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
    assert policy.values.conditions is not None
    assert exact[-1].abs().max() > 1e-6  # later values depend on those before them


def test_two_real_numbers_integrate_to_one():
    space = Space([Token("svc", C=Real(1e-2, 1e2, log=True), gamma=Real(-1, 2))], FixedSequence(1))
    policy = policy_of(space, LEARNED)

    def density(gamma, log_c):
        design = Design.of(("svc", {"C": 10**log_c, "gamma": gamma}))
        return math.exp(log_probs(space, policy, [design])[0]) / (4 * 3)  # coordinates in [0, 1]

    total, _ = integrate.dblquad(density, -2, 2, -1, 2, epsabs=1e-3, epsrel=1e-3)
    assert total == pytest.approx(1, abs=2e-3)


def test_the_entropy_of_two_real_numbers_is_that_of_quadrature():
    space = Space([Token("a", x=Real(0, 1), y=Real(0, 1))], FixedSequence(1))
    policy = policy_of(space)
    nodes, weights = np.polynomial.legendre.leggauss(24)
    nodes, weights = (nodes + 1) / 2, weights / 2
    designs = [Design.of(("a", {"x": x, "y": y})) for x in nodes for y in nodes]
    scored = policy.score(replay(space, space.encode(designs)))
    log_p, entropy = scored.log_prob.detach().numpy(), scored.entropy.detach().numpy()
    mass = np.outer(weights, weights).ravel() * np.exp(log_p)
    assert mass.sum() == pytest.approx(1, abs=1e-6)
    assert mass @ entropy == pytest.approx(-(mass @ log_p), abs=1e-5)


def test_a_second_value_is_drawn_given_the_first():
    space = Space([Token("a", x=Real(0, 1), y=Real(0, 1))], FixedSequence(1))
    policy = policy_of(space, NetworkSettings(scale=0.1))
    with torch.no_grad():
        assert policy.values.conditions is not None
        policy.values.conditions.weight[:] = 0
        policy.values.conditions.weight[1, 0] = 1.0  # the mean of y rises with x
        policy.heads.weight[:] = 0
        policy.heads.bias[:] = torch.tensor([0.0, 0.5, 0.0])
    values = sample(space, policy.stepper(), 4000, np.random.default_rng(0)).designs.values[:, 0]
    assert np.corrcoef(values.T)[0, 1] > 0.5


class FirstOptionBarred(Constraint):
    """Later gates may not take qubit 0."""

    def forbidden(self, prefix):
        return prefix.forbid_nothing()

    def forbidden_options(self, prefix):
        mask = np.zeros((len(prefix), 3), np.bool_)
        mask[:, 0] = prefix.position > 0
        return {("gate", "qubit"): mask}


@pytest.mark.parametrize("settings", [NetworkSettings(), LEARNED])
@pytest.mark.parametrize("rules", [[], [FirstOptionBarred()]])
def test_values_drawn_together_are_those_drawn_one_by_one(settings, rules, monkeypatch):
    gate = Token(
        "gate",
        x=Real(1e-3, 10, log=True),
        n=Integer(1, 9, log=True),
        qubit=Choice(0, 1, 2),
        y=Real(-math.inf, 1),
    )
    space = Space(
        [gate, Token("wait", steps=Integer(0, 2), t=Real(0, 1)), Token("stop")], FixedSequence(3), rules
    )
    stepper = policy_of(space, settings).stepper()
    together = sample(space, stepper, 500, np.random.default_rng(1)).designs
    monkeypatch.setattr(NetworkStepper, "draw_together", lambda *arguments: None)
    one_by_one = sample(space, stepper, 500, np.random.default_rng(1)).designs
    np.testing.assert_array_equal(together.tokens, one_by_one.tokens)
    np.testing.assert_allclose(together.values, one_by_one.values, rtol=1e-4, atol=1e-5)


def test_tokens_that_share_a_choice_share_its_inputs():
    qubit = Choice(0, 1, 2)
    shared = Space([Token("rx", qubit=qubit), Token("ry", qubit=qubit)], FixedSequence(2))
    apart = Space([Token("rx", qubit=qubit), Token("ry", other=qubit)], FixedSequence(2))
    assert policy_of(apart).values.features == policy_of(shared).values.features + 3


def test_one_value_spaces_have_no_more_parameters_than_before():
    space = Space([Token("a", range=(0, 1)), Token("b")], FixedSequence(2))
    policy = policy_of(space)
    assert policy.values.conditions is None
    assert policy.inputs == 3
    assert policy.heads.out_features == 3
    assert isinstance(policy.values.distribution, TruncatedNormal)


def test_bounds_that_move_hold_for_integers_and_later_values():
    class Rising(Bounds):
        """Every k is above the one before; the weight stays below a tenth of it."""

        def interval(self, prefix):
            shape = (len(prefix), *prefix.library.low.shape)
            low, high = (
                np.array(np.broadcast_to(e, shape)) for e in (prefix.library.low, prefix.library.high)
            )
            high[:, 0, 0] = 10 * prefix.position + 10
            if prefix.position:
                low[:, 0, 0] = prefix.value("k")[:, -1] + 1
                high[:, 0, 1] = prefix.value("k")[:, -1] / 10
            return low, high

    space = Space([Token("a", k=Integer(1, 30), w=Real(0, 1))], FixedSequence(3), bounds=Rising())
    policy = policy_of(space)
    drawn = sample(space, policy.stepper(), 500, np.random.default_rng(0))
    for design in drawn.designs:
        assert not space.violations(design)
        first, second, third = design
        assert first.k < second.k < third.k
        assert third.w <= second.k / 10
    again = policy.score(replay(space, replace(drawn.designs, origin=None))).log_prob.detach().numpy()
    np.testing.assert_allclose(log_prob_by_steps(space, policy, drawn.designs), again, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("ends", [(1e308, 1.1e308), (-2e9, -1e9), (0.0, 1e-30), (5e-324, 1e-323)])
def test_ranges_out_of_reach_in_the_units_of_the_value_are_refused_and_work_in_those_of_the_range(ends):
    space = Space([Token("a", range=ends), Token("b")], OpenSequence(min_length=1, max_length=3))
    task = Task(space, lambda design: float(design.values[0] is not None))
    with pytest.raises(
        DeclarationError, match=r"token 'a': its range is too far .* use the preset 'paper-scaled'"
    ):
        search(task, budget=10, preset="paper")
    best = search(task, budget=150, preset="paper-scaled").best.design.values[0]
    assert ends[0] <= best <= ends[1]
