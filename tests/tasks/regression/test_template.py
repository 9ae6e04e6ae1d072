"""Templates: a known outer form whose unknown parts are searched for."""

from __future__ import annotations

import json

import numpy as np
import pytest

from discodso import DisCoRegressor
from discodso.base.errors import DeclarationError
from discodso.cli.main import main
from discodso.tasks.regression.export import text
from discodso.tasks.regression.expression import Expression, input_index
from discodso.tasks.regression.template import Template
from discodso.tasks.regression.template_method import TemplateMethod


def table(names, law, noise=0.0, rows=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.5, 4, (rows, len(names)))
    y = law(*X.T)
    return X, y + noise * y.std() * rng.standard_normal(rows)


def fitted(template, names, law, budget=40_000, noise=0.0, rows=120, **how):
    X, y = table(names, law, noise, rows)
    model = DisCoRegressor(budget=budget, template=template, column_names=names, random_state=0, **how)
    return model.fit(X, y), X, y


LAWS = [
    ("f(t) * exp(-k*t)", ("t",), lambda t: (1 + 2 * t**2) * np.exp(-0.7 * t)),
    ("f(t) * exp(-k*t)", ("t",), lambda t: 3 * np.cos(2 * t + 0.5) * np.exp(-0.7 * t)),
    ("a + f(t) / (b + t)", ("t",), lambda t: 2 + 3 * np.log(t) / (0.5 + t)),
    ("f(x1) + g(x2, x3) / x1", ("x1", "x2", "x3"), lambda a, b, c: np.sin(a) + b * c / a),
    ("exp(f(a)) / (1 + g(b))", ("a", "b"), lambda a, b: np.exp(-0.3 * a**2) / (1 + b**2)),
    ("sqrt(f(a)^2 + g(b)^2)", ("a", "b"), lambda a, b: np.sqrt(a**2 + 4 * np.sin(b) ** 2)),
    ("2.5 * f(`speed (m/s)`) - f(`speed (m/s)`)^2", ("speed (m/s)",), lambda v: 2.5 * v**1.5 - v**3),
]


@pytest.mark.parametrize(("template", "names", "law"), LAWS)
def test_parts_are_found_and_make_the_law(template, names, law):
    model, X, y = fitted(template, names, law)
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-7)
    parsed = Template.parse(template, names)
    assert set(model.parts_) == {*parsed.parts, *parsed.constants}
    functions = {name: part.design for name, part in model.parts_.items() if name in parsed.parts}
    for name, design in functions.items():
        used = {token for token in design.tokens if input_index(token) is not None}
        assert used <= set(parsed.parts[name])
    items = {
        name: [token if value is None else (token, value) for token, value in design]
        for name, design in functions.items()
    }
    whole = parsed.expression(items, {name: model.parts_[name] for name in parsed.constants})
    np.testing.assert_allclose(whole(X), model.predict(X), rtol=1e-9)


def test_the_example_of_the_docs():
    model, _, _ = fitted(*LAWS[0])
    assert str(model) == "2 * (t^2 + 0.5) * exp(-0.7 * t)"
    assert text(model.parts_["f"]) == "2 * t^2 + 1"
    assert model.parts_["k"] == pytest.approx(0.7)
    assert model.calls_ < 20_000  # nothing is left to find


def test_noise_does_not_make_the_parts_long():
    model, X, _ = fitted(
        "f(a) - g(b) * c", ("a", "b", "c"), lambda a, b, c: 1 / a - np.exp(-b) * c, noise=0.02
    )
    truth = 1 / X[:, 0] - np.exp(-X[:, 1]) * X[:, 2]
    assert np.mean((model.predict(X) - truth) ** 2) < 1e-3 * truth.var()
    assert len(model.expression_) < 20
    assert 30_000 < model.calls_ <= 40_000


@pytest.mark.parametrize("budget", [60, 500, 3000])
def test_the_budget_holds(budget):
    model, _, _ = fitted(*LAWS[3], budget=budget, noise=0.1)
    assert model.calls_ <= budget
    assert set(model.parts_) == {"f", "g"}


def test_all_rows_count_at_the_end():
    model, X, y = fitted("f(t) * exp(-k*t)", ("t",), LAWS[0][2], noise=0.05, rows=6000, budget=8000)
    assert model.score(X, y) > 0.99
    held, X, y = fitted(
        "f(t) * exp(-k*t)", ("t",), LAWS[0][2], noise=0.05, selection="validation", budget=8000
    )
    assert held.score(X, y) > 0.99
    assert held.equations_["validation_loss"].notna().all()


def test_a_folder_goes_on_bit_for_bit(tmp_path, monkeypatch):
    whole, X, y = fitted(*LAWS[4], noise=0.1, budget=20_000)
    search, steps = TemplateMethod.search, []

    def dies(self, room):
        steps.append(room)
        if len(steps) == 4:
            raise KeyboardInterrupt
        return search(self, room)

    monkeypatch.setattr(TemplateMethod, "search", dies)
    model = DisCoRegressor(
        budget=20_000, template=LAWS[4][0], column_names=LAWS[4][1], random_state=0, out=tmp_path / "run"
    )
    model.fit(X, y)
    monkeypatch.setattr(TemplateMethod, "search", search)
    model.resume(X, y)
    assert str(model) == str(whole)
    assert model.calls_ == whole.calls_
    assert [row.best for row in model.result_.history] == [row.best for row in whole.result_.history]


def test_scales_far_from_one():
    model, X, y = fitted("f(t) * exp(-k*t)", ("t",), lambda t: t**2 * np.exp(-0.7 * t), budget=20_000)
    assert model.score(X, y) > 1 - 1e-12
    far = DisCoRegressor(budget=20_000, template="f(t) * exp(-k*t)", column_names=("t",), random_state=0)
    assert far.fit(1e-9 * X, 1e20 * y).score(1e-9 * X, 1e20 * y) > 1 - 1e-9


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("t * exp(-k*t)", "must have an unknown function, such as f\\(t\\)"),
        ("f(2*t)", "f\\(...\\) must have inputs between its parentheses"),
        ("f()", "must have inputs"),
        ("f(u)", "no column 'u'"),
        ("f(t) - f(t, s)", "f stands with different inputs"),
        ("f(t", "not a formula"),
        ("f(t) + exp(t, t)", "no function 'exp' of 2 arguments"),
    ],
)
def test_templates_that_cannot_be_are_refused(template, words):
    X, y = table(("t", "s"), lambda t, s: t)
    with pytest.raises(DeclarationError, match=words):
        DisCoRegressor(template=template, column_names=("t", "s"), budget=300).fit(X, y)


@pytest.mark.parametrize(
    "how", [{"loss": "mae"}, {"guesses": ("t",)}, {"preset": "paper"}, {"polish": False}]
)
def test_templates_need_the_compiled_search(how):
    X, y = table(("t",), lambda t: t)
    with pytest.raises(DeclarationError, match="template needs the default method"):
        DisCoRegressor(template="f(t) * t", column_names=("t",), budget=300, **how).fit(X, y)


def test_the_command_line_tells_the_parts(tmp_path, capsys):
    path = tmp_path / "decay.csv"
    t = np.linspace(0.2, 4, 40)
    rows = zip(t.tolist(), (3 * t * np.exp(-0.5 * t)).tolist(), strict=True)
    path.write_text("t,y\n" + "".join(f"{a},{b}\n" for a, b in rows))
    words = ["fit", str(path), "--target", "y", "--budget", "8000", "--template", "f(t) * exp(-k*t)"]
    for more in (["--json"], []):
        with pytest.raises(SystemExit) as ended:
            main([*words, *more])
        assert ended.value.code == 0
    shown = capsys.readouterr().out.splitlines()
    found = json.loads(shown[0])
    assert found["parts"]["f"] == "3 * t"
    assert found["parts"]["k"] == pytest.approx(0.5)
    assert "f = 3 * t" in shown
    assert "k = 0.5" in shown


def test_a_model_without_a_template_has_no_parts():
    X, y = table(("t",), lambda t: t)
    assert DisCoRegressor(budget=300, random_state=0).fit(X, y).parts_ == {}
    several = DisCoRegressor(budget=2000, template="f(t) * t", column_names=("t",), random_state=0)
    several.fit(X, np.column_stack((y, y**2)))
    assert [set(parts) for parts in several.parts_] == [{"f"}, {"f"}]


def test_the_form_is_read_as_an_expression_would_be():
    template = Template.parse("f(x, y) * sin(2 * x) - k", ("x", "y"))
    assert template.parts == {"f": ("x1", "x2")}
    assert template.constants == ("k",)
    found = template.expression({"f": ["add", "x1", "x2"]}, {"k": 3.0})
    wanted = Expression.parse("(x + y) * sin(2 * x) - 3", ("x", "y"))
    X = np.random.default_rng(0).uniform(0, 1, (5, 2))
    np.testing.assert_allclose(found(X), wanted(X))
