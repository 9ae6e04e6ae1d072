"""The archive of the best distinct designs seen, and what their rewards stand on.

Where rewards are noisy the best of many are mostly the lucky ones. With rechecking a promising design is evaluated
again before it joins the archive, with the second reward only, since the first one chose it; those of the
archive with the least evidence are evaluated again all along, and their rewards are averaged.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.disco.settings import ArchiveSettings
from discodso.space.design import DesignBatch
from discodso.space.space import Space
from discodso.space.state import Arrays, State, batch_arrays, batch_of

_POOLS = ("members", "waiting", "earlier")


@dataclass(frozen=True, slots=True)
class Niche:
    """How many designs may have the same structure: the same tokens, or the same first `length` tokens."""

    size: int
    length: int | None = None


@dataclass(frozen=True)
class Pool:
    """Designs with what is known of them.

    Attributes:
        designs: B of them.
        rewards: float[B]; those not finite have failed.
        weights: float[B], the evidence behind each reward, such as episodes.
    """

    designs: DesignBatch
    rewards: Floats
    weights: Floats

    @classmethod
    def empty(cls, space: Space) -> Pool:
        """No designs."""
        values = np.empty((0, 1, *space.library.low.shape[1:]))
        nothing = np.empty((0, 1), np.int64), values, np.empty(0, np.int64)
        return cls(DesignBatch(space.library, *nothing, space), np.empty(0), np.empty(0))

    def __len__(self) -> int:
        return len(self.rewards)

    def select(self, rows: Ints | Bools) -> Pool:
        """Some of them."""
        return Pool(self.designs.select(rows), self.rewards[rows], self.weights[rows])

    def join(self, other: Pool) -> Pool:
        """Both, one after the other."""
        return Pool(
            DesignBatch.concatenate((self.designs, other.designs)),
            np.concatenate((self.rewards, other.rewards)),
            np.concatenate((self.weights, other.weights)),
        )

    def best_distinct(self, count: int, niche: Niche | None = None) -> Pool:
        """The best designs without repetition; at equal rewards the shorter ones."""
        order = np.lexsort((self.designs.design_lengths(), -self.rewards))
        keys = self.designs.keys()
        structures = keys if niche is None else self.designs.skeletons(niche.length)
        first: dict[bytes, int] = {}
        taken: Counter[bytes] = Counter()
        for row in order[np.isfinite(self.rewards[order])].tolist():
            if len(first) == count:
                break
            if keys[row] in first or (niche is not None and taken[structures[row]] >= niche.size):
                continue
            first[keys[row]] = row
            taken[structures[row]] += 1
        return self.select(np.array(list(first.values()), dtype=np.int64))

    def to_arrays(self) -> Arrays:
        """For a checkpoint."""
        return {**batch_arrays(self.designs), "rewards": self.rewards.copy(), "weights": self.weights.copy()}

    @classmethod
    def of_arrays(cls, space: Space, arrays: Arrays) -> Pool:
        """Inverse of `to_arrays`; KeyError or ValueError for anything else."""
        designs = batch_of(space, arrays)
        for name in ("rewards", "weights"):
            if arrays[name].shape != (len(designs),):
                raise ValueError(f"{name} that are not as many as designs")
        return cls(designs, arrays["rewards"].astype(np.float64), arrays["weights"].astype(np.float64))


@dataclass(frozen=True)
class Archive:
    """The best designs seen, best first, and the promising designs that wait for their second evaluation.

    Attributes:
        members: at most `size`.
        waiting: only with `recheck`.
        earlier: the best of the starts before this one.
        niche: how many members may be alike, None for any number.
        recheck: whether rewards are noisy; see the module.
    """

    members: Pool
    waiting: Pool
    earlier: Pool
    size: int
    niche: Niche | None = None
    recheck: bool = False

    @classmethod
    def begin(cls, space: Space, settings: ArchiveSettings) -> Archive:
        """An empty one."""
        nothing = Pool.empty(space)
        niche = Niche(settings.niche, settings.niche_length or None) if settings.niche else None
        return cls(nothing, nothing, nothing, settings.size, niche, settings.recheck > 0)

    def __len__(self) -> int:
        return len(self.members)

    def add(self, batch: Pool, places: int) -> Archive:
        """Take the rewards of a batch; at most `places` designs wait afterwards."""
        if not self.recheck:
            members = self.members.join(batch).best_distinct(self.size, self.niche)
            return replace(self, members=members)
        keys, waiting_keys = batch.designs.keys(), self.waiting.designs.keys()
        known = {*waiting_keys, *self.members.designs.keys()}
        again = np.array([key in known for key in keys], np.bool_)
        members = _averaged(self.members.join(batch.select(again)))
        members = members.best_distinct(self.size, self.niche)
        line = members.rewards[-1] if len(members) == self.size else -np.inf
        still = [key not in keys for key in waiting_keys]
        left = self.waiting.select(np.array(still, np.bool_))
        news = batch.select(~again & (batch.rewards > line))
        return replace(self, members=members, waiting=left.join(news).best_distinct(places))

    def begin_anew(self) -> Archive:
        """Empty, for another start; the best members are among `earlier`."""
        nothing = self.members.select(np.empty(0, np.int64))
        earlier = self.earlier.join(self.members).best_distinct(self.size, self.niche)
        return replace(self, members=nothing, waiting=nothing, earlier=earlier)

    def entered(self, before: Archive, batch: Pool) -> Floats:
        """float[B]: 1 / (1 + rank) for each design of a batch that is a member now and was none before, else 0.
        With `recheck` it is enough to wait for membership."""
        now = {**_ranks(self.waiting), **_ranks(self.members)}
        old = {*_ranks(before.waiting), *_ranks(before.members)}
        # A design counts once, however often the batch has it.
        ranks = [now.pop(key, None) if key not in old else None for key in batch.designs.keys()]  # noqa: SIM118
        return np.array([0.0 if rank is None else 1 / (1 + rank) for rank in ranks])

    def to_recheck(self, places: int) -> DesignBatch:
        """Designs to evaluate again: those that wait, then the members with the least evidence."""
        least = np.argsort(self.members.weights, kind="stable")
        designs = DesignBatch.concatenate((self.waiting.designs, self.members.designs.select(least)))
        return designs.select(slice(0, places))

    def state(self) -> State:
        """Its designs, for a checkpoint."""
        return State.of_parts({name: State(getattr(self, name).to_arrays()) for name in _POOLS})

    def restored(self, space: Space, state: State) -> Archive:
        """This one with the designs of a state; KeyError or ValueError for anything else."""
        members, waiting, earlier = (Pool.of_arrays(space, state.part(name).arrays) for name in _POOLS)
        return replace(self, members=members, waiting=waiting, earlier=earlier)


def _ranks(pool: Pool) -> dict[bytes, int]:
    return {key: rank for rank, key in enumerate(pool.designs.keys())}


def _averaged(pool: Pool) -> Pool:
    """Equal designs as one, with the mean of their rewards by weight; failed evaluations tell nothing."""
    pool = pool.select(np.isfinite(pool.rewards))
    rows: dict[bytes, list[int]] = {}
    for row, key in enumerate(pool.designs.keys()):
        rows.setdefault(key, []).append(row)
    rewards = [float(np.average(pool.rewards[own], weights=pool.weights[own])) for own in rows.values()]
    weights = [float(pool.weights[own].sum()) for own in rows.values()]
    first = np.array([own[0] for own in rows.values()], np.int64)
    return Pool(pool.designs.select(first), np.array(rewards), np.array(weights))
