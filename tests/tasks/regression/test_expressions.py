"""Expressions: every way to evaluate one agrees with NumPy."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from discodso import Design, InvalidDesignError
from discodso.base.errors import DeclarationError
from discodso.disco.sampling import sample
from discodso.disco.uniform import UniformStepper
from discodso.tasks.regression import _vector_math, export
from discodso.tasks.regression.evaluator import Program
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.expression_space import Fit, RegressionSpace
from discodso.tasks.regression.operators import OPERATORS, Operator, operators_named

EVERYTHING = RegressionSpace(library=(*OPERATORS, "1", "2.5", "const"), min_length=1, max_length=24)
COLUMNS = ("speed", "mass", "x 3")


def random_expressions(count, seed, space=EVERYTHING):
    built = space.build(3)
    drawn = sample(built, UniformStepper(built), count, np.random.default_rng(seed)).designs
    return built, drawn


def well_conditioned(expression, X):
    """Values by NumPy, and the rows where NumPy in float64 and in long double agree at every step.

    To 1e-11, or in not being finite. Elsewhere the digits of float64 are noise: cos(exp(exp(5))) is one number or
    another, and whether its logarithm exists is chance.
    """

    def step(plain, precise, sure):
        close = np.abs(plain - precise) <= 1e-11 * np.abs(precise)
        alike = np.isfinite(plain) == np.isfinite(precise.astype(float))
        return plain, precise, sure & alike & (close | ~np.isfinite(plain))

    def column(index):
        return X[:, index], X[:, index].astype(np.longdouble), np.ones(len(X), bool)

    def number(value):
        return np.full(len(X), value), np.full(len(X), value, np.longdouble), np.ones(len(X), bool)

    def apply(operator, *operands):
        plain, precise, sure = zip(*operands, strict=True)
        sure = np.all(sure, axis=0)
        if operator.name == "pow":  # of a negative number it exists for whole exponents only, odd or even
            sure &= (plain[0] >= 0) | (plain[1] == precise[1])
        return step(operator.function(*plain), operator.function(*precise), sure)

    with np.errstate(all="ignore"):
        plain, _, sure = expression.fold(column, number, apply)
    assert np.array_equal(plain, expression(X), equal_nan=True)
    return plain, sure


@pytest.mark.parametrize("count", [1500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_batched_values_equal_numpy(count):
    """Where NumPy itself is sure of its digits: a formula such as sin(exp(exp(x))) has none in float64."""
    space, drawn = random_expressions(count, seed=count)
    X = np.random.default_rng(1).uniform(-3, 3, (150, 3))  # more than one block
    values = Program.of(space.library).predict(drawn, np.ascontiguousarray(X.T))
    sure_rows = 0
    for row, design in enumerate(drawn):
        want, sure = well_conditioned(Expression(design, COLUMNS), X)
        sure_rows += sure.sum()
        got = values[row]
        assert np.array_equal(np.isfinite(got[sure]), np.isfinite(want[sure])), design
        finite = sure & np.isfinite(want)
        np.testing.assert_allclose(got[finite], want[finite], rtol=1e-9, atol=1e-300, err_msg=str(design))
    assert sure_rows > 0.75 * count * len(X)


def test_errors_equal_predictions_and_failures_are_infinite():
    space, drawn = random_expressions(500, seed=3)
    program = Program.of(space.library)
    rng = np.random.default_rng(0)
    X, y, weights = rng.uniform(-3, 3, (300, 3)), rng.normal(size=300), rng.random(300)
    columns = np.ascontiguousarray(X.T)
    predictions = program.predict(drawn, columns)
    for absolute in (False, True):
        fit = Fit(program, columns, y, weights, "mae" if absolute else "nmse")
        got = fit.errors(drawn)
        with np.errstate(all="ignore"):
            sizes = np.abs(predictions - y) if absolute else (predictions - y) ** 2
            want = sizes @ weights
        want[~np.isfinite(predictions).all(axis=1) | ~np.isfinite(want)] = np.inf
        np.testing.assert_allclose(got, want, rtol=1e-10)
        assert np.array_equal(replace(fit, threads=2).errors(drawn), got)
    assert np.array_equal(program.predict(drawn, columns, threads=2), predictions, equal_nan=True)


@pytest.mark.parametrize("name", ["exp", "log", "sin", "cos", "tan", "tanh"])
def test_vector_functions_are_within_four_units_in_the_last_place(name):
    special = [
        0.0,
        -0.0,
        math.inf,
        -math.inf,
        math.nan,
        5e-324,
        1e-308,
        1e308,
        -1e308,
        709.78,
        709.79,
        -745.2,
    ]
    special += [-745.0, -708.5, 0.625, math.pi, math.pi / 2, 99999.0, 1e5, 1e17]
    rng = np.random.default_rng(0)
    for scale in (1e-300, 1e-8, 0.1, 1.0, 30.0, 700.0, 3e4, 1e7):
        for extra in ([], special):
            x = np.concatenate((rng.normal(size=3000) * scale, extra))
            out, work = np.empty_like(x), [np.empty_like(x) for _ in range(3)]
            if name in ("sin", "cos"):
                _vector_math.sine(x, out, work[0], int(name == "cos"), len(x))
            else:
                getattr(_vector_math, name)(x, out, *work[: 3 if name == "tanh" else 2], len(x))
            with np.errstate(all="ignore"):
                want = getattr(np, name)(x)
            assert np.array_equal(np.isnan(out), np.isnan(want))
            infinite = np.isinf(want)
            assert np.array_equal(out[infinite], want[infinite])
            finite = np.isfinite(want)
            units = np.abs(out[finite] - want[finite]) / np.spacing(np.abs(want[finite]))
            assert units.max() <= 4


def agree(got, want, sure):
    good = sure & np.isfinite(want) & np.isfinite(got)
    np.testing.assert_allclose(got[good], want[good], rtol=1e-8, atol=1e-12)
    return good.sum()


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_numpy_and_torch_agree(seed):
    _, drawn = random_expressions(1, seed)
    expression = Expression(drawn[0], COLUMNS)
    X = np.random.default_rng(seed).uniform(-2, 2, (20, 3))
    want, sure = well_conditioned(expression, X)
    columns = [X[:, i] for i in range(3)]
    assert np.array_equal(export.numpy_function(expression)(*columns), expression(X), equal_nan=True)
    tensors = [torch.from_numpy(column) for column in columns]
    by_torch = export.torch_function(expression)(*tensors).numpy()
    agree(by_torch, want, sure)
    assert np.array_equal(np.isfinite(by_torch[sure]), np.isfinite(want[sure]))


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_sympy_agrees_and_so_does_the_text_read_back(seed):
    space = RegressionSpace(library=(*OPERATORS, "2.5", "const"), min_length=1, max_length=10)
    _, drawn = random_expressions(1, seed, space)
    expression = Expression(drawn[0], ("a", "b", "c"))
    X = np.random.default_rng(seed).uniform(0.2, 2, (5, 3))
    want, sure = well_conditioned(expression, X)
    raw = export.to_sympy(expression)
    symbols = [sympy.Symbol(name, real=True) for name in "abc"]
    for row, value, good in zip(X, want, sure, strict=True):
        if good and np.isfinite(value) and abs(value) < 1e12:
            got = complex(raw.subs(dict(zip(symbols, row.tolist(), strict=True))).evalf())
            assert got.real == pytest.approx(value, rel=1e-6, abs=1e-9)
    again = Expression.parse(export.text(expression, digits=17), ("a", "b", "c"))
    agree(again(X), want, sure)
    assert export.latex(expression)


def test_text_has_few_brackets_and_the_names_of_the_columns():
    expression = Expression(
        Design.of("add", "mul", ("const", 2.5), "n2", "x1", "div", "sin", "x2", "sub", "x3", "1"), COLUMNS
    )
    assert export.text(expression) == "2.5 * speed^2 + sin(mass) / (`x 3` - 1)"
    assert str(export.to_sympy(expression)).count("speed") == 1
    assert "double predict(const double *x)" in export.c_source(expression)
    assert "def predict(speed, mass, x_3):" in export.python_source(expression)


def cube_root(x):
    return np.cbrt(x)


def test_operators_of_ones_own():
    root = Operator("cube_root", 1, cube_root, sympy="cbrt")
    middle = Operator("clip3", 3, lambda a, low, high: np.minimum(np.maximum(a, low), high))
    space = RegressionSpace(library=("add", "mul", root, middle, "const"), min_length=1, max_length=12).build(
        2
    )
    program = Program.of(space.library, (root, middle))
    drawn = sample(space, UniformStepper(space), 300, np.random.default_rng(0)).designs
    X = np.random.default_rng(1).normal(size=(200, 2))
    y, weights, columns = X[:, 0], np.full(200, 1 / 200), np.ascontiguousarray(X.T)
    values = program.predict(drawn, columns)
    for row, design in enumerate(drawn):
        np.testing.assert_allclose(values[row], Expression(design, ("a", "b"), (root, middle))(X), rtol=1e-12)
    errors = Fit(program, columns, y, weights).errors(drawn)
    np.testing.assert_allclose(errors, ((values - y) ** 2) @ weights)
    expression = Expression(Design.of("cube_root", "x1"), ("a",), (root,))
    assert export.text(expression) == "cube_root(a)"
    assert "clip3(" in export.text(Expression(Design.of("clip3", "x1", "x1", "x1"), ("a",), (middle,)))
    with pytest.raises(DeclarationError, match="torch"):
        export.torch_function(expression)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("a + b", ("add", "x1", "x2")),
        ("-a", ("neg", "x1")),
        ("-2", ("const",)),
        ("a**2 - x2^3", ("sub", "n2", "x1", "n3", "x2")),
        ("pow(a, 0.5)", ("pow", "x1", "const")),
        ("sin(a)*exp(b)/2", ("div", "mul", "sin", "x1", "exp", "x2", "const")),
    ],
)
def test_formulas_are_read(text, tokens):
    assert Expression.parse(text, ("a", "b")).design.tokens == tokens


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a +",
        "__import__('os')",
        "a.b",
        "a[0]",
        "lambda: 1",
        "c",
        "sin(a, b)",
        "foo(a)",
        "a if b else a",
        "'a'",
        "x3",
    ],
)
def test_what_is_no_formula_is_refused(text):
    with pytest.raises(InvalidDesignError):
        Expression.parse(text, ("a", "b"))


@pytest.mark.parametrize(
    "design",
    [
        Design.of("add", "x1"),
        Design.of("x1", "x1"),
        Design.of("x9"),
        Design.of("foo"),
        Design.of("const"),
        Design.of(),
    ],
)
def test_designs_that_are_no_expression_are_refused(design):
    with pytest.raises(InvalidDesignError):
        Expression(design, ("a",))


@pytest.mark.parametrize("names", [["sinh"], ["sin", "sin"], ["+", "add"], [Operator("sin", 1, np.sin)]])
def test_bad_operators_are_refused(names):
    with pytest.raises(DeclarationError):
        operators_named(names)


def test_a_formula_of_a_thousand_terms_is_read_and_one_beyond_reason_is_refused_in_a_line():
    whole = Expression.parse(" + ".join(f"{n}*x" for n in range(1, 1001)), ("x",))
    assert whole(np.array([[2.0]])) == [1001000.0]
    for text in (
        "-" * 20_000 + "x",
        "sin(" * 900 + "x" + ")" * 900,
        "1" + "0" * 400,
        "-1e400",
        "x" * 100_000,
    ):
        with pytest.raises(InvalidDesignError) as caught:
            Expression.parse(text, ("x",))
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 300
