"""What decides a run beside its task, its method and where it is evaluated: limits, seed, what to keep."""

from __future__ import annotations

from dataclasses import dataclass, replace

from discodso.base.checks import require
from discodso.base.options import check_options, option

_CONFIRMING_SHARE = 10  # a tenth of the calls
_LEAST_RACE = 4  # calls: two for each of two designs


@dataclass(frozen=True, slots=True)
class Plan:
    """When to stop, and what to keep."""

    budget: int = option(help="Objective calls to spend; failed calls count.", least=1)
    seed: int = option(0, "The same seed gives the same run.")
    target: float | None = option(
        None,
        "Stop at a reward of at least this; where the winner is confirmed, at a mean of several evaluations that "
        "is two standard errors better.",
    )
    patience: int | None = option(
        None, "Stop after so many calls without a better design; looked at after every batch.", least=1
    )
    time_limit: float | None = option(None, "Stop after so many seconds.", above=0)
    top: int = option(10, "Distinct designs to keep.", least=1, command="")
    on_failure: str = option(
        "stop",
        "stop: a run ends if all of its first batch fail; continue: it goes on all the same; raise: the first "
        "failure is an error.",
        choices=("stop", "continue", "raise"),
    )
    retries: int = option(
        1, "Times that a design is evaluated again which lost its worker, before it has failed.", least=0
    )
    checkpoint_seconds: float = option(60.0, "Seconds between checkpoints in the folder.", least=0)
    design_seconds: float | None = option(None, "A design that takes longer has failed.", above=0, command="")
    asynchronous: bool = option(
        False,
        "Give every worker that is free the next design at once, where batches would wait for the slowest. The "
        "order of answers then decides the run, and stands in its journal.",
    )
    confirm_calls: int | None = option(
        None,
        "Where rewards are noisy, calls of the budget that are kept for the end: the best designs race on fresh "
        "seeds, which choose the winner. By default a tenth of the budget, none for the paper's preset.",
        command="",
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.confirm_calls is not None:
            fits = self.confirm_calls < self.budget
            require("confirm_calls", self.confirm_calls, fits, f"below the budget, {self.budget}")
            enough = self.confirm_calls == 0 or self.confirm_calls >= _LEAST_RACE
            require("confirm_calls", self.confirm_calls, enough, f"0, or at least {_LEAST_RACE}")

    def confirming_noise(self, noisy: bool) -> Plan:
        """With calls kept for the end of a noisy search, where the user has not said how many."""
        if self.confirm_calls is not None or not noisy:
            return self
        share = self.budget // _CONFIRMING_SHARE
        return replace(self, confirm_calls=share if share >= _LEAST_RACE else 0)


@dataclass(frozen=True, slots=True)
class Limits:
    """Of a run that is gone on with, in place of those in its plan, which checks them."""

    budget: int | None = option(None, "Objective calls in all; that of the run by default.")
    time_limit: float | None = option(
        None, "Seconds in all, those before included; that of the run by default."
    )
