"""Tables from files, and the commands that use them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from discodso.base.errors import DeclarationError
from discodso.cli.main import app
from discodso.tasks.regression.data import read_table

EXAMPLE = Path(__file__).parents[3] / "examples" / "data" / "stopping_distance.csv"


def write(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_text(text)
    return path


def test_a_table_is_read_with_its_names(tmp_path):
    table = read_table(write(tmp_path, "\ufeffa, b ,y\n1,2,3\n\n4,5e1,-6\n"), "y")
    assert table.columns == ("a", "b")
    assert np.array_equal(table.X, [[1, 2], [4, 50]])
    assert np.array_equal(table.y, [3, -6])
    assert read_table(write(tmp_path, "a,name,y\n1,x,3\n"), "y", ("name",)).columns == ("a",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("a,y\n", "no rows"),
        ("a,b\n1,2\n", "no column 'y'; it has a, b"),
        ("y\n1\n", "no column beside the target"),
        ("a,a,y\n1,2,3\n", "distinct"),
        ("a,y\n1,2\n3\n", "line 3: 1 cells, expected 2"),
        ("a,y\n1,2\nfour,5\n", "line 3, column 'a': 'four' is not a finite number"),
        ("a,y\n1,nan\n", "line 2, column 'y': 'nan'"),
        ("a,y\ninf,1\n", "column 'a': 'inf'"),
        ("a,y\n,1\n", "column 'a': ''"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_place(tmp_path, text, words):
    with pytest.raises(DeclarationError, match=words) as caught:
        read_table(write(tmp_path, text), "y")
    assert "\n" not in str(caught.value)


def test_missing_and_unreadable_files(tmp_path):
    with pytest.raises(DeclarationError, match="there is no file"):
        read_table(tmp_path / "nothing.csv", "y")
    with pytest.raises(DeclarationError, match="cannot be read"):
        read_table(tmp_path, "y")
    binary = tmp_path / "binary.csv"
    binary.write_bytes(bytes(range(256)))
    with pytest.raises(DeclarationError, match="cannot be read"):
        read_table(binary, "y")


def test_fit_prints_an_equation_and_draws_it(tmp_path):
    picture = tmp_path / "fit.png"
    arguments = ["fit", str(EXAMPLE), "--target", "distance", "--budget", "10000", "--plot", str(picture)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "distance = " in done.output
    assert "speed" in done.output
    assert "R2 0.9" in done.output
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_cannot_be_written_does_not_cost_the_equation(tmp_path):
    (tmp_path / "file").write_text("")
    picture = tmp_path / "file" / "fit.png"
    arguments = ["fit", str(EXAMPLE), "--target", "distance", "--budget", "500", "--plot", str(picture)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code != 0
    assert "distance = " in done.output
    assert "cannot write" in str(done.exception)


def test_fit_as_json():
    arguments = [
        "fit",
        str(EXAMPLE),
        "--target",
        "distance",
        "--budget",
        "1000",
        "--ignore",
        "friction",
        "--json",
    ]
    result = json.loads(CliRunner().invoke(app, arguments).stdout)
    assert 950 < result["calls"] <= 1000
    assert "friction" not in result["expression"]
    assert sum(row["chosen"] for row in result["front"]) == 1


def test_bench_regression_resumes(tmp_path):
    out = tmp_path / "runs"
    arguments = ["bench", "regression", "--problems", "Constant-6", "--budget", "2000", "--out", str(out)]
    first = CliRunner().invoke(app, [*arguments, "--checkpoint", "1000", "--workers", "1"])
    assert first.exit_code == 0, first.output
    assert "| Constant-6 | 1 |" in first.output
    assert "1/1 regression, Constant-6" in first.output
    again = CliRunner().invoke(app, [*arguments, "--workers", "1"])
    assert "1/1" not in again.output
    assert len((out / "paper-A-2000.jsonl").read_text().splitlines()) == 1


def test_what_sympy_makes_of_an_equation_has_its_names_between_backticks(tmp_path):
    rows = "".join(f"{a},{b},{a * b + 2}\n" for a, b in zip(range(1, 21), range(40, 0, -2), strict=True))
    path = write(tmp_path, "reaction time (s),a+b,y\n" + rows)
    done = CliRunner().invoke(app, ["fit", str(path), "--target", "y", "--budget", "500"])
    assert "simplified: `a+b`*`reaction time (s)` + 2" in done.stdout
