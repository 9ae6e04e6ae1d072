"""Units that a user declares: what is refused, and what the search for equations makes of them."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from discodso import DisCoRegressor
from discodso.base.errors import DeclarationError
from discodso.cli.main import app
from discodso.run.result import StopReason
from discodso.tasks.regression.declared_units import declared
from discodso.tasks.regression.equation_method import EquationMethod
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.laws import laws
from discodso.tasks.regression.unit_check import check

UNITS = {"v": "m/s", "t": "s", "h": "m", "n": "1", "y": "m"}
COLUMNS = ("v", "t", "h", "n")


def agrees(text, most=2, target="m"):
    units = declared({**UNITS, "y": target}, False, most, COLUMNS, "y")
    return units.agrees(Expression.parse(text, COLUMNS))


# ---------------------------------------------------------------------------------------- declaring


@pytest.mark.parametrize(
    ("units", "words"),
    [
        ({**UNITS, "speed": "m/s"}, "there is no column 'speed'"),
        ({**UNITS, "v": "meters"}, "v: 'meters': there is no unit"),
        ({"v": "m/s", "t": "s", "y": "m"}, "h, n have none"),
        ({"v": "m/s", "t": "s", "h": "m", "n": "1"}, "y has none"),
    ],
)
def test_what_is_wrong_with_units_is_said(units, words):
    with pytest.raises(DeclarationError, match=words):
        declared(units, False, 2, COLUMNS, "y")


def test_units_that_admit_no_law_are_refused():
    units = {**UNITS, "y": "kg"}
    with pytest.raises(DeclarationError, match=r"no product of powers .* y, kg, .*unit_constants=1"):
        declared(units, False, 0, COLUMNS, "y")
    assert declared(units, False, 1, COLUMNS, "y") is not None
    assert declared(UNITS, False, 0, COLUMNS, "y") is not None


def test_names_declare_units_if_asked():
    columns, target = ("speed [m/s]", "time (s)"), "way [m]"
    assert declared({}, False, 2, columns, target) is None
    found = declared({}, True, 2, columns, target)
    assert [str(own) for own in (*found.columns, found.target)] == ["m/s", "s", "m"]
    found = declared({"time (s)": "min", target: "1"}, True, 2, columns, target)
    assert str(found.target) == "1"
    with pytest.raises(DeclarationError, match="n has none"):
        declared({}, True, 2, ("speed [m/s]", "n"), target)


# ---------------------------------------------------------------------------------------- agreeing


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("3 * v * t", 0),
        ("sqrt(h * v * t) + 2 * h", 0),
        ("h * exp(n) + v * t / 3", 0),
        ("h * (2 + n)", 0),
        ("h * sin(2 * v * t / h)", 0),
        ("v * t + 4.9 * t**2", 1),
        ("h + 3", 1),
        ("h * exp(-2 * t)", 1),
        ("h * exp(-2 * t) + 3", 2),
        ("h / sqrt(1 - v**2 / 9)", 1),
        ("h / sqrt(1 - v**2 / 9) + 3 * n * v**2 / 7", 2),
        ("3 * t", 1),
        ("h**1.5 / sqrt(v * t)", 0),
    ],
)
def test_constants_with_units_are_counted(text, least):
    assert not agrees(text, least - 1)
    assert agrees(text, least)
    assert check(Expression.parse(text, COLUMNS), [UNITS[name] for name in COLUMNS], "m").consistent


@pytest.mark.parametrize("text", ["v + t", "sin(h)", "v * t * exp(t)", "h + h * v", "v**n", "h * t"])
def test_what_no_constant_can_mend_does_not_agree(text):
    assert not agrees(text)


@pytest.mark.parametrize("law", laws("feynman"), ids=lambda law: law.name)
def test_every_law_of_the_lectures_agrees_with_its_units(law):
    units = {variable.name: variable.unit for variable in law.variables} | {"target": law.target_unit}
    most = 3 if law.name == "II.36.38" else 2
    assert declared(units, False, most, law.columns, "target").agrees(law.truth)


# ---------------------------------------------------------------------------------------- searching


def table(rows=100, seed=0):
    rng = np.random.default_rng(seed)
    v, t, h, n = rng.uniform(0.5, 3, (4, rows))
    return np.column_stack((v, t, h, n)), v * t + 0.5 * h * np.exp(-n) + 0.02 * rng.standard_normal(rows)


def fitted(X, y, **more):
    given = {"column_names": COLUMNS, "units": UNITS, "budget": 3000, "random_state": 0, **more}
    return DisCoRegressor(**given).fit(X, y)


@pytest.mark.parametrize("most", [0, 2])
def test_only_equations_that_agree_are_on_the_front(most):
    X, y = table()
    model = fitted(X, y, unit_constants=most)
    units = declared(UNITS, False, most, COLUMNS, "y")
    assert len(model.front_points_) > 2
    for point in model.front_points_:
        assert len(point.expression) == 1 or units.agrees(point.expression), point.expression
    assert units.agrees(model.expression_)


def test_a_sum_with_inputs_of_two_units_is_found():
    rng = np.random.default_rng(1)
    X = rng.uniform(0.5, 3, (100, 6))
    a, b, c, s, t, _ = X.T
    y = a * s / t + 2 * np.sqrt(b * c)
    units = dict.fromkeys(("x1", "x2", "x3", "y"), "m") | dict.fromkeys(("x4", "x5", "x6"), "s")
    model = DisCoRegressor(budget=30_000, random_state=0, units=units, unit_constants=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-6)


def test_an_input_with_the_name_of_the_target_is_refused():
    with pytest.raises(DeclarationError, match="input and target are both called 'y'"):
        declared(UNITS, False, 2, (*COLUMNS, "y"), "y")


def test_a_constant_has_a_unit_where_the_law_needs_one():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3, (100, 2))
    y = 4 * X[:, 0] / np.sqrt(1 - X[:, 1] ** 2 / 16)
    units = {"x1": "kg", "x2": "m/s", "y": "kg"}
    model = DisCoRegressor(budget=60_000, random_state=0, units=units).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-6)
    assert declared(units, False, 1, ("x1", "x2"), "y").agrees(model.expression_)


@pytest.mark.parametrize("after", [2, 4])
def test_a_run_goes_on_bit_for_bit(tmp_path, monkeypatch, after):
    X, y = table()
    whole = fitted(X, y, budget=20_000)
    search, steps = EquationMethod.search, []

    def dies(self, room):
        steps.append(room)
        if len(steps) == after:
            raise KeyboardInterrupt
        return search(self, room)

    monkeypatch.setattr(EquationMethod, "search", dies)
    model = fitted(X, y, budget=20_000, out=tmp_path / "run")
    assert model.result_.stop is StopReason.INTERRUPTED
    monkeypatch.setattr(EquationMethod, "search", search)
    model.resume(X, y)
    assert (str(model), model.calls_) == (str(whole), whole.calls_)
    assert [row.best for row in model.result_.history] == [row.best for row in whole.result_.history]


def test_each_of_several_targets_has_its_unit():
    X, y = table(60)
    units = {**UNITS, "y1": "m", "y2": "m^2"}
    del units["y"]
    model = fitted(X, np.column_stack((y, y**2)), units=units, budget=500)
    for place, unit in enumerate(("m", "m^2")):
        own = declared({**UNITS, "y": unit}, False, 2, COLUMNS, "y")
        assert own.agrees(model.expression_[place])


def test_units_on_the_command_line(tmp_path):
    X, y = table(60)
    lines = ["v,t,h [m],n,y", *(",".join(map(repr, map(float, row))) for row in np.column_stack((X, y)))]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    arguments = ["fit", str(path), "--target", "y", "--budget", "500", "--units-in-names"]
    units = ["--unit", "v=m/s", "--unit", "t=s", "--unit", "n=1", "--unit", "y=m"]
    done = CliRunner().invoke(app, [*arguments, *units])
    assert done.exit_code == 0, done.output
    refused = CliRunner().invoke(app, [*arguments, "--unit", "v"])
    assert refused.exit_code != 0
    assert "COLUMN=UNIT" in str(refused.exception or "") + refused.output


def test_units_need_the_default_search():
    X, y = table(40)
    with pytest.raises(DeclarationError, match="units need the default search"):
        fitted(X, y, preset="paper")
