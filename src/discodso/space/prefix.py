"""The state of B unfinished designs while they grow token by token, in pre-order.

A `Prefix` is what constraints, bounds and the policy look at. Finished designs leave it, so every row of a
prefix has a slot to fill. In a sequence the parent of a token is the token before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discodso.base.arrays import Bools, Floats, Ints
from discodso.base.errors import DeclarationError
from discodso.space import _kernels
from discodso.space.design import DesignBatch
from discodso.space.tokens import Grammar, Library
from discodso.space.traversals import Traversals

Array = TypeVar("Array", bound=NDArray[Any])


@dataclass(frozen=True)
class Prefix:
    """B unfinished designs, each with `position` tokens and a next slot to fill.

    Attributes:
        library, grammar: what the designs are made of and how they are counted.
        position: tokens placed so far, the same for all rows.
        rows: int[B], which designs of the batch these are.
        open_slots: int[B], slots still to fill, the next one included.
        parent, sibling: int[B], token ids beside the next slot, -1 for none. The sibling is the
            nearest one to the left.
        parent_position, sibling_position: int[B], where they stand.
        child_index: int[B], 0 if the slot is the first child of its parent.
        depth: int[B], 0 at the root.
        slots: int[8, B], the eight arrays from `rows` to `sibling`, stacked.
        traversals: the tokens and values placed so far.
    """

    library: Library
    grammar: Grammar
    position: int
    traversals: Traversals
    slots: Ints
    rows: Ints
    open_slots: Ints
    parent_position: Ints
    sibling_position: Ints
    child_index: Ints
    depth: Ints
    parent: Ints
    sibling: Ints

    @classmethod
    def start(cls, library: Library, grammar: Grammar, size: int) -> Prefix:
        """The empty prefix of `size` designs."""
        slots = np.full((8, size), -1, np.int64)
        slots[0] = np.arange(size)
        slots[1] = grammar.start
        slots[4:6] = 0
        traversals = Traversals.empty(size, grammar.max_positions, library.slots)
        return cls(library, grammar, 0, traversals, slots, *slots)

    def advance(self, tokens: Ints, values: Floats) -> Prefix:
        """Append tokens[B] with values[B], or values[B, V] where some token carries more than one (NaN where there
        is none); finished designs drop out."""
        t, grammar, library = self.traversals, self.grammar, self.library
        following = np.empty_like(self.slots)
        alive = _kernels.advance(
            t,
            self.position,
            self.slots,
            tokens,
            library.wide(values),
            grammar.opens,
            grammar.chain,
            library.wide_coordinates,
            following,
        )
        slots = following[:, :alive]
        return Prefix(self.library, self.grammar, self.position + 1, t, slots, *slots)

    def keep(self, rows: Bools) -> Prefix:
        """Only these rows, bool[B]."""
        slots = self.slots[:, rows]
        return Prefix(self.library, self.grammar, self.position, self.traversals, slots, *slots)

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def previous(self) -> Ints:
        """int[B], the token placed last, -1 at the start."""
        if self.position == 0:
            return np.full(len(self), -1, np.int64)
        last: Ints = self.traversals.tokens[self.rows, self.position - 1]
        return last

    @cached_property
    def tokens(self) -> Ints:
        """int[B, position], the tokens so far."""
        return _read_only(self.traversals.tokens[self.rows, : self.position])

    @cached_property
    def values(self) -> Floats:
        """float[B, position], or float[B, position, V], the values so far, NaN where there is none."""
        return _read_only(self.library.narrow(self.traversals.values[self.rows, : self.position]))

    def value(self, name: str, token: str | None = None) -> Floats:
        """float[B, position], the values of that name so far, NaN elsewhere; of one token, or of all that have it.

        Options stand as their numbers.
        """
        library = self.library
        places = [c for c in library.columns if c.name == name and token in (None, library.names[c.token])]
        if not places and name not in library.dropped:
            of = "no token" if token is None else f"token {token!r}"
            raise DeclarationError(f"{of} has {'a' if token is None else 'no'} value {name!r}")
        slot = np.full(len(library), -1, np.int64)
        for column in places:
            slot[column.token] = column.slot
        return self.values_in(slot)

    def values_in(self, slot: Ints) -> Floats:
        """float[B, position], the values in slot[K] of the tokens so far, NaN where that is -1."""
        at, values = slot[self.tokens], self.library.wide(self.values)
        found = np.take_along_axis(values, np.maximum(at, 0)[..., None], axis=-1)[..., 0]
        return np.where(at >= 0, found, np.nan)

    @cached_property
    def counts(self) -> Ints:
        """int[B, K], how often each token occurs so far."""
        counts = np.zeros((len(self), len(self.library)), np.int64)
        _kernels.count_tokens(self.traversals.tokens, self.rows, self.position, counts)
        return _read_only(counts)

    @cached_property
    def ancestors(self) -> Bools:
        """bool[B, K], tokens on the way from the slot to the root; in a sequence, all tokens before it."""
        found = self.forbid_nothing()
        t = self.traversals
        _kernels.ancestors(t.tokens, t.parents, self.rows, self.parent_position, found)
        return _read_only(found)

    @cached_property
    def path(self) -> Ints:
        """int[B, D], positions from the root to the parent of the slot, -1 after the end of shorter paths."""
        deepest = int(self.depth.max()) if len(self) else 0
        path = np.full((len(self), deepest), -1, np.int64)
        _kernels.paths(self.traversals.parents, self.rows, self.parent_position, self.depth, path)
        return path

    def forbid_nothing(self) -> Bools:
        """bool[B, K], all False: where a constraint begins."""
        return np.zeros((len(self), len(self.library)), np.bool_)

    def neighbours(self, which: Ints) -> tuple[Ints, Floats]:
        """ids int[S, B] and coordinates float[S, B, V] of previous token (0), parent (1) or sibling (2)."""
        shape = (len(which), len(self))
        ids, z = np.empty(shape, np.int64), np.empty((*shape, self.library.slots))
        t = self.traversals
        _kernels.neighbours(t.tokens, t.coordinates, self.slots, self.position, which, ids, z)
        return ids, z

    def batch(self) -> DesignBatch:
        """All designs of the batch as far as they have come."""
        t = self.traversals
        width = max(self.position, 1)
        values = self.library.narrow(t.values[:, :width])
        return DesignBatch(self.library, t.tokens[:, :width], values, t.lengths[:])


def _read_only(array: Array) -> Array:
    """A copy that is shared between rules, which must not write to it."""
    array.setflags(write=False)
    return array
