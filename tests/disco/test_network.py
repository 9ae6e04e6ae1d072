"""The policy is exactly the distribution that it claims to be, on spaces small enough to enumerate."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from enumeration import all_skeletons, probability_by_hand, valid_skeletons
from scipy import stats
from spaces import SMALL, decision_tree, mixed_sequence, symbolic
from stepping import log_prob_by_steps

from discodso import (
    DeclarationError,
    Design,
    FixedSequence,
    InvalidDesignError,
    NetworkSettings,
    OpenSequence,
    SoftLength,
    Space,
    Token,
)
from discodso.disco.emission import Asked, Places
from discodso.disco.network import Policy
from discodso.disco.sampling import sample
from discodso.space.replay import replay

CELLS = [
    NetworkSettings(cell=cell, layers=layers, units=units)
    for cell in ("lstm", "gru")
    for layers, units in ((1, 32), (2, 7))
]


def make(space: Space, settings: NetworkSettings = CELLS[0], seed: int = 0, sharpen: float = 3.0) -> Policy:
    """A random policy with weights far enough from zero to have opinions."""
    policy = Policy(space, settings, np.random.default_rng(seed))
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter *= sharpen
    return policy


def score(space, policy, designs):
    with torch.no_grad():
        return policy.score(replay(space, space.encode(designs)))


def plain(skeleton) -> Design:
    return Design(tuple(skeleton), (None,) * len(skeleton))


@pytest.mark.parametrize("settings", CELLS, ids=lambda s: f"{s.cell}-{s.layers}x{s.units}")
@pytest.mark.parametrize("name", SMALL)
def test_probabilities_of_all_valid_designs_sum_to_one(name, settings):
    space = SMALL[name]()
    policy = make(space, settings)
    valid = sorted(valid_skeletons(space))
    assert len(valid) > 10
    log_prob = score(space, policy, [plain(s) for s in valid]).log_prob.numpy()
    assert np.exp(log_prob).sum() == pytest.approx(1, abs=1e-5)
    assert np.all(log_prob > -math.inf)  # every valid one can be reached


@pytest.mark.parametrize("name", SMALL)
def test_invalid_designs_have_probability_zero_and_are_refused(name):
    space = SMALL[name]()
    policy = make(space)
    valid = valid_skeletons(space)
    invalid = [s for s in all_skeletons(space) if s not in valid]
    assert invalid
    for skeleton in invalid[:400]:
        assert probability_by_hand(space, policy, skeleton) == 0
        assert space.violations(plain(skeleton))
        with pytest.raises(InvalidDesignError):
            score(space, policy, [plain(skeleton)])


@pytest.mark.parametrize("name", SMALL)
def test_score_equals_the_product_of_masked_softmaxes(name):
    space = SMALL[name]()
    policy = make(space)
    valid = sorted(valid_skeletons(space))[::3]
    by_hand = [probability_by_hand(space, policy, s) for s in valid]
    scored = score(space, policy, [plain(s) for s in valid]).log_prob.exp().numpy()
    np.testing.assert_allclose(scored, by_hand, rtol=1e-4)


@pytest.mark.parametrize("name", SMALL)
def test_sample_frequencies_pass_a_chi_square_test(name):
    space = SMALL[name]()
    policy = make(space, sharpen=1.5)
    drawn = sample(space, policy.stepper(), 20_000, np.random.default_rng(5)).designs
    counts: dict = {}
    for design in drawn:
        counts[design.tokens] = counts.get(design.tokens, 0) + 1
    valid = sorted(valid_skeletons(space))
    assert set(counts) <= set(valid)
    expected = np.exp(score(space, policy, [plain(s) for s in valid]).log_prob.numpy()) * len(drawn)
    observed = np.array([counts.get(s, 0) for s in valid])
    rare = expected < 5
    observed = np.append(observed[~rare], observed[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    keep = expected > 0
    assert stats.chisquare(observed[keep], expected[keep] * observed.sum() / expected.sum()).pvalue > 1e-3


BOUNDED = Space(
    [Token("v", range=(0, 10)), Token("w", range=(1e-9, 1e-3), scale="log"), Token("d")], OpenSequence(1, 6)
)
HALF = Space(
    [Token("v", range=(0, math.inf)), Token("w", range=(-math.inf, 3)), Token("d")], FixedSequence(5)
)
STEEP = Space([Token("v", range=(0, 1)), Token("d")], OpenSequence(1, 12), priors=[SoftLength(5, 0.03)])
DISTRIBUTED = {
    "steep prior": (STEEP, NetworkSettings()),
    "normal": (symbolic(), NetworkSettings()),
    "normal, learned scale": (symbolic(), NetworkSettings(learn_scale=True)),
    "truncated": (BOUNDED, NetworkSettings()),
    "truncated, learned scale, shifted": (BOUNDED, NetworkSettings(learn_scale=True, shift=0.5)),
    "narrow, means in that unit": (
        BOUNDED,
        NetworkSettings(scale=0.1, learn_scale=True, min_scale=0.05, shift=0.5, mean_scale=0.1),
    ),
    "narrow, moving bounds": (decision_tree(), NetworkSettings(scale=0.1)),
    "half open": (HALF, NetworkSettings(learn_scale=True)),
    "moving bounds": (decision_tree(), NetworkSettings()),
    "position input": (BOUNDED, NetworkSettings(inputs=("position", "previous"))),
    "no input": (BOUNDED, NetworkSettings(inputs=())),
}


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("name", DISTRIBUTED)
def test_log_prob_when_sampled_equals_log_prob_when_scored(name, layers, cell):
    space, settings = DISTRIBUTED[name]
    policy = make(space, replace(settings, cell=cell, layers=layers))
    drawn = sample(space, policy.stepper(), 300, np.random.default_rng(2)).designs
    sampled = log_prob_by_steps(space, policy, drawn)
    assert np.isfinite(sampled).all()
    np.testing.assert_allclose(score(space, policy, drawn).log_prob.numpy(), sampled, rtol=0, atol=1e-4)
    as_objects = score(space, policy, list(drawn)[:20]).log_prob.numpy()
    np.testing.assert_allclose(as_objects, sampled[:20], rtol=0, atol=1e-4)


@pytest.mark.parametrize("learn_scale", [False, True])
def test_joint_density_of_tokens_and_values_integrates_to_one(learn_scale):
    space = mixed_sequence(-3.0, 1.0)
    policy = make(space, NetworkSettings(learn_scale=learn_scale))
    nodes, weights = np.polynomial.legendre.leggauss(48)
    z, w = 0.5 * (nodes + 1), 0.5 * weights  # the policy's coordinate runs over [0, 1]
    value = -3.0 + 4.0 * z
    total = score(space, policy, [Design.of("d", "d")]).log_prob.exp().item()
    for first, second in (("v", "d"), ("d", "v")):
        designs = [Design.of(*((n, v) if n == "v" else n for n in (first, second))) for v in value.tolist()]
        total += float(score(space, policy, designs).log_prob.exp().numpy() @ w)
    designs = [Design.of(("v", a), ("v", b)) for a in value.tolist() for b in value.tolist()]
    total += float(score(space, policy, designs).log_prob.exp().numpy() @ np.outer(w, w).ravel())
    assert total == pytest.approx(1, abs=1e-5)
    # A density that forgot the values would be 1 on the unit interval, and integrate to 1 as well.
    apart = score(space, policy, [Design.of(("v", -2.9), "d"), Design.of(("v", 0.9), "d")])
    values = apart.log_prob - apart.token_log_prob
    assert abs(values[0] - values[1]) > 0.01


@pytest.mark.parametrize("settings", [NetworkSettings(), NetworkSettings(learn_scale=True, shift=0.3)])
def test_hybrid_entropy_equals_numerical_integration(settings):
    """H of the appendix for one position: minus the sum over tokens of the integral of p log p."""
    space = Space(
        [Token("v", range=(0, 1)), Token("w", range=(2, 4)), Token("d"), Token("e")], FixedSequence(1)
    )
    policy = make(space, settings)
    nodes, weights = np.polynomial.legendre.leggauss(64)
    z, w = 0.5 * (nodes + 1), 0.5 * weights
    want = 0.0
    for name, values in (("v", z), ("w", 2 + 2 * z)):
        log_p = score(space, policy, [Design.of((name, float(x))) for x in values]).log_prob.numpy()
        want -= float((np.exp(log_p) * log_p) @ w)
    for name in ("d", "e"):
        log_p = score(space, policy, [Design.of(name)]).log_prob.item()
        want -= math.exp(log_p) * log_p
    assert score(space, policy, [Design.of("d")]).entropy.item() == pytest.approx(want, abs=1e-5)


def test_entropy_sums_over_positions_and_leaves_out_forbidden_tokens():
    space = SMALL["open sequence"]()
    policy = make(space)
    design = plain(("b", "c"))
    stepper = policy.stepper()
    want, prefix, memory = 0.0, space.start(1), stepper.initial_memory(1)
    for token in [*space.library.ids(design.tokens), space.library.end]:
        options, emission = space.options(prefix), stepper.step(prefix, memory)
        weights = np.where(options.forbidden[0], 0, np.exp(emission.psi[0].astype(float)))
        p = weights[weights > 0] / weights.sum()
        want -= float((p * np.log(p)).sum())
        memory, prefix = emission.memory, prefix.advance(np.array([token]), np.array([np.nan]))
    assert score(space, policy, [design]).entropy.item() == pytest.approx(want, abs=1e-5)


def test_entropy_of_designs_with_narrow_bounds_is_finite_and_so_are_gradients():
    space = decision_tree(max_length=31, resolution=1e-6)
    policy = make(space, NetworkSettings(learn_scale=True), sharpen=30.0)
    trace = replay(space, sample(space, policy.stepper(), 200, np.random.default_rng(0)).designs)
    scored = policy.score(trace)
    (scored.log_prob.mean() + scored.entropy.mean()).backward()
    assert torch.isfinite(scored.log_prob).all()
    assert torch.isfinite(scored.entropy).all()
    assert all(torch.isfinite(p.grad).all() for p in policy.parameters())


def test_means_forty_scales_outside_the_bounds_are_harmless():
    space = mixed_sequence()
    policy = make(space, NetworkSettings(shift=20.0))
    drawn = sample(space, policy.stepper(), 500, np.random.default_rng(0))
    values = drawn.designs.values[~np.isnan(drawn.designs.values)]
    assert np.all((values >= 0) & (values <= 1))
    scored = policy.score(replay(space, drawn.designs))
    (scored.log_prob.mean() + scored.entropy.mean()).backward()
    assert torch.isfinite(scored.log_prob).all()
    assert np.isfinite(log_prob_by_steps(space, policy, drawn.designs)).all()
    assert all(torch.isfinite(p.grad).all() for p in policy.parameters())


def test_each_parametrised_token_has_parameters_of_its_own():
    space = Space([Token("v", range=(0, 1)), Token("w", range=(0, 1))], FixedSequence(1))
    policy = make(space)
    stepper = policy.stepper()
    emission = stepper.step(space.start(1), stepper.initial_memory(1))
    mean, scale = policy.values.numbers(torch.from_numpy(emission.phi[0]))
    assert mean[0] != mean[1]
    assert torch.all(scale == 0.5)
    half = np.full(2, 0.5)
    at = Places(np.array([0, 1]), 0)
    asked = Asked(np.array([0, 0]), at, np.zeros((2, 1)), half * 0, half * 2, half)
    drawn = stepper.draw(emission, asked)
    assert drawn[0] != drawn[1]


def test_weights_come_from_the_given_stream_and_not_from_torch():
    space = mixed_sequence()
    before = torch.random.get_rng_state()
    first, second = (Policy(space, NetworkSettings(), np.random.default_rng(3)) for _ in range(2))
    assert torch.equal(before, torch.random.get_rng_state())
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        ({"cell": "rnn"}, "cell"),
        ({"units": 0}, "units"),
        ({"layers": 1.5}, "layers"),
        ({"scale": -1.0}, "scale"),
        ({"scale": math.nan}, "scale"),
        ({"inputs": ("previous", "grandparent")}, "inputs"),
        ({"shift": math.inf}, "shift"),
        ({"mean_scale": 0}, "mean_scale"),
        ({"scale": 0.1, "min_scale": 0.2}, "min_scale"),
    ],
)
def test_bad_settings_name_their_key(bad, word):
    with pytest.raises(DeclarationError, match=word):
        NetworkSettings(**bad)


def test_a_learned_scale_stays_above_its_floor_and_means_have_their_unit():
    policy = make(
        BOUNDED, NetworkSettings(scale=0.1, learn_scale=True, min_scale=0.05, shift=0.5, mean_scale=0.1)
    )
    count = policy.values.outputs // 2
    phi = torch.cat([torch.full((count,), 2.0), torch.full((count,), -30.0)])
    mean, scale = policy.values.numbers(phi)
    assert torch.allclose(mean, torch.full_like(mean, 0.7))
    assert torch.allclose(scale, torch.full_like(scale, 0.05))
