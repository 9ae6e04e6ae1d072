"""What is shown while equations are searched for: on terminals, in notebooks and elsewhere."""

from __future__ import annotations

import io
import sys
from types import ModuleType

import numpy as np
import pytest
from rich.console import Console

from discodso import DisCoRegressor
from discodso.base.errors import DeclarationError
from discodso.run import callbacks
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.operators import Costs
from discodso.tasks.regression.standing import standing_rows, standing_table

rng = np.random.default_rng(0)
X = rng.uniform(0.5, 3, (60, 2))
Y = 2 * X[:, 0] * X[:, 1] + 0.05 * rng.standard_normal(60)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown_by(monkeypatch, stream, budget=12_000, **how):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    model = DisCoRegressor(budget=budget, random_state=0, **how).fit(X, Y)
    monkeypatch.undo()
    return model, "" if stream is None or stream.closed else stream.getvalue()


def test_a_terminal_shows_the_best_equations_by_default(monkeypatch):
    model, text = shown_by(monkeypatch, Terminal())
    assert "complexity" in text
    assert "x1 * x2" in text
    assert "11400/11400" in text
    quiet, nothing = shown_by(monkeypatch, Terminal(), verbose=False)
    assert not nothing
    assert quiet.expression_ == model.expression_


@pytest.mark.parametrize("how", [{"polish": False, "scaled": False}, {"loss": "mae"}, {}])
def test_disco_shows_its_equations_too(monkeypatch, how):
    _, text = shown_by(monkeypatch, Terminal(), budget=3000, method=None, **how)
    assert "complexity" in text


def test_elsewhere_there_are_lines_only_if_they_are_asked_for(monkeypatch):
    assert not shown_by(monkeypatch, io.StringIO())[1]
    lines = shown_by(monkeypatch, io.StringIO(), verbose=True)[1].splitlines()
    assert 1 <= len(lines) <= 11
    assert all(" calls, best 0." in line for line in lines)


def test_a_standard_error_that_cannot_be_written_does_not_matter(monkeypatch):
    closed = Terminal()
    closed.close()
    for stream in (None, closed):
        for verbose in (None, True):
            model, _ = shown_by(monkeypatch, stream, verbose=verbose)
            assert model.score(X, Y) > 0.9


def test_a_notebook_shows_them_in_one_cell(monkeypatch):
    cells = []

    class Handle:
        def update(self, cell):
            cells.append((repr(cell), cell._repr_html_()))

    notebook = ModuleType("IPython.display")
    notebook.display = lambda cell, display_id: Handle()
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", notebook)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert callbacks.is_watched()
    DisCoRegressor(budget=12_000, random_state=0).fit(X, Y)
    text, page = cells[-1]
    assert "x1 * x2" in text
    assert "11400 of 11400 calls, best 0." in text
    assert page.startswith("<pre")


def test_workers_show_nothing(monkeypatch):
    from threading import Thread

    monkeypatch.setattr(sys, "stderr", Terminal())
    seen = []
    thread = Thread(target=lambda: seen.append(callbacks.is_watched()))
    thread.start()
    thread.join()
    assert callbacks.is_watched()
    assert seen == [False]


def test_verbose_is_a_flag():
    with pytest.raises(DeclarationError, match="verbose must be True, False, or None"):
        DisCoRegressor(verbose=2).fit(X, Y)


def test_rows_are_those_that_no_simpler_one_fits_as_well():
    names = ("a", "b")
    texts = {"a": 5.0, "a + b": 3.0, "a * b": 4.0, "sin(a + b)": 1.0, "a + b + a * b": 0.5}
    found = [(Expression.parse(text, names), loss) for text, loss in texts.items()]
    rows = standing_rows(found, None)
    assert [(row[0], row[1]) for row in rows] == [(1, 5.0), (3, 3.0), (4, 1.0), (7, 0.5)]
    assert [row[0] for row in standing_rows(found, Costs({"sin": 9}))] == [1, 3, 7]
    many = [
        (Expression.parse(" + ".join(f"a^{k}" for k in range(2, n)), names), 2.0**-n) for n in range(3, 40)
    ]
    rows = standing_rows(many, None)
    assert len(rows) == 14
    assert rows[-1][1] == 2.0**-39
    text = io.StringIO()
    Console(file=text, width=50).print(standing_table(rows, "y", 50))
    assert len(text.getvalue().splitlines()) == 15
