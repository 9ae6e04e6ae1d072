"""Sums from small dictionaries: all terms at once, then the one that is missed least goes, until one is left.

Term by term, a search for a polynomial or another sum of many short terms passes through sums that fit badly. Here
they are what remains of a whole dictionary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from math import comb

import numpy as np
from scipy.linalg import qr

from discodso.base.arrays import Floats

LARGEST, _HIGHEST_DEGREE = 70, 8
_DEPENDENT = 1e-7  # of its length: what keeps less beside the others is one of them


def degrees(inputs: int) -> list[int]:
    """Degrees of polynomials whose monomials make a dictionary: two, and the highest that is small enough."""
    possible = [d for d in range(2, _HIGHEST_DEGREE + 1) if comb(inputs + d, d) - 1 <= LARGEST]
    return sorted({possible[0], possible[-1]}) if possible else []


def monomials(inputs: int, degree: int) -> list[tuple[int, ...]]:
    """Inputs whose product each monomial is, an input as often as its power, by rising degree."""
    return [
        chosen
        for size in range(1, degree + 1)
        for chosen in combinations_with_replacement(range(inputs), size)
    ]


def eliminated(table: Floats, rest: Floats) -> Iterator[Sequence[int]]:
    """Places of the rows of table[K, n] that are left to explain rest[n], after each step, fewer and fewer.

    The row goes whose loss raises the sum of squares least. Rows that others explain are left out before.
    """
    sizes = np.sqrt(np.square(table).sum(axis=1))
    good = np.flatnonzero((sizes > 0) & (sizes < np.inf))
    _, triangle, order = qr((table[good] / sizes[good, None]).T, mode="economic", pivoting=True)
    rank = int((np.abs(np.diag(triangle)) > _DEPENDENT).sum())
    left = sorted(good[order[:rank]].tolist())
    if not left:
        return
    scaled = (table[left] / sizes[left, None]).T
    basis, triangle = np.linalg.qr(scaled)
    target = basis.T @ rest
    while left:
        yield tuple(left)
        inverse = np.linalg.solve(triangle, np.eye(len(left)))
        losses = np.square(inverse @ target) / np.square(inverse).sum(axis=1)
        last = int(losses.argmin())
        del left[last]
        turn, triangle = np.linalg.qr(np.delete(triangle, last, axis=1))
        target = turn.T @ target
