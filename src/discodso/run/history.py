"""The history of a search: one row for each batch, and now and then what its designs are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from discodso.base.arrays import Floats
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
        values: of these batches the quantiles `VALUE_QUANTILES` of numbers that have a name, by "token.name".
        restarted: whether the method begins anew after this batch.
        repeats: share of the designs that the method proposed for this batch which had been evaluated before; they
            cost no call. None where rewards are noisy.
        redrawn: designs that the method drew again for this batch: they had met a dead end, or no condition.
        feasible: designs so far that met all requirements, None if there are none.
        broken: how many designs have broken each requirement so far, by name.
        hypervolume, front: of several objectives, the hypervolume of the front so far and its designs.
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
    values: TokenUse | None = None
    redrawn: int | None = None
    feasible: int | None = None
    broken: Mapping[str, int] | None = None
    hypervolume: float | None = None
    front: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """For JSON; all but numbers are left out where there is nothing."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        for key in ("tokens", "values"):
            own[key] = {name: list(use) for name, use in (own[key] or {}).items()}
        return {
            name: value
            for name, value in own.items()
            if value or (name in _NUMBERS and not (value is None and name in _SELDOM))
        }

    @classmethod
    def from_dict(cls, data: Any) -> HistoryRow:
        """Inverse of `to_dict`; other keys are passed over. TypeError, ValueError or AttributeError for
        anything else."""
        numbers = {name: data[name] for name in _NUMBERS if name in data}
        plain = all(value is None or type(value) in (int, float) for value in numbers.values())
        if not plain or type(numbers.get("calls")) is not int:
            raise ValueError("numbers of a history row that are none")
        shares, tokens, values = (data.get(key) for key in ("shares", "tokens", "values"))
        broken = data.get("broken")
        return cls(
            **numbers,
            shares=None if shares is None else dict(zip(shares, _floats(shares.values()), strict=True)),
            tokens=None if tokens is None else {name: _floats(use) for name, use in tokens.items()},
            values=None if values is None else {name: _floats(use) for name, use in values.items()},
            restarted=data.get("restarted") is True,
            confirming=data.get("confirming") is True,
            broken=None if broken is None else {str(name): int(count) for name, count in broken.items()},
        )


_OTHERS = {"shares", "tokens", "values", "restarted", "confirming", "broken"}
_SELDOM = {"feasible", "hypervolume", "front"}  # numbers that most runs do not have
_NUMBERS = {field.name for field in fields(HistoryRow)} - _OTHERS


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
    """What designs are made of: for each token its share among all tokens, and for one that carries a number
    without a name and occurs also the quantiles `VALUE_QUANTILES` of its values."""
    library = designs.library
    used = designs.tokens >= 0
    ids, values = designs.tokens[used], designs.all_values[used]
    counts = np.bincount(ids, minlength=len(library)).astype(np.float64)
    own = [k for k in range(len(library)) if k != library.end]
    shares = counts / max(counts[own].sum(), 1.0)
    found: TokenUse = {library.names[k]: (_rounded(shares[k]),) for k in own}
    for k in own:
        if library.tokens[k].plain and counts[k]:
            found[library.names[k]] += _quantiles(values[ids == k, 0])
    return found


def named_values(designs: DesignBatch) -> TokenUse | None:
    """Quantiles of the numbers of designs that have a name, by "token.name"; None where there is none."""
    library, used = designs.library, designs.tokens >= 0
    if library.plain:
        return None
    ids, values = designs.tokens[used], designs.all_values[used]
    found: TokenUse = {}
    for column in library.columns:
        own = values[ids == column.token, column.slot]
        named = not library.tokens[column.token].plain and library.numeric[column.token, column.slot]
        if named and len(own):
            found[f"{library.names[column.token]}.{column.name}"] = _quantiles(own)
    return found or None


def _quantiles(values: Floats) -> tuple[float, ...]:
    """Each of them one of the values."""
    own = np.sort(values)
    places = np.round(np.array(VALUE_QUANTILES) * (len(own) - 1)).astype(np.int64)
    return tuple(_rounded(value) for value in own[places])


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")
