"""Tables of every kind: separators, decimal signs, typed files, and what is refused."""

from __future__ import annotations

import gzip
import json
import sys
import warnings

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discodso.base.errors import DeclarationError
from discodso.tasks.regression import text_sheets
from discodso.tasks.regression.data import read_table

ROWS = [[1.5, 2.0, 3.25], [-4e-3, 5e10, 6.0]]


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def write(folder, text, name="table.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def refused(path, target="y", ignore=()):
    with pytest.raises(DeclarationError) as caught:
        read_table(path, target, ignore)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " ", "   ", ", ", " ; ", " \t "])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_any_separator_and_line_end(tmp_path, separator, newline):
    lines = [separator.join(["a", "speed_[m/s]", "y"])]
    lines += [separator.join(map(repr, row)) for row in ROWS]
    table = read_table(write(tmp_path, newline.join([*lines, ""])), "y")
    assert table.columns == ("a", "speed_[m/s]")
    assert np.array_equal(np.column_stack((table.X, table.y)), ROWS)


@pytest.mark.parametrize("separator", [";", "\t", "|", " "])
def test_decimal_commas_are_read_and_said(tmp_path, separator):
    lines = [separator.join("aby"), *(separator.join(map(repr, row)).replace(".", ",") for row in ROWS)]
    with pytest.warns(UserWarning, match="commas in numbers were read as decimal points"):
        table = read_table(write(tmp_path, "\n".join(lines)), "y")
    assert np.array_equal(np.column_stack((table.X, table.y)), ROWS)


def test_decimal_commas_beside_text_with_points(tmp_path):
    path = write(tmp_path, "a;who;y\n1,5;J. Doe;2\n2,5;A, B;3,25\n")
    with pytest.warns(UserWarning, match="decimal points"):
        table = read_table(path, "y", ("who",))
    assert table.X.tolist() == [[1.5], [2.5]]
    assert table.y.tolist() == [2, 3.25]


@pytest.mark.parametrize("cells", ["1,234;5.5", "1.234,5;6", "1,234.5;7", "1.5;2,5"])
def test_thousands_are_never_guessed(tmp_path, cells):
    words = refused(write(tmp_path, f"a;y\n{cells}\n"))
    assert "line 2, column" in words
    assert "decimal" in words


def test_thousands_with_quotes_are_refused(tmp_path):
    assert "'1,234' is not a finite number" in refused(write(tmp_path, 'a,y\n"1,234",5\n2,3\n'))


def test_quotes_marks_and_odd_names(tmp_path):
    text = '\ufeff"speed (m/s)","a, b","say ""hi""",y\n"1",2,3,"4"\n\n,,,\n5,6,7,8\n'
    table = read_table(write(tmp_path, text), "y")
    assert table.columns == ("speed (m/s)", "a, b", 'say "hi"')
    assert table.X.tolist() == [[1, 2, 3], [5, 6, 7]]
    assert read_table(write(tmp_path, text.lstrip("\ufeff"), encoding="utf-16"), "y").y.tolist() == [4, 8]
    two_lines = read_table(write(tmp_path, '"a\nb",y\n1,2\n'), "y")
    assert two_lines.columns == ("a\nb",)
    assert "line 4, column 'y'" in refused(write(tmp_path, '"a\nb",y\n1,2\n3,x\n'))


def test_names_with_blanks_and_units_keep_them(tmp_path):
    table = read_table(write(tmp_path, "speed (m/s), mass [kg], y\n1, 2, 3\n"), "y")
    assert table.columns == ("speed (m/s)", "mass [kg]")
    table = read_table(write(tmp_path, '"speed (m/s)"  y\n 1    3\n  2 5 \n'), "y")
    assert table.columns == ("speed (m/s)",)
    assert table.y.tolist() == [3, 5]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("name", ["", '""', "Unnamed: 0"])
def test_a_count_of_rows_is_left_out_and_said(tmp_path, first, name):
    path = write(tmp_path, f"{name},a,y\n{first},5,6\n{first + 1},7,8\n")
    with pytest.warns(UserWarning, match="column 1 has no name and counts the rows"):
        assert read_table(path, "y").columns == ("a",)


def test_other_columns_without_a_name(tmp_path):
    assert "column 1 has no name" in refused(write(tmp_path, ",a,y\n3,5,6\n1,7,8\n"))
    assert read_table(write(tmp_path, ",a,y\nx,5,6\nz,7,8\n"), "y", ("",)).columns == ("a",)
    assert read_table(write(tmp_path, "Unnamed: 0,a,y\n3,5,6\n1,7,8\n"), "y").columns == ("Unnamed: 0", "a")
    for sign in ";,\t|":
        text = "a;y;\n1;2;\n\n3;4; \n".replace(";", sign)
        table = read_table(write(tmp_path, text), "y")
        assert (table.X.tolist(), table.y.tolist()) == ([[1], [3]], [2, 4])


def test_text_columns_are_refused_together(tmp_path):
    words = refused(write(tmp_path, "who,a,where,y\nann,1,here,2\nbob,3,,4\n"))
    assert "'who' ('ann'), 'where' ('here')" in words
    assert "--ignore 'who' --ignore 'where'" in words
    table = read_table(write(tmp_path, "who,a,y\nann,1,2\n\u4e2d,3,4\n"), "y", ("who",))
    assert table.X.tolist() == [[1], [3]]


def test_a_wrong_name_is_guessed(tmp_path):
    assert "did you mean 'distance'?" in refused(write(tmp_path, "a,distance\n1,2\n"), "distnace")


def test_a_table_without_names_is_refused(tmp_path):
    assert "begins with numbers; add a line with the names" in refused(write(tmp_path, "1.5 2\n3 4\n"))


def test_other_encodings_are_refused(tmp_path):
    words = refused(write(tmp_path, "höhe,y\n1,2\n", encoding="cp1252"))
    assert "cannot be read as text in UTF-8 (byte 2 is none); save it as UTF-8" in words


def test_a_separator_may_be_said(tmp_path):
    assert read_table(write(tmp_path, "sep=;\na;y\n1;2\n3;4\n"), "y").X.tolist() == [[1], [3]]
    assert "line 3, column 'a': 'x'" in refused(write(tmp_path, "sep=:\na:y\nx:2\n3:4\n"))


def test_too_many_cells_are_noticed_also_beside_ignored_ones(tmp_path):
    assert "line 3: 4 cells, expected 3" in refused(write(tmp_path, "a,b,y\n1,2,3\n1,2,3,4\n"), ignore=("b",))
    assert "line 2: 4 cells, expected 3" in refused(write(tmp_path, "a,b,y\n1,2,3,4\n1,2,3,4\n"))


def test_packed_tables(tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"a,y\n1,2\n"))
    assert read_table(path, "y").y.tolist() == [2]
    path.write_bytes(gzip.compress(b"a,y\n1,2\n")[:-9])
    assert "cannot be read" in refused(path)
    path = tmp_path / "table.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a": 1, "y": 2}\n'))
    assert read_table(path, "y").y.tolist() == [2]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 3), min_size=1, max_size=5),
    st.sampled_from([",", ";", "\t", "|", " "]),
)
def test_numbers_are_read_to_the_last_bit(tmp_path_factory, rows, separator):
    lines = [separator.join("aby"), *(separator.join(map(repr, row)) for row in rows)]
    path = write(tmp_path_factory.mktemp("t"), "\n".join(lines))
    expected = np.array(rows)
    with np.errstate(over="ignore"):
        squares = expected[:, -1] @ expected[:, -1]
    if not np.isfinite(squares) or (0 < np.abs(expected[:, -1]).max() <= 1e-140):
        return  # refused, as squares of such numbers say nothing
    table = read_table(path, "y")
    assert np.array_equal(np.column_stack((table.X, table.y)), expected)


def test_good_tables_need_no_slow_path(tmp_path, monkeypatch):
    monkeypatch.setattr(text_sheets.TextSheet, "_slow", None)
    lines = ["a,name,b,y", *(f'{i / 7!r},w{i},"{i}",{-i}' for i in range(2000))]
    table = read_table(write(tmp_path, "\n".join(lines)), "y", ("name",))
    assert table.X[1999].tolist() == [1999 / 7, 1999]


# ------------------------------------------------------------------------------------------ typed files

FRAME = pandas.DataFrame(
    {"a": [1, 2, 3], "speed (m/s)": [0.5, 1.5, 2.5], "on": [True, False, True], "y": [4, 5, 6]}
)


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "table.parquet"
    FRAME.to_parquet(path)
    table = read_table(path, "y")
    assert table.columns == ("a", "speed (m/s)", "on")
    assert table.X.tolist() == [[1, 0.5, 1], [2, 1.5, 0], [3, 2.5, 1]]
    FRAME.assign(who=["x", "z", "w"], when=pandas.Timestamp("2020-01-01")).to_parquet(path)
    words = refused(path)
    assert "'who' ('x')" in words
    assert "'when'" in words
    assert read_table(path, "y", ("who", "when")).columns == table.columns
    FRAME.assign(a=pandas.array([1, None, 3], dtype="Int64")).to_parquet(path)
    assert "row 2, column 'a'" in refused(path)
    FRAME.iloc[[2, 0, 1]].to_parquet(path)
    with pytest.warns(UserWarning, match="index that pandas has kept is left out"):
        assert read_table(path, "y").columns == table.columns
    path.write_bytes(b"PAR1 and nothing else")
    assert "cannot be read as Parquet" in refused(path)
    FRAME[:0].to_parquet(path)
    assert "no rows" in refused(path)


def test_excel(tmp_path):
    pytest.importorskip("openpyxl")
    path = tmp_path / "table.xlsx"
    FRAME.to_excel(path, index=False)
    assert read_table(path, "y").X.tolist() == [[1, 0.5, 1], [2, 1.5, 0], [3, 2.5, 1]]
    FRAME.to_excel(path)  # with its index
    with pytest.warns(UserWarning, match="column 1 has no name"):
        assert read_table(path, "y").columns == ("a", "speed (m/s)", "on")
    FRAME.assign(a=[1, "two", 3]).to_excel(path, index=False, startrow=2)
    assert "row 5, column 'a': 'two'" in refused(path)
    path.write_bytes(b"PK no archive")
    assert "cannot be read as Excel" in refused(path)
    assert "save it as .xlsx or .csv" in refused(write(tmp_path, "", "table.xls"))


def test_json_lines(tmp_path):
    rows = FRAME.to_dict("records")
    path = write(tmp_path, "\n".join([json.dumps(row) for row in rows] + [""]), "table.jsonl")
    assert read_table(path, "y").X.tolist() == [[1, 0.5, 1], [2, 1.5, 0], [3, 2.5, 1]]
    assert "line 3, column 'a'" in refused(write(tmp_path, '{"a": 1, "y": 2}\n\n{"y": 2}', "table.jsonl"))
    assert "line 2: no JSON object" in refused(write(tmp_path, '{"a": 1, "y": 2}\n[3]', "table.jsonl"))
    assert "is empty" in refused(write(tmp_path, "", "table.ndjson"))
    assert "line 1, column 'a'" in refused(write(tmp_path, '{"a": NaN, "y": 2}\n{"a": 1, "y": 2}', "t.jsonl"))


@pytest.mark.parametrize(("name", "module"), [("t.parquet", "pyarrow"), ("t.xlsx", "openpyxl")])
def test_a_missing_extra_is_named(tmp_path, monkeypatch, name, module):
    monkeypatch.setitem(sys.modules, module, None)
    words = refused(write(tmp_path, "", name))
    assert f"need {module}; install it with pip install 'discodso[tables]'" in words


def test_a_table_that_unpacks_beyond_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("discodso.tasks.regression.text_sheets.MOST_BYTES", 1000)
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"x,y\n" + b"1,2\n" * 1000))
    with pytest.raises(DeclarationError, match="more than 1,000 bytes once unpacked"):
        read_table(path, "y")


def test_rows_of_different_names_are_no_table(tmp_path):
    path = tmp_path / "sparse.jsonl"
    path.write_text("".join(f'{{"a{n}": 1}}\n' for n in range(4000)))
    with pytest.raises(DeclarationError, match="most rows lack most of them"):
        read_table(path, "a1")


def test_a_header_of_equal_names_or_of_texts_is_told_in_a_short_line(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(",".join(["x"] * 50_000) + ",y\n" + ",".join(["1"] * 50_001) + "\n")
    with pytest.raises(DeclarationError, match=r"there twice: x$"):
        read_table(path, "y")
    path.write_text(",".join(f"x{n}" for n in range(500)) + ",y\n" + ",".join(["a"] * 500) + ",1\n")
    with pytest.raises(DeclarationError, match="and 480 more") as caught:
        read_table(path, "y")
    assert len(str(caught.value)) < 1500
