"""Points with several numbers, each of which is to be as large as possible: dominance, crowding, hypervolume."""

from __future__ import annotations

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints


def undominated(points: Floats) -> Bools:
    """bool[n], which of points[n, m] no other one dominates: is as large everywhere, and larger somewhere."""
    kept = np.ones(len(points), np.bool_)
    order = np.lexsort(-points.T[::-1])  # a point is dominated by earlier ones only
    if points.shape[1] == 2:
        second, first = points[order, 1], points[order, 0]
        best = np.maximum.accumulate(second)
        before = np.concatenate(([np.nan], best[:-1]))
        kept[order] = ~(second <= before)  # the first is kept, even if it is -inf
        same = np.concatenate(([False], (first[1:] == first[:-1]) & (second[1:] == second[:-1])))
        for place in np.flatnonzero(same).tolist():  # equal points share their fate
            kept[order[place]] = kept[order[place - 1]]
        return kept
    for place, row in enumerate(order.tolist()):
        earlier = order[:place][kept[order[:place]]]
        above = (points[earlier] >= points[row]).all(axis=1)
        kept[row] = not (above & (points[earlier] > points[row]).any(axis=1)).any()
    return kept


def front_rows(points: Floats) -> Ints:
    """int[k], rows of points[n, m] that none dominates, the first of equal ones, by falling first number."""
    rows = np.lexsort(-points.T[::-1])
    rows = rows[undominated(points)[rows]]
    changed = (points[rows[1:]] != points[rows[:-1]]).any(axis=1)
    found: Ints = rows[np.concatenate((np.ones(min(1, len(rows)), np.bool_), changed))]
    return found


def layers(points: Floats) -> Ints:
    """int[n], the layer of points[n, m]: 0 for those that none dominates, 1 for those that only these do, ..."""
    found, left, layer = np.zeros(len(points), np.int64), np.arange(len(points)), 0
    while len(left):
        front = undominated(points[left])
        found[left[front]] = layer
        left, layer = left[~front], layer + 1
    return found


def crowding(points: Floats) -> Floats:
    """float[n], room about each of points[n, m] of one layer, as NSGA-II has it; infinite for the ends."""
    room = np.zeros(len(points))
    for own in points.T:
        order = np.argsort(own, kind="stable")
        with np.errstate(invalid="ignore"):  # failed ones are -inf
            width = own[order[-1]] - own[order[0]] if len(own) else 0.0
        if len(own) > 2 and 0 < width < np.inf:
            room[order[1:-1]] += (own[order[2:]] - own[order[:-2]]) / width
        room[order[[0, -1]]] = np.inf
    return room


def by_dominance(points: Floats) -> Ints:
    """int[n], rows of points[n, m], best first: by layer, and within a layer by the room about them."""
    own = layers(points)
    room = np.zeros(len(points))
    for layer in range(int(own.max(initial=-1)) + 1):
        room[own == layer] = crowding(points[own == layer])
    return np.lexsort((-room, own))


def hypervolume(points: Floats, reference: Floats) -> float:
    """Of the part of space that points[n, m] dominate, down to a reference point[m]. Exact, by slices."""
    points = points[(points > reference).all(axis=1)]
    if not len(points):
        return 0.0
    if points.shape[1] == 1:
        return float(points.max() - reference[0])
    points = points[undominated(points)]
    points = points[np.argsort(-points[:, -1], kind="stable")]
    if points.shape[1] == 2:
        steps = np.maximum.accumulate(points[:, 0])
        heights = points[:, 1] - np.append(points[1:, 1], reference[1])
        return float(((steps - reference[0]) * heights).sum())
    ends = np.append(points[1:, -1], reference[-1])
    return sum(
        float(high - low) * hypervolume(points[: row + 1, :-1], reference[:-1])
        for row, (high, low) in enumerate(zip(points[:, -1], ends, strict=True))
        if high > low
    )


def gain(point: Floats, points: Floats, reference: Floats) -> float:
    """What a point adds to the hypervolume of others."""
    box = np.maximum(0.0, point - reference)
    if not box.all():
        return 0.0
    return float(box.prod()) - hypervolume(np.minimum(points, point), reference)
