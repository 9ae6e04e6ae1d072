"""Distributions against scipy, mpmath and numerical integration."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import torch
from scipy import integrate, stats

from discodso.disco import _kernels
from discodso.disco.distributions import Normal, TruncatedNormal, log_prob_and_entropy


def tensors(*numbers):
    return [torch.tensor(float(x), dtype=torch.float64) for x in numbers]


def exact(z, mean, scale, low, high):
    """log density, its derivative in the mean, and the entropy, in 80 digits."""
    with mpmath.workdps(80):
        z, mean, scale, low, high = (mpmath.mpf(x) for x in (z, mean, scale, low, high))
        a, b = (low - mean) / scale, (high - mean) / scale
        sign = 1
        if a < 0 and abs(a) > abs(b):  # erfc keeps its digits on the positive side
            a, b, sign = -b, -a, -1
        mass = (mpmath.erfc(a / mpmath.sqrt(2)) - mpmath.erfc(b / mpmath.sqrt(2))) / 2

        def density(x):
            return (
                mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi) if mpmath.isfinite(x) else mpmath.mpf(0)
            )

        def times_density(x):
            return x * density(x) if mpmath.isfinite(x) else mpmath.mpf(0)

        x = (z - mean) / scale
        log_density = -x * x / 2 - mpmath.log(scale * mpmath.sqrt(2 * mpmath.pi)) - mpmath.log(mass)
        slope = (x - sign * (density(a) - density(b)) / mass) / scale
        entropy = mpmath.log(mpmath.sqrt(2 * mpmath.pi * mpmath.e) * scale * mass) + (
            times_density(a) - times_density(b)
        ) / (2 * mass)
        return log_density, slope, entropy


OFFSETS = (-40.0, -12.0, -5.0, -1.0, -0.3, 0.0, 0.2, 1.0, 5.0, 12.0, 40.0)
WIDTHS = (1e-6, 1e-3, 0.1, 0.5, 1.0, 2.0, 5.0, 60.0, math.inf)


@pytest.mark.parametrize("scale", [0.5, 0.01, 3.0])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("offset", OFFSETS)
def test_truncated_normal_is_exact_in_tails_and_narrow_intervals(offset, width, scale):
    low, mean = 0.25, 0.25 + offset * scale
    high = low + width * scale
    z = low + 0.3 * min(width, 1.0) * scale
    at, m, s, lo, hi = tensors(z, mean, scale, low, high)
    m.requires_grad_()
    s.requires_grad_()
    log_prob = TruncatedNormal().log_prob(at, m, s, lo, hi)
    entropy = TruncatedNormal().entropy(m, s, lo, hi)
    slopes = torch.autograd.grad(log_prob, (m, s))
    entropy_slopes = torch.autograd.grad(entropy, (m, s))
    want_log_prob, want_slope, want_entropy = (float(x) for x in exact(z, mean, scale, low, high))
    assert log_prob.item() == pytest.approx(want_log_prob, rel=1e-8, abs=1e-8)
    assert entropy.item() == pytest.approx(want_entropy, rel=1e-7, abs=1e-7)
    assert slopes[0].item() == pytest.approx(want_slope, rel=1e-6, abs=2e-6 / scale)
    assert all(math.isfinite(slope.item()) for slope in (*slopes, *entropy_slopes))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("offset", OFFSETS)
def test_truncated_normal_samples_stay_inside_and_follow_the_inverse_cdf(offset, width):
    low, scale = 0.25, 0.5
    high, mean = low + width * scale, low + offset * scale
    uniform = np.linspace(0, 1, 101, endpoint=False)
    drawn = TruncatedNormal().sample(*(np.full(101, x) for x in (mean, scale, low, high)), uniform)
    assert np.all((drawn >= low) & (drawn <= high))
    assert np.all(np.diff(drawn) >= 0)
    want = stats.truncnorm.ppf(uniform[1:], (low - mean) / scale, (high - mean) / scale, mean, scale)
    room = scale * min(width, 1.0)
    np.testing.assert_allclose(drawn[1:], want, rtol=0, atol=1e-6 * room)


def test_truncated_normal_matches_scipy_where_scipy_is_sound():
    rng = np.random.default_rng(0)
    for _ in range(200):
        mean, scale = rng.normal(0, 2), rng.uniform(0.1, 2)
        low = mean + rng.uniform(-3, 2) * scale  # farther out scipy's own entropy loses its digits
        high = low + rng.uniform(0.1, 3) * scale
        z = rng.uniform(low, high)
        frozen = stats.truncnorm((low - mean) / scale, (high - mean) / scale, mean, scale)
        at = tensors(z, mean, scale, low, high)
        assert TruncatedNormal().log_prob(*at).item() == pytest.approx(frozen.logpdf(z), abs=1e-9)
        assert TruncatedNormal().entropy(*at[1:]).item() == pytest.approx(frozen.entropy(), abs=1e-7)


def test_sampling_frequencies_follow_the_density():
    rng = np.random.default_rng(1)
    size, (mean, scale, low, high) = 20_000, (1.4, 0.5, 0.0, 1.0)
    drawn = TruncatedNormal().sample(*(np.full(size, x) for x in (mean, scale, low, high)), rng.random(size))
    cdf = stats.truncnorm((low - mean) / scale, (high - mean) / scale, mean, scale).cdf
    assert stats.kstest(drawn, cdf).pvalue > 1e-3


def test_normal_matches_scipy():
    z, mean, scale, low, high = tensors(1.3, 0.2, 0.7, -math.inf, math.inf)
    frozen = stats.norm(0.2, 0.7)
    assert Normal().log_prob(z, mean, scale, low, high).item() == pytest.approx(frozen.logpdf(1.3))
    assert Normal().entropy(mean, scale, low, high).item() == pytest.approx(frozen.entropy())
    drawn = Normal().sample(*(np.full(5, x) for x in (0.2, 0.7, 0, 0)), np.array([0.0, 0.1, 0.5, 0.9, 0.999]))
    assert np.all(np.isfinite(drawn))
    np.testing.assert_allclose(drawn[1:], frozen.ppf([0.1, 0.5, 0.9, 0.999]))


def test_truncated_normal_without_bounds_is_normal():
    at = tensors(1.3, 0.2, 0.7, -math.inf, math.inf)
    assert TruncatedNormal().log_prob(*at).item() == pytest.approx(Normal().log_prob(*at).item(), abs=1e-12)
    assert TruncatedNormal().entropy(*at[1:]).item() == pytest.approx(
        Normal().entropy(*at[1:]).item(), abs=1e-12
    )


@pytest.mark.parametrize(("mean", "low", "high"), [(0.5, 0.0, 1.0), (-3.0, 0.0, 1.0), (2.0, 0.4, 0.41)])
def test_entropy_equals_numerical_integration(mean, low, high):
    def integrand(z):
        log_p = TruncatedNormal().log_prob(*tensors(z, mean, 0.5, low, high)).item()
        return -math.exp(log_p) * log_p

    want, _ = integrate.quad(integrand, low, high, epsabs=1e-11)
    assert TruncatedNormal().entropy(*tensors(mean, 0.5, low, high)).item() == pytest.approx(want, abs=1e-8)


@pytest.mark.parametrize("away", [3.5, 10.0, 100.0, 1e4, 1e6])
@pytest.mark.parametrize("side", [-1, 1])
def test_gradients_of_the_entropy_are_exact_far_in_the_tails(away, side):
    """Where the closed form loses c^2 in digits, with c the distance in scales; against 80 digits."""
    scale = 1e-2
    mean = -away * scale if side < 0 else 1 + away * scale
    m, s, low, high = tensors(mean, scale, 0, 1)
    m.requires_grad_()
    s.requires_grad_()
    slopes = torch.autograd.grad(TruncatedNormal().entropy(m, s, low, high), (m, s))

    with mpmath.workdps(80):
        step = mpmath.mpf(10) ** -30
        want = []
        for by_mean, by_scale in ((step, 0), (0, step)):
            up, down = (
                exact(0.5, mean + sign * by_mean, scale + sign * by_scale, 0, 1)[2] for sign in (1, -1)
            )
            want.append(float((up - down) / (2 * step)))
    assert [slope.item() for slope in slopes] == pytest.approx(want, rel=1e-6)


def test_gradients_of_a_batch_match_finite_differences():
    mean = torch.tensor([-2.0, 0.3, 4.0, 0.5], dtype=torch.float64, requires_grad=True)
    scale = torch.tensor([0.5, 0.4, 0.3, 0.2], dtype=torch.float64, requires_grad=True)
    low = torch.tensor([0.0, 0.0, 0.0, 0.4999], dtype=torch.float64)
    high = torch.tensor([1.0, 1.0, math.inf, 0.5001], dtype=torch.float64)
    z = torch.tensor([0.1, 0.5, 3.0, 0.5], dtype=torch.float64)
    normal = TruncatedNormal()
    assert torch.autograd.gradcheck(
        lambda m, s: normal.log_prob(z, m, s, low, high), (mean, scale), atol=1e-4
    )
    assert torch.autograd.gradcheck(lambda m, s: normal.entropy(m, s, low, high), (mean, scale), atol=1e-4)


def wild(count):
    """Means near and far from intervals that are wide, narrow and infinite."""
    rng = np.random.default_rng(0)
    mean, scale = rng.normal(size=count) * 10 ** rng.uniform(-1, 2, count), 10 ** rng.uniform(-1, 0.5, count)
    low = rng.normal(size=count)
    high = low + 10 ** rng.uniform(-2, 1, count)
    low[: count // 8], high[count // 16 : count // 4] = -math.inf, math.inf
    return mean, scale, low, high, rng.random(count)


def test_log_density_and_entropy_together_are_those_taken_apart():
    mean, scale, low, high, uniform = wild(2000)
    z = TruncatedNormal().sample(mean, scale, low, high, uniform)
    z, low, high = (torch.from_numpy(x) for x in (z, low, high))
    found = []
    for together in (True, False):
        m, s = (torch.from_numpy(x.copy()).requires_grad_() for x in (mean, scale))
        d = TruncatedNormal()
        both = log_prob_and_entropy(z, m, s, low, high) if together else None
        log_prob, entropy = both or (d.log_prob(z, m, s, low, high), d.entropy(m, s, low, high))
        slopes = [torch.autograd.grad(x.sum(), (m, s), retain_graph=True) for x in (log_prob, entropy)]
        found.append([log_prob, entropy, *slopes[0], *slopes[1]])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)


def test_the_compiled_draw_is_that_of_the_distribution():
    columns = wild(5000)
    want = TruncatedNormal().sample(*columns)
    got = np.array([_kernels._truncated_normal(*row) for row in zip(*columns, strict=True)])
    _, scale, low, high, _ = columns
    np.testing.assert_array_less(np.abs(got - want), 1e-6 * np.minimum(scale, high - low))
    assert ((got >= low) & (got <= high)).all()
