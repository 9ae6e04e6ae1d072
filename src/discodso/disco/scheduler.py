"""Sharing objective calls between what proposes designs, by what each earned lately.

A proposer earns when a design of its own enters the archive: 1 for a new best design, 1 / (1 + rank) for others.
Its share follows what it earned for each call, over about the last thousand calls; none falls below its floor, so
that one that is of no use now can show later that it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.space.design import DesignBatch
from discodso.space.state import Arrays

PROPOSERS = ("policy", "variation", "refinement")
POLICY, VARIATION, REFINEMENT = range(3)
ELSEWHERE = -1  # told by a user, or evaluated again
_FLOORS = (0.15, 0.15, 0.1)
_KEPT = 0.999  # of what was earned, and of the calls, after each call
_TRUST = 0.002  # earned for each of the first calls before anything is known
_FIRST_CALLS = 100.0


@dataclass(frozen=True, slots=True)
class Allocation:
    """What policy, variation and refinement earned, and with how many calls; both fade."""

    earned: tuple[float, ...] = (0.0, 0.0, 0.0)
    calls: tuple[float, ...] = (0.0, 0.0, 0.0)

    def shares(self, on: Sequence[bool]) -> tuple[float, ...]:
        """The share of each in the next batch, of those that are on; they add up to 1."""
        rates = [
            (earned + _TRUST * _FIRST_CALLS) / (calls + _FIRST_CALLS) if used else 0.0
            for earned, calls, used in zip(self.earned, self.calls, on, strict=True)
        ]
        floors = [floor if used else 0.0 for floor, used in zip(_FLOORS, on, strict=True)]
        free = 1 - sum(floors)
        return tuple(floor + free * rate / sum(rates) for floor, rate in zip(floors, rates, strict=True))

    def after(self, sources: Ints, earned: Floats) -> Allocation:
        """With one more batch: sources int[B], and what each design earned, float[B]."""
        own = [sources == source for source in (POLICY, VARIATION, REFINEMENT)]
        kept = _KEPT ** len(sources)
        return Allocation(
            tuple(kept * old + float(earned[rows].sum()) for old, rows in zip(self.earned, own, strict=True)),
            tuple(kept * old + float(rows.sum()) for old, rows in zip(self.calls, own, strict=True)),
        )


class Origins:
    """Who proposed the designs that have been asked for and not told yet; of the last ones only."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._source: dict[bytes, int] = {}

    def note(self, designs: DesignBatch, source: int) -> None:
        """Remember where designs come from."""
        for key in designs.keys():  # noqa: SIM118 - a method of the batch
            self._source.pop(key, None)
            self._source[key] = source
        for key in list(self._source)[: len(self._source) - self._most]:
            del self._source[key]

    def take(self, designs: DesignBatch) -> Ints:
        """int[B], where designs come from, ELSEWHERE if it is not known; it is then forgotten."""
        return np.array([self._source.pop(key, ELSEWHERE) for key in designs.keys()], np.int64)  # noqa: SIM118

    def to_arrays(self) -> Arrays:
        """For a checkpoint."""
        keys = list(self._source)
        return {
            "keys": np.frombuffer(b"".join(keys), np.uint8).copy(),
            "lengths": np.array([len(key) for key in keys], np.int64),
            "sources": np.array(list(self._source.values()), np.int64),
        }

    def restore(self, arrays: Arrays) -> None:
        """Go back to a checkpoint."""
        ends = np.cumsum(arrays["lengths"])
        keys = [part.tobytes() for part in np.split(arrays["keys"], ends)[:-1]]
        self._source = dict(zip(keys, arrays["sources"].tolist(), strict=True))
