"""How likely a network says designs are while it draws them, one position at a time."""

from __future__ import annotations

import numpy as np
import torch
from scipy.special import log_softmax

from discodso import DesignBatch, Space
from discodso.disco.distributions import log_mass_between
from discodso.disco.emission import Emission, Places
from discodso.disco.network import Policy
from discodso.space.ruled import Options


def log_prob_by_steps(space: Space, policy: Policy, designs: DesignBatch) -> np.ndarray:
    """float[B], by the network that sampling uses, the masks and the bounds of each prefix."""
    stepper = policy.stepper()
    prefix, memory, total = (
        space.start(len(designs)),
        stepper.initial_memory(len(designs)),
        np.zeros(len(designs)),
    )
    while len(prefix):
        options, emission, rows = space.options(prefix), stepper.step(prefix, memory), prefix.rows
        tokens, values = designs.tokens[rows, prefix.position], designs.all_values[rows, prefix.position]
        logits = emission.psi.astype(np.float64) + (0.0 if options.prior is None else options.prior)
        allowed = log_softmax(np.where(options.forbidden, -np.inf, logits), axis=1)
        total[rows] += allowed[np.arange(len(rows)), tokens]
        total[rows] += _of_values(space, policy, options, emission, tokens, values)
        following = prefix.advance(tokens, space.library.narrow(values))
        memory = stepper.keep(emission.memory, np.searchsorted(rows, following.rows))
        prefix = following
    return total


@torch.no_grad()
def _of_values(
    space: Space, policy: Policy, options: Options, emission: Emission, tokens: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """float[B], log probabilities of values[B, V] of tokens, each given those before it."""
    library, total, phi = space.library, np.zeros(len(tokens)), torch.from_numpy(emission.phi)
    z = library.wide(library.coordinates.to_z(tokens, library.narrow(values)))
    for k, token in enumerate(library.tokens):
        rows = np.flatnonzero(tokens == k)
        for slot in range(len(token.values) if len(rows) else 0):
            at, own = Places(tokens[rows], slot), values[rows, slot]
            if library.options[k, slot]:
                logits = policy.values.option_logits(phi[rows], at, z[rows]).numpy()[
                    :, : library.options[k, slot]
                ]
                barred = options.barred.get(int(library.column_of[k, slot]))
                logits = logits if barred is None else np.where(barred[rows], -np.inf, logits)
                total[rows] += log_softmax(logits, axis=1)[np.arange(len(rows)), own.astype(int)]
                continue
            half = 0.5 if library.integer[k, slot] else 0.0
            index = (k, slot)[: library.low.ndim]
            ends = (library.wide(end)[rows, k, slot] for end in (options.low, options.high))
            low, high = map(torch.from_numpy, space.bounds_to_coordinates(index, *ends))
            normal = policy.values.numbers_at(phi, torch.from_numpy(rows), at, z[rows])
            lower, upper = (torch.from_numpy(library.coordinates.to_z(index, own + h)) for h in (-half, half))
            if half:
                total[rows] += log_mass_between(lower, upper, *normal, low, high).numpy()
            else:
                total[rows] += policy.values.distribution.log_prob(lower, *normal, low, high).numpy()
    return total
