"""Units in the compiled search: those of parts, of constants, and that what is proposed agrees."""

import numpy as np
import pytest

from discodso.tasks.regression.engine import _trees as trees
from discodso.tasks.regression.engine import _units
from discodso.tasks.regression.engine.search import EquationSearch
from discodso.tasks.regression.engine.setting import Units, make_setting
from discodso.tasks.regression.expression_space import RegressionSpace

NAMES = ["add", "sub", "mul", "div", "sin", "cos", "exp", "log", "sqrt", "n2"]
COLUMNS = np.array([[1.0, 0.0], [1.0, -1.0], [0.0, 1.0], [0.0, 0.0]])  # m, m/s, s, 1


class Settings:
    description = RegressionSpace((*NAMES, "const"))
    budget = 20_000


def search_for(target=(1.0, 0.0), most=2, seed=0, formula=None, columns=COLUMNS):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.5, 3, (80, len(columns)))
    y = X[:, 0] + X[:, 1] * X[:, 2] * np.exp(X[:, 3]) if formula is None else formula(*X.T)
    y = y + 0.05 * rng.standard_normal(80)
    weights, units = np.full(80, 1 / 80), Units(columns, np.array(target), most)
    columns = np.ascontiguousarray(X.T)
    return EquationSearch(make_setting(columns, y, weights, NAMES, [], Settings, units), seed)


def ranks(search, view):
    """Of what an archive holds: independent units of its constants."""
    codes, _, lengths, _, _, coefficients, counts = view.archive
    starts, found = np.zeros(trees.MOST_TERMS, np.int64), []
    for price, count in enumerate(counts.tolist()):
        for at in range(price * 12, price * 12 + count):
            own = codes[at, : lengths[at]].copy()
            with_offset = bool(coefficients[at, 0] != 0.0)
            problem = search.problem(view, offset=with_offset)
            terms = trees.terms_of(own, len(own), starts)
            rank, offset = _units.agreement(own, problem[1], len(own), starts, terms, problem[-1])
            assert rank >= 0
            assert offset or not with_offset
            found.append(rank)
    return found


@pytest.mark.parametrize(
    ("most", "target"), [(0, (1.0, 0.0)), (1, (1.0, 0.0)), (2, (0.0, 0.0)), (1, (2.0, 3.0))]
)
def test_all_that_is_kept_agrees(most, target):
    search = search_for(target, most)
    while search.counts[0] < 8000 and search.step(2000):
        pass
    for view in search.views:
        found = ranks(search, view)
        assert all(rank <= most for rank in found)
    assert len(ranks(search, search.views[0])) > 20


def test_a_constant_is_needed_where_no_product_has_the_unit():
    lengths = COLUMNS[[0, 0, 3]]
    assert Units(lengths, np.array([1.0, 0.0]), 2).least == 0
    assert Units(lengths, np.array([0.0, 1.0]), 2).least == 1


def test_short_expressions_have_the_unit_of_their_values():
    """Inputs in other units change the values of an expression by the factor that its unit says."""
    search = search_for(most=0)
    for _ in range(5):
        search._next_level()
    factors = np.array([3.0, 7.0])  # of the two base units
    X = search.setting.columns[:, :10]
    scaled = X * np.prod(factors**COLUMNS, axis=1)[:, None]
    rooms = [trees.room_for(np.ascontiguousarray(columns), 12) for columns in (X, scaled)]
    assert search.pool_count > 300
    for item in range(search.pool_count):
        length = search.pool[1][item]
        codes = search.pool[0][item, :length].copy()
        before, after = (
            room[0][trees.forward(codes, np.ones(length), search.setting.literals, 0, length, room)].copy()
            for room in rooms
        )
        expected = before * np.prod(factors ** search.pool_units[item])
        np.testing.assert_allclose(after, expected, rtol=1e-9)


def test_what_is_made_to_agree_agrees():
    search = search_for(most=0)
    for _ in range(4):
        search._next_level()
    search.groups = search.by_unit()
    view, rng, made = search.views[0], np.random.default_rng(0), 0
    problem = search.problem(view, 0)
    pool = search.pool[0], search.pool[1], search.pool_count
    starts = np.zeros(trees.MOST_TERMS, np.int64)
    for _ in range(2000):
        draft = np.zeros(60, np.int64), np.zeros(60), np.zeros(1, np.int64)
        one, other = (rng.integers(search.pool_count) for _ in range(2))
        parts = [search.pool[0][item, : search.pool[1][item]] for item in (one, other)]
        lead = rng.choice([trees.ADD, trees.SUB, trees.MUL, trees.DIV])
        wrapped = [trees.SIN] if rng.random() < 0.3 else []
        codes = np.concatenate(([lead], wrapped, *parts))
        draft[0][: len(codes)], draft[2][0] = codes, len(codes)
        if not _units.agree(draft, pool, False, search.random, (problem[1], problem[-1])):
            continue
        length = int(draft[2][0])
        count = trees.terms_of(draft[0], length, starts)
        if count > 0:
            rank, _ = _units.agreement(draft[0], problem[1], length, starts, count, problem[-1])
            assert rank == 0
            made += 1
    assert made > 500


def test_what_one_input_alone_can_give_is_divided_out():
    search = search_for(
        (1.0, 1.0),
        0,
        columns=np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]),
        formula=lambda m, a, b: m * np.sqrt(a**2 + 3 * b**2),
    )
    reduced = [view for view in search.views if view.name == "reduced"]
    assert reduced
    assert reduced[0].factor[0] == [trees.COLUMN]
    np.testing.assert_allclose(reduced[0].unit, [1.0, 0.0])
