"""Quotients of two sums from small dictionaries: P = y Q is linear in the coefficients of P and Q.

Exact data leave a relation between the columns of P and y Q; without the terms that are missed least, until it no
longer holds, the shortest such relation is left. Noisy data leave none: there nothing is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from discodso.base.arrays import Floats
from discodso.tasks.regression.engine.dictionaries import eliminated

_LARGEST, _HIGHEST = 70, 6  # terms of each of both sums, and their degree
_EQUAL = 1e-7  # coefficients up to this share
_VANISHES = 1e-6  # a sum of coefficients, as a share of their sizes
_HOLDS = 1e-9  # a relation: what is left, as a share of its largest column


def exponents(inputs: int) -> Iterator[list[tuple[int, ...]]]:
    """Dictionaries: all monomials up to a degree, then of degree 2 and higher powers of single inputs.

    A monomial is the inputs whose product it is; 1 is the first.
    """
    last = 0
    for degree in range(1, _HIGHEST + 1):
        if comb(inputs + degree, degree) > _LARGEST:
            break
        last = degree
        yield _monomials(inputs, degree)
    if 0 < last < 4 and inputs > 1:
        more = [(i,) * power for i in range(inputs) for power in range(last + 1, 5)]
        if len(more) + comb(inputs + last, last) <= _LARGEST:
            yield [*_monomials(inputs, last), *more]


def _monomials(inputs: int, degree: int) -> list[tuple[int, ...]]:
    return [own for size in range(degree + 1) for own in combinations_with_replacement(range(inputs), size)]


def relation(table: Floats, y: Floats, roots: Floats) -> tuple[Floats, Floats] | None:
    """Coefficients p[K], q[K] with p . table = y (q . table) on all rows, few of them not 0; None without any.

    Args:
        table: float[K, n] of terms, 1 among them.
        y: float[n].
        roots: float[n], by which rows count.
    """
    count, rows = table.shape
    if 2 * count > rows - 2:
        return None
    middle = float(np.median(np.abs(y))) or 1.0
    both = np.concatenate((table, y * table)) * (roots / (np.abs(y) + middle))
    sizes = np.sqrt(np.square(both).sum(axis=1))
    if not (np.isfinite(sizes).all() and (sizes > 0).all()):
        return None
    short: Floats = np.asarray(np.linalg.qr((both / sizes[:, None]).T, mode="r"))  # has all their products
    _, strengths, vectors = np.linalg.svd(short)
    if not strengths[-1] <= _HOLDS * strengths[0]:
        return None
    # The term that stands for the left side: the largest below the line, of the relation that holds best.
    reference = count + int(np.abs(vectors[-1][count:]).argmax())
    others = [place for place in range(2 * count) if place != reference]
    found: tuple[Floats, Floats] | None = None
    for left in eliminated(np.ascontiguousarray(short[:, others].T), short[:, reference]):
        places = [others[place] for place in left]
        solved = np.linalg.lstsq(short[:, places], short[:, reference], rcond=None)[0]
        rest = short[:, reference] - short[:, places] @ solved
        if not float(np.sqrt(rest @ rest)) <= _HOLDS:
            break
        own = np.zeros(2 * count)
        own[places], own[reference] = solved / sizes[places], -1.0 / sizes[reference]
        found = own[:count], -own[count:]
    return found


def without_offset(p: Floats, q: Floats) -> tuple[Floats, float]:
    """P / Q as c + P' / Q with as few terms in P' as may be; gives P' and c."""
    best, offset = p, 0.0
    for place in np.flatnonzero(q):
        ratio = float(p[place] / q[place])
        less = p - ratio * q
        less[np.abs(less) < _EQUAL * (np.abs(p) + np.abs(ratio * q))] = 0.0
        if ratio and np.count_nonzero(less) < np.count_nonzero(best):
            best, offset = less, ratio
    return best, offset


def ratios(coefficients: Floats) -> Floats:
    """Coefficients as ratios to one of them, so that most are 1."""
    table = coefficients / coefficients[:, None]
    table[np.abs(table - 1.0) < _EQUAL] = 1.0
    table[np.abs(table + 1.0) < _EQUAL] = -1.0
    best: Floats = table[int(((table == 1.0) + 0.5 * (table == -1.0)).sum(axis=1).argmax())]
    return best


def squares(terms: dict[tuple[int, ...], float]) -> list[tuple[float, int, int, float]]:
    """Squares of a sum or difference of two inputs, c (x_i + s x_j)^2 as (c, i, j, s), taken out of the terms."""
    found = []
    for own in [own for own in terms if len(own) == 2 and own[0] != own[1]]:
        i, j = own
        one, other, mixed = terms.get((i, i), 0.0), terms.get((j, j), 0.0), terms[own]
        if (
            one
            and abs(one - other) <= _EQUAL * abs(one)
            and abs(abs(mixed) - 2 * abs(one)) <= _EQUAL * abs(one)
        ):
            found.append((one, i, j, 1.0 if mixed * one > 0 else -1.0))
            del terms[i, i], terms[j, j], terms[own]
    return found


def shifted_powers(terms: dict[tuple[int, ...], float]) -> list[tuple[float, int, float, int]]:
    """Powers of a shifted input, c (x_i + s)^k as (c, i, s, k), taken out of the terms.

    The powers of an input alone are written around the place where the second highest vanishes, if two
    fewer are left there, of a square one. What is left of the first power stays one of x_i.
    """
    found = []
    for i in sorted({own[0] for own in terms if own}):
        degree = max((len(own) for own in terms if set(own) == {i}), default=0)
        if degree < 2 or not terms.get((i,) * (degree - 1), 0.0):
            continue
        old = [0.0, *(terms.get((i,) * k, 0.0) for k in range(1, degree + 1))]
        at = -old[-2] / (degree * old[-1])
        new = [0.0] * (degree + 1)
        for k in range(degree + 1):
            parts = [old[m] * comb(m, k) * at ** (m - k) for m in range(k, degree + 1)]
            whole = sum(parts)
            new[k] = whole if abs(whole) > _VANISHES * sum(map(abs, parts)) else 0.0
        if np.count_nonzero(new[1:]) > np.count_nonzero(old[1:]) - min(degree - 1, 2):
            continue  # every cubic has a place where its square vanishes
        for k in range(1, degree + 1):
            terms.pop((i,) * k, None)
        if new[1]:
            terms[(i,)] = new[1]
        constant = terms.pop((), 0.0)
        whole = constant + new[0] - new[1] * at
        if abs(whole) > _VANISHES * (abs(constant) + abs(new[0]) + abs(new[1] * at)):
            terms[()] = whole
        found += [(new[k], i, -at, k) for k in range(2, degree + 1) if new[k]]
    return found
