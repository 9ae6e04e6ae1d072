"""Episodes of learning as objective calls: each N of them are one, as for every method."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from discodso.base.errors import DeclarationError, DiscodsoError
from discodso.disco.method import Searched
from discodso.space.design import DesignBatch
from discodso.tasks.policies.splits import Nodes
from discodso.tasks.policies.vocabulary import TreeSpace


class EpisodeCount:
    """Counts episodes step by step; a call that was begun counts, and its other episodes are there for later.

    Args:
        each: N.
    """

    def __init__(self, each: int) -> None:
        self.each = each
        self._paid = 0  # episodes of calls that were counted, which are still to come
        self._spent, self._calls, self._full = 0, 0, False
        self._begun = False

    def open(self, calls: int) -> None:
        """Begin a step with at most so many calls."""
        self._spent, self._calls, self._full = 0, calls, False

    def room(self, episodes: int) -> bool:
        """Whether there are so many episodes left in the step; if not, its calls count as used up."""
        fits = self._spent + episodes <= self._paid + self._calls * self.each
        if not fits and not self._begun:
            raise DeclarationError(
                f"budget: {self._calls} calls of {self.each} episodes are too few for the first tree, which takes "
                f"{episodes} episodes"
            )
        self._full = not fits
        return fits

    def spend(self, episodes: int) -> None:
        """Count some."""
        self._spent, self._begun = self._spent + episodes, True

    def searched(self, space: TreeSpace, found: Sequence[tuple[float, Nodes]], exhausted: str) -> Searched:
        """What a step has found, with its calls."""
        calls = self._calls if self._full else max(-((self._paid - self._spent) // self.each), 0)
        self._paid += calls * self.each - self._spent
        designs = space.encode([space.vocabulary.design(nodes) for _, nodes in found])
        rewards = np.array([reward for reward, _ in found])
        return Searched(designs, rewards, calls, exhausted=exhausted, cost=float(self._spent))

    def data(self) -> dict[str, int]:
        """For a checkpoint, between two steps."""
        return {"paid": self._paid, "begun": int(self._begun)}

    def set(self, data: Mapping[str, Any]) -> None:
        """Inverse of `data`."""
        self._paid, self._begun = int(data["paid"]), bool(data["begun"])


def rates_itself(kind: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`ask` and `tell` of a method that acts in the environment itself."""

    def ask(self: Any, size: int | None = None) -> DesignBatch:
        """This method rates trees itself."""
        raise DiscodsoError(f"{kind} act in the environment themselves; use search_policy(..., method=...)")

    def tell(self: Any, designs: Any, rewards: Any, weights: Any = None) -> None:
        """This method rates trees itself."""
        ask(self)

    return ask, tell
