"""The protocol of proposers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from discodso.disco.archive import Archive, Pool
from discodso.disco.scripts import Scripts
from discodso.space.design import Design
from discodso.space.state import State


class Proposer(Protocol):
    """Proposes a share of every batch, and is told what came of it.

    It may also have `share`, its share of a batch where shares are fixed (0.1 if it has none), and `floor`, its
    least share where they follow what each proposer earns (likewise). With `screened = True` it is asked for
    several times as many designs as are evaluated while a screen chooses among them.

    Attributes:
        name: for reports.
    """

    name: str

    def propose(
        self, archive: Archive, count: int, rng: np.random.Generator
    ) -> Sequence[Design] | Scripts | None:
        """Propose at most `count` designs.

        Args:
            archive: the best designs so far, `archive.members.designs` with `archive.members.rewards`, best first.
            count: how many are wanted; what is missing is drawn.
            rng: the only source of randomness.

        Returns:
            Designs of the space; or scripts, which the network completes; or None for nothing.
        """
        ...

    def learn(self, told: Pool, archive: Archive) -> None:
        """Take the designs that it had proposed, with their rewards, once the archive has them."""
        ...

    def state(self) -> State:
        """All that later proposals depend on."""
        ...

    def restore(self, state: State) -> None:
        """Go back to a state."""
        ...
