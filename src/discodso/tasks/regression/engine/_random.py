"""Random numbers for compiled code, from a state of one word that a checkpoint can hold."""

from __future__ import annotations

import numpy as np

from discodso.base.arrays import Floats, Words
from discodso.base.compiled import compiled
from discodso.tasks.regression._vector_math import OPTIONS

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


@compiled(inner=True, **OPTIONS)
def mixed(z: np.uint64) -> np.uint64:
    """A word whose bits all depend on all bits of z, both uint64 (the finaliser of SplitMix64)."""
    z = (z ^ (z >> _30)) * _FIRST
    z = (z ^ (z >> _27)) * _SECOND
    return z ^ (z >> _31)


@compiled(inner=True, **OPTIONS)
def uniform(state: Words) -> float:
    """A number in [0, 1); state is uint64[1]."""
    state[0] += _STEP
    return float(mixed(state[0]) >> _11) * (1.0 / 9007199254740992.0)


@compiled(**OPTIONS)
def below(state: Words, count: int) -> int:
    """A number of 0, ..., count - 1."""
    return min(int(uniform(state) * count), count - 1)


@compiled(inner=True, **OPTIONS)
def normal(state: Words) -> float:
    """A standard normal number."""
    radius = np.sqrt(-2.0 * np.log(1.0 - uniform(state)))
    return radius * np.cos(2.0 * np.pi * uniform(state))


@compiled(inner=True, **OPTIONS)
def chosen(state: Words, cumulative: Floats) -> int:
    """A place, by cumulative weights[k] whose last is 1."""
    u = uniform(state)
    for place in range(len(cumulative) - 1):
        if u < cumulative[place]:
            return place
    return len(cumulative) - 1
