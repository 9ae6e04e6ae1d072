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


def test_markdown_has_a_line_under_the_head_and_no_double_blanks():
    assert markdown(["", "a"], [["x", "1"], ["y", ""]]) == ["| | a |", "|---|---|", "| x | 1 |", "| y | |"]
