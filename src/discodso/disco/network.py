"""The autoregressive model: from what stands beside the next slot to psi (tokens) and phi (values).

    (psi_i, phi_i) = AR((l, beta)_{1:(i-1)}; theta)      paper, "Extension to discrete-continuous optimization"

`Policy.score` gives log p(tau | theta) and the entropy of whole designs, for training; `NetworkStepper` is the
same model one position at a time, for sampling.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from discodso.base.arrays import Floats, Ints
from discodso.disco.emission import Asked, Emission, Places
from discodso.disco.settings import NEIGHBOURS, NetworkSettings
from discodso.disco.value_head import FORBIDDEN, ValueHead
from discodso.space.prefix import Prefix
from discodso.space.replay import Trace
from discodso.space.ruled import Options
from discodso.space.space import Space

Memory = tuple[tuple[Tensor, ...], ...]  # of every layer: (hidden, cell) of an LSTM, (hidden,) of a GRU


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

    psi has one logit for each token, phi what `ValueHead` makes distributions of values of.
    """

    def __init__(self, space: Space, settings: NetworkSettings, rng: np.random.Generator) -> None:
        super().__init__()
        self.settings = settings
        self.tokens = len(space.library)
        self.positions = space.grammar.max_positions
        names = ("neighbours",) if settings.inputs is None else settings.inputs
        if "neighbours" in names:
            usual = NEIGHBOURS[:1] if space.grammar.chain else NEIGHBOURS
            names = (*usual, *(name for name in names if name not in usual))
        self.neighbours = np.array([NEIGHBOURS.index(n) for n in names if n in NEIGHBOURS], dtype=np.int64)
        self.with_position = "position" in names
        with torch.random.fork_rng(devices=[]):  # torch fills them at first, from its global random stream
            values = ValueHead(space, settings)
            inputs = len(self.neighbours) * values.width + self.with_position * self.positions
            self.inputs = max(inputs, 1)
            cell = nn.LSTM if settings.cell == "lstm" else nn.GRU
            self.recurrent = cell(self.inputs, settings.units, settings.layers, dtype=torch.float32)
            self.heads = nn.Linear(settings.units, self.tokens + values.outputs, dtype=torch.float32)
            self.values = values
        self._initialise(rng)

    def _initialise(self, rng: np.random.Generator) -> None:
        """Uniform in +-1/sqrt(units), torch's own default, but from the run's own stream."""
        bound = 1 / np.sqrt(self.settings.units)
        with torch.no_grad():
            for parameter in self.parameters():
                drawn = rng.uniform(-bound, bound, tuple(parameter.shape)).astype(np.float32)
                parameter.copy_(torch.from_numpy(drawn))

    # -------------------------------------------------------------------------------------------- inputs

    def dense_inputs(self, ids: Ints, z: Floats, position: Ints | int) -> Tensor:
        """float32[N, I] from ids[S, N] and z[S, N, V] of the neighbours in use, and the positions."""
        dense = np.zeros((ids.shape[1], self.inputs), np.float32)
        self.values.write_inputs(ids, z, dense)
        if self.with_position:
            start = len(self.neighbours) * self.values.width
            dense[np.arange(len(dense)), start + position] = 1.0
        return torch.from_numpy(dense)

    def stepper(self) -> NetworkStepper:
        """The policy as it is now, made ready for sampling; later updates do not reach it."""
        return NetworkStepper(self)

    # -------------------------------------------------------------------------------------------- scoring

    def score(self, trace: Trace) -> Score:
        """log p(tau | theta) and entropy of the designs of a trace; gradients flow to the weights."""
        positions, size = trace.tokens.shape
        flat = positions * size
        x = self.dense_inputs(
            trace.neighbours[self.neighbours].reshape(len(self.neighbours), flat),
            trace.neighbour_z[self.neighbours].reshape(len(self.neighbours), flat, trace.z.shape[-1]),
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
        if self.values.outputs:
            value_log_prob, value_entropy = self.values.score(raw[..., self.tokens :], trace, p)
            entropy = entropy + value_entropy
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
        return torch.log_softmax(psi.masked_fill(torch.from_numpy(trace.forbidden), FORBIDDEN), dim=-1)


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

    @torch.no_grad()
    def draw(self, emission: Emission, asked: Asked) -> Floats:
        """See `Stepper.draw`."""
        values, phi = self._policy.values, torch.from_numpy(emission.phi)
        mean, scale = values.numbers_at(phi, torch.from_numpy(asked.rows), asked.at, asked.before)
        ends = asked.low, asked.high
        return values.distribution.sample(mean.numpy(), scale.numpy(), *ends, asked.uniform)

    def draw_together(self, emission: Emission, chosen: Ints, options: Options, uniform: Floats) -> Floats:
        """See `Stepper.draw_together`."""
        return self._policy.values.draw(emission.phi, chosen, options, uniform)

    @torch.no_grad()
    def option_logits(self, emission: Emission, rows: Ints, at: Places, z: Floats) -> Floats:
        """See `Stepper.option_logits`."""
        logits = self._policy.values.option_logits(torch.from_numpy(emission.phi[rows]), at, z)
        return logits.numpy()

    def keep(self, memory: Memory, rows: Ints) -> Memory:
        """The memory of some rows."""
        chosen = torch.from_numpy(rows)
        return tuple(tuple(part.index_select(0, chosen) for part in layer) for layer in memory)
