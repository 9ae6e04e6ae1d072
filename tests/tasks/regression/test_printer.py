"""Text, LaTeX and tables: what is printed is read back, whatever columns are called."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discodso import Design, InvalidDesignError
from discodso.tasks.regression.canonical import canonical
from discodso.tasks.regression.export import latex, latex_table, python_source, text, to_sympy
from discodso.tasks.regression.export.latex_form import latex_name
from discodso.tasks.regression.export.text_form import quoted
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.typeset import mathml

X = np.random.default_rng(0).uniform(0.2, 2, (20, 2))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("speed", "speed"),
        ("speed (m/s)", "`speed (m/s)`"),
        ("a b", "`a b`"),
        ("a+b", "`a+b`"),
        ("sin", "`sin`"),
        ("n2", "`n2`"),
        ("pi", "`pi`"),
        ("lambda", "`lambda`"),
        ("None", "`None`"),
        ("1st", "`1st`"),
        ("", "``"),
        ("a`b", "`a``b`"),
        ("µ", "`µ`"),  # Python reads it as another letter
        ("x2", "x2"),
    ],
)
def test_names_that_could_be_misread_are_quoted(name, shown):
    assert quoted(name) == shown
    if name:
        expression = Expression(Design.of("add", "n2", "x1", "sin", "x2"), (name, "other"))
        again = Expression.parse(text(expression), expression.columns)
        assert again.design == expression.design


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=8), min_size=2, max_size=2, unique=True))
def test_any_names_are_read_back(names):
    expression = Expression(Design.of("sub", "n3", "x1", "mul", ("const", 2.5), "x2"), tuple(names))
    again = Expression.parse(text(expression), tuple(names))
    np.testing.assert_allclose(again(X), expression(X))


def test_a_quoted_name_must_be_a_column():
    with pytest.raises(InvalidDesignError, match="no column 'x1'"):
        Expression.parse("`x1` + a", ("a",))
    with pytest.raises(InvalidDesignError):
        Expression.parse("`a + a", ("a",))


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("6.283185307179586 * x", "2 * pi * x"),
        ("0.3333333333333333 * x", "x / 3"),
        ("4.1887902047863905 * x^3", "4 * pi * x^3 / 3"),
        ("x / 12.566370614359172 / y", "x / (4 * pi * y)"),
        ("0.15915494309189535", "1 / (2 * pi)"),
        ("0.5 * x", "0.5 * x"),
        ("3.1416 * x", "3.1416 * x"),
        ("123456789 * x", "1.23457e+08 * x"),
    ],
)
def test_known_numbers_are_written_as_such(given, shown):
    expression = Expression.parse(given, ("x", "y"))
    assert text(expression) == shown
    np.testing.assert_allclose(Expression.parse(shown, ("x", "y"))(X), expression(X), rtol=1e-5)


def test_a_column_called_pi_is_that_column():
    expression = Expression.parse("6.283185307179586 * pi", ("pi",))
    assert text(expression) == "6.28319 * `pi`"
    assert Expression.parse("pi", ("pi",)).design.tokens == ("x1",)


def test_latex():
    columns = ("x1", "speed (m/s)", "alpha", "reaction_time", "q")
    expression = Expression.parse(
        "0.5 * x1 * alpha^2 / sqrt(q) - 1.5e-7 * exp(-`speed (m/s)`) * abs(reaction_time)", columns
    )
    assert latex(expression) == (
        r"0.5 \, \frac{\alpha^{2} \, x_{1}}{\sqrt{q}} - "
        r"1.5 \cdot 10^{-7} \, \left|\mathrm{reaction\_time}\right| \, e^{-\text{speed (m/s)}}"
    )
    assert latex(Expression.parse("2 * pi * (q + 1)^2.5 / 3", ("q",))) == (
        r"2 \, \pi \, \frac{\left(q + 1\right)^{2.5}}{3}"
    )
    assert latex_name("50% {x}_\\") == r"\text{50\% \{x\}\_\textbackslash{}}"


def test_a_front_as_a_table():
    columns = ("x", "y")
    found = [Expression.parse(given, columns) for given in ("2.34567 * x", "2 * x + sin(y)")]
    table = latex_table([(3, 0.0123456, found[0]), (6, 1.5e-9, found[1])], "y_1", chosen=found[1])
    assert table.splitlines() == [
        r"\begin{tabular}{rrl}",
        r"\toprule",
        r"complexity & loss & equation \\",
        r"\midrule",
        r"3 & $0.01235$ & $y_{1} = 2.346 \, x$ \\",
        r"6 & $1.5 \cdot 10^{-9}$ & $y_{1} = 2 \, x + \sin\left(y\right)$ $\star$ \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_brackets_of_latex_are_balanced():
    expression = Expression.parse("(x + y)^3 / exp(x * (y - 1)) + log(abs(x) / (x + 2))", ("x", "y"))
    shown = latex(expression)
    assert shown.count("{") == shown.count("}")
    assert len(re.findall(r"\\left", shown)) == len(re.findall(r"\\right", shown))


def test_sympy_gets_the_canonical_form():
    assert str(to_sympy(Expression.parse("x * x + x * x - 3", ("x",)))) == "2*x**2 - 3"


def test_what_is_nested_too_deeply_is_shown_as_it_is():
    deep = Expression(Design.of(*["sin"] * 3000, "x1"), ("a",))
    assert canonical(deep) is deep
    assert text(deep) == str(deep.design)
    assert latex(deep).startswith(r"\text{")
    assert mathml(deep)[0] == "mtext"
    with pytest.raises(InvalidDesignError, match="deeply"):
        python_source(deep)


def test_a_value_must_be_a_number():
    with pytest.raises(InvalidDesignError, match="must be a number"):
        Expression(Design(("const",), ({"a": 1.0, "b": 2.0},)), ("a",))
