"""Terms, signatures and the set of what was rated."""

import numpy as np
import pytest

from discodso.tasks.regression.engine import _trees as trees
from discodso.tasks.regression.engine._trees import ADD, COLUMN, CONSTANT, DIV, INV, MUL, N2, SIN, SUB

X1, X2 = COLUMN, COLUMN + 1
GENERIC = np.array([0.7, 1.3, 0.4])


def mark(codes):
    codes = np.array(codes, np.int64)
    columns = np.random.default_rng(0).uniform(0.5, 3, (2, trees.PROBES))
    starts = np.zeros(trees.MOST_TERMS, np.int64)
    count = trees.terms_of(codes, len(codes), starts)
    return int(
        trees.signature(codes, np.zeros(1), starts, count, GENERIC, trees.room_for(columns, len(codes)))
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([MUL, X1, X2], [MUL, X2, X1]),
        ([N2, X1], [MUL, X1, X1]),
        ([DIV, X1, X2], [MUL, X1, INV, X2]),
        ([ADD, X1, X2], [SUB, X2, X1]),  # coefficients are free
        ([MUL, ADD, X1, X1, X2], [MUL, X1, X2]),  # twice a term is that term
        ([MUL, SUB, X1, X2, X1], [MUL, X1, SUB, X2, X1]),
        ([MUL, CONSTANT, SIN, X1], [SIN, X1]),
        ([ADD, CONSTANT, X1], [X1]),
        ([ADD, X1, ADD, X2, SIN, X1], [ADD, SIN, X1, ADD, X1, X2]),
    ],
)
def test_the_same_function_has_the_same_signature(one, other):
    assert mark(one) == mark(other) != 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([X1], [X2]),
        ([SIN, X1], [SIN, MUL, CONSTANT, X1]),
        ([ADD, X1, X2], [MUL, X1, X2]),
        ([N2, ADD, X1, X2], [N2, SUB, X1, X2]),
    ],
)
def test_other_functions_have_others(one, other):
    assert mark(one) != mark(other)


def test_terms_are_read_without_signs_and_coefficients():
    codes = np.array([SUB, MUL, CONSTANT, X1, ADD, CONSTANT, DIV, X2, CONSTANT], np.int64)
    starts = np.zeros(trees.MOST_TERMS, np.int64)
    assert trees.terms_of(codes, len(codes), starts) == 2
    assert [codes[start] for start in starts[:2]] == [X1, X2]


def test_a_set_takes_each_word_once_and_grows():
    table = np.zeros(16, np.uint64)
    words = np.arange(1, 8, dtype=np.uint64)
    assert all(trees.add_to(table, word) for word in words)
    assert not any(trees.add_to(table, word) for word in words)
    larger = trees.grown(table)
    assert len(larger) == 32
    assert not any(trees.add_to(larger, word) for word in words)
