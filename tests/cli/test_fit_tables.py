"""`discodso fit` on tables of every kind, and what it says of mistakes."""

from __future__ import annotations

import json
import sys

import pytest

from discodso.cli.main import main

LINES = [(0, 1.5, 3.0), (1, 2.5, 5.0), (2, 3.5, 7.0), (3, 4.25, 8.5), (4, 5.75, 11.5)]


def fit(capsys, path, *more):
    with pytest.raises(SystemExit) as ended:
        main(["fit", str(path), "--target", "y", "--budget", "200", "--json", *more])
    shown = capsys.readouterr()
    return ended.value.code, shown.out, shown.err


def test_a_table_from_a_spreadsheet(capsys, tmp_path):
    path = tmp_path / "table.csv"
    text = ";speed (m/s);who;y\n" + "\n".join(f"{i};{a};ann;{b}" for i, a, b in LINES)
    path.write_text(text.replace(".", ","), encoding="utf-8-sig")
    code, out, err = fit(capsys, path, "--ignore", "who")
    assert code == 0, err
    assert "speed (m/s)" in json.loads(out)["expression"]
    assert "decimal points" in err
    assert "column 1 has no name and counts the rows; it is left out" in err


@pytest.mark.parametrize("kind", ["parquet", "xlsx", "jsonl", "tsv", "csv.gz"])
def test_other_kinds_of_files(capsys, tmp_path, kind):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip({"parquet": "pyarrow", "xlsx": "openpyxl"}.get(kind, "csv"))
    frame = pandas.DataFrame([row[1:] for row in LINES], columns=["a", "y"])
    path = tmp_path / f"table.{kind}"
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind == "xlsx":
        frame.to_excel(path, index=False)
    elif kind == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    code, out, err = fit(capsys, path)
    assert code == 0, err
    assert json.loads(out)["r2"] > 0.99


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("none.csv", None, "there is no file"),
        ("none.parquet", None, "there is no file"),
        ("a.csv", "", "is empty"),
        ("a.csv", "a,y\n", "no rows"),
        ("a.csv", "a,y\n1,2\n", "has a single row; an equation needs at least two"),
        ("a.csv", "a,z\n1,2\n3,4\n", "has no column 'y'; it has a, z"),
        ("a.csv", ",a,y2\n0,1,2\n1,3,4\n", "has no column 'y'; it has a, y2; did you mean 'y2'?"),
        (
            "a.csv",
            "who,a,y\nann,1,2\nbob,3,4\n",
            "a column holds text, not numbers: 'who' ('ann'); leave out with",
        ),
        ("a.csv", "a,y\n1,2\n3,x\n", "line 3, column 'y': 'x' is not a finite number"),
        ("a.csv", "a,y\n1,2\n3\n", "line 3: 1 cells, expected 2"),
        ("a.parquet", "a,y\n", "cannot be read as Parquet|Parquet files need pyarrow"),
        ("a.xlsx", "a,y\n", "cannot be read as Excel|Excel files need openpyxl"),
        ("a.xls", "a,y\n", "save it as .xlsx or .csv"),
        ("a.jsonl", "a,y\n", "line 1: no JSON object"),
    ],
)
def test_mistakes_are_told_in_a_line(capsys, tmp_path, name, text, words):
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    code, out, err = fit(capsys, path)
    assert code == 1
    assert out == ""
    assert any(part in err for part in words.split("|")), err
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_a_missing_extra_is_named(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    code, _, err = fit(capsys, tmp_path / "a.xlsx")
    assert code == 1
    assert "Excel files need openpyxl; install it with pip install 'discodso[tables]'" in err
