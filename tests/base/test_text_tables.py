"""Tables as text."""

from __future__ import annotations

import csv
import io

from discodso.base.text_tables import csv_text, markdown


def test_csv_leaves_out_what_is_missing_and_quotes_what_must_be():
    text = csv_text(("name", "reward"), [("a, b", 1.5), ('say "x"', None)])
    assert list(csv.reader(io.StringIO(text))) == [["name", "reward"], ["a, b", "1.5"], ['say "x"', ""]]
    assert text.count("\n") == 3
    assert "\r" not in text


def test_no_cell_of_a_spreadsheet_is_a_formula():
    evil = ['=HYPERLINK("http://evil")', "+1+1", "-2+3", "@SUM(A1)", "\tx", "＝1"]
    harmless = ["-1.5", "+2e3", "-", "a=b", -1, 2.5, None]
    first, second = csv.reader(io.StringIO(csv_text(evil, [harmless])))
    assert first == [f"'{cell}" for cell in evil]
    assert second == ["-1.5", "+2e3", "-", "a=b", "-1", "2.5", ""]


def test_markdown_has_a_line_under_the_head_and_no_double_blanks():
    assert markdown(["", "a"], [["x", "1"], ["y", ""]]) == ["| | a |", "|---|---|", "| x | 1 |", "| y | |"]
