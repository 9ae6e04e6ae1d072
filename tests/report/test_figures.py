"""Plots: the files they write, and what notebooks show."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest
from control_trees import complete_tree
from spaces import mixed_sequence

from discodso import DeclarationError, Design, DisCoRegressor, RandomSettings, Task, search
from discodso.report import figures
from discodso.run import curves
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.typeset import mathml

TASK = Task(mixed_sequence(), lambda design: -float(len(design)) + sum(v or 0 for v in design.values))


@pytest.fixture(scope="module")
def result():
    return search(TASK, budget=500, method=RandomSettings(50))


@pytest.mark.parametrize(
    "name", ["plot_learning", "plot_rewards", "plot_lengths", "plot_tokens", "plot_values"]
)
@pytest.mark.parametrize(("ending", "begin"), [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_every_plot_in_every_format(tmp_path, result, name, ending, begin):
    path = tmp_path / f"plot.{ending}"
    getattr(result, name)(path)
    content = path.read_bytes()
    assert content.startswith(begin)
    getattr(result, name)().save(tmp_path / f"again.{ending}")
    assert (tmp_path / f"again.{ending}").read_bytes() == content


def test_another_format_is_refused(result):
    with pytest.raises(DeclarationError, match=r"\.svg, \.pdf or \.png"):
        result.plot_learning("plot.jpeg")


def test_names_are_text_not_formulas(result):
    lines = curves.Lines(np.array([1.0, 2.0]), ("$x^2$ & <b>🎉",), np.array([[1.0, 2.0]]))
    ElementTree.fromstring(figures.lines(lines, "y")._repr_svg_())


def test_no_window_and_no_state_of_pyplot(result):
    import matplotlib

    before = dict(matplotlib.rcParams)
    result.plot_values()._repr_svg_()
    assert dict(matplotlib.rcParams) == before


def test_the_plots_of_an_estimator(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3, (50, 1))
    model = DisCoRegressor(budget=500, random_state=0).fit(X, X[:, 0] ** 2)
    model.plot_front(tmp_path / "front.svg")
    model.plot_fit(X, X[:, 0] ** 2, tmp_path / "fit.png")
    assert (tmp_path / "front.svg").stat().st_size > 1000
    assert (tmp_path / "fit.png").stat().st_size > 1000


# ---------------------------------------------------------------------------------------------------- notebooks


def test_a_notebook_shows_designs_and_results_as_text_only(result):
    design = Design.of("<script>alert(1)</script>", ("v", 0.123456789))
    shown = design._repr_html_()
    assert "<script>" not in shown
    assert "0.12346" in shown
    whole = replace(result, detail="<img src=x onerror=alert(1)>")._repr_html_()
    assert "<img" not in whole
    assert "<svg" in whole
    assert whole.count("<tr>") == 6


def test_a_notebook_shows_the_tree():
    shown = complete_tree(2)._repr_svg_()
    assert ElementTree.fromstring(shown).tag.endswith("svg")
    assert re.search(r"0\.75", shown)


FORMULAS = [
    "2.5 * sin(x) + y**2 - -3 * x",
    "(x + y) * (x - y) / (x * y)**2",
    "exp(-x**2) * 1.5e-7",
    "x * -2 + y",
    "-(x + y) * -3",
    "-(-2.5)",
    "x - (y - 3)",
    "x - (-(y))",
    "(x / y)**2 / (x + 1) / y",
    "(-2 * x)**2 * y",
    "x / (y / (x + -2))",
    "sqrt(abs(x)) - log(y) * (x - y)",
    "x**y + exp(x * y)**2",
    "1 / (x + 1e7) - 2e-9 * x",
    "tanh(x) - (y + x * (y - -1))",
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_the_typeset_formula_means_the_same(formula):
    expression = Expression.parse(formula, ("x", "y"))
    again = Expression.parse(in_words(mathml(expression, digits=17)), ("x", "y"))
    points = np.random.default_rng(0).uniform(0.2, 3, (20, 2))
    np.testing.assert_allclose(again(points), expression(points), rtol=1e-12)
    assert ElementTree.fromstring(expression._repr_html_()).tag.endswith("math")


def in_words(node):
    """A formula in MathML as text: only what a reader sees counts."""
    tag, *children = node
    if tag in ("mi", "mn", "mo"):
        return {"−": "-", "⋅": "*", "×": "*"}.get(children[0], children[0])
    parts = [in_words(child) for child in children]
    if tag == "mfrac":
        return f"(({parts[0]})/({parts[1]}))"
    if tag == "msup":
        return f"exp({parts[1]})" if parts[0] == "e" else f"({parts[0]}**({parts[1]}))"
    if tag == "msqrt":
        return f"sqrt({parts[0]})"
    if len(parts) == 3 and parts[0] == parts[2] == "|":
        return f"abs({parts[1]})"
    assert tag == "mrow"
    return "".join(parts)  # no brackets but those that are shown


def test_names_are_typeset_as_text():
    expression = Expression(Design.of("mul", "x1", "x2"), ("<script>", "x_12"))
    assert "<script>" not in expression._repr_html_()
    assert ["msub", ["mi", "x"], ["mn", "12"]] in mathml(expression)
