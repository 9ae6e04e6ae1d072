"""Exports in their languages, where these are: JAX, MATLAB's by Octave, spreadsheets by LibreOffice, Julia."""

from __future__ import annotations

import csv
import shutil
import subprocess

import numpy as np
import pytest
from expressions import drawn, tame_values

from discodso import Design
from discodso.tasks.regression import export
from discodso.tasks.regression.expression import Expression

COLUMNS = ("speed (m/s)", "def", "x2")
X = np.random.default_rng(0).uniform(-2, 2, (40, 3))
SHORT = [
    Expression(design, COLUMNS)
    for design in (Design.of(("const", 2.5)), Design.of("neg", "n2", "x2"), Design.of("x1"))
]
RANDOM = [Expression(drawn(seed).design, COLUMNS) for seed in range(60)]
DEFINED = [own for own in RANDOM if tame_values(own, X, np.random.default_rng(1))[1].any()]
EXPRESSIONS = [*SHORT, *DEFINED]


def program(name):
    found = shutil.which(name)
    return found or pytest.skip(f"{name} is not there")


def compare(found):
    """Values[expressions, rows] with those of the expressions, where these are sure."""
    compared, rng = 0, np.random.default_rng(1)
    for expression, values in zip(EXPRESSIONS, found, strict=True):
        want, sure = tame_values(expression, X, rng)
        np.testing.assert_allclose(np.asarray(values)[sure], want[sure], rtol=1e-5, atol=1e-7)
        compared += sure.sum()
    assert compared > 500


def test_matlab_by_octave(tmp_path):
    octave = program("octave-cli")
    np.savetxt(tmp_path / "x.txt", X, fmt="%.17g")
    lines = ["x = load('x.txt');"]
    for i, expression in enumerate(EXPRESSIONS):
        (tmp_path / f"f{i}.m").write_text(export.matlab_source(expression, f"f{i}"))
        # Complex where the formula is undefined.
        lines += [f"y = f{i}(x); y(imag(y) != 0) = NaN; y = real(y);", r'printf("%.17g ", y); printf("\n");']
    (tmp_path / "all.m").write_text("\n".join(lines) + "\n")
    command = [octave, "--no-gui", "--quiet", "--no-init-file", "all.m"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    compare([[float(word) for word in line.split()] for line in done.stdout.splitlines()])


def test_jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    found = []
    for expression in EXPRESSIONS:
        names: dict = {}
        exec(export.jax_source(expression), names)  # our own text
        parameters = jax.numpy.array(names["PARAMS"])
        found.append(jax.jit(names["predict"])(jax.numpy.array(X), parameters))
    compare(found)
    expression = Expression.parse("2.5 * exp(-0.3 * x1) + x2", ("x1", "x2"))
    names = {}
    exec(export.jax_source(expression), names)  # our own text
    parameters = jax.numpy.array(names["PARAMS"])
    slopes = jax.jacobian(names["predict"], argnums=1)(jax.numpy.array(X[:, :2]), parameters)
    assert slopes.shape == (40, 2)
    assert np.isfinite(slopes).all()


def test_a_spreadsheet_by_libreoffice(tmp_path):
    office = program("soffice")
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for place, row in enumerate(X.tolist()):
        formulas = [export.excel_formula(expression, place + 2) for expression in EXPRESSIONS]
        for column, value in enumerate([*row, *formulas]):
            book.active.cell(place + 2, column + 1, value)
    book.save(tmp_path / "sheet.xlsx")
    # The third filter option but one asks for numbers as they are, not as they are shown.
    how = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,false"
    command = [office, "--headless", f"-env:UserInstallation=file://{tmp_path}/profile", "--convert-to", how]
    subprocess.run([*command, "sheet.xlsx"], cwd=tmp_path, capture_output=True, timeout=300, check=True)
    with (tmp_path / "sheet.csv").open() as file:
        rows = [row[3:] for row in csv.reader(file)][1:]
    table = [[float(cell) if cell[:1] in "-0123456789" else np.nan for cell in row] for row in rows]
    compare(np.array(table).T)


def test_julia(tmp_path):
    julia = program("julia")
    lines = [f"X = [{'; '.join(' '.join(map(repr, row)) for row in X.tolist())}]"]
    for i, expression in enumerate(EXPRESSIONS):
        lines.append(export.julia_source(expression, f"f{i}"))
        lines.append(
            f"println(join([try f{i}(r...) catch e; e isa DomainError ? NaN : rethrow() end "
            'for r in eachrow(X)], " "))'
        )
    (tmp_path / "all.jl").write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        [julia, "all.jl"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    compare([[float(word) for word in line.split()] for line in done.stdout.splitlines()])
