"""Distributions D(beta | l, phi) of a value, in the policy's coordinates: Normal and truncated Normal.

Sampling is by inversion, from one uniform number for each value, in NumPy; log_prob and entropy are
differentiable, in torch. All of it is in float64: a truncated Normal whose mean lies 40 scales outside a narrow
interval has no digits left in float32.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from scipy import special
from torch import Tensor

from discodso.base.arrays import Floats
from discodso.disco import _kernels
from discodso.disco._kernels import FAR, NARROW, TAIL
from discodso.disco.truncated import draw_truncated, open_interval

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_NODES, _WEIGHTS = (torch.from_numpy(x) for x in np.polynomial.legendre.leggauss(16))
_TAIL_NODES, _TAIL_WEIGHTS = (torch.from_numpy(x) for x in np.polynomial.legendre.leggauss(48))
_TAIL_REACH = 40.0  # e^-40 of the mass is left out


class TruncatedNormal:
    """The normal distribution conditioned on [low, high]; ends may be infinite, and all arguments broadcast."""

    def sample(self, mean: Floats, scale: Floats, low: Floats, high: Floats, uniform: Floats) -> Floats:
        """Draw one value for each entry from uniform numbers in [0, 1)."""
        return draw_truncated(mean, scale, low, high, uniform)

    def log_prob(self, z: Tensor, mean: Tensor, scale: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Log density at z, which lies within the bounds."""
        a, b = _standardise(mean, scale, low, high)
        centre = _nearest_to_zero(a, b)
        x = (z - mean) / scale
        # Both exponents are taken relative to the point of [a, b] nearest to the mean: far out they are huge
        # and almost equal.
        relative = -0.5 * (x - centre) * (x + centre)
        return relative - torch.log(scale) - _HALF_LOG_2PI - _log_mass(a, b)

    def entropy(self, mean: Tensor, scale: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Differential entropy."""
        a, b = _standardise(mean, scale, low, high)
        scale = torch.broadcast_to(scale, a.shape)
        narrow = _is_narrow(a, b)
        tail = (_nearest_to_zero(a, b).abs() > TAIL) & ~narrow
        result = torch.empty_like(a)
        for where, entropy in (
            (narrow, _entropy_narrow),
            (tail, _entropy_tail),
            (~(narrow | tail), _entropy_wide),
        ):
            if bool(where.all()):
                return entropy(a, b) + torch.log(scale)
            if bool(where.any()):
                result = result.masked_scatter(where, entropy(a[where], b[where]))
        return result + torch.log(scale)


class Normal(TruncatedNormal):
    """The same where all ends are infinite; bounds are ignored."""

    def sample(self, mean: Floats, scale: Floats, low: Floats, high: Floats, uniform: Floats) -> Floats:
        """Draw one value for each entry from uniform numbers in [0, 1)."""
        drawn: Floats = mean + scale * special.ndtri(open_interval(uniform))
        return drawn

    def log_prob(self, z: Tensor, mean: Tensor, scale: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Log density at z."""
        return -0.5 * ((z - mean) / scale) ** 2 - torch.log(scale) - _HALF_LOG_2PI

    def entropy(self, mean: Tensor, scale: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Differential entropy."""
        return torch.log(scale) + (_HALF_LOG_2PI + 0.5)


class _Scored(torch.autograd.Function):
    """Log density and entropy of truncated Normals, and which are left out, with gradients in closed form."""

    @staticmethod
    def forward(
        ctx: Any, z: Tensor, mean: Tensor, scale: Tensor, low: Tensor, high: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        count = len(z)
        found, slopes, left = np.empty((2, count)), np.empty((2, 2, count)), np.empty(count, np.bool_)
        at, m, s, a, b = (x.contiguous().numpy() for x in (z, mean, scale, low, high))
        _kernels.score_normals(at, m, s, a, b, found, slopes, left)
        ctx.save_for_backward(torch.from_numpy(slopes))
        marked = torch.from_numpy(left)
        ctx.mark_non_differentiable(marked)
        return torch.from_numpy(found[0]), torch.from_numpy(found[1]), marked

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (slopes,) = ctx.saved_tensors
        mean, scale = grads[0] * slopes[0] + grads[1] * slopes[1]
        return None, mean, scale if ctx.needs_input_grad[2] else None, None, None


def log_prob_and_entropy(
    z: Tensor, mean: Tensor, scale: Tensor, low: Tensor, high: Tensor
) -> tuple[Tensor, Tensor]:
    """Both of a truncated Normal at once, for [N]: several times faster than one after the other."""
    log_prob, entropy, left = _Scored.apply(z, mean, scale, low, high)  # type: ignore[no-untyped-call]
    if bool(left.any()):
        at = left.nonzero().squeeze(1)
        z, mean, scale, low, high = (own[at] for own in (z, mean, scale, low, high))
        rest = TruncatedNormal()
        log_prob = log_prob.index_put((at,), rest.log_prob(z, mean, scale, low, high))
        entropy = entropy.index_put((at,), rest.entropy(mean, scale, low, high))
    return log_prob, entropy


def log_mass_between(
    lower: Tensor, upper: Tensor, mean: Tensor, scale: Tensor, low: Tensor, high: Tensor
) -> Tensor:
    """Log probability that a Normal conditioned on [low, high] falls between `lower` and `upper`, both inside."""
    a, b = _standardise(mean, scale, low, high)
    p, q = _standardise(mean, scale, lower, upper)
    inner, whole = _nearest_to_zero(p, q), _nearest_to_zero(a, b)
    # Each mass is relative to the density at its point nearest to the mean; the ratio of these is taken apart.
    return _log_mass(p, q) - _log_mass(a, b) - 0.5 * (inner - whole) * (inner + whole)


def entropy_of_bins(edges: Tensor, mean: Tensor, scale: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Entropy of which bin a Normal conditioned on [low, high] falls into; edges[N + 1] in order.

    Args:
        edges: ends of the bins, which may reach beyond low and high.
        mean, scale, low, high: any shape, the same for all.
    """
    lower, upper = (torch.clamp(e, low[..., None], high[..., None]) for e in (edges[:-1], edges[1:]))
    wide = upper > lower
    upper = torch.where(wide, upper, lower + 1)  # a bin outside has no mass; any interval will do
    others = (own[..., None].expand(wide.shape) for own in (mean, scale, low, high))
    log_p = log_mass_between(lower, upper, *others)
    return torch.where(wide, -log_p.exp() * log_p, 0.0).sum(-1)


def mean_of_truncated(mean: Tensor, scale: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Mean of a Normal conditioned on [low, high]."""
    a, b = _standardise(mean, scale, low, high)
    at_a, at_b = _densities_at_ends(a, b, _nearest_to_zero(a, b), _log_mass(a, b))
    return torch.clamp(mean + scale * (at_a - at_b), low, high)


# --------------------------------------------------------------------------------- the mass between two bounds


def _standardise(mean: Tensor, scale: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    # An infinite end is made finite before it meets the scale, whose gradient would else be 0 * inf.
    a, b = ((end.clamp(-1e150, 1e150) - mean) / scale for end in (low, high))
    a, b = a.clamp(-FAR, FAR), b.clamp(-FAR, FAR)
    return a + torch.zeros_like(b), b + torch.zeros_like(a)


def _nearest_to_zero(a: Tensor, b: Tensor) -> Tensor:
    """The point of [a, b] where the standard normal density is largest; constant for autograd."""
    with torch.no_grad():
        return torch.minimum(torch.maximum(a, torch.zeros_like(a)), b)


def _is_narrow(a: Tensor, b: Tensor) -> Tensor:
    with torch.no_grad():
        return (b - a) * (0.5 * (a + b)).abs().clamp(min=1.0) < NARROW


class _LogMass(torch.autograd.Function):
    """log of the standard normal mass of [a, b] divided by exp(-c^2 / 2), c the point nearest to 0.

    d/da = -phi(a) / mass and d/db = phi(b) / mass, in closed form: differentiating the branches of the
    forward pass would give NaN in the tails. c is held constant.
    """

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, a: Tensor, b: Tensor) -> Tensor:
        c = _nearest_to_zero(a, b)
        result = _log_mass_value(a, b, c)
        ctx.save_for_backward(a, b, c, result)
        return result

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor, Tensor]:
        a, b, c, log_mass = ctx.saved_tensors  # type: ignore[attr-defined]
        at_a, at_b = _densities_at_ends(a, b, c, log_mass)
        return -grads[0] * at_a, grads[0] * at_b


def _log_mass(a: Tensor, b: Tensor) -> Tensor:
    result: Tensor = _LogMass.apply(a, b)  # type: ignore[no-untyped-call]
    return result


def _log_mass_value(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    # Mirror into the upper half: 0 <= a' or a' < 0 < b' with the longer part to the right.
    mirrored = a + b < 0
    lower, upper = torch.where(mirrored, -b, a), torch.where(mirrored, -a, b)
    straddles = lower < 0
    # Tail: phi(lower) [M(lower) - exp(-(upper^2 - lower^2) / 2) M(upper)], M the Mills ratio.
    start = lower.clamp(min=0.0)
    gap = torch.exp(-0.5 * (upper - start) * (upper + start))
    tail = torch.log((_mills(start) - gap * _mills(upper)).clamp(min=1e-300)) - _HALF_LOG_2PI
    middle = torch.log1p(-(torch.special.ndtr(-upper) + torch.special.ndtr(lower)))
    result = torch.where(straddles, middle, tail)
    narrow = _is_narrow(a, b)
    if bool(narrow.any()):
        result[narrow] = _log_mass_narrow(a[narrow], b[narrow], c[narrow])
    return result


def _mills(x: Tensor) -> Tensor:
    """Upper tail of the standard normal at x, divided by its density at x."""
    scaled: Tensor = torch.special.erfcx(x / math.sqrt(2))
    return math.sqrt(math.pi / 2) * scaled


def _quadrature(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Exponents -(x^2 - m^2) / 2 at the nodes x of [a, b] around its middle m, the weights, and m."""
    middle, half = 0.5 * (a + b), 0.5 * (b - a)
    t = half[..., None] * _NODES
    return -middle[..., None] * t - 0.5 * t * t, 0.5 * _WEIGHTS, middle


def _log_mass_narrow(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    exponents, weights, middle = _quadrature(a, b)
    mean_density = (torch.exp(exponents) * weights).sum(-1)
    shift = -0.5 * (middle - c) * (middle + c) - _HALF_LOG_2PI
    return shift + torch.log(mean_density) + torch.log(b - a)


def _densities_at_ends(a: Tensor, b: Tensor, c: Tensor, log_mass: Tensor) -> tuple[Tensor, Tensor]:
    """phi(a) and phi(b) over the mass of [a, b], whose point nearest to 0 is c."""
    at_a, at_b = (torch.exp(-0.5 * (x - c) * (x + c) - _HALF_LOG_2PI - log_mass) for x in (a, b))
    return at_a, at_b


def _entropy_wide(a: Tensor, b: Tensor) -> Tensor:
    """log mass + log sqrt(2 pi e) + (a phi(a) - b phi(b)) / (2 mass), for scale 1."""
    c = _nearest_to_zero(a, b)
    log_mass = _log_mass(a, b)
    at_a, at_b = _densities_at_ends(a, b, c, log_mass)
    return (log_mass - 0.5 * c * c) + _HALF_LOG_2PI + 0.5 + 0.5 * (a * at_a - b * at_b)


def _entropy_tail(a: Tensor, b: Tensor) -> Tensor:
    """For scale 1, all of [a, b] on one side of the mean and at least TAIL away from it.

    With c the nearer end and s = c (x - c), the density is proportional to exp(-s - s^2 / (2 c^2)): almost an
    exponential distribution, whatever c is.
    """
    mirrored = a + b < 0
    near, far = torch.where(mirrored, -b, a), torch.where(mirrored, -a, b)
    reach = (near * (far - near)).clamp(max=_TAIL_REACH)
    s = 0.5 * reach[..., None] * (1 + _TAIL_NODES)
    exponents = -s - 0.5 * (s / near[..., None]) ** 2
    share = torch.exp(exponents) * _TAIL_WEIGHTS
    mass = share.sum(-1)
    return torch.log(0.5 * reach / near * mass) - (share * exponents).sum(-1) / mass


def _entropy_narrow(a: Tensor, b: Tensor) -> Tensor:
    exponents, weights, _ = _quadrature(a, b)
    share = torch.exp(exponents) * weights
    mass = share.sum(-1)
    return torch.log(b - a) + torch.log(mass) - (share * exponents).sum(-1) / mass
