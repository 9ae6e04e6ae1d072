"""Figures in the paper's form."""

from __future__ import annotations

import numpy as np
import pytest

from discodso.reproduce.jobs import Record
from discodso.reproduce.paper_figures import MeanCurve, _heights, curve
from discodso.run.result import HistoryRow


def test_a_curve_is_the_mean_of_the_best_so_far():
    def record(*pairs: tuple[int, float]) -> Record:
        rows = [HistoryRow(c, b, b, b, None, None, 1.0, 1, 0, 0.0, 10.0 * c) for c, b in pairs]
        return Record(None, None, None, None, 0, 0.0, tuple(rows))  # type: ignore[arg-type]

    line = curve([record((10, 1.0), (20, 3.0)), record((10, 2.0), (40, 4.0))], "calls", "deviation")
    assert line.x[-1] == 20  # where the first run ends
    assert line.mean[-1] == 2.5
    assert line.mean[99] == 1.5
    assert line.spread[99] == pytest.approx(0.5**0.5)
    assert curve([record((10, 1.0))], "episodes", "error").x[-1] == 100


def test_curves_are_drawn_where_they_are_told_apart():
    x = np.arange(200.0)
    close = [MeanCurve(x, np.full(200, height), x, 1) for height in (9.0, 9.5, 10.0)]
    steep = MeanCurve(x, np.where(x < 20, -1000.0, 9.0), x, 1)
    low, high = _heights([*close, steep])
    assert 8.5 < low < 9.0 < 10.0 < high < 10.5
    assert _heights([]) == (0.0, 1.0)
    assert _heights([MeanCurve(x, np.full(200, np.nan), x, 1)]) == (0.0, 1.0)
