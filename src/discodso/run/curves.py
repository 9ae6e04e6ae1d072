"""What the plots of a search show, as plain numbers: figures and reports draw the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.base.statistics import bootstrap_interval
from discodso.run.history import VALUE_QUANTILES, HistoryRow

POINTS = 240  # of a line: more than a screen can tell apart
_CURVE_RESAMPLES = 1000


@dataclass(frozen=True)
class Track:
    """The best reward of one run over its objective calls; with several objectives the hypervolume of its front.

    Attributes:
        calls, best: float[n]; from calls[i] on the best reward is best[i]. It falls where a noisy search evaluates
            its best designs again.
        settled: whether the run could get no better, having reached its target: its line goes on level.
    """

    calls: Floats
    best: Floats
    settled: bool = False

    @classmethod
    def of(cls, rows: Iterable[HistoryRow], settled: bool = False) -> Track:
        """From a history; rows without any success are left out."""
        found_so_far = ((row.calls, row.best if row.hypervolume is None else row.hypervolume) for row in rows)
        pairs = [pair for pair in found_so_far if pair[1] is not None]
        found = np.array(pairs, dtype=np.float64).reshape(-1, 2)
        return cls(found[:, 0], found[:, 1], settled)

    def at(self, calls: Floats) -> Floats:
        """float[m], the best reward after so many calls; NaN before the first and after the last."""
        found: Floats = np.append(np.nan, self.best)[np.searchsorted(self.calls, calls, side="right")]
        if not self.settled and len(self.calls):
            found[calls > self.calls[-1]] = np.nan
        return found


@dataclass(frozen=True)
class Curve:
    """Best reward against objective calls: the mean over runs, with its spread.

    Attributes:
        label: of the method.
        calls: float[n].
        mean: float[n], over the runs; NaN where not all of them have a value.
        low, high: float[n], bootstrap interval of 95 % of the mean; None for a single run.
        runs: float[r, n], each run by itself, NaN where it has no value.
    """

    label: str
    calls: Floats
    mean: Floats
    low: Floats | None
    high: Floats | None
    runs: Floats

    @classmethod
    def of(cls, label: str, tracks: Sequence[Track], points: int = POINTS) -> Curve:
        """The curve of several runs of one method."""
        calls = _grid([track.calls for track in tracks], points)
        runs = np.array([track.at(calls) for track in tracks]).reshape(len(tracks), len(calls))
        known = np.isfinite(runs).all(axis=0)
        mean = np.where(known, np.where(known, runs, 0.0).mean(axis=0), np.nan)
        if len(tracks) < 2:
            return cls(label, calls, mean, None, None, runs)
        spread = np.full((2, len(calls)), np.nan)
        for place in np.flatnonzero(known):
            spread[:, place] = bootstrap_interval(runs[:, place], resamples=_CURVE_RESAMPLES)
        return cls(label, calls, mean, spread[0], spread[1], runs)


@dataclass(frozen=True)
class Lines:
    """Several lines over objective calls: values[i][j] belongs to names[i] and calls[j]; NaN for a gap.

    `restarts` has the calls after which the method began anew.
    """

    calls: Floats
    names: tuple[str, ...]
    values: Floats
    restarts: tuple[int, ...] = ()


def batch_rewards(rows: Sequence[HistoryRow]) -> Lines:
    """Best so far, quantile and mean of each batch, and the restarts."""
    keys = {"best so far": "best", "quantile of the batch": "quantile", "mean of the batch": "mean"}
    return replace(_measures(rows, keys), restarts=tuple(row.calls for row in rows if row.restarted))


def lengths(rows: Sequence[HistoryRow]) -> Lines:
    """Longest and mean length of the designs of each batch."""
    return _measures(rows, {"longest": "max_length", "mean": "mean_length"})


def proposer_shares(rows: Sequence[HistoryRow]) -> Lines:
    """Share of each batch that policy, variation and refinement propose; no lines where it is the policy alone."""
    kept = _thinned([row for row in rows if row.shares])
    names = dict.fromkeys(name for row in kept for name in row.shares or {})
    values = {name: [(row.shares or {}).get(name, np.nan) for row in kept] for name in names}
    return _lines(kept, {name: own for name, own in values.items() if any(own)})


def token_shares(rows: Sequence[HistoryRow], most: int = 7) -> Lines:
    """Share of each token over time; beyond the `most` frequent ones they are added up as "all others"."""
    kept = _sampled(rows)
    names = kept[0].tokens or {} if kept else {}
    shares = {name: [(row.tokens or {}).get(name, (0.0,))[0] for row in kept] for name in names}
    order = sorted(shares, key=lambda name: -max(shares[name]))
    if len(order) <= most + 1:
        return _lines(kept, {name: shares[name] for name in order})
    others = np.sum([shares[name] for name in order[most:]], axis=0)
    return _lines(kept, {**{name: shares[name] for name in order[:most]}, "all others": others})


def token_values(rows: Sequence[HistoryRow], most: int = 12) -> dict[str, Lines]:
    """Quantiles of the numbers of each token that carries some, the most used first, then those with names."""
    kept = _sampled(rows)
    names = dict.fromkeys(name for row in kept for name, use in (row.tokens or {}).items() if len(use) > 1)
    total = {name: sum((row.tokens or {}).get(name, (0.0,))[0] for row in kept) for name in names}
    labels = tuple(f"{quantile:.0%} quantile" for quantile in VALUE_QUANTILES)
    missing = (np.nan,) * len(VALUE_QUANTILES)
    found = {
        name: [(row.tokens or {}).get(name, ())[1:] for row in kept]
        for name in sorted(names, key=lambda name: -total[name])
    }
    for name in dict.fromkeys(name for row in kept for name in row.values or {}):
        found[name] = [(row.values or {}).get(name, ()) for row in kept]
    whole = {
        name: [own if len(own) == len(missing) else missing for own in uses] for name, uses in found.items()
    }
    return {
        name: _lines(kept, dict(zip(labels, zip(*uses, strict=True), strict=True)))
        for name, uses in list(whole.items())[:most]
    }


def thinned(count: int, points: int = POINTS) -> Ints:
    """Indices of at most `points` of `count` things, evenly spaced, the first and the last among them."""
    places: Ints = np.unique(np.linspace(0, count - 1, min(count, points)).round().astype(np.int64))
    return places


def _measures(rows: Sequence[HistoryRow], keys: Mapping[str, str]) -> Lines:
    """Numbers of the rows of a search by name; those that no row has are left out."""
    kept = _thinned([row for row in rows if not row.confirming])
    values = {name: [getattr(row, key) for row in kept] for name, key in keys.items()}
    having = {name: own for name, own in values.items() if any(value is not None for value in own)}
    return _lines(kept, having)


def _thinned(rows: Sequence[HistoryRow]) -> list[HistoryRow]:
    return [rows[place] for place in thinned(len(rows)).tolist()]


def _lines(rows: Sequence[HistoryRow], values: Mapping[str, Any]) -> Lines:
    """Lines by name, each with a value for every row."""
    calls = np.array([row.calls for row in rows], dtype=np.float64)
    table = np.array([list(own) for own in values.values()], dtype=np.float64)
    return Lines(calls, tuple(values), table.reshape(len(values), len(rows)))


def _sampled(rows: Sequence[HistoryRow]) -> list[HistoryRow]:
    """Rows with token use, evenly spaced in calls as far as there are any."""
    having = [row for row in rows if row.tokens is not None and not row.confirming]
    if len(having) <= POINTS:
        return having
    calls = np.array([row.calls for row in having])
    wanted = np.linspace(calls[0], calls[-1], POINTS)
    return [having[int(place)] for place in np.unique(np.searchsorted(calls, wanted))]


def _grid(tracks: Sequence[Floats], points: int) -> Floats:
    """Calls at which curves are drawn: those of the runs if there are few enough, else evenly spaced ones."""
    union = np.unique(np.concatenate([np.empty(0), *tracks]))
    return union if len(union) <= points else np.linspace(union[0], union[-1], points)
