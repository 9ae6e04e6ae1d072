"""A terminal takes no orders from files."""

from __future__ import annotations

import io

from rich.table import Table

from discodso.base.terminal import safe_console, visible

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b1mred\u202eabc\ud800\r"


def test_controls_are_marked_and_words_stay():
    assert visible("größer\n\t→ ok") == "größer\n\t→ ok"
    shown = visible(EVIL)
    assert not set(shown) & set("\x1b\x07\x9b\u202e\ud800\r")
    assert "owned" in shown


def test_no_text_of_a_table_or_a_line_gives_orders():
    stream = io.StringIO()
    console = safe_console(file=stream, force_terminal=True, width=200)
    table = Table(EVIL, title=EVIL)
    table.add_row(EVIL)
    console.print(table)
    console.print(EVIL, markup=False)
    written = stream.getvalue()
    assert "\x1b]" not in written
    assert not set(written) & set("\x07\x9b\u202e\ud800")
    assert written.encode().decode().count("owned") == 4
