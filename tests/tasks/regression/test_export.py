"""Exports: what other languages compute is what the expression computes."""

from __future__ import annotations

import ctypes
import json
import re
import subprocess

import numpy as np
import pytest
import torch
from expressions import drawn, tame_values
from hypothesis import given, settings
from hypothesis import strategies as st

from discodso import Design
from discodso.base.errors import DeclarationError, DiscodsoError
from discodso.tasks.regression import export
from discodso.tasks.regression.canonical import canonical
from discodso.tasks.regression.export.source import identifiers
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.operators import Operator

COLUMNS = ("speed (m/s)", "def", "x2")
LAW = "4 * pi / 3 * x1^3 - abs(x2) * exp(-`x2` / 2) / sqrt(x1) + 0.25 * pow(x1, 1.7) * log(`x2`) + tan(x1)"


def example():
    return Expression.parse(LAW.replace("`x2`", "x3"), ("a", "b", "c"))


def named(expression):
    return Expression(expression.design, COLUMNS)


def by_python(expression, X):
    names: dict = {}
    exec(export.python_source(expression), names)  # our own text
    return np.array([names["predict"](*row) for row in X.tolist()], dtype=float)


def by_jax_source(expression, X):
    names: dict = {}
    exec(export.jax_source(expression, namespace="numpy"), names)  # our own text
    return names["predict"](X, names["PARAMS"])


def by_torch(expression, X):
    return export.torch_function(expression)(*map(torch.from_numpy, X.T.copy())).numpy()


def by_onnx(expression, X):
    runtime = pytest.importorskip("onnxruntime")
    return runtime.InferenceSession(export.onnx_model(expression)).run(["y"], {"X": X})[0]


FUNCTIONS = {name: getattr(np, name) for name in "sin cos tan tanh exp log sqrt abs".split()}
FUNCTIONS |= {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan}


def by_julia_translated(expression, X):
    head, body = export.julia_source(expression).splitlines()[-1].split(" = @. ")
    arguments = re.fullmatch(r"predict\((.*)\)", head)[1].split(", ")
    names = dict(zip(arguments, X.T, strict=True))
    return eval(body.replace("^", "**"), {**FUNCTIONS, "pi": np.pi}, names) + 0 * X[:, 0]


def by_matlab_translated(expression, X):
    body = re.search(r"^y = (.*);$", export.matlab_source(expression), re.MULTILINE)[1]
    assert not re.search(r"(?<!\.)[*/^]", body)  # elementwise, all of them
    body = re.sub(r"x\(:, (\d+)\)", lambda match: f"X[:, {int(match[1]) - 1}]", body)
    body = body.replace("zeros(size(x, 1), 1)", "0 * X[:, 0]")
    for sign, python in ((".*", "*"), ("./", "/"), (".^", "**")):
        body = body.replace(sign, python)
    return eval(body, {**FUNCTIONS, "pi": np.pi, "X": X})


def by_excel_translated(expression, X):
    formula = export.excel_formula(expression)
    assert formula[0] == "="
    # A sign in front binds more tightly than a power.
    assert not re.search(r"(?:^=|[(,])-[\w.]+\^", formula)
    functions = {name.upper(): function for name, function in FUNCTIONS.items() if name != "log"}
    names = {"LN": np.log, "PI": lambda: np.pi, **functions}
    return (
        eval(formula[1:].replace("^", "**"), names, dict(zip(("A2", "B2", "C2"), X.T, strict=True)))
        + 0 * X[:, 0]
    )


WAYS = [
    by_python,
    by_jax_source,
    by_torch,
    by_onnx,
    by_julia_translated,
    by_matlab_translated,
    by_excel_translated,
]


@pytest.mark.parametrize("way", WAYS)
def test_a_law_in_every_language(way):
    expression = named(example())
    X = np.random.default_rng(0).uniform(0.2, 1.4, (30, 3))
    np.testing.assert_allclose(way(expression, X), expression(X), rtol=1e-12)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("design", [Design.of(("const", 2.5)), Design.of("neg", "n2", "x2"), Design.of("x1")])
def test_short_expressions_in_every_language(way, design):
    X = np.random.default_rng(0).normal(size=(4, 3))
    expression = Expression(design, COLUMNS)
    np.testing.assert_allclose(np.broadcast_to(way(expression, X), 4), expression(X), rtol=1e-14)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_random_expressions_in_every_language(way, seed):
    expression, rng = named(drawn(seed)), np.random.default_rng(seed)
    X = rng.uniform(0.1, 3, (20, 3))
    want, sure = tame_values(expression, X, rng)
    if not sure.any():
        return
    if way is by_onnx and {"asin", "acos", "atan"} & set(canonical(expression).design.tokens):
        with pytest.raises(DiscodsoError, match="double precision"):
            way(expression, X)
        return
    with np.errstate(all="ignore"):
        found = way(expression, X)
    np.testing.assert_allclose(found[sure], want[sure], rtol=1e-5, atol=1e-7)


def test_c_code_compiles_and_agrees(tmp_path):
    expressions = [named(drawn(seed)) for seed in range(60)]
    files = []
    for i, expression in enumerate(expressions):
        files.append(str(tmp_path / f"f{i}.c"))
        (tmp_path / f"f{i}.c").write_text(export.c_source(expression, f"f{i}"))
    library = tmp_path / "f.so"
    command = ["gcc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", *files, "-o", str(library), "-lm"]
    subprocess.run(command, check=True, capture_output=True)
    loaded = ctypes.CDLL(str(library))
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (40, 3))
    compared = 0
    for i, expression in enumerate(expressions):
        function = getattr(loaded, f"f{i}")
        function.restype, function.argtypes = ctypes.c_double, [ctypes.POINTER(ctypes.c_double)]
        got = np.array([function((ctypes.c_double * 3)(*row)) for row in X.tolist()])
        want, sure = tame_values(expression, X, rng)
        np.testing.assert_allclose(got[sure], want[sure], rtol=1e-5, atol=1e-7)
        compared += sure.sum()
    assert compared > 500


def test_what_the_source_looks_like():
    expression = Expression.parse("0.123456789012345 * `m (kg)` * v^2 / pow(r, 1 / 3)", ("m (kg)", "v", "r"))
    assert "return 0.123456789012345 * m__kg_ * v**2 / math.pow(r, 1.0 / 3.0)" in export.python_source(
        expression
    )
    assert "0.123456789012345 * x[0] * pow(x[1], 2.0) / pow(x[2], 1.0 / 3.0)" in export.c_source(expression)
    assert export.excel_formula(expression, row=5) == "=0.123456789012345*A5*B5^2/C5^(1/3)"
    assert export.excel_sheet(expression).splitlines()[:3] == ["A2\tm (kg)", "B2\tv", "C2\tr"]
    assert "y = 0.123456789012345 .* x(:, 1) .* x(:, 2).^2 ./ x(:, 3).^(1.0 ./ 3.0);" in export.matlab_source(
        expression
    )
    assert "@. 0.123456789012345 * m__kg_ * v^2 / r^(1.0 / 3.0)" in export.julia_source(expression)
    source = export.jax_source(expression)
    assert source.startswith("import jax.numpy as np\n\nPARAMS = [0.123456789012345]\n")
    assert (
        "return params[0] * x[..., 0] * np.power(x[..., 1], 2.0) / np.power(x[..., 2], 1.0 / 3.0)" in source
    )


def test_columns_of_excel_go_on_after_z():
    columns = tuple(f"c{i}" for i in range(60))
    expression = Expression(Design.of("add", "x26", "add", "x27", "x53"), columns)
    assert export.excel_formula(expression) == "=Z2+AA2+BA2"


def test_an_onnx_model_knows_its_columns():
    onnx = pytest.importorskip("onnx")
    model = onnx.load_model_from_string(export.onnx_model(named(example())))
    notes = {entry.key: entry.value for entry in model.metadata_props}
    assert json.loads(notes["columns"]) == list(COLUMNS)


def test_operators_of_ones_own_are_called_by_name_or_refused():
    root = Operator("cube_root", 1, np.cbrt)
    expression = Expression(Design.of("cube_root", "x1"), ("a",), (root,))
    for way in (
        export.python_source,
        export.c_source,
        export.julia_source,
        export.matlab_source,
        export.jax_source,
    ):
        assert "cube_root(" in way(expression)
    for refused in (export.torch_function, export.onnx_model):
        with pytest.raises(DeclarationError, match="your own"):
            refused(expression)


def test_names_that_would_break_out_of_the_source_are_made_harmless():
    names = ("a */ b", 'q"""', "def", "1st", "a b", "a_b", "line\nbreak", "a b")
    expression = Expression(Design.of("add", "x1", "add", "x5", "add", "x6", "x8"), names)
    compile(export.python_source(expression), "generated", "exec")
    compile(export.jax_source(expression), "generated", "exec")
    assert export.c_source(expression).count("*/") == 1
    assert len(export.julia_source(expression).splitlines()) == 3
    assert len(export.matlab_source(expression).splitlines()) == 5
    assert len(set(identifiers(names))) == len(names)
    assert export.excel_formula(expression) in ("=A2+E2+F2+H2", "=A2+E2+H2+F2")


def test_every_format_by_its_name():
    expression = Expression.parse("2 * x1 + sin(x2)", ("x1", "x2"))
    texts = {"text", "latex", "mathml", "python", "c", "jax", "julia", "matlab", "excel"}
    assert set(export.FORMATS) == texts | {"sympy", "numpy", "torch", "onnx"}
    for form in texts:
        assert isinstance(export.export(expression, form), str)
    assert export.export(expression, "text") == "2 * x1 + sin(x2)"
    assert export.export(expression, "numpy")(1.5, 0.0) == 3
    with pytest.raises(DeclarationError, match="form"):
        export.export(expression, "fortran")
