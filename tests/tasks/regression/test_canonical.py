"""The canonical form: shorter, equal in value, and the same for what means the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from expressions import drawn, tame_values
from hypothesis import given, settings
from hypothesis import strategies as st

from discodso import Design
from discodso.tasks.regression.arrangement import arrangement, tokens
from discodso.tasks.regression.canonical import canonical
from discodso.tasks.regression.export import text
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.normal_form import name_ranks
from discodso.tasks.regression.operators import Operator

RNG = np.random.default_rng(0)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_values_stay_wherever_the_expression_is_defined(seed):
    expression, rng = drawn(seed), np.random.default_rng(seed)
    X = np.concatenate([rng.uniform(-3, 3, (20, 3)), rng.uniform(0.1, 3, (20, 3))])
    before, sure = tame_values(expression, X, rng)
    for brackets in (0, 1):
        items = tokens(arrangement(expression, brackets))
        after = replace(expression, design=Design.of(*items))(X)
        np.testing.assert_allclose(after[sure], before[sure], rtol=1e-5, atol=1e-7, err_msg=text(expression))
    short = canonical(expression)
    assert len(short) <= len(expression)
    np.testing.assert_allclose(short(X)[sure], before[sure], rtol=1e-5, atol=1e-7, err_msg=text(expression))
    assert len(canonical(short)) <= len(short)


def test_many_expressions_get_much_shorter():
    expressions = [drawn(seed) for seed in range(300)]
    before, after = (sum(map(len, e)) for e in (expressions, map(canonical, expressions)))
    assert after < 0.8 * before


@pytest.mark.parametrize(
    ("given", "want"),
    [
        # waves
        ("sin(-5 * x)", "-sin(5 * x)"),
        ("sin(15 - 0.5 * x)", "sin(0.5 * x + 0.707963)"),
        ("cos(2 - x)", "cos(x - 2)"),
        ("cos(x + 7)", "cos(x + 0.716815)"),
        # like terms and factors
        ("x - x", "0"),
        ("x + x + y - x", "x + y"),
        ("x * x * x", "x^3"),
        ("x / x", "1"),
        ("x^2 * y / (x * y^3)", "x / y^2"),
        ("1 / (1 / (1 / x))", "1 / x"),
        ("x / (y / z)", "x * z / y"),
        ("(x + y) * (x + y)", "(x + y)^2"),
        ("(2 * x + 2 * y) / (y + x)", "2"),
        ("x * (y + 1) - x * y", "x"),
        ("(x + 1)^2 - x^2", "2 * x + 1"),
        # numbers and signs
        ("2 * (3 * x)", "6 * x"),
        ("2 + 3 * x + 4", "3 * x + 6"),
        ("3 * (x - 2)", "3 * x - 6"),
        ("x - -2 * y", "x + 2 * y"),
        ("x + -2 * y", "x - 2 * y"),
        ("-(-x)", "x"),
        ("-(x - y)", "y - x"),
        ("-x - y", "-x - y"),
        ("1 / (1 - x)", "1 / (1 - x)"),
        ("0 * sin(x) + y", "y"),
        ("0.5 * (x + y)", "0.5 * (x + y)"),
        ("x * y + x * z", "x * (y + z)"),
        ("2 * x * y + 2 * x * z", "2 * x * (y + z)"),
        ("(6 - 4 * x) / (2 + 4 * y)", "(1.5 - x) / (y + 0.5)"),
        # roots and powers
        ("sqrt(x)^2", "x"),
        ("sqrt(x^2)", "abs(x)"),
        ("sqrt(x^4)", "x^2"),
        ("sqrt(4 * x)", "2 * sqrt(x)"),
        ("sqrt(2 * x)", "sqrt(2 * x)"),
        ("2 * sqrt(x / y)", "2 * sqrt(x / y)"),
        ("sqrt(x) * sqrt(y)", "sqrt(x * y)"),
        ("sqrt(x) * sqrt(x * y)", "x * sqrt(y)"),
        ("sqrt(-2 * x)", "sqrt(-2 * x)"),
        ("x * sqrt(x)", "x^1.5"),
        ("pow(x, 0.5)", "sqrt(x)"),
        ("pow(x, 1 / 3)^2", "x^(2 / 3)"),
        ("pow(x, 2.25) * pow(x, -0.25)", "x^2"),
        ("x^-2", "1 / x^2"),
        ("pow(2, x)", "2^x"),
        ("abs(-3 * x)", "3 * abs(x)"),
        ("abs(x)^2", "x^2"),
        ("abs(exp(x))", "exp(x)"),
        # exp, log and others
        ("exp(x) * exp(y)", "exp(x + y)"),
        ("exp(x) / exp(x)", "1"),
        ("exp(x)^2", "exp(2 * x)"),
        ("exp(log(x) + log(y))", "x * y"),
        ("exp(2.5 * log(x) - y)", "x^2.5 * exp(-y)"),
        ("log(exp(x))", "x"),
        ("log(x * exp(y))", "y + log(x)"),
        ("log(x^3)", "3 * log(x)"),
        ("log(x^2)", "log(x^2)"),
        ("sin(-x)", "-sin(x)"),
        ("cos(-x)", "cos(x)"),
        ("sin(y - x) + sin(y - x)", "2 * sin(y - x)"),
        ("tanh(x + 0) * inv(y)", "tanh(x) / y"),
        # what overflows stays
        ("1e200 * x * (1e200 * x)", "(1e+200 * x) * (1e+200 * x)"),
        ("exp(900 + x)", "exp(x + 900)"),
        ("x / (y - y)", "x / 0"),
    ],
)
def test_what_laws_look_like(given, want):
    expression = Expression.parse(given, ("x", "y", "z"))
    assert text(expression) == want
    X = RNG.uniform(0.2, 2, (20, 3))
    before, after = expression(X), canonical(expression)(X)
    defined = np.isfinite(before)
    np.testing.assert_allclose(after[defined], before[defined], rtol=1e-12, atol=1e-14)
    assert len(canonical(expression)) <= len(expression)


@pytest.mark.parametrize(
    ("formula", "tokens"),
    [
        ("2 + (3 + x)", 3),
        ("2 * (3 * x)", 3),
        ("2 + 3 * (4 + sin(x))", 6),
        ("x - 2 + 5", 3),
        ("x / 4 * 2", 3),
        ("exp(1 + 2) * x", 3),
        ("1 * x + 0", 1),
        ("2 - x", 3),
        ("log(0 - 1) * x", 6),
        ("2 * sqrt(3 * x) * (4 * x)", 6),
        ("(2 * x)^2 / (4 * sin(x))", 5),
        ("3 / (2 * x)", 3),
        ("x * (3 / (x * sin(x)))", 8),
        ("2 * exp(1 + x)", 4),
        ("2 + log(3 * x)", 4),
        ("2 * exp(3 + log(sqrt(x)^2))", 3),
        ("log(exp(x) * 2)", 3),
        ("x - -2 * sin(x)", 6),
        ("1e200 * x * (1e200 * x)", 7),
        ("(1e200 * x)^2", 4),
        ("exp(900 + x)", 4),
        ("sqrt(-2 * x)", 4),
        ("x / (0 * x)", 5),
        ("inv(2 - 2) * x", 4),
        ("2 / (0 * x)", 5),
    ],
)
def test_numbers_are_worked_out_and_gathered(formula, tokens):
    expression = Expression.parse(formula, ("x",))
    short = canonical(expression)
    X = RNG.uniform(-2, 2, (20, 1))
    before, after = expression(X), short(X)
    defined = np.isfinite(before)
    np.testing.assert_allclose(after[defined], before[defined], rtol=1e-12)
    assert len(short) <= tokens


def test_the_law_of_stopping_distances():
    given = "-0.0511185 * (-19.4096 * (reaction_time * speed) - speed^2 / friction)"
    expression = Expression.parse(given, ("speed", "reaction_time", "friction"))
    assert text(expression, digits=3) == "0.992 * reaction_time * speed + 0.0511 * speed^2 / friction"
    assert len(canonical(expression).constants) == 2


@settings(max_examples=50, deadline=None)
@given(st.permutations(["2.5 * x1", "x2 * x3", "sin(x1)", "x10", "-x2", "4"]))
def test_the_order_of_terms_does_not_depend_on_how_they_were_found(terms):
    columns = tuple(f"x{i + 1}" for i in range(10))
    given = " + ".join(f"({term})" for term in terms)
    assert text(Expression.parse(given, columns)) == "x2 * x3 + 2.5 * x1 - x2 + x10 + sin(x1) + 4"


def test_names_are_ordered_as_people_do():
    assert name_ranks(("x10", "x2", "b", "A")) == [3, 2, 1, 0]


def test_operators_of_ones_own_are_opaque():
    root = Operator("cube_root", 1, np.cbrt)
    wave = Operator("clip3", 3, lambda a, low, high: np.minimum(np.maximum(a, low), high))
    expression = Expression.parse(
        "2 * cube_root(x + x) * cube_root(2 * x) - clip3(y, -1, 1)", ("x", "y"), (root, wave)
    )
    assert text(expression) == "2 * cube_root(2 * x)^2 - clip3(y, -1, 1)"
    X = RNG.normal(size=(20, 2))
    np.testing.assert_allclose(canonical(expression)(X), expression(X), rtol=1e-12)
    assert Expression.parse(text(expression), ("x", "y"), (root, wave)).operators == (root, wave)


def test_constants_stay_free_and_numbers_of_the_design_stay_fixed():
    expression = Expression(Design.of("add", "mul", "2", "n2", "x1", "mul", ("const", 3.5), "x2"), ("a", "b"))
    short = canonical(expression)
    assert short.constants.tolist() == [3.5]
    assert "2" in short.design.tokens
