"""Dominance, crowding and hypervolume against definitions, DEAP and inclusion and exclusion."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from deap import base, tools

from discodso.base.dominance import by_dominance, crowding, front_rows, gain, hypervolume, layers, undominated

# Few different values, so that points are equal in some or in all of their numbers.
SETS = [
    np.random.default_rng(seed).integers(0, 6, (size, objectives)).astype(float)
    for seed, (size, objectives) in enumerate((n, m) for n in (1, 2, 7, 12) for m in (2, 3, 4))
]


@pytest.mark.parametrize("points", SETS, ids=lambda points: str(points.shape))
def test_undominated_are_those_that_no_other_point_dominates(points):
    above = (points[:, None] >= points).all(axis=2) & (points[:, None] > points).any(axis=2)
    assert (undominated(points) == ~above.any(axis=0)).all()
    kept = np.unique(points[undominated(points)], axis=0)[::-1]
    assert (points[front_rows(points)] == kept).all()


@pytest.mark.parametrize("points", SETS, ids=lambda points: str(points.shape))
def test_hypervolume_is_that_of_the_union_of_boxes(points):
    reference = np.full(points.shape[1], 0.5)
    boxes = points[(points > reference).all(axis=1)]
    volume = 0.0
    for count in range(1, len(boxes) + 1):
        for some in combinations(boxes, count):
            volume += (-1) ** (count + 1) * (np.min(some, axis=0) - reference).prod()
    assert hypervolume(points, reference) == pytest.approx(volume)
    for row in range(len(points)):
        others = np.delete(points, row, axis=0)
        more = hypervolume(points, reference) - hypervolume(others, reference)
        assert gain(points[row], others, reference) == pytest.approx(more)


@pytest.mark.parametrize("objectives", [2, 3])
def test_layers_and_crowding_are_those_of_deap(objectives):
    points = np.random.default_rng(objectives).normal(size=(60, objectives))

    class Fitness(base.Fitness):
        weights = (1.0,) * objectives

    class Individual(list):
        def __init__(self, row):
            super().__init__([row])
            self.fitness = Fitness(tuple(points[row]))

    fronts = tools.sortNondominated([Individual(row) for row in range(60)], 60)
    own = layers(points)
    for number, front in enumerate(fronts):
        rows = [one[0] for one in front]
        assert sorted(np.flatnonzero(own == number)) == sorted(rows)
        tools.emo.assignCrowdingDist(front)
        theirs = np.array([one.fitness.crowding_dist for one in front])
        assert crowding(points[rows]) / objectives == pytest.approx(theirs)
    assert (np.diff(own[by_dominance(points)]) >= 0).all()


def test_failed_points_come_last():
    points = np.array([[-np.inf, -np.inf], [0.0, 1.0], [1.0, 0.0], [-np.inf, -np.inf]])
    assert sorted(by_dominance(points)[:2]) == [1, 2]
    assert hypervolume(points, np.array([-1.0, -1.0])) == 3.0
