"""The memory of a run: the rewards of all designs so far, so that none is paid for twice.

It is for objectives that give a design the same reward each time. A design is the same if its tokens and values
are, to the last bit.
"""

from __future__ import annotations

import hashlib

import numpy as np

from discodso.base.arrays import Bools, Floats
from discodso.space.design import DesignBatch
from discodso.space.enumeration import all_designs
from discodso.space.space import Space
from discodso.space.state import State

_MARK = 16  # bytes that stand for a design
ENUMERABLE = 200_000  # designs up to which a space without values is listed to see whether any are left


class Memory:
    """Rewards by design; NaN for evaluations that failed, which would fail again."""

    def __init__(self) -> None:
        self._rewards: dict[bytes, float] = {}
        self._reserved = set[bytes]()  # asked for, and not known yet
        self._all: DesignBatch | None = None  # of the space, once they were needed
        self._too_many = False

    def __len__(self) -> int:
        return len(self._rewards)

    def is_new(self, designs: DesignBatch) -> Bools:
        """bool[B], which designs were never evaluated; of equal ones in the batch only the first is new."""
        marks = _marks(designs)
        first = {mark: row for row, mark in reversed(list(enumerate(marks)))}
        return np.array(
            [
                mark not in self._rewards and mark not in self._reserved and first[mark] == row
                for row, mark in enumerate(marks)
            ],
            np.bool_,
        )

    def reserve(self, designs: DesignBatch) -> None:
        """These are under way, and so not new any more."""
        self._reserved.update(_marks(designs))

    def holds(self, designs: DesignBatch) -> Bools:
        """bool[B], which designs are known."""
        return np.array([mark in self._rewards for mark in _marks(designs)], np.bool_)

    def rewards(self, designs: DesignBatch) -> Floats:
        """float[B], of designs that are all known."""
        return np.array([self._rewards[mark] for mark in _marks(designs)], np.float64)

    def add(self, designs: DesignBatch, rewards: Floats) -> None:
        """Remember rewards."""
        marks = _marks(designs)
        self._rewards.update(zip(marks, rewards.tolist(), strict=True))
        self._reserved.difference_update(marks)

    def unseen(self, space: Space, most: int) -> DesignBatch | None:
        """Some designs that were never evaluated, none if there are no more; None if those of the space cannot be
        listed."""
        if self._all is None and not self._too_many:
            self._all = all_designs(space, ENUMERABLE)
            self._too_many = self._all is None
        if self._all is None:
            return None
        return self._all.select(np.flatnonzero(self.is_new(self._all))[:most])

    def state(self) -> State:
        """For a checkpoint."""
        marks = np.frombuffer(b"".join(self._rewards), np.uint8).copy()
        return State({"marks": marks, "rewards": np.array(list(self._rewards.values()), np.float64)})

    def restore(self, state: State) -> None:
        """Inverse of `state`; KeyError or ValueError for anything else."""
        marks = (mark.tobytes() for mark in state.arrays["marks"].reshape(-1, _MARK))
        self._rewards = dict(zip(marks, state.arrays["rewards"].tolist(), strict=True))


def _marks(designs: DesignBatch) -> list[bytes]:
    return designs.known_keys("marks", _hashed)


def _hashed(designs: DesignBatch) -> list[bytes]:
    return [hashlib.blake2b(key, digest_size=_MARK).digest() for key in designs.keys()]  # noqa: SIM118
