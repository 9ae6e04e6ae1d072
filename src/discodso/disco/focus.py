"""The protocol of a focus: where, within their ranges, the values of designs are worth looking for."""

from __future__ import annotations

from typing import Protocol

from discodso.base.arrays import Floats
from discodso.disco.archive import Archive
from discodso.space.state import State


class Focus(Protocol):
    """Follows the best designs of a search with an interval for each value, and so widens and narrows.

    Values are drawn there, and variations move by steps of its size. Ranges and bounds hold as before.
    """

    def reach(self) -> tuple[Floats, Floats]:
        """low[K, V] and high[K, V] in coordinates, NaN where there is no number."""
        ...

    def learn(self, archive: Archive) -> float:
        """Look at the best designs after each batch; returns what that cost, in the unit of the task."""
        ...

    def state(self) -> State:
        """All that later intervals depend on."""
        ...

    def restore(self, state: State) -> None:
        """Go back to a state."""
        ...
