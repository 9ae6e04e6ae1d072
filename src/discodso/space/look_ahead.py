"""Looking ahead in sequences: which tokens leave a prefix that can still be completed under all rules together.

A rule about the order or the number of tokens is an automaton: a state, a step for every token, and whether a
design may end in a state. The product of all of them is walked once, and a table says from which of its states a
design can still be completed, by length. A sum over the values of a design (`SumLimits`) has tables of the least
and the most that any completion adds. So rules that look ahead never run into a wall, nor into each other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.space import _kernels
from discodso.space.prefix import Prefix
from discodso.space.tokens import Grammar, Library

_MOST_STATES = 20_000


@dataclass(frozen=True)
class Automaton:
    """A rule on sequences.

    Attributes:
        start: the first state.
        step: from a state and the id of a token to the next state, None if the token may not stand there.
        final: whether a design may end in a state.
        takes_end: whether the end token of an open sequence is a step like any other, before `final` is asked.
    """

    start: Hashable
    step: Callable[[Any, int], Hashable | None]
    final: Callable[[Any], bool] = lambda state: True
    takes_end: bool = False

    def ends(self, state: Any, end: int | None) -> bool:
        """Whether a design may end in a state."""
        if end is None or not self.takes_end:
            return self.final(state)
        after = self.step(state, end)
        return after is not None and self.final(after)


@dataclass(frozen=True)
class SumLimits:
    """Limits on a sum over a design: the values in one slot of some tokens.

    Attributes:
        slot: int[K], which of its values counts for each token, -1 for none.
        low, high: float[K], what a token adds at least and at most.
        at_least, at_most: of the sum.
    """

    slot: Ints
    low: Floats
    high: Floats
    at_least: float
    at_most: float

    @property
    def slack(self) -> float:
        """For the rounding of sums."""
        finite = [abs(end) for end in (self.at_least, self.at_most) if np.isfinite(end)]
        return 1e-9 * (1 + max(finite, default=0.0))


@dataclass(frozen=True)
class LookAhead:
    """The product of automata, S states, over sequences of a grammar.

    Attributes:
        following: int[S, K], the next state, -1 where a token may not stand.
        final: bool[S].
        sums: limits on sums.
    """

    library: Library
    grammar: Grammar
    following: Ints
    final: Bools
    sums: tuple[SumLimits, ...] = ()

    @classmethod
    def of(
        cls, library: Library, grammar: Grammar, automata: Sequence[Automaton], sums: Sequence[SumLimits] = ()
    ) -> LookAhead | None:
        """The product; None if it has too many states."""
        numbers: dict[tuple[Any, ...], int] = {tuple(own.start for own in automata): 0}
        waiting = list(numbers)
        rows: list[list[int]] = []
        while len(rows) < len(waiting):
            state, row = waiting[len(rows)], [-1] * len(library)
            for token in range(len(library)):
                if token == library.end:
                    continue
                found = tuple(own.step(part, token) for own, part in zip(automata, state, strict=True))
                if any(part is None for part in found):
                    continue
                if found not in numbers:
                    numbers[found] = len(numbers)
                    waiting.append(found)
                row[token] = numbers[found]
            rows.append(row)
            if len(numbers) > _MOST_STATES:
                return None
        pairs = [list(zip(automata, state, strict=True)) for state in waiting]
        final = [all(own.ends(part, library.end) for own, part in parts) for parts in pairs]
        return cls(library, grammar, np.array(rows, np.int64), np.array(final), tuple(sums))

    @property
    def lengths(self) -> tuple[int, int]:
        """Least and most tokens, the end token not counted."""
        end = self.library.end is not None
        return self.grammar.min_positions - end, self.grammar.max_positions - end

    @cached_property
    def completable(self) -> Bools:
        """bool[T + 1, S], whether a design of so many tokens in a state can be completed."""
        least, most = self.lengths
        table = np.zeros((most + 1, len(self.final)), np.bool_)
        table[most] = self.final
        for count in reversed(range(most)):
            table[count] = self._after(table[count + 1]).any(axis=1)
            if count >= least:
                table[count] |= self.final
        return table

    def _after(self, table: Bools) -> Bools:
        """bool[S, K], a row of a table at the state after each token, False where it may not stand."""
        return (self.following >= 0) & table[self.following]

    def states(self, prefix: Prefix) -> Ints:
        """int[B], the state of each prefix; -1 where a token has broken a rule."""
        states = np.zeros(len(prefix), np.int64)
        _kernels.run_automaton(prefix.traversals.tokens, prefix.rows, prefix.position, self.following, states)
        return states

    def forbidden(self, prefix: Prefix) -> Bools:
        """bool[B, K], tokens after which no completion keeps all rules."""
        states, count = self.states(prefix), prefix.position
        least, most = self.lengths
        allowed = np.zeros((len(prefix), len(self.library)), np.bool_)
        if count < most:
            allowed = self._after(self.completable[count + 1])[states]
        if self.library.end is not None:
            allowed[:, self.library.end] = self.final[states] & (count >= least)
        allowed[states < 0] = False
        for own, limits in enumerate(self.sums):
            low, high = self._room(own, prefix, states)
            # What a token adds, and a completion after it, must be able to meet the limits.
            allowed &= (limits.low <= high + limits.slack) & (limits.high >= low - limits.slack)
        return ~allowed

    def limits(self, prefix: Prefix, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """low and high of the values of the next token, [B, K, V], narrowed by the sums."""
        states = self.states(prefix)
        low, high = low.copy(), high.copy()
        for own, limits in enumerate(self.sums):
            tokens = np.flatnonzero(limits.slot >= 0)
            slots = limits.slot[tokens]
            least, most = (room[:, tokens] for room in self._room(own, prefix, states))
            # Rounding must not empty an interval that the mask has let through; all of it is less than the slack.
            rounding = limits.slack / (2 * self.grammar.max_positions)
            lower = np.minimum(high[:, tokens, slots], most + rounding)
            high[:, tokens, slots] = np.maximum(lower, limits.low[tokens] + rounding)
            higher = np.maximum(low[:, tokens, slots], least - rounding)
            low[:, tokens, slots] = np.minimum(higher, limits.high[tokens] - rounding)
        return low, high

    def _room(self, own: int, prefix: Prefix, states: Ints) -> tuple[Floats, Floats]:
        """float[B, K] each: between which numbers the next token must add to a sum."""
        limits, count = self.sums[own], prefix.position
        used = np.nan_to_num(prefix.values_in(limits.slot)).sum(axis=1)
        least, most = self._sum_tables[own]
        _, longest = self.lengths
        after = np.where(self.following >= 0, self.following, 0)[states]
        rest = (np.zeros(after.shape),) * 2
        if count < longest:
            rest = least[count + 1][after], most[count + 1][after]
        if self.library.end is not None:
            for part in rest:
                part[:, self.library.end] = 0.0
        with np.errstate(invalid="ignore"):  # where there is no completion nothing is allowed anyway
            return limits.at_least - used[:, None] - rest[1], limits.at_most - used[:, None] - rest[0]

    @cached_property
    def _sum_tables(self) -> list[tuple[Floats, Floats]]:
        """For each sum float[T + 1, S] twice: what completions add at least and at most."""
        return [
            (self._sums(own.low, np.min, np.inf), self._sums(own.high, np.max, -np.inf)) for own in self.sums
        ]

    def _sums(self, adds: Floats, best: Callable[..., Any], nothing: float) -> Floats:
        least, most = self.lengths
        table = np.full((most + 1, len(self.final)), nothing)
        table[most, self.final] = 0.0
        for count in reversed(range(most)):
            rest = table[count + 1][self.following]
            with np.errstate(invalid="ignore"):  # an infinite range before a state without completion
                after = np.where((self.following >= 0) & (rest != nothing), adds + rest, nothing)
            table[count] = best(after, axis=1)
            if count >= least:
                ends = np.where(self.final, 0.0, nothing)
                table[count] = best(np.stack((table[count], ends)), axis=0)
        return table
