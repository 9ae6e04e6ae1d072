"""The history of a search: one row for each batch, and now and then what its designs are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np

from discodso.space.design import DesignBatch

TokenUse = dict[str, tuple[float, ...]]
VALUE_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_DENSE = 128  # batches until the distance of sampled ones doubles


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """The search after one batch. None where there was nothing to measure.

    Attributes:
        calls: objective calls so far.
        best: best reward so far.
        batch_best, mean, quantile: of the rewards of this batch that did not fail.
        entropy: of the policy, mean over the designs that taught.
        mean_length, max_length: of the designs of this batch.
        failures: failed evaluations so far.
        cost: so far, in the unit of the task, if it has one.
        seconds: since the start.
        shares: of the next batch, by who proposes: policy, variation, refinement; None if all are the policy's.
        tokens: of some batches what their designs are made of, see `token_use`; None for the others.
        restarted: whether the method begins anew after this batch.
        repeats: share of the designs that the method proposed for this batch which had been evaluated before; they
            cost no call. None where rewards are noisy.
        confirming: whether this batch evaluated the best designs again, to choose the winner of a noisy search.
    """

    calls: int
    best: float | None
    batch_best: float | None
    mean: float | None
    quantile: float | None
    entropy: float | None
    mean_length: float | None
    max_length: int | None
    failures: int
    seconds: float
    cost: float | None = None
    shares: Mapping[str, float] | None = None
    tokens: TokenUse | None = None
    restarted: bool = False
    confirming: bool = False
    repeats: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """For JSON; `shares`, `tokens`, `restarted` and `confirming` are left out where there is nothing."""
        parts = ("shares", "tokens", "restarted", "confirming")
        own: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in parts}
        if self.shares is not None:
            own["shares"] = dict(self.shares)
        if self.tokens is not None:
            own["tokens"] = {name: list(use) for name, use in self.tokens.items()}
        own |= {name: True for name in ("restarted", "confirming") if getattr(self, name)}
        return own

    @classmethod
    def from_dict(cls, data: Any) -> HistoryRow:
        """Inverse of `to_dict`, which passes over other keys; TypeError, ValueError or AttributeError for anything
        else."""
        numbers = {name: data[name] for name in _NUMBERS if name in data}
        plain = all(value is None or type(value) in (int, float) for value in numbers.values())
        if not plain or not numbers.keys() >= _NEEDED or type(numbers["calls"]) is not int:
            raise ValueError("numbers of a history row that are missing or are none")
        shares, tokens = data.get("shares"), data.get("tokens")
        return cls(
            **numbers,
            shares=None if shares is None else dict(zip(shares, _floats(shares.values()), strict=True)),
            tokens=None if tokens is None else {name: _floats(use) for name, use in tokens.items()},
            restarted=data.get("restarted") is True,
            confirming=data.get("confirming") is True,
        )


_NUMBERS = {field.name for field in fields(HistoryRow)} - {"shares", "tokens", "restarted", "confirming"}
_NEEDED = {field.name for field in fields(HistoryRow) if field.default is MISSING}  # also in older folders


def _floats(values: Any) -> tuple[float, ...]:
    if not values or any(type(value) not in (int, float) for value in values):
        raise TypeError("shares or quantiles that are no numbers")
    return tuple(map(float, values))


def rounded_shares(shares: Mapping[str, float] | None) -> Mapping[str, float] | None:
    """As they stand in a history."""
    return None if shares is None else {name: _rounded(share) for name, share in shares.items()}


def is_sampled(number: int) -> bool:
    """Whether batch `number`, counted from 1, keeps its token use: all of the first, then fewer and fewer.

    A function of the number alone, so that a resumed run, or one whose budget was raised, keeps the same ones. The
    distance doubles each time the number has doubled: 10,000 batches keep about 500.
    """
    return number % (1 << max(0, (number // _DENSE).bit_length() - 1)) == 0


def token_use(designs: DesignBatch) -> TokenUse:
    """What designs are made of: for each token its share among all tokens, and for one that carries a value and
    occurs also the quantiles `VALUE_QUANTILES` of its values."""
    library = designs.library
    used = designs.tokens >= 0
    ids = designs.tokens[used]
    values = designs.values[used]
    counts = np.bincount(ids, minlength=len(library)).astype(np.float64)
    if library.end is not None:
        counts[library.end] = 0
    shares = counts / max(counts.sum(), 1.0)
    found: TokenUse = {}
    for k, name in enumerate(library.names):
        if k != library.end:
            found[name] = (_rounded(shares[k]),)
            if library.parametrised[k] and counts[k]:
                own = np.sort(values[ids == k])
                places = np.round(np.array(VALUE_QUANTILES) * (len(own) - 1)).astype(np.int64)
                found[name] += tuple(_rounded(value) for value in own[places])
    return found


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")
