"""equation.json: small, the same every time, and read with suspicion."""

from __future__ import annotations

import json

import numpy as np
import pytest

from discodso.tasks.regression.data import GivenData
from discodso.tasks.regression.equation_files import EQUATION, read_equation, write_equation
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.front import FrontPoint
from discodso.tasks.regression.models import FoundEquation


def found(rows=50_000, columns=20, text="2 * x15 + x3"):
    X = np.random.default_rng(0).normal(size=(rows, columns))
    names = tuple(f"x{i + 1}" for i in range(columns))
    chosen = Expression.parse(text, names)
    y = chosen(X) + 0.1 * X[:, 0]
    data = GivenData(X, y, np.ones(rows), names)
    return FoundEquation(chosen, [FrontPoint(chosen, chosen.complexity, 0.01)], 10, data, ())


def test_a_large_table_leaves_a_small_file(tmp_path):
    equation = found()
    write_equation(tmp_path, equation, 10)
    first = (tmp_path / EQUATION).read_bytes()
    assert len(first) < 100_000
    write_equation(tmp_path, equation, 10)
    assert (tmp_path / EQUATION).read_bytes() == first
    data = read_equation(tmp_path)
    plot = data["plot"]
    assert len(plot["given"]) == len(plot["predicted"]) == 400
    assert [own["name"] for own in plot["inputs"]][:3] == ["x3", "x15", "x1"]
    assert [own["used"] for own in plot["inputs"]] == [True, True] + 10 * [False]
    assert plot["given"] == sorted(plot["given"])
    assert plot["given"][0] == pytest.approx(equation.data.y.min(), rel=1e-6)
    assert plot["given"][-1] == pytest.approx(equation.data.y.max(), rel=1e-6)
    assert data["rmse"] == pytest.approx(0.1, rel=0.05)
    assert data["rows"] == 50_000


def test_what_is_kept_of_a_row_belongs_together(tmp_path):
    write_equation(tmp_path, found(rows=30, columns=2, text="2 * x1 + x2"), 10)
    plot = json.loads((tmp_path / EQUATION).read_text())["plot"]
    first, second = (np.array(own["values"]) for own in plot["inputs"])
    np.testing.assert_allclose(2 * first + second, plot["predicted"], atol=1e-5)


def test_a_single_input_has_a_curve(tmp_path):
    write_equation(tmp_path, found(rows=30, columns=1, text="1 / x1"), 10)
    plot = read_equation(tmp_path)["plot"]
    assert len(plot["curve"]["x"]) == 200


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("plot", "given"), [1]),
        (("plot", "inputs"), [{"name": "a"}]),
        (("plot", "inputs"), [{"name": 3, "values": []}]),
        (("plot", "inputs", 0, "values"), ["<b>"]),
        (("plot",), None),
        (("math",), "<math>"),
        (("front", 0), {}),
    ],
)
def test_other_things_are_not_read(tmp_path, place, value):
    write_equation(tmp_path, found(rows=30, columns=2, text="x1"), 10)
    data = inside = json.loads((tmp_path / EQUATION).read_text())
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    (tmp_path / EQUATION).write_text(json.dumps(data))
    assert read_equation(tmp_path) is None
