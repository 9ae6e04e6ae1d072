"""Laws: their formulas and ranges, the tables of NIST, and the judge."""

from __future__ import annotations

import numpy as np
import pytest

from discodso.base.errors import DeclarationError
from discodso.tasks.regression.evaluator import evaluate
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.law_judge import compare, judge, judge_fit, recovered
from discodso.tasks.regression.laws import SETS, Variable, laws
from discodso.tasks.regression.nist import nist

SIZES = {"feynman": 120, "nguyen": 12, "keijzer": 14, "korns": 15, "vladislavleva": 8}


def law_named(name):
    (law,) = laws(names=name)
    return law


def found(text, name):
    law = law_named(name)
    return Expression.parse(text, law.columns), law


# ---------------------------------------------------------------------------------------- laws


def test_every_set_has_its_laws():
    assert {own: len(laws(own)) for own in SETS} == SIZES
    assert len(laws()) == sum(SIZES.values())
    assert len({law.name for law in laws()}) == len(laws())


def test_halves_are_odd_and_even_numbers():
    tuned, shown = laws("feynman", half="tuned"), laws("feynman", half="shown")
    assert {law.number % 2 for law in tuned} == {1}
    assert {law.number % 2 for law in shown} == {0}
    assert len(tuned) == len(shown) == 60


@pytest.mark.parametrize("law", laws(), ids=lambda law: law.name)
def test_a_law_is_finite_where_it_is_drawn(law):
    X, y = law.data(seed=3)
    assert X.shape == (len(y), len(law.columns))
    assert len(y) == min(law.rows, 1000)
    for table in ((X, y), law.fresh(3), law.fresh(3, stretched=True)):
        assert np.isfinite(table[0]).all()
        assert np.isfinite(table[1]).all()
    assert np.ptp(y) > 0
    assert 0 <= len(law.truth) - law.tokens <= 6 or law.name == "I.41.16"
    np.testing.assert_allclose(evaluate(law.truth, X), y, rtol=1e-6, atol=1e-12 * np.abs(y).max())


@pytest.mark.parametrize("law", laws(), ids=lambda law: law.name)
def test_a_law_is_itself(law):
    assert judge(law.truth, law, seconds=0).agrees
    assert judge(law.truth, law, 5, 0.01, seconds=0).recovered


def test_inputs_are_drawn_from_their_ranges():
    rng = np.random.default_rng(0)
    drawn = {
        kind: Variable("x", kind, 1.0, 100.0).draw(rng, 4000)
        for kind in ("uniform", "log", "signed_log", "negative_log", "integer", "signed_integer")
    }
    for kind, values in drawn.items():
        assert np.abs(values).min() >= 1
        assert np.abs(values).max() <= 100
        assert 0.4 < np.mean(values > 0) < 0.6 if kind.startswith("signed") else len(set(values > 0)) == 1
    assert 9 < np.median(drawn["log"]) < 11
    assert drawn["negative_log"].max() <= -1
    assert set(np.unique(drawn["integer"])) == set(range(1, 101))
    np.testing.assert_allclose(Variable("x", "grid", -1.0, 1.0, 0.5).grid, [-1, -0.5, 0, 0.5, 1])


def test_stretched_ranges_are_wider_and_keep_their_sign():
    assert Variable("x", "log", 0.1, 10.0).stretched_range() == (0.05, 20)
    assert Variable("x", "uniform", -1.0, 1.0).stretched_range() == (-2, 2)
    assert Variable("x", "uniform", 1.0, 3.0).stretched_range() == (0.5, 4)


def test_data_depend_on_the_seed_only():
    law = law_named("I.12.2")
    first, again, other = law.data(0.1, 1), law.data(0.1, 1), law.data(0.1, 2)
    assert np.array_equal(first[0], again[0])
    assert np.array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])
    X, y = law.data(0.0, 1)
    assert np.array_equal(X, first[0])
    assert np.std(first[1] - y) == pytest.approx(0.1 * np.std(y), rel=0.1)
    assert not np.isin(law.fresh(1)[0], X).any()


def test_units_are_those_of_each_input():
    law = law_named("I.13.12")
    assert [variable.unit for variable in law.variables] == ["kg", "kg", "m", "m"]
    assert law.target_unit == "kg*m^2/s^2"
    assert all(variable.unit for law in laws("feynman") for variable in law.variables)


def test_unknown_laws_are_refused():
    with pytest.raises(DeclarationError, match=r"no law I\.99"):
        laws(names="I.99")
    with pytest.raises(DeclarationError, match=r"no law I\.12\.2 in half 'tuned'"):
        laws(names="I.12.2", half="tuned")
    with pytest.raises(DeclarationError, match="set"):
        laws("newton")


# ---------------------------------------------------------------------------------------- the judge


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Nguyen-1", "x*(x*(x+1)+1)"),
        ("Nguyen-8", "x**0.5"),
        ("Nguyen-12", "x*x*x*(x-1)+y*(0.5*y-1)"),
        ("I.12.5", "1.0000001*E*q2"),
        ("I.8.14", "((xa-xb)**2+(ya-yb)**2)**0.5"),
        ("I.44.4", "1.380649e-23*n*T*(log(V2)-log(V1))"),
        ("B8", "E"),  # its other terms cannot be seen
        ("Keijzer-9", "log(sqrt(1+x*x)+x)"),
    ],
)
def test_equal_forms_are_the_law(name, text):
    assert recovered(*found(text, name), seconds=0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Nguyen-1", "x**3+x**2+1.001*x"),
        ("Nguyen-5", "sin(x**2)*cos(x)-1.01"),
        ("I.12.5", "1.001*E*q2"),
        ("I.8.14", "sqrt((xa-xb)**2)+sqrt((ya-yb)**2)"),
        ("I.10.7", "m0"),  # small speeds hardly count
        ("II.11.28", "1"),  # close everywhere, but it explains nothing
        ("I.12.5", "log(-E**2)"),
    ],
)
def test_other_forms_are_not(name, text):
    assert not recovered(*found(text, name))


def test_small_targets_count_as_large_ones_do():
    # Right where targets are large: the mean squared error sees nothing.
    expression, law = found("0.5*k*x**2+0.01", "I.14.4")
    verdict = judge(expression, law)
    assert verdict.error < 1e-6
    assert verdict.close < 0.95
    assert not verdict.agrees


def test_what_is_too_long_is_written_shorter_by_sympy():
    expression, law = found("(x*x*x+x*x+x)*2*0.5+x-x+(x-x)*(x+3)*x", "Nguyen-1")
    assert judge(expression, law, seconds=0).agrees
    assert not recovered(expression, law, seconds=0)
    assert recovered(expression, law, seconds=60)


def test_noise_permits_what_it_hides():
    close, far = (found(f"sin(x*x)*cos(x)-{c}", "Nguyen-5") for c in (0.999, 0.9))
    assert recovered(*close, noise=0.01)
    assert not recovered(*close)
    assert not recovered(*far, noise=0.01)


def test_errors_are_relative_and_bear_a_few_overflows():
    y = np.geomspace(1e-200, 1e200, 1000)
    assert compare(y, y, 1e-5) == (0.0, 1.0)
    missing = y.copy()
    missing[:5] = np.nan
    assert compare(missing, y, 1e-5) == (0.0, 0.995)
    missing[:50] = np.inf
    assert compare(missing, y, 1e-5) == (np.inf, 0.95)


# ---------------------------------------------------------------------------------------- NIST


@pytest.mark.parametrize("table", nist(), ids=lambda table: table.name)
def test_certified_parameters_leave_the_certified_residuals(table):
    names = [f"b{k + 1}" for k in range(len(table.parameters))]
    model = Expression.parse(table.formula, [*table.columns, *names])
    certified = model(np.column_stack([table.X, np.tile(table.parameters, (len(table.y), 1))]))
    residuals = float(np.sum(np.square(certified - table.y)))
    assert residuals == pytest.approx(table.residuals, rel=1e-8, abs=1e-19)


def test_a_model_of_nist_fits_its_table_and_a_constant_does_not():
    assert len(nist()) == 27
    table = next(table for table in nist() if table.name == "Misra1a")
    b1, b2 = table.parameters
    assert judge_fit(Expression.parse(f"{b1}*(1-exp(-{b2}*x))", table.columns), table).recovered
    assert not judge_fit(Expression.parse("50", table.columns), table).recovered
    assert not judge_fit(Expression.parse("log(-x)", table.columns), table).recovered
