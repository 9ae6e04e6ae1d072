"""Statistics of runs against cases by hand, and against SciPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats

from discodso import DeclarationError
from discodso.base.statistics import (
    Summary,
    bootstrap_interval,
    improvement_interval,
    interquartile_mean,
    mean,
    probability_of_improvement,
    standard_error,
)

SCORES = np.random.default_rng(1).gamma(2.0, size=9)


def test_by_hand():
    summary = Summary.of([1.0, 2.0, 3.0, 4.0, 10.0])
    assert summary.mean == 4.0
    assert summary.standard_error == pytest.approx(np.sqrt((9 + 4 + 1 + 0 + 36) / 4 / 5))
    assert summary.interquartile_mean == 3.0  # without 1 and 10
    assert (summary.worst, summary.best, summary.runs) == (1.0, 10.0, 5)
    assert probability_of_improvement([1, 3], [2, 2]) == 0.5
    assert probability_of_improvement([1, 2, 3], [1, 2]) == pytest.approx((0.5 + 0 + 1 + 0.5 + 1 + 1) / 6)
    assert probability_of_improvement([5], [1, 2]) == 1.0


def test_the_interquartile_mean_is_scipys_trimmed_one():
    for count in range(1, 30):
        values = np.random.default_rng(count).normal(size=count)
        assert interquartile_mean(values) == pytest.approx(scipy.stats.trim_mean(values, 0.25))


def test_the_probability_is_that_of_mann_and_whitney():
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 6, 8), rng.integers(0, 6, 11)
    u = scipy.stats.mannwhitneyu(first, second).statistic
    assert probability_of_improvement(first, second) == pytest.approx(u / 88)
    assert probability_of_improvement(second, first) == pytest.approx(1 - u / 88)


@pytest.mark.parametrize("statistic", [mean, interquartile_mean])
def test_intervals_are_those_of_scipys_bootstrap(statistic):
    own = bootstrap_interval(SCORES, statistic, resamples=50_000)
    theirs = scipy.stats.bootstrap(
        (SCORES,),
        lambda x, axis: statistic(np.moveaxis(x, axis, -1)),
        n_resamples=50_000,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(7),
    ).confidence_interval
    assert own == pytest.approx((theirs.low, theirs.high), abs=0.02)


def test_the_interval_of_three_scores_by_enumeration():
    scores = [0.0, 1.0, 5.0]
    means = [np.mean(drawn) for drawn in itertools.product(scores, repeat=3)]
    exact = np.quantile(means, (0.025, 0.975), method="inverted_cdf")
    assert bootstrap_interval(scores, resamples=100_000) == pytest.approx(tuple(exact))


def test_the_interval_of_an_improvement_is_that_of_scipys_bootstrap():
    first, second = SCORES, SCORES[:6] - 0.4
    own = improvement_interval(first, second, resamples=50_000)
    theirs = scipy.stats.bootstrap(
        (first, second),
        probability_of_improvement,
        n_resamples=3000,
        method="percentile",
        vectorized=False,
        rng=np.random.default_rng(7),
    ).confidence_interval
    assert own == pytest.approx((theirs.low, theirs.high), abs=0.03)


def test_the_same_scores_give_the_same_interval():
    assert bootstrap_interval(SCORES) == bootstrap_interval(SCORES)


def test_one_run_has_no_spread():
    summary = Summary.of([2.5])
    assert summary.mean == summary.interquartile_mean == 2.5
    assert summary.standard_error is summary.mean_interval is summary.interquartile_interval is None
    assert standard_error([2.5]) is improvement_interval([1.0], [2.0, 3.0]) is None


@pytest.mark.parametrize("scores", [[], [np.nan], [1.0, np.inf], [[1.0, 2.0]]])
def test_what_is_no_list_of_scores_is_refused(scores):
    with pytest.raises(DeclarationError, match="scores must be"):
        Summary.of(scores)
