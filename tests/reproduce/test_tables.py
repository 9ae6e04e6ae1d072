"""Tables in the paper's form."""

from __future__ import annotations

from discodso.reproduce.tables import Entry, to_markdown


def test_a_table_shows_ours_the_papers_and_the_difference():
    text = to_markdown("T", "C", [Entry("a", "x", 1.5, 0.25, 1.0), Entry("b", "x", None, None, 2.0, True)], 2)
    assert "| a | 1.50 ± 0.25 | 1.00 | +0.50 |" in text
    assert "| b (quoted) | - | 2.00 | - |" in text
