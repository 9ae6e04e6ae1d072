"""What decides a run beside its task, its method and where it is evaluated: limits, seed, what to keep."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from discodso.base.checks import require, require_integer, require_number

_CONFIRMING_SHARE = 10  # a tenth of the calls
LEAST_RACE = 4  # calls: two for each of two designs


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop.

    Args:
        budget: objective calls.
        target: a reward that is good enough.
        patience: objective calls without a better design.
        time_limit: seconds.
    """

    budget: int
    target: float | None = None
    patience: int | None = None
    time_limit: float | None = None

    def __post_init__(self) -> None:
        require_integer("budget", self.budget, 1)
        if self.patience is not None:
            require_integer("patience", self.patience, 1)
        if self.target is not None:
            require_number("target", self.target)
        if self.time_limit is not None:
            require_number("time_limit", self.time_limit, above=0)


@dataclass(frozen=True, slots=True)
class Plan:
    """All that decides a run beside its task, method and executor; `search` explains the fields."""

    limits: Limits
    seed: int = 0
    top: int = 10
    raise_on_failure: bool = False
    overlap: bool = False
    checkpoint_seconds: float = 60.0
    design_seconds: float | None = None
    chunk_size: int | None = None
    confirm_calls: int | None = None

    def __post_init__(self) -> None:
        require_integer("top", self.top, 1)
        require_integer("seed", self.seed, 0)
        require_number("checkpoint_seconds", self.checkpoint_seconds, least=0)
        require("overlap", self.overlap, isinstance(self.overlap, (bool, np.bool_)), "True or False")
        if self.confirm_calls is not None:
            require_integer("confirm_calls", self.confirm_calls, 0)
            fits = self.confirm_calls < self.limits.budget
            require("confirm_calls", self.confirm_calls, fits, f"below the budget, {self.limits.budget}")
            enough = self.confirm_calls == 0 or self.confirm_calls >= LEAST_RACE
            require("confirm_calls", self.confirm_calls, enough, f"0, or at least {LEAST_RACE}")

    def confirming_noise(self, noisy: bool) -> Plan:
        """With calls kept for the end of a noisy search, where the user has not said how many."""
        if self.confirm_calls is not None or not noisy:
            return self
        share = self.limits.budget // _CONFIRMING_SHARE
        return replace(self, confirm_calls=share if share >= LEAST_RACE else 0)

    def to_record(self) -> dict[str, Any]:
        """For settings.toml."""
        own = {key: value for key, value in asdict(self).items() if key != "limits"}
        both = {**asdict(self.limits), **own}
        return {key: value.item() if isinstance(value, np.generic) else value for key, value in both.items()}
