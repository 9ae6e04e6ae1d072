"""The numbers behind plots: best rewards over calls, shares of tokens, quantiles of values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from discodso.run import curves
from discodso.run.curves import Curve, Track
from discodso.run.history import HistoryRow

ROW = HistoryRow(
    calls=50,
    best=1.0,
    batch_best=1.0,
    mean=0.5,
    quantile=0.8,
    entropy=None,
    mean_length=2.5,
    max_length=4,
    failures=0,
    seconds=0.1,
    tokens={"a": (0.75,), "v": (0.25, 0.1, 0.2, 0.3, 0.4, 0.5)},
)


def test_a_track_is_a_step_function_that_ends_unless_it_is_settled():
    track = Track(np.array([10.0, 20.0]), np.array([1.0, 3.0]))
    asked = np.array([5.0, 10.0, 19.0, 20.0, 25.0])
    assert track.at(asked).tolist()[1:4] == [1.0, 1.0, 3.0]
    assert np.isnan(track.at(asked)[[0, 4]]).all()
    assert replace(track, settled=True).at(asked)[4] == 3.0


def test_a_curve_is_the_mean_where_all_runs_have_a_value():
    first = Track(np.array([10.0, 20.0, 30.0]), np.array([1.0, 2.0, 3.0]))
    second = Track(np.array([10.0, 20.0]), np.array([3.0, 4.0]))
    curve = Curve.of("two", [first, second])
    assert curve.calls.tolist() == [10, 20, 30]
    assert curve.mean[:2].tolist() == [2.0, 3.0]
    assert np.isnan(curve.mean[2])
    assert (curve.low[0], curve.high[0]) == (1.0, 3.0)
    assert Curve.of("one", [first]).low is None
    assert len(Curve.of("none", [Track(np.empty(0), np.empty(0))]).calls) == 0


def test_a_long_run_becomes_a_short_line():
    rows = [replace(ROW, calls=100 * n, best=float(n)) for n in range(1, 10_001)]
    curve = Curve.of("long", [Track.of(rows)])
    assert len(curve.calls) == curves.POINTS
    assert (curve.calls[-1], curve.mean[-1]) == (1e6, 10_000)
    assert len(curves.lengths(rows).calls) == curves.POINTS
    assert len(curves.token_shares(rows).calls) <= curves.POINTS


def test_shares_beyond_the_most_frequent_tokens_are_added_up():
    use = {f"t{k}": (k / 45,) for k in range(10)}
    lines = curves.token_shares([replace(ROW, tokens=use)], most=3)
    assert lines.names == ("t9", "t8", "t7", "all others")
    assert lines.values[:, 0].tolist() == pytest.approx([9 / 45, 8 / 45, 7 / 45, 21 / 45])


def test_values_of_a_token_that_is_missing_in_a_batch_leave_a_gap():
    rows = [
        replace(ROW, tokens={"v": (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)}),
        replace(ROW, tokens={"v": (0.0,)}),
    ]
    lines = curves.token_values(rows)["v"]
    assert lines.values[:, 0].tolist() == [1, 2, 3, 4, 5]
    assert np.isnan(lines.values[:, 1]).all()


def test_rows_of_the_race_at_the_end_are_no_batches_of_the_search():
    rows = [ROW, replace(ROW, calls=100, restarted=True), replace(ROW, calls=150, mean=9.0, confirming=True)]
    lines = curves.batch_rewards(rows)
    assert lines.calls.tolist() == [50, 100]
    assert lines.names == ("best so far", "quantile of the batch", "mean of the batch")
    assert lines.values[2].tolist() == [0.5, 0.5]
    assert lines.restarts == (100,)
    assert curves.lengths(rows).values.tolist() == [[4, 4], [2.5, 2.5]]


def test_what_no_row_has_is_no_line():
    rows = [replace(ROW, quantile=None), replace(ROW, calls=100, quantile=None, mean=None)]
    lines = curves.batch_rewards(rows)
    assert lines.names == ("best so far", "mean of the batch")
    assert np.isnan(lines.values[1, 1])
    assert curves.proposer_shares(rows).names == ()


def test_proposers_that_never_had_a_share_have_no_line():
    shares = [{"policy": 1.0, "variation": 0.0}, {"policy": 0.4, "variation": 0.0, "refinement": 0.6}]
    lines = curves.proposer_shares([replace(ROW, shares=own) for own in shares])
    assert lines.names == ("policy", "refinement")
    assert lines.values[0].tolist() == [1.0, 0.4]
    assert np.isnan(lines.values[1, 0])


def test_thinning_keeps_both_ends():
    for count in (1, 2, 239, 240, 241, 5000):
        places = curves.thinned(count)
        assert len(places) == min(count, curves.POINTS)
        assert (places[0], places[-1]) == (0, count - 1)
