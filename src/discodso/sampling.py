"""Discrete-continuous sampling (algorithm 2 of the appendix), a whole batch at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from discodso import _kernels
from discodso.arrays import Floats, Ints
from discodso.design import DesignBatch
from discodso.distributions import Distribution
from discodso.policy import Emission
from discodso.prefix import Prefix
from discodso.space import Options, Space


class Proposer(Protocol):
    """Anything that can say how likely tokens and values are for the next slot of a prefix."""

    distribution: Distribution

    def initial_state(self, size: int) -> Any:
        """Memory before the first token."""
        ...

    def step(self, prefix: Prefix, state: Any) -> Emission:
        """psi and phi for the next slot."""
        ...

    def value_parameters(self, emission: Emission, rows: Ints, column: Ints) -> tuple[Floats, Floats]:
        """mean[N] and scale[N] for values of the parametrised tokens column[N], at rows[N]."""
        ...

    def keep(self, state: Any, rows: Ints) -> Any:
        """Memory of some rows."""
        ...


@dataclass(frozen=True)
class Sample:
    """B designs drawn from a policy, and log p(tau | theta) float[B] of each."""

    designs: DesignBatch
    log_prob: Floats


def sample(space: Space, proposer: Proposer, size: int, rng: np.random.Generator) -> Sample:
    """Draw `size` designs. Finished designs leave the batch, so the cost follows the tokens drawn."""
    prefix, state = space.start(size), proposer.initial_state(size)
    log_prob = np.zeros(size)
    while len(prefix):
        options = space.options(prefix)
        emission = proposer.step(prefix, state)
        uniform = rng.random((2, len(prefix)))
        chosen, token_log_prob = _draw_tokens(space, prefix, options, emission, uniform[0])
        values, value_log_prob = _draw_values(space, options, proposer, emission, chosen, uniform[1])
        log_prob[prefix.rows] += token_log_prob + value_log_prob
        before = prefix
        prefix = prefix.advance(chosen, values)
        state = emission.state
        if 0 < len(prefix) < len(before):
            state = proposer.keep(state, np.searchsorted(before.rows, prefix.rows))
    return Sample(prefix.batch(), log_prob)


def _draw_tokens(
    space: Space, prefix: Prefix, options: Options, emission: Emission, uniform: Floats
) -> tuple[Ints, Floats]:
    logits = emission.psi if options.prior is None else (emission.psi + options.prior).astype(np.float32)
    chosen, log_prob = np.empty(len(prefix), np.int64), np.empty(len(prefix))
    stuck = _kernels.draw_tokens(logits, options.forbidden, uniform, chosen, log_prob)
    if stuck >= 0:
        space.raise_dead_end(prefix, stuck)
    return chosen, log_prob


def _draw_values(
    space: Space, options: Options, proposer: Proposer, emission: Emission, chosen: Ints, uniform: Floats
) -> tuple[Floats, Floats]:
    """Values float[B], NaN for discrete tokens, and their log densities, 0 for discrete tokens."""
    library = space.library
    values, log_prob = np.full(len(chosen), np.nan), np.zeros(len(chosen))
    rows = library.parametrised[chosen].nonzero()[0]
    if len(rows) == 0:
        return values, log_prob
    tokens = chosen[rows]
    mean, scale = proposer.value_parameters(emission, rows, library.parameter_index[tokens])
    low, high = options.low[rows, tokens], options.high[rows, tokens]
    if space.has_fixed_ranges:
        z_low, z_high = space.range_coordinates[0][tokens], space.range_coordinates[1][tokens]
    else:
        z_low, z_high = space.bounds_to_coordinates(tokens, low, high)
    z = proposer.distribution.sample(mean, scale, z_low, z_high, uniform[rows])
    values[rows] = np.minimum(np.maximum(library.coordinates.to_value(tokens, z), low), high)
    tensors = (torch.from_numpy(array) for array in (z, mean, scale, z_low, z_high))
    log_prob[rows] = proposer.distribution.log_prob(*tensors).numpy()
    return values, log_prob
