"""Methods side by side: the scores of their runs, what statistics say of them, as rows and as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from discodso.base.errors import DiscodsoError
from discodso.base.statistics import Summary, improvement_interval, probability_of_improvement
from discodso.base.text_tables import csv_text
from discodso.report.folders import Group


@dataclass(frozen=True)
class Comparison:
    """Methods on one task.

    Attributes:
        calls: objective calls at which they are compared: as many as every run has made; None where scores are of
            what runs have found at their ends.
        labels, scores: of the methods; the best reward of each of their runs after that many calls.
        summaries: of the scores.
        improvements: for every pair "first" and "second" the "probability" that a run of the first method beats
            one of the second, with its bootstrap "interval".
    """

    calls: int | None
    labels: tuple[str, ...]
    scores: tuple[tuple[float, ...], ...]
    summaries: tuple[Summary, ...]
    improvements: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        methods = [
            {"label": label, "scores": list(scores), **summary.to_dict()}
            for label, scores, summary in zip(self.labels, self.scores, self.summaries, strict=True)
        ]
        return {"calls": self.calls, "methods": methods, "improvements": self.improvements}

    def to_csv(self) -> str:
        """One line for each method."""
        pairs = {(pair["first"], pair["second"]): pair["probability"] for pair in self.improvements}
        rows = []
        for label, s in zip(self.labels, self.summaries, strict=True):
            mean = s.runs, s.mean, s.standard_error, *(s.mean_interval or (None, None))
            quartiles = s.interquartile_mean, *(s.interquartile_interval or (None, None))
            others = (pairs.get((label, other)) for other in self.labels)
            rows.append((label, self.calls, *mean, *quartiles, s.worst, s.best, *others))
        over = (f"probability of improvement over {label}" for label in self.labels)
        return csv_text((*_CSV_COLUMNS.split("|"), *over), rows)


_CSV_COLUMNS = (
    "method|calls|runs|mean|standard error|mean, 95% from|mean, 95% to|interquartile mean|"
    "interquartile mean, 95% from|interquartile mean, 95% to|worst|best"
)


def compare(groups: Sequence[Group], at: int | None = None) -> Comparison:
    """Compare methods after `at` objective calls; by default after as many as every run has made.

    A run that stopped at its target counts with that from there on.
    """
    kept = [(group, [run.track for run in group.runs if len(run.track.calls)]) for group in groups]
    kept = [(group, tracks) for group, tracks in kept if tracks]
    if not kept:
        raise DiscodsoError("none of these runs has a reward yet; wait until they have")
    points = {run.reference for group, _ in kept for run in group.runs}
    if len(points) > 1:
        raise DiscodsoError(
            "hypervolumes of these runs count down to different points; give the task a reference point"
        )
    tracks = [track for _, own in kept for track in own]
    ends = [track.calls[-1] for track in tracks if not track.settled]
    calls = int(min(ends) if ends else max(track.calls[-1] for track in tracks)) if at is None else at
    scores = []
    for group, own in kept:
        found = np.array([track.at(np.array([float(calls)]))[0] for track in own])
        if not np.isfinite(found).all():
            first, last = max(t.calls[0] for t in tracks), min(ends, default=calls)
            advice = f"compare at a number from {first:.0f} to {last:.0f}"
            if first > last:
                advice = f"some run ended after {last:.0f}, and another has its first reward at {first:.0f}"
            raise DiscodsoError(f"not every run of {group.label} has a reward at {calls} calls; {advice}")
        scores.append(tuple(found.tolist()))
    return of_scores(tuple(group.label for group, _ in kept), tuple(scores), calls)


def of_scores(
    labels: tuple[str, ...], scores: tuple[tuple[float, ...], ...], calls: int | None = None
) -> Comparison:
    """Compare methods by the scores of their runs."""
    pairs = []
    for (first, one), (second, other) in permutations(zip(labels, scores, strict=True), 2):
        chance, interval = probability_of_improvement(one, other), improvement_interval(one, other)
        pairs.append({"first": first, "second": second, "probability": chance, "interval": interval})
    return Comparison(calls, labels, scores, tuple(Summary.of(s) for s in scores), tuple(pairs))
