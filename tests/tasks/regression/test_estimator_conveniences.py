"""DisCoRegressor beside the search: fronts, notebooks, files, several targets."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discodso import DisCoRegressor
from discodso.base.errors import DeclarationError
from discodso.base.files import FileError
from discodso.tasks.regression.operators import OPERATORS, Operator

RNG = np.random.default_rng(0)
X = pandas.DataFrame(RNG.uniform(0.5, 3, (60, 2)), columns=["speed", "mass"])
Y = pandas.DataFrame({"energy": 0.5 * X["mass"] * X["speed"] ** 2, "momentum": X["mass"] * X["speed"]})
SMALL = DisCoRegressor(budget=1500, random_state=0)


@pytest.fixture(scope="module")
def one():
    return clone(SMALL).fit(X, Y["energy"] + 0.1 * RNG.normal(size=60))


@pytest.fixture(scope="module")
def several():
    return clone(SMALL).fit(X, Y)


def test_an_equation_of_the_front_predicts(one):
    frame = one.equations_
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) > 2
    for index, point in enumerate(one.front_points_):
        np.testing.assert_array_equal(one.predict(X, index=index), point.expression(X.to_numpy()))
    np.testing.assert_array_equal(one.predict(X, index=-1), one.predict(X, index=len(frame) - 1))
    np.testing.assert_array_equal(one.predict(X, int(np.argmax(frame["chosen"]))), one.predict(X))
    for index in (len(frame), -len(frame) - 1, 1.5, True):
        with pytest.raises(DeclarationError, match="index must be"):
            one.predict(X, index=index)


def test_a_notebook_shows_equation_and_front(one, several):
    html = one._repr_html_()
    assert html.count("<math") == len(one.front_points_) + 1
    assert "energy" in html
    assert one._repr_latex_().startswith(r"$$\mathrm{energy} = ")
    assert set(one._repr_mimebundle_()) == {"text/plain", "text/html", "text/latex"}
    assert several._repr_latex_().count("=") == 2
    assert several._repr_html_().count("<details>") == 2
    fresh = clone(SMALL)
    assert fresh._repr_latex_() is None
    assert "DisCoRegressor" in fresh._repr_html_()
    assert set(fresh._repr_mimebundle_()) == {"text/plain", "text/html"}
    assert "DisCoRegressor" in make_pipeline(StandardScaler(), fresh)._repr_html_()


def test_names_are_text_in_html_and_latex():
    y = pandas.Series(X["speed"] * 2, name="<script>_50%")
    model = DisCoRegressor(budget=300, random_state=0).fit(X, y)
    assert "<script>" not in model._repr_html_()
    assert r"\text{<script>\_50\%}" in model.latex_table()


def test_the_front_as_a_table_for_a_paper(one):
    table = one.latex_table()
    lines = table.splitlines()
    assert lines[:2] == [r"\begin{tabular}{rrl}", r"\toprule"]
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]
    assert len(lines) == len(one.front_points_) + 6
    assert table.count(r"\textbf{") == 1
    assert all(line.endswith(r"\\") and line.count(" & ") == 2 for line in lines[4:-2])
    assert not re.search(r"\de[+-]?\d", table)


# ------------------------------------------------------------------------------------------ several targets


def test_several_targets_have_an_equation_each(several):
    assert several.target_names_ == ("energy", "momentum")
    assert [len(own) for own in (several.models_, several.expression_, several.result_)] == [2, 2, 2]
    assert several.predict(X).shape == (60, 2)
    assert several.score(X, Y) > 0.99
    for place, model in enumerate(several.models_):
        np.testing.assert_array_equal(several.predict(X)[:, place], model.predict(X))
    lines = str(several).splitlines()
    assert [line.split(" = ")[0] for line in lines] == ["energy", "momentum"]
    assert len(several.latex()) == len(several.export("c")) == len(several.sympy()) == 2
    assert set(several.equations_["target"]) == {"energy", "momentum"}
    assert several.calls_ <= 3000
    for what in (several.plot_front, several.latex_table, lambda: several.predict(X, 0)):
        with pytest.raises(DeclarationError, match="needs one target, but there are energy, momentum"):
            what()


def test_each_target_is_searched_as_if_it_were_alone(several):
    alone = clone(SMALL).fit(X, Y["momentum"])
    assert alone.expression_ == several.models_[1].expression_
    assert alone.target_names_ == ("momentum",)


def test_a_model_changes_between_one_and_several(tmp_path):
    model = DisCoRegressor(budget=300, random_state=0, warm_start=True, out=tmp_path / "runs")
    model.fit(X.to_numpy(), Y.to_numpy())
    assert model.target_names_ == ("y1", "y2")
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"target-1", "target-2"}
    ending = json.loads((tmp_path / "runs" / "target-2" / "equation.json").read_text())
    assert ending["target"] == "y2"
    model.set_params(budget=600).resume(X.to_numpy(), Y.to_numpy())
    assert 600 < model.calls_ <= 1200
    model.set_params(out=None).fit(X.to_numpy(), Y.to_numpy())  # begins with what it has
    assert model.models_[0].result_.history[0].calls > 0
    model.fit(X, Y["energy"])
    assert model.predict(X).shape == (60,)
    assert not hasattr(model, "models_")


# ------------------------------------------------------------------------------------------ files


def test_a_saved_model_is_the_same(one, several, tmp_path):
    for model in (one, several):
        path = tmp_path / "model.json"
        model.save(path)
        again = DisCoRegressor.load(path)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert str(again) == str(model)
        assert again.get_params() == model.get_params()
        assert again.front_rows_ == model.front_rows_
        assert again.target_names_ == model.target_names_
        assert again._repr_html_() == model._repr_html_()
        assert list(again.feature_names_in_) == ["speed", "mass"]
        with pytest.raises(ValueError, match="feature"):
            again.predict(X[["speed"]])
        first = path.read_bytes()
        again.save(path)
        assert path.read_bytes() == first
        clone(again)
    np.testing.assert_array_equal(DisCoRegressor.load(path).models_[1].predict(X), several.predict(X)[:, 1])
    assert [file.name for file in tmp_path.iterdir()] == ["model.json"]


def test_parameters_that_json_can_hold_are_kept(tmp_path):
    model = DisCoRegressor(
        budget=np.int64(300),
        operators=("add", OPERATORS["mul"], "const"),
        const_range=(-math.inf, 5.0),
        loss=lambda y, p, w: float(np.abs(y - p).max()),
        random_state=np.random.RandomState(0),
        column_names=("a", "b"),
        out=tmp_path / "run",
    ).fit(X.to_numpy(), Y["energy"])
    model.save(tmp_path / "model.json")
    again = DisCoRegressor.load(tmp_path / "model.json")
    assert again.budget == 300
    assert again.operators == ("add", "mul", "const")
    assert again.const_range == (-math.inf, 5.0)
    assert again.loss == "nmse"
    assert again.random_state is None
    assert again.out is None
    np.testing.assert_array_equal(again.predict(X.to_numpy()), model.predict(X.to_numpy()))


def test_what_cannot_be_saved_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        clone(SMALL).save(tmp_path / "model.json")
    own = DisCoRegressor(budget=300, operators=("add", Operator("cbrt", 1, np.cbrt), "const"), random_state=0)
    with pytest.raises(DeclarationError, match=r"operators of one's own \(cbrt\) cannot be saved"):
        own.fit(X, Y["energy"]).save(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


def change(data, *keys, to):
    for key in keys[:-1]:
        data = data[key]
    if to is None:
        del data[keys[-1]]
    else:
        data[keys[-1]] = to


@pytest.mark.parametrize(
    ("keys", "to"),
    [
        (("format",), "other"),
        (("version",), 2),
        (("models",), []),
        (("models",), None),
        (("models", 0, "expression"), {"tokens": ["__import__"], "values": [None]}),
        (("models", 0, "expression"), {"tokens": ["add"], "values": [None]}),
        (("models", 0, "expression"), {"tokens": ["const"], "values": [{"a": 1.0}]}),
        (("models", 0, "columns"), ["speed"]),
        (("models", 0, "columns"), "speed"),
        (("models", 0, "front", 0, "loss"), "low"),
        (("models", 0, "front"), 7),
        (("parameters", "hack"), 1),
        (("parameters",), [1]),
        (("feature_names",), ["a"]),
    ],
)
def test_damaged_files_are_refused_in_a_line(one, tmp_path, keys, to):
    path = tmp_path / "model.json"
    one.save(path)
    data = json.loads(path.read_text())
    change(data, *keys, to=to)
    path.write_text(json.dumps(data))
    with pytest.raises(FileError) as caught:
        DisCoRegressor.load(path)
    assert "\n" not in str(caught.value)
    assert "model.json" in str(caught.value)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(FileError, match="there is no file"):
        DisCoRegressor.load(tmp_path / "nothing.json")
    (tmp_path / "other.json").write_text("[1]")
    with pytest.raises(FileError, match="no model that"):
        DisCoRegressor.load(tmp_path / "other.json")


def test_mappings_are_saved_too(tmp_path):
    given = {"operators": {"add": 1, "mul": 2, "sin": 4, "const": 1}}
    model = DisCoRegressor(budget=300, random_state=0, **given).fit(X, Y["energy"])
    model.save(tmp_path / "model.json")
    assert DisCoRegressor.load(tmp_path / "model.json").get_params().items() >= given.items()
