"""The designs of a batch as arrays, while they grow in pre-order.

The cache of compiled code does not notice a change of the fields: touch `_kernels.py` as well.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from discodso.base.arrays import Floats, Ints


class Traversals(NamedTuple):
    """All designs of a batch, finished or not; `Prefix` rows point into it. N designs in all.

    Attributes:
        tokens: int[N, T], -1 where nothing stands yet.
        values: float[N, T, V], NaN where a token carries none.
        coordinates: float[N, T, V], the values as the policy sees them, 0 where there is none.
        parents: int[N, T], position of the parent, -1 for the root.
        siblings: int[N, T], position of the nearest sibling to the left, -1 for none.
        missing: int[N, T], children still to come.
        last_child: int[N, T], position of the latest child, -1 for none.
        lengths: int[N].
    """

    tokens: Ints
    values: Floats
    coordinates: Floats
    parents: Ints
    siblings: Ints
    missing: Ints
    last_child: Ints
    lengths: Ints

    @classmethod
    def empty(cls, size: int, positions: int, slots: int) -> Traversals:
        """Room for `size` designs of at most `positions` tokens with `slots` values each."""
        shape = (size, positions)
        tokens, parents, siblings, last_child = (np.full(shape, -1, np.int64) for _ in range(4))
        values, coordinates = np.full((*shape, slots), np.nan), np.zeros((*shape, slots))
        missing, lengths = np.zeros(shape, np.int64), np.zeros(size, np.int64)
        return cls(tokens, values, coordinates, parents, siblings, missing, last_child, lengths)
