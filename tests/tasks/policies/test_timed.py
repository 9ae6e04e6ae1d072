"""Runners that count their episodes, and stop where there is no time for more."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from discodso.base.arrays import Floats, Ints
from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.timed import (
    Hurried,
    OutOfTimeError,
    TimedRunner,
    always,
    paired_within,
    timed,
)
from discodso.tasks.policies.tree import DecisionTree, Forest

TREES = [DecisionTree(((Leaf(action), 0),)) for action in range(3)]


class Sums:
    """The return of tree t with seed s is 100 t + s; the episodes with seed 7 fail."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def returns(self, forest: Forest, tree: Ints, seeds: Ints) -> tuple[Floats, dict[int, str]]:
        self.calls.append(len(tree))
        returns = np.where(seeds == 7, np.nan, 100.0 * tree + seeds)
        return returns, {int(place): "fell over" for place in np.flatnonzero(seeds == 7)}


def calls_left(count: int) -> Callable[[], float]:
    """Time for so many questions, whether there is any."""
    left = iter([1.0] * count)
    return lambda: next(left, 0.0)


def test_without_a_limit_all_is_run_at_once_and_counted() -> None:
    runner = TimedRunner(Sums())
    returns, reasons = runner.returns_within(Forest.of(TREES), np.zeros(10, np.int64), np.arange(10), always)
    assert runner.runner.calls == [10]
    assert runner.episodes == 10
    assert reasons == {7: "fell over"}
    assert np.array_equal(returns, [0, 1, 2, 3, 4, 5, 6, math.nan, 8, 9], equal_nan=True)
    assert timed(runner) is runner


def test_the_first_episodes_are_run_piece_by_piece_until_the_time_is_out() -> None:
    runner = TimedRunner(Sums(), workers=2)
    tree, seeds = np.ones(1000, np.int64), np.arange(1000)
    returns, reasons = runner.returns_within(Forest.of(TREES), tree, seeds, calls_left(6))
    assert 2 <= len(returns) < 1000
    assert runner.runner.calls[0] == 2  # one for each worker, and then more and more
    assert all(after <= 4 * before for before, after in pairwise(runner.runner.calls))
    good = np.delete(np.arange(len(returns)), 7) if len(returns) > 7 else np.arange(len(returns))
    assert (returns[good] == 100 + good).all()
    assert reasons == ({7: "fell over"} if len(returns) > 7 else {})
    assert runner.episodes == len(returns) == sum(runner.runner.calls)


def test_some_episodes_are_run_anyway() -> None:
    runner = TimedRunner(Sums())
    given = Forest.of(TREES), np.zeros(5, np.int64), np.arange(5)
    assert runner.returns_within(*given, lambda: -1.0, least=2)[0].tolist() == [0.0, 1.0]
    assert runner.returns_within(*given, lambda: -1.0)[0].tolist() == []


def test_pairs_have_the_same_seeds_for_all() -> None:
    seeds = np.arange(10, 17)
    whole = paired_within(TREES, TimedRunner(Sums()), seeds, always)
    assert (whole == 100 * np.arange(3)[:, None] + seeds).all()
    cut = paired_within(TREES, TimedRunner(Sums()), seeds, calls_left(5))
    assert 0 < cut.shape[1] < 7
    assert (cut == whole[:, : cut.shape[1]]).all()


def test_whoever_needs_all_episodes_is_told_that_there_is_no_time() -> None:
    given = Forest.of(TREES), np.zeros(5, np.int64), np.arange(5)
    assert len(Hurried(TimedRunner(Sums()), always).returns(*given)[0]) == 5
    with pytest.raises(OutOfTimeError):
        Hurried(TimedRunner(Sums()), lambda: 0.0).returns(*given)
