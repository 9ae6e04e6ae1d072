"""Discrete-continuous sampling (algorithm 2 of the appendix), a whole batch at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.base.errors import TrainingError
from discodso.disco.network import Emission
from discodso.disco.scripts import Reader, Scripts
from discodso.space import _kernels
from discodso.space.design import DesignBatch
from discodso.space.prefix import Prefix
from discodso.space.space import Options, Space


class Stepper(Protocol):
    """Anything that can say how likely tokens and values are for the next slot of a prefix."""

    def initial_memory(self, size: int) -> Any:
        """Memory before the first token."""
        ...

    def step(self, prefix: Prefix, memory: Any) -> Emission:
        """psi and phi for the next slot."""
        ...

    def draw(
        self, emission: Emission, rows: Ints, column: Ints, low: Floats, high: Floats, uniform: Floats
    ) -> Floats:
        """Coordinates float[N] of values of the parametrised tokens column[N], at rows[N], by uniform[N]."""
        ...

    def log_density(
        self, emission: Emission, rows: Ints, column: Ints, z: Floats, low: Floats, high: Floats
    ) -> Floats:
        """Their log densities."""
        ...

    def keep(self, memory: Any, rows: Ints) -> Any:
        """Memory of some rows."""
        ...


@dataclass(frozen=True)
class Sample:
    """B designs drawn from a policy, and log p(tau | theta) float[B] of each, NaN if it was not asked for."""

    designs: DesignBatch
    log_prob: Floats


def sample(
    space: Space,
    stepper: Stepper,
    size: int,
    rng: np.random.Generator,
    *,
    with_log_prob: bool = False,
    scripts: Scripts | None = None,
) -> Sample:
    """Draw `size` designs, after scripts if there are any.

    Finished designs leave the batch, so the cost follows the tokens drawn.
    """
    reader = None if scripts is None else Reader(space, scripts)
    prefix, memory = space.start(size), stepper.initial_memory(size)
    log_prob = np.full(size, 0.0 if with_log_prob else np.nan)
    while len(prefix):
        options = space.options(prefix)
        emission = stepper.step(prefix, memory)
        uniform = rng.random((2, len(prefix)))
        chosen, token_log_prob = _draw_tokens(space, prefix, options, emission, uniform[0])
        if reader is not None:
            chosen, wanted = reader.tokens(prefix, options, chosen)
        values = _draw_values(space, options, stepper, emission, chosen, uniform[1])
        if reader is not None:
            values = reader.place(chosen, values, wanted, options)
        if with_log_prob:
            log_prob[prefix.rows] += token_log_prob
            log_prob[prefix.rows] += _value_log_prob(space, options, stepper, emission, chosen, values)
        before = prefix
        prefix = prefix.advance(chosen, values)
        memory = emission.memory
        if 0 < len(prefix) < len(before):
            memory = stepper.keep(memory, np.searchsorted(before.rows, prefix.rows))
    return Sample(replace(prefix.batch(), origin=space), log_prob)


def _draw_tokens(
    space: Space, prefix: Prefix, options: Options, emission: Emission, uniform: Floats
) -> tuple[Ints, Floats]:
    logits = emission.psi if options.prior is None else emission.psi + options.prior
    chosen, log_prob = np.empty(len(prefix), np.int64), np.empty(len(prefix))
    stuck = _kernels.draw_tokens(logits, options.forbidden, uniform, chosen, log_prob)
    if stuck >= 0:
        if not options.forbidden[stuck].all():
            raise TrainingError("the network emits NaN for the tokens; try a smaller learning rate")
        space.raise_dead_end(prefix, stuck)
    return chosen, log_prob


def _draw_values(
    space: Space, options: Options, stepper: Stepper, emission: Emission, chosen: Ints, uniform: Floats
) -> Floats:
    """Values float[B], NaN for discrete tokens."""
    library = space.library
    values = np.full(len(chosen), np.nan)
    rows = library.parametrised[chosen].nonzero()[0]
    if len(rows):
        tokens = chosen[rows]
        bounds = _bounds(space, options, rows, tokens)
        z = stepper.draw(emission, rows, library.parameter_index[tokens], *bounds, uniform[rows])
        low, high = options.low[rows, tokens], options.high[rows, tokens]
        values[rows] = np.minimum(np.maximum(library.coordinates.to_value(tokens, z), low), high)
    return values


def _value_log_prob(
    space: Space, options: Options, stepper: Stepper, emission: Emission, chosen: Ints, values: Floats
) -> Floats:
    """Log densities float[B] of the values, 0 for discrete tokens."""
    library = space.library
    log_prob = np.zeros(len(chosen))
    rows = library.parametrised[chosen].nonzero()[0]
    if len(rows):
        tokens = chosen[rows]
        z = library.coordinates.to_z(tokens, values[rows])
        bounds = _bounds(space, options, rows, tokens)
        log_prob[rows] = stepper.log_density(emission, rows, library.parameter_index[tokens], z, *bounds)
    return log_prob


def _bounds(space: Space, options: Options, rows: Ints, tokens: Ints) -> tuple[Floats, Floats]:
    """Interval ends in coordinates, float[N] each, for tokens[N] at rows[N]."""
    if space.has_fixed_ranges:
        low, high = space.range_coordinates
        return low[tokens], high[tokens]
    return space.bounds_to_coordinates(tokens, options.low[rows, tokens], options.high[rows, tokens])
