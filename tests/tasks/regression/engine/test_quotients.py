"""Relations between sums of monomials and a target that is their quotient."""

from itertools import product

import numpy as np
import pytest

from discodso.tasks.regression.engine import quotients

ROOTS = np.full(200, 200**-0.5)


def dictionary(X, chosen):
    return np.array([np.prod(X[:, list(own)], axis=1) if own else np.ones(len(X)) for own in chosen])


@pytest.mark.parametrize("seed", range(5))
def test_a_quotient_is_found_up_to_a_factor(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (200, 2))
    chosen = list(quotients.exponents(2))[2]  # up to degree 3
    table = dictionary(X, chosen)
    p, q = np.zeros((2, len(chosen)))
    for own in (p, q):
        own[rng.choice(len(chosen), 3, replace=False)] = rng.uniform(1, 3, 3) * rng.choice([-1, 1], 3)
    y = (p @ table) / (q @ table)
    found = quotients.relation(table, y, ROOTS)
    assert found is not None
    assert np.count_nonzero(found[0]) + np.count_nonzero(found[1]) <= 6
    np.testing.assert_allclose((found[0] @ table) / (found[1] @ table), y, rtol=1e-6, atol=1e-9)


def test_what_is_no_quotient_has_no_relation():
    X = np.random.default_rng(0).uniform(-3, 3, (200, 2))
    table = dictionary(X, list(quotients.exponents(2))[2])
    assert quotients.relation(table, np.sin(3 * X[:, 0] * X[:, 1]), ROOTS) is None
    noisy = 1 / (2 + X[:, 0] ** 2) + 1e-4 * np.random.default_rng(1).standard_normal(200)
    assert quotients.relation(table, noisy, ROOTS) is None


def test_few_rows_have_no_relation():
    X = np.random.default_rng(0).uniform(1, 3, (10, 2))
    table = dictionary(X, list(quotients.exponents(2))[1])
    assert quotients.relation(table, 1 / X[:, 0], ROOTS[:10]) is None


def test_dictionaries_begin_with_one_and_have_each_monomial_once():
    for inputs in (1, 2, 3, 5, 9):
        for chosen in quotients.exponents(inputs):
            assert chosen[0] == ()
            assert len(set(chosen)) == len(chosen) <= 70
    every = {tuple(sorted(i * (0,) + j * (1,))) for i, j in product(range(4), repeat=2) if i + j <= 3}
    assert set(list(quotients.exponents(2))[2]) == every


def test_an_offset_is_taken_out():
    p, q = np.array([0.0, 2.0, 3.0, 0.0, 5.0]), np.array([0.0, 0.0, 6.0, 0.0, 10.0])
    rest, offset = quotients.without_offset(p, q)
    assert offset == 0.5
    np.testing.assert_array_equal(rest, [0, 2, 0, 0, 0])


def test_most_ratios_are_one():
    np.testing.assert_array_equal(quotients.ratios(np.array([-2.0, 4.0, -2.0, -2.0])), [1, -2, 1, 1])


def test_squares_of_differences_are_taken_out():
    terms = {(0, 0): 2.0, (0, 1): -4.0, (1, 1): 2.0, (2, 2): 1.0, (1, 2): 1.0}
    assert quotients.squares(terms) == [(2.0, 0, 1, -1.0)]
    assert terms == {(2, 2): 1.0, (1, 2): 1.0}


def test_powers_of_shifted_inputs_are_taken_out_of_a_sum():
    # (x - 3)^4 + (y - 3)^2 + 2, and x y
    terms = {(0,) * 4: 1.0, (0,) * 3: -12.0, (0, 0): 54.0, (0,): -108.0}
    terms |= {(1, 1): 1.0, (1,): -6.0, (): 81.0 + 9.0 + 2.0, (0, 1): 0.5}
    found = quotients.shifted_powers(terms)
    assert found == [(1.0, 0, -3.0, 4), (1.0, 1, -3.0, 2)]
    assert terms == pytest.approx({(0, 1): 0.5, (): 2.0})


def test_no_power_is_shifted_where_that_leaves_as_many():
    terms = {(0, 0): 1.0, (0,): 2.0, (0, 0, 0): 5.0, (1, 1): 3.0}
    before = dict(terms)
    assert quotients.shifted_powers(terms) == []
    assert terms == before
