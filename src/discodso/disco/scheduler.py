"""The scheduler: sharing objective calls between proposers, by what each earned lately or by fixed shares.

A proposer earns when a design of its own enters the archive: 1 for a new best design, 1 / (1 + rank) for others.
Its share follows what it earned for each call, over about the last thousand calls; none falls below its floor, so
that one that is of no use now can show later that it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.base.checks import require, require_number
from discodso.space.design import DesignBatch
from discodso.space.state import Arrays

POLICY = 0  # the number of the network among the proposers
ELSEWHERE = -1  # told by a user, or evaluated again
_POLICY_FLOOR, _FLOOR = 0.15, 0.1
_SHARE = 0.1  # of a proposer that says nothing
_KEPT = 0.999  # of what was earned, and of the calls, after each call
_TRUST = 0.002  # earned for each of the first calls before anything is known
_FIRST_CALLS = 100.0


@dataclass(frozen=True, slots=True)
class Scheduler:
    """What the network and the other proposers earned, and with how many calls; both fade.

    Attributes:
        names: of the proposers, the network first.
        floors: least shares.
        fixed: shares that are used as they are, None to share by what was earned.
    """

    names: tuple[str, ...]
    floors: tuple[float, ...]
    fixed: tuple[float, ...] | None
    earned: tuple[float, ...]
    calls: tuple[float, ...]

    @classmethod
    def of(cls, proposers: Sequence[Any], adaptive: bool, first: str = "policy") -> Scheduler:
        """For the network, which may go by another name, and these proposers."""
        names = (first, *(str(getattr(p, "name", type(p).__name__)) for p in proposers))
        shares = tuple(getattr(proposer, "share", _SHARE) for proposer in proposers)
        floors = (_POLICY_FLOOR, *(getattr(proposer, "floor", _FLOOR) for proposer in proposers))
        require("names of proposers", names, len(set(names)) == len(names), "distinct")
        for name, share, floor in zip(names[1:], shares, floors[1:], strict=True):
            require_number(f"share of {name}", share, least=0, most=1)
            require_number(f"floor of {name}", floor, least=0, most=1)
        if adaptive:
            require("floors of proposers", floors, sum(floors) <= 1, "at most 1 together")
        else:
            require("shares of proposers", shares, sum(shares) <= 1, "at most 1 together")
        nothing = (0.0,) * len(names)
        return cls(names, floors, None if adaptive else (1 - sum(shares), *shares), nothing, nothing)

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of each in the next batch; they add up to 1."""
        if self.fixed is not None:
            return self.fixed
        rates = [
            (earned + _TRUST * _FIRST_CALLS) / (calls + _FIRST_CALLS)
            for earned, calls in zip(self.earned, self.calls, strict=True)
        ]
        free = 1 - sum(self.floors)
        return tuple(floor + free * rate / sum(rates) for floor, rate in zip(self.floors, rates, strict=True))

    def named_shares(self) -> dict[str, float]:
        """Shares by name."""
        return dict(zip(self.names, self.shares, strict=True))

    def counts(self, size: int) -> list[int]:
        """Designs of each in a batch, rounded down; the network has the rest."""
        return [0, *(int(share * size) for share in self.shares[1:])]

    def after(self, sources: Ints, earned: Floats) -> Scheduler:
        """With one more batch: sources int[B], and what each design earned, float[B]."""
        if self.fixed is not None:
            return self
        own = [sources == source for source in range(len(self.names))]
        kept = _KEPT ** len(sources)
        gains = [float(earned[rows].sum()) for rows in own]
        return replace(
            self,
            earned=tuple(kept * old + gain for old, gain in zip(self.earned, gains, strict=True)),
            calls=tuple(kept * old + float(rows.sum()) for old, rows in zip(self.calls, own, strict=True)),
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"earned": list(self.earned), "calls": list(self.calls)}

    def with_dict(self, data: Mapping[str, Any]) -> Scheduler:
        """Inverse of `to_dict`."""
        earned, calls = (tuple(float(x) for x in data[key]) for key in ("earned", "calls"))
        if len(earned) != len(self.names) or len(calls) != len(self.names):
            raise ValueError("shares of other proposers")
        return replace(self, earned=earned, calls=calls)


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
