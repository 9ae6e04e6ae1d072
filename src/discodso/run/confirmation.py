"""The end of a noisy search: its best designs are evaluated again, on fresh seeds, which choose the winner.

The best of many noisy rewards is mostly a lucky one. So the best designs of a search race once more: each round
evaluates all that are left equally often, and the better half goes on. Only these evaluations count, since the
earlier ones have chosen the candidates; the mean of the winner is nearly free of luck.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discodso.base.arrays import Floats
from discodso.run.result import Scored
from discodso.space.design import DesignBatch
from discodso.space.space import Space

CANDIDATES = 32  # at most
_FIRST = 2  # evaluations for each in the first round, at least


@dataclass(frozen=True)
class Confirmation:
    """A race in the middle.

    Attributes:
        candidates: as the search left them; those still in the race first.
        fresh: for each what the race says of it, None before its first success.
        racing: how many are left.
        rounds: still to come.
        calls: objective calls for these rounds.
    """

    candidates: tuple[Scored, ...]
    fresh: tuple[Scored | None, ...]
    racing: int
    rounds: int
    calls: int

    def __post_init__(self) -> None:
        count = len(self.candidates)
        if len(self.fresh) != count or not 0 <= self.racing <= count or (self.rounds and not self.racing):
            raise ValueError("a race whose numbers do not fit")
        if self.rounds < 0 or self.calls < self.rounds * self.racing:
            raise ValueError("a race with fewer calls than it needs")

    @classmethod
    def of(cls, ranked: Sequence[Scored], calls: int) -> Confirmation:
        """A race of the best of these designs, as many as so many objective calls in all are enough for."""
        halvings = 0
        while (count := 2 ** (halvings + 1)) <= min(CANDIDATES, len(ranked)) and (
            _FIRST * count * (halvings + 1) <= calls
        ):
            halvings += 1
        if not ranked or calls < _FIRST or (len(ranked) > 1 and not halvings):
            return cls((), (), 0, 0, 0)
        count = 2**halvings
        return cls(tuple(ranked[:count]), (None,) * count, count, max(1, halvings), calls)

    def batch(self, space: Space) -> DesignBatch | None:
        """What to evaluate in the next round, None after the last."""
        if not self.rounds:
            return None
        designs = [scored.design for scored in self.candidates[: self.racing]]
        return replace(space.encode(designs * (self.calls // self.rounds // self.racing)), origin=space)

    def told(self, rewards: Floats, weights: Floats | None) -> Confirmation:
        """After a round, or as much of it as there was: the answers to its batch.

        Those not finite tell nothing. All designs are to have equally many, so answers beyond that are left out,
        and all of a first round that is hardly begun.
        """
        equal = len(rewards) // self.racing
        if equal < _FIRST and not self.ranked:
            return self
        rewards = rewards[: equal * self.racing]
        evidence = np.ones(len(rewards)) if weights is None else weights
        fresh = list(self.fresh)
        for row in np.flatnonzero(np.isfinite(rewards)).tolist():
            own = row % self.racing
            found = self.candidates[own]
            more = Scored(found.design, float(rewards[row]), found.call, float(evidence[row]))
            before = fresh[own]
            fresh[own] = more if before is None else before.joined(more)
        order = sorted(range(self.racing), key=lambda row: _place(fresh[row]))
        order += range(self.racing, len(fresh))
        return replace(
            self,
            candidates=tuple(self.candidates[row] for row in order),
            fresh=tuple(fresh[row] for row in order),
            racing=max(1, self.racing // 2),
            rounds=self.rounds - 1,
            calls=self.calls - len(rewards),
        )

    @property
    def ranked(self) -> tuple[Scored, ...]:
        """The designs that the race has evaluated, by how far they came, with what it says of them."""
        return tuple(scored for scored in self.fresh if scored is not None)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "candidates": [scored.to_dict() for scored in self.candidates],
            "fresh": [None if scored is None else scored.to_dict() for scored in self.fresh],
            "racing": self.racing,
            "rounds": self.rounds,
            "calls": self.calls,
        }

    @classmethod
    def from_dict(cls, data: Any) -> Confirmation:
        """Inverse of `to_dict`; KeyError, TypeError or ValueError for anything else."""
        numbers = (int(data[key]) for key in ("racing", "rounds", "calls"))
        return cls(
            tuple(Scored.from_dict(scored) for scored in data["candidates"]),
            tuple(None if scored is None else Scored.from_dict(scored) for scored in data["fresh"]),
            *numbers,
        )


def _place(scored: Scored | None) -> tuple[float, ...]:
    return (np.inf, 0, 0) if scored is None else (-scored.reward, len(scored.design), scored.call)
