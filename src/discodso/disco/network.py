"""The autoregressive model: from what stands beside the next slot to psi (tokens) and phi (values).

    (psi_i, phi_i) = AR((l, beta)_{1:(i-1)}; theta)      paper, "Extension to discrete-continuous optimization"

`Policy.score` gives log p(tau | theta) and the entropy of whole designs, for training; `NetworkStepper` is the
same model one position at a time, for sampling.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from discodso.base.arrays import Floats, Ints, Singles
from discodso.base.checks import require_number, require_one_of, settle_integers
from discodso.base.errors import DeclarationError
from discodso.disco.distributions import Distribution, Normal, TruncatedNormal
from discodso.space import _kernels
from discodso.space.prefix import Prefix
from discodso.space.replay import Trace
from discodso.space.space import Space

NEIGHBOURS = ("previous", "parent", "sibling")
_COORDINATE_LIMIT = 10.0  # of coordinates as network inputs; a constant of 1e6 must not saturate every gate
_SCALE_LIMITS = (1e-4, 1e2)
_OUT_OF_REACH = (
    -1e3
)  # log density of a told value that the policy would never draw; below it only tokens teach


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """The model and its distributions; the defaults are the paper's (tables of hyperparameters).

    Args:
        cell: "lstm" or "gru".
        layers, units: size of the recurrent network.
        inputs: what the network is shown of the slot, from "previous", "parent", "sibling" (token and value
            each) and "position"; "neighbours" are the first three in trees and the first in sequences, and so
            is None.
        scale: of the normal distribution of values, which is truncated wherever bounds are finite, in coordinates
            (1 is the width of a finite range).
        learn_scale: whether the network also emits the scale; it then begins near `scale`.
        min_scale: a learned scale does not fall below this, so that values near the best ones are always tried.
        shift: added to the mean that the network emits.
        mean_scale: unit of that mean, in coordinates. With narrow distributions a unit near `scale` keeps the
            gradients of means about as large as those of tokens, and lets means begin close to `shift`.
    """

    cell: Literal["lstm", "gru"] = "lstm"
    layers: int = 1
    units: int = 32
    inputs: tuple[str, ...] | None = None
    scale: float = 0.5
    learn_scale: bool = False
    min_scale: float = _SCALE_LIMITS[0]
    shift: float = 0.0
    mean_scale: float = 1.0

    def __post_init__(self) -> None:
        require_one_of("cell", self.cell, ("lstm", "gru"))
        settle_integers(self, {"layers": 1, "units": 1})
        require_number("scale", self.scale, least=_SCALE_LIMITS[0], most=_SCALE_LIMITS[1])
        require_number("min_scale", self.min_scale, least=_SCALE_LIMITS[0], most=self.scale)
        require_number("shift", self.shift)
        require_number("mean_scale", self.mean_scale, above=0)
        if self.inputs is not None:
            names = (self.inputs,) if isinstance(self.inputs, str) else tuple(self.inputs)
            object.__setattr__(self, "inputs", names)
            choices = (*NEIGHBOURS, "neighbours", "position")
            unknown = [name for name in self.inputs if name not in choices]
            if unknown or len(set(self.inputs)) != len(self.inputs):
                known = ", ".join(choices)
                raise DeclarationError(f"inputs must be distinct names from {known}, got {self.inputs!r}")


Memory = tuple[tuple[Tensor, ...], ...]  # of every layer: (hidden, cell) of an LSTM, (hidden,) of a GRU


@dataclass(frozen=True)
class Emission:
    """What the network says about the next slot of B prefixes.

    Attributes:
        psi: float32[B, K], logits of the tokens.
        phi: float32[B, ...], raw outputs for the values; `Stepper.draw` reads them.
        memory: of the network; its rows follow those of the prefix.
    """

    psi: Singles
    phi: Singles
    memory: Any


class ValueParameters(NamedTuple):
    """Means and scales of normal distributions of values."""

    mean: Tensor
    scale: Tensor

    def at(self, where: tuple[Any, ...]) -> ValueParameters:
        """Of some of the values."""
        return ValueParameters(self.mean[where], self.scale[where])


@dataclass(frozen=True)
class Score:
    """Differentiable quantities of B designs.

    Attributes:
        log_prob: float[B], log p(tau | theta).
        entropy: float[B], sum over the positions of the hybrid entropy H_i of the appendix.
        token_log_prob: float[B], the part of the tokens in log_prob; the values have the rest.
    """

    log_prob: Tensor
    entropy: Tensor
    token_log_prob: Tensor


class _OneThread:
    """Holds torch to one thread as long as anyone is inside; the last to leave puts the number back.

    The number of threads belongs to the process, so this is the one piece of state that runs share.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before = 1

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = torch.get_num_threads()
            self._inside += 1
            torch.set_num_threads(1)

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                torch.set_num_threads(self._before)


_one_thread = _OneThread()


def one_thread() -> AbstractContextManager[None]:
    """Run torch on one thread: at this size more are slower, and results then depend on their number."""
    return _one_thread


class Policy(nn.Module):
    """A recurrent network with two heads over the designs of a space.

    psi has one logit for each token. phi has parameters of its own for each parametrised token: a mean and, if
    learned, a log scale.
    """

    def __init__(self, space: Space, settings: NetworkSettings, rng: np.random.Generator) -> None:
        super().__init__()
        self.settings = settings
        self.tokens = len(space.library)
        self.parameters_count = len(space.library.parametrised_ids)
        self.positions = space.grammar.max_positions
        names = ("neighbours",) if settings.inputs is None else settings.inputs
        if "neighbours" in names:
            usual = NEIGHBOURS[:1] if space.grammar.chain else NEIGHBOURS
            names = (*usual, *(name for name in names if name not in usual))
        self.neighbours = np.array([NEIGHBOURS.index(n) for n in names if n in NEIGHBOURS], dtype=np.int64)
        self.with_position = "position" in names
        inputs = len(self.neighbours) * (self.tokens + 1) + self.with_position * self.positions
        cell = nn.LSTM if settings.cell == "lstm" else nn.GRU
        self.inputs = max(inputs, 1)
        heads = self.tokens + self.parameters_count * (1 + settings.learn_scale)
        with torch.random.fork_rng(devices=[]):  # torch fills them at first, from its global random stream
            self.recurrent = cell(self.inputs, settings.units, settings.layers, dtype=torch.float32)
            self.heads = nn.Linear(settings.units, heads, dtype=torch.float32)
        self.parameter_index = torch.from_numpy(space.library.parameter_index)
        self.distribution = self._choose_distribution(space)
        self._initialise(rng)

    def _choose_distribution(self, space: Space) -> Distribution:
        ids = space.library.parametrised_ids
        ends = np.isfinite(np.stack((space.library.low[ids], space.library.high[ids])))
        return TruncatedNormal() if ends.any() or not space.has_fixed_ranges else Normal()

    def _initialise(self, rng: np.random.Generator) -> None:
        """Uniform in +-1/sqrt(units), torch's own default, but from the run's own stream."""
        bound = 1 / np.sqrt(self.settings.units)
        with torch.no_grad():
            for parameter in self.parameters():
                drawn = rng.uniform(-bound, bound, tuple(parameter.shape)).astype(np.float32)
                parameter.copy_(torch.from_numpy(drawn))

    # -------------------------------------------------------------------------------------------- inputs

    def dense_inputs(self, ids: Ints, z: Floats, position: Ints | int) -> Tensor:
        """float32[N, I] from ids[S, N] and z[S, N] of the neighbours in use, and the positions."""
        dense = np.zeros((ids.shape[1], self.inputs), np.float32)
        _kernels.fill_inputs(ids, z, self.tokens, _COORDINATE_LIMIT, dense)
        if self.with_position:
            start = len(self.neighbours) * (self.tokens + 1)
            dense[np.arange(len(dense)), start + position] = 1.0
        return torch.from_numpy(dense)

    def value_parameters(self, phi: Tensor) -> ValueParameters:
        """In float64, of all parametrised tokens [..., P], from the outputs of the heads behind the logits."""
        s = self.settings
        raw_mean, *others = (part.double() for part in torch.split(phi, self.parameters_count, dim=-1))
        mean = s.mean_scale * raw_mean + s.shift
        if s.learn_scale:
            scale = s.scale * torch.exp(others[0].clamp(-20, 20))
            return ValueParameters(mean, scale.clamp(s.min_scale, _SCALE_LIMITS[1]))
        return ValueParameters(mean, torch.full((), s.scale, dtype=torch.float64).expand(mean.shape))

    def densities(self, values: ValueParameters, z: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Log densities of values z within their bounds."""
        return self.distribution.log_prob(z, values.mean, values.scale, low, high)

    def stepper(self) -> NetworkStepper:
        """The policy as it is now, made ready for sampling; later updates do not reach it."""
        return NetworkStepper(self)

    # -------------------------------------------------------------------------------------------- scoring

    def score(self, trace: Trace) -> Score:
        """log p(tau | theta) and entropy of the designs of a trace; gradients flow to the weights."""
        positions, size = trace.tokens.shape
        flat = positions * size
        x = self.dense_inputs(
            trace.neighbours[self.neighbours].reshape(-1, flat),
            trace.neighbour_z[self.neighbours].reshape(-1, flat),
            np.repeat(np.arange(positions), size),
        )
        hidden, _ = self.recurrent(x.view(positions, size, -1))
        raw = self.heads(hidden)
        active = torch.from_numpy(trace.active)
        tokens = torch.from_numpy(np.maximum(trace.tokens, 0))
        log_p = self._log_softmax(raw[..., : self.tokens], trace)
        token_log_prob = log_p.gather(-1, tokens[..., None]).squeeze(-1).masked_fill(~active, 0.0)
        p = log_p.exp()
        entropy = -(p * log_p).sum(-1)
        value_log_prob = torch.zeros(size, dtype=torch.float64)
        if self.parameters_count:
            value_log_prob, value_entropy = self._score_values(raw, trace, tokens, active)
            parametrised = self.parameter_index >= 0
            entropy = entropy + (p[..., parametrised] * value_entropy).sum(-1)
        token_sum = token_log_prob.sum(0).double()
        return Score(
            log_prob=token_sum + value_log_prob,
            entropy=(entropy.double() * active).sum(0),
            token_log_prob=token_sum,
        )

    def _log_softmax(self, psi: Tensor, trace: Trace) -> Tensor:
        """Log probabilities of the allowed tokens, and a large negative number for forbidden ones."""
        if trace.prior is not None:
            psi = psi.double() + torch.from_numpy(trace.prior)
        # Positions after the end of a design forbid nothing, so that no row is without a choice.
        return torch.log_softmax(psi.masked_fill(torch.from_numpy(trace.forbidden), -1e30), dim=-1)

    def _score_values(
        self, raw: Tensor, trace: Trace, tokens: Tensor, active: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Sum of the log densities of the values, float[B], and entropies of all values, float[T, B, P]."""
        values = self.value_parameters(raw[..., self.tokens :])
        low, high = torch.from_numpy(trace.low), torch.from_numpy(trace.high)
        column = self.parameter_index[tokens]
        at = torch.nonzero((column >= 0) & active, as_tuple=True)
        where = (*at, column[at])
        bounds = (low[where], high[where]) if low.ndim == 3 else (low[where[2]], high[where[2]])
        z = torch.from_numpy(trace.z)[at]
        density = self.densities(values.at(where), z, *bounds).clamp(min=_OUT_OF_REACH)
        log_prob = torch.zeros(tokens.shape[1], dtype=torch.float64).index_add(0, at[1], density)
        if not self.settings.learn_scale and isinstance(self.distribution, Normal):
            # Does not depend on the mean: one number instead of T * B * P.
            mean, scale = values.mean[0, 0].flatten()[0], values.scale[0, 0].flatten()[0]
            return log_prob, self.distribution.entropy(mean, scale, low, high).float()
        # A forbidden token has probability 0; its interval may be empty, so it is given a harmless one.
        parametrised = torch.from_numpy(trace.forbidden)[..., self.parameter_index >= 0] | ~active[..., None]
        nothing = torch.zeros(parametrised.shape, dtype=torch.float64)
        low = torch.where(parametrised, nothing, low)
        high = torch.where(parametrised, nothing + 1, high)
        return log_prob, self.distribution.entropy(values.mean, values.scale, low, high).float()


class NetworkStepper:
    """One position at a time: the weights of a policy, laid out for sampling.

    An LSTM layer is one matrix product over input and memory together. Since tanh(x) = 2 sigmoid(2x) - 1, and
    torch's sigmoid is several times faster than its tanh, the rows of the cell gate are doubled here, and one
    sigmoid serves all four gates.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._heads = policy.heads.weight.detach().T, policy.heads.bias.detach()
        self._lstm = policy.settings.cell == "lstm"
        self._layers = [tuple(w.detach() for w in layer) for layer in policy.recurrent.all_weights]
        if self._lstm:
            self._layers = [self._fused(*layer) for layer in self._layers]

    def _fused(
        self, w_input: Tensor, w_memory: Tensor, b_input: Tensor, b_memory: Tensor
    ) -> tuple[Tensor, Tensor]:
        units = self._policy.settings.units
        weight, bias = torch.cat((w_input, w_memory), dim=1), b_input + b_memory
        weight[2 * units : 3 * units] *= 2
        bias[2 * units : 3 * units] *= 2
        return weight.T.contiguous(), bias

    def initial_memory(self, size: int) -> Memory:
        """The memory before the first token, zeros of [size, units] in every layer."""
        zeros = torch.zeros(size, self._policy.settings.units, dtype=torch.float32)
        return tuple((zeros,) * (2 if self._lstm else 1) for _ in self._layers)

    @torch.no_grad()
    def step(self, prefix: Prefix, memory: Memory) -> Emission:
        """psi and phi for the next slot of every prefix; rows of `memory` belong to those of the prefix."""
        ids, z = prefix.neighbours(self._policy.neighbours)
        x = self._policy.dense_inputs(ids, z, prefix.position)
        following = []
        for weights, own in zip(self._layers, memory, strict=True):
            following.append(
                self._lstm_step(x, own, *weights) if self._lstm else (torch.gru_cell(x, own[0], *weights),)
            )
            x = following[-1][0]
        raw = torch.addmm(self._heads[1], x, self._heads[0]).numpy()
        tokens = self._policy.tokens
        return Emission(raw[:, :tokens], raw[:, tokens:], tuple(following))

    def _lstm_step(
        self, x: Tensor, memory: tuple[Tensor, ...], weight: Tensor, bias: Tensor
    ) -> tuple[Tensor, Tensor]:
        hidden, cell = memory
        gates = torch.addmm(bias, torch.cat((x, hidden), dim=1), weight).sigmoid_()
        admit, keep, new, out = gates.chunk(4, dim=1)
        # keep * cell + admit * tanh(.), then out * tanh(cell)
        cell = torch.addcmul(keep * cell - admit, admit, new, value=2)
        return torch.addcmul(-out, out, torch.sigmoid(2 * cell), value=2), cell

    def draw(
        self, emission: Emission, rows: Ints, column: Ints, low: Floats, high: Floats, uniform: Floats
    ) -> Floats:
        """See `Stepper.draw`."""
        values = self._values(emission, rows, column)
        mean, scale = values.mean.numpy(), values.scale.numpy()
        return self._policy.distribution.sample(mean, scale, low, high, uniform)

    def log_density(
        self, emission: Emission, rows: Ints, column: Ints, z: Floats, low: Floats, high: Floats
    ) -> Floats:
        """See `Stepper.log_density`."""
        arrays = (torch.from_numpy(part) for part in (z, low, high))
        found: Floats = self._policy.densities(self._values(emission, rows, column), *arrays).numpy()
        return found

    def _values(self, emission: Emission, rows: Ints, column: Ints) -> ValueParameters:
        values = self._policy.value_parameters(torch.from_numpy(emission.phi[rows]))
        return values.at((torch.arange(len(rows)), torch.from_numpy(column)))

    def keep(self, memory: Memory, rows: Ints) -> Memory:
        """The memory of some rows."""
        chosen = torch.from_numpy(rows)
        return tuple(tuple(part.index_select(0, chosen) for part in layer) for layer in memory)
