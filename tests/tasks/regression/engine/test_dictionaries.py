"""What is left of a dictionary, against all subsets of its rows."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from discodso.tasks.regression.engine import dictionaries


def error(table, rest, left):
    return np.linalg.lstsq(table[list(left)].T, rest, rcond=None)[1][0]


@pytest.mark.parametrize("seed", range(5))
def test_the_true_rows_are_left(seed):
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((8, 40)) * np.exp(rng.uniform(-9, 9, 8))[:, None]
    true = tuple(sorted(rng.choice(8, 3, replace=False).tolist()))
    rest = (table[list(true)] / np.abs(table[list(true)]).max(axis=1)[:, None]).sum(axis=0)
    rest = rest + 0.01 * rng.standard_normal(40)
    steps = list(dictionaries.eliminated(table, rest))
    assert [len(left) for left in steps] == list(range(8, 0, -1))
    best = min(combinations(range(8), 3), key=lambda left: error(table, rest, left))
    assert tuple(steps[-3]) == best == true


def test_each_step_takes_the_row_that_is_missed_least():
    rng = np.random.default_rng(7)
    table, rest = rng.standard_normal((6, 30)), rng.standard_normal(30)
    steps = [set(left) for left in dictionaries.eliminated(table, rest)]
    for before, after in pairwise(steps):
        choices = [before - {place} for place in before]
        assert after == min(choices, key=lambda left: error(table, rest, sorted(left)))


def test_rows_that_others_explain_are_left_out():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((3, 20))
    table = np.concatenate((table, table[:1] + table[1:2], np.zeros((1, 20))))
    (first, *_) = dictionaries.eliminated(table, table[0] + table[2])
    assert len(first) == 3


def test_monomials_are_those_of_the_degree():
    assert dictionaries.monomials(2, 2) == [(0,), (1,), (0, 0), (0, 1), (1, 1)]
    assert [dictionaries.degrees(inputs) for inputs in (1, 2, 3, 5, 9, 12)] == [
        [2, 8],
        [2, 8],
        [2, 5],
        [2, 3],
        [2],
        [],
    ]
