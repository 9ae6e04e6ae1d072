"""Looking ahead in sequences: which tokens leave a prefix that can still be completed under all rules together.

A rule about the order or the number of tokens is an automaton: a state, a step for every token, and whether a
design may end in a state. The product of all of them is walked once, and a table says from which of its states a
design can still be completed, by length. Of tokens that are counted one by one (`TokenCounts`) and that no rule
tells apart, only how many have each count is a state. Sums over the values of a design (`SumLimits`) have tables
of what completions add, each its own and several one together. So rules that look ahead never run into a wall,
nor into each other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import permutations
from operator import le
from typing import Any, NamedTuple

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.space import _kernels
from discodso.space.prefix import Prefix
from discodso.space.tokens import Grammar, Library

_MOST_STATES = 200_000
_MOST_CELLS = 200_000_000  # of tables, and steps to make them
_AT_ONCE = 4_096  # states
_MOST_STEPS = 100_000  # to find intervals of sums
_MOST_INTERVALS = 16
_TOGETHER = 20  # times as long takes a step for several sums


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

    def table(self, library: Library) -> tuple[Ints, Bools]:
        """following[S, K], -1 where a token may not stand, and whether a design may end, bool[S]."""
        waiting, rows = [self.start], list[list[int]]()
        numbers = {self.start: 0}
        for state in waiting:
            rows.append([-1] * len(library))
            for token in range(len(library)):
                after = self.step(state, token) if token != library.end else None
                if after is not None:
                    if after not in numbers:
                        numbers[after] = len(waiting)
                        waiting.append(after)
                    rows[-1][token] = numbers[after]
        return np.array(rows), np.array([self.ends(state, library.end) for state in waiting])


@dataclass(frozen=True)
class TokenCounts:
    """How often single tokens occur.

    Attributes:
        limits: by token, least and most; None for no upper limit.
        groups: tokens of which a design has all or none.
    """

    limits: Mapping[int, tuple[int, int | None]] = field(default_factory=dict)
    groups: Sequence[Sequence[int]] = ()

    def __bool__(self) -> bool:
        return bool(self.limits or self.groups)

    def tables(self, library: Library) -> dict[int, tuple[Ints, Bools]]:
        """The automaton of each token that is counted."""
        found = {}
        for token in sorted({*self.limits, *(k for group in self.groups for k in group)}):
            least, most = self.limits.get(token, (0, None))
            states = np.arange((max(least, 1) if most is None else most) + 1)
            following = np.repeat(states[:, None], len(library), axis=1)
            following[:, token] = np.append(states[1:], states[-1] if most is None else -1)
            found[token] = following, states >= least
        return found


@dataclass(frozen=True)
class SumLimits:
    """Limits on a sum over a design: the values in one slot of some tokens.

    Attributes:
        slot: int[K], which of its values counts for each token, -1 for none.
        low, high: float[K], what a token adds at least and at most.
        at_least, at_most: of the sum.
        whole: whether all that is added are integers.
    """

    slot: Ints
    low: Floats
    high: Floats
    at_least: float
    at_most: float
    whole: bool = False

    @property
    def slack(self) -> float:
        """For the rounding of sums."""
        finite = [abs(end) for end in (self.at_least, self.at_most) if np.isfinite(end)]
        return 1e-9 * (1 + max(finite, default=0.0))

    def settled(self) -> SumLimits:
        """Sums of integers have limits that are integers."""
        if not self.whole:
            return self
        least, most = np.ceil(self.at_least - self.slack), np.floor(self.at_most + self.slack)
        return replace(self, at_least=float(least), at_most=float(most))

    @staticmethod
    def joined(all_limits: Sequence[SumLimits]) -> tuple[SumLimits, ...]:
        """Limits on the same sum as one, and on what one sum has beside another that is a part of it."""
        found: dict[bytes, SumLimits] = {}

        def join(own: SumLimits) -> None:
            old = found.setdefault(own.slot.tobytes(), own)
            least, most = max(own.at_least, old.at_least), min(own.at_most, old.at_most)
            found[own.slot.tobytes()] = replace(own, at_least=least, at_most=most)

        for own in all_limits:
            join(own)
        for part, whole in permutations(tuple(found.values()), 2):
            if ((part.slot < 0) | (part.slot == whole.slot)).all():
                join(whole.beside(part))
        return tuple(
            own.settled() for own in found.values() if np.isfinite((own.at_least, own.at_most)).any()
        )

    def beside(self, part: SumLimits) -> SumLimits:
        """What the limits of this sum and of a part of it say about the rest."""
        slot, slack = np.where(part.slot < 0, self.slot, -1), self.slack + part.slack
        low, high = (np.where(slot < 0, 0.0, ends) for ends in (self.low, self.high))
        least, most = self.at_least - part.at_most - slack, self.at_most - part.at_least + slack
        return SumLimits(slot, low, high, least, most, self.whole)


@dataclass(frozen=True)
class LookAhead:
    """The product of automata, S states, over sequences of a grammar.

    Attributes:
        following: int[S, K], the next state, -1 where a token may not stand.
        final: bool[S].
        sums: limits on sums.
        covers: the rules that it looks at.
        parts: the R automata, by which states are found where tokens are alike; else None.
    """

    library: Library
    grammar: Grammar
    following: Ints
    final: Bools
    sums: tuple[SumLimits, ...] = ()
    covers: tuple[Any, ...] = ()
    parts: _Parts | None = None

    @classmethod
    def of(
        cls,
        library: Library,
        grammar: Grammar,
        automata: Sequence[Automaton],
        sums: Sequence[SumLimits] = (),
        counts: TokenCounts | None = None,
    ) -> LookAhead | None:
        """The product; None if it has too many states."""
        counts, limits = counts or TokenCounts(), SumLimits.joined(sums)
        parts = _Parts.of(library, [own.table(library) for own in automata], counts, limits)
        if parts is None:
            return None
        width, tokens = len(parts.first), len(library)
        cells = _MOST_CELLS // 16 if limits else _MOST_CELLS
        most = min(_MOST_STATES, cells // (grammar.max_positions + 1), _MOST_CELLS // (tokens * width + 1))
        numbers = {0: 0}
        waiting, rows = [np.zeros((1, width), np.int64)], list[Ints]()
        for digits in waiting:
            for at in range(0, len(digits), _AT_ONCE):
                after, codes = parts.step(digits[at : at + _AT_ONCE])
                found, first, back = np.unique(codes, return_index=True, return_inverse=True)
                fresh = [
                    place for place, code in enumerate(found.tolist()) if code not in numbers and code >= 0
                ]
                numbers.update({int(found[place]): len(numbers) + new for new, place in enumerate(fresh)})
                row, token = np.divmod(first[fresh], tokens)
                if fresh:
                    waiting.append(after[row, :, token])
                known = np.array([numbers.get(code, -1) for code in found.tolist()])
                rows.append(known[back.reshape(codes.shape)])
                if len(numbers) > most:
                    return None
        final = parts.ends(np.concatenate(waiting))
        plain = None if parts.distinct else replace(parts, numbers=numbers)
        return cls(library, grammar, np.concatenate(rows), final, limits, parts=plain)

    @property
    def states(self) -> int:
        """S."""
        return len(self.final)

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

    def _states(self, prefix: Prefix) -> tuple[Ints, Ints]:
        """int[B], the state of each prefix, -1 where a rule is broken, and int[B, K], those that follow."""
        if self.parts is not None:
            return self.parts.states(prefix)
        states = _walk(prefix, self.following)
        return states, self.following[states]

    def forbidden(self, prefix: Prefix) -> Bools:
        """bool[B, K], tokens after which no completion keeps all rules."""
        (states, after), count = self._states(prefix), prefix.position
        least, most = self.lengths
        allowed = np.zeros((len(prefix), len(self.library)), np.bool_)
        if count < most:
            allowed = (after >= 0) & self.completable[count + 1][after]
        if self.library.end is not None:
            allowed[:, self.library.end] = self.final[states] & (count >= least)
        allowed[states < 0] = False
        for limits in self.sums:
            allowed &= limits.at_least <= limits.at_most + limits.slack
        for table in self._sum_tables:
            # What a token adds, and a completion after it, must be able to meet the limits.
            allowed &= self._fitting(table, prefix, after)[0].any(axis=-1)
        return ~allowed

    def _fitting(self, table: _Completions, prefix: Prefix, after: Ints) -> tuple[Bools, Floats, Floats]:
        """bool[B, K, M], whether a token can add what each way of completing it leaves to it, and between which
        numbers float[R, B, K, M] it must add."""
        low, high = (np.array(ends) for ends in zip(*self._rooms(table, prefix, after), strict=True))
        own = [self.sums[sum_] for sum_ in table.sums]
        slack = np.array([limits.slack for limits in own])[:, None, None, None]
        least, most = (np.array([getattr(o, end) for o in own])[:, None, :, None] for end in ("low", "high"))
        return ((least <= high + slack) & (most >= low - slack)).all(axis=0), low, high

    def limits(self, prefix: Prefix, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """low and high of the values of the next token, [B, K, V], narrowed by the sums."""
        _, after = self._states(prefix)
        low, high = low.copy(), high.copy()
        for table in self._sum_tables:
            fits, *ends = self._fitting(table, prefix, after)
            fits |= ~fits.any(axis=-1, keepdims=True)  # such tokens are forbidden
            for own, lowest, highest in zip(table.sums, *ends, strict=True):
                self._narrow(self.sums[own], fits, lowest, highest, low, high)
        return low, high

    def _narrow(
        self, limits: SumLimits, fits: Bools, lowest: Floats, highest: Floats, low: Floats, high: Floats
    ) -> None:
        """Narrow low and high in place, [B, K, V], to what a sum leaves."""
        tokens = np.flatnonzero(limits.slot >= 0)
        slots = limits.slot[tokens]
        with np.errstate(invalid="ignore"):
            least = np.where(fits, lowest, np.inf).min(axis=-1)[:, tokens]
            most = np.where(fits, highest, -np.inf).max(axis=-1)[:, tokens]
        # Rounding must not empty an interval that the mask has let through; all of it is less than the slack.
        rounding = limits.slack / (2 * self.grammar.max_positions)
        lower = np.minimum(high[:, tokens, slots], most + rounding)
        high[:, tokens, slots] = np.maximum(lower, limits.low[tokens] + rounding)
        higher = np.maximum(low[:, tokens, slots], least - rounding)
        low[:, tokens, slots] = np.minimum(higher, limits.high[tokens] - rounding)

    def _rooms(self, table: _Completions, prefix: Prefix, after: Ints) -> Iterator[tuple[Floats, Floats]]:
        """For each sum float[B, K, M] twice: between which numbers the next token must add, for each of the M ways
        in which completions add. Values that are left open, NaN, may be any."""
        count, (_, longest) = prefix.position, self.lengths
        for own, least, most in zip(table.sums, table.least, table.most, strict=True):
            limits = self.sums[own]
            values, carries = prefix.values_in(limits.slot), limits.slot[prefix.tokens] >= 0
            used_least, used_most = (
                np.where(carries, np.where(np.isnan(values), ends[prefix.tokens], values), 0.0).sum(axis=1)
                for ends in (limits.low, limits.high)
            )
            if count < longest:
                rest = least[count + 1][after], most[count + 1][after]
            else:
                rest = (np.zeros((*after.shape, 1)),) * 2
            if self.library.end is not None:
                for part in rest:
                    part[:, self.library.end] = 0.0
            with np.errstate(invalid="ignore"):  # where there is no completion nothing is allowed anyway
                yield (
                    limits.at_least - used_most[:, None, None] - rest[1],
                    limits.at_most - used_least[:, None, None] - rest[0],
                )

    @cached_property
    def _sum_tables(self) -> list[_Completions]:
        """Of each sum, and of all together where there are several and that does not take too many steps."""
        found = []
        steps = self.following.size * self.lengths[1]
        for number, own in enumerate(self.sums):
            if np.isfinite(own.at_least) and np.isfinite(own.at_most) and steps <= _MOST_STEPS:
                found.append(self._boxes((number,)))
            else:
                ends = self._sums(own.low, np.min, np.inf), self._sums(own.high, np.max, -np.inf)
                found.append(_Completions((number,), ends[0][None, ..., None], ends[1][None, ..., None]))
        if len(self.sums) > 1 and steps <= _MOST_STEPS // _TOGETHER:
            found.append(self._boxes(tuple(range(len(self.sums)))))
        return found

    def _boxes(self, numbers: tuple[int, ...]) -> _Completions:
        """What completions add to some sums, as boxes: exact for real numbers, or for integers, that no two sums
        share. An end that no limit looks at is infinite, so that most boxes lie within others."""
        least, most = self.lengths
        own = [self.sums[number] for number in numbers]
        table = [[list[_Box]() for _ in self.final] for _ in range(most + 1)]
        gaps = tuple(1.0 if limits.whole else 0.0 for limits in own)
        nothing = _Box(
            tuple(0.0 if np.isfinite(limits.at_most) else -np.inf for limits in own),
            tuple(0.0 if np.isfinite(limits.at_least) else np.inf for limits in own),
        )
        adds = [
            _Box(*(tuple(float(ends[k]) for ends in side) for side in sides))
            for sides in (([limits.low for limits in own], [limits.high for limits in own]),)
            for k in range(len(self.library))
        ]
        following = self.following.tolist()
        for count in reversed(range(most + 1)):
            for state, final in enumerate(self.final.tolist()):
                found = [nothing] if final and count >= least else []
                for after, add in zip(following[state], adds, strict=True):
                    if after >= 0 and count < most and all(map(le, *add)):
                        found += [_Box(*map(_added, add, box)) for box in table[count + 1][after]]
                table[count][state] = _merged(found, gaps)
        width = max(1, *(len(boxes) for row in table for boxes in row))
        shape = len(own), most + 1, len(self.final), width
        tables = np.full(shape, np.inf), np.full(shape, -np.inf)
        for count, row in enumerate(table):
            for state, boxes in enumerate(row):
                for at, box in enumerate(boxes):
                    for ends, side in zip(tables, box, strict=True):
                        ends[:, count, state, at] = side
        return _Completions(numbers, *tables)

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


@dataclass(frozen=True)
class _Completions:
    """What completions add to R sums in each of at most M ways, boxes that hold at once for all of them.

    Attributes:
        sums: int, which sums these are.
        least, most: float[R, T + 1, S, M], by the tokens there are and their state.
    """

    sums: tuple[int, ...]
    least: Floats
    most: Floats


class _Box(NamedTuple):
    """Numbers between two ends, for each of R sums."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    def hull(self, other: _Box) -> _Box:
        """The smallest box round both."""
        return _Box(tuple(map(min, self.low, other.low)), tuple(map(max, self.high, other.high)))

    def distance(self, other: _Box) -> float:
        """How much lies between both, added over the sums."""
        ends = zip(self.low, other.low, self.high, other.high, strict=True)
        return sum(max(0.0, max(low, low2) - min(high, high2)) for low, low2, high, high2 in ends)


@dataclass(frozen=True)
class _Parts:
    """R automata side by side: the state of all is their digits. Counts of tokens that are alike have weights such
    that the code of a state says only how many of them have each count.

    Attributes:
        tables: int[R states, K], those of all automata below each other.
        first: int[R], where that of each begins.
        weights: int[R states], which add up to the code.
        final: bool[R states].
        groups: automata of which all or none have left their first state when a design ends.
        end: the end token, which is no step.
        distinct: whether no tokens are alike.
        numbers: of the states of the product, by their codes.
    """

    tables: Ints
    first: Ints
    weights: Ints
    final: Bools
    groups: tuple[Ints, ...]
    end: int | None
    distinct: bool
    numbers: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        library: Library,
        ordinary: Sequence[tuple[Ints, Bools]],
        counts: TokenCounts,
        sums: Sequence[SumLimits],
    ) -> _Parts | None:
        """None if codes become too large."""
        counted = counts.tables(library)
        alike: dict[Any, list[int]] = {}
        for k, (table, final) in counted.items():
            own = [part[:, k].tobytes() for part, _ in ordinary]
            own += [np.array([s.slot[k] >= 0, s.low[k], s.high[k]]).tobytes() for s in sums]
            groups = tuple(k in group for group in counts.groups)
            key = tuple(own), groups, table[:, k].tobytes(), final.tobytes()
            alike.setdefault(key, []).append(k)
        weights, unit, distinct = list[list[int]](), 1, True
        for table, _ in ordinary:
            weights.append([unit * state for state in range(len(table))])
            unit *= len(table)
        of_token = dict[int, list[int]]()
        for tokens in alike.values():
            top = len(counted[tokens[0]][0]) - 1
            together = len(tokens) > 1 and (len(tokens) + 1) ** top < (top + 1) ** len(tokens)
            for k in tokens:
                of_token[k] = [
                    0,
                    *(unit * ((len(tokens) + 1) ** at if together else at + 1) for at in range(top)),
                ]
                unit *= 1 if together else top + 1
            unit *= (len(tokens) + 1) ** top if together else 1
            distinct &= not together
        if unit >= 2**62:
            return None
        parts = [*ordinary, *counted.values()]
        weights += [of_token[k] for k in counted]
        place = {k: len(ordinary) + at for at, k in enumerate(counted)}
        first = np.cumsum([0, *(len(table) for table, _ in parts)])[:-1]
        none: Ints = np.empty((0, len(library)), np.int64)
        no_end: Bools = np.empty(0, np.bool_)
        return cls(
            np.concatenate([none, *(table for table, _ in parts)]),
            first,
            np.array([weight for own in weights for weight in own], np.int64),
            np.concatenate([no_end, *(final for _, final in parts)]),
            tuple(np.array([place[k] for k in group]) for group in counts.groups),
            library.end,
            distinct,
        )

    def step(self, digits: Ints) -> tuple[Ints, Ints]:
        """digits[N, R, K] after each token, and codes[N, K], -1 where it may not stand."""
        after = self.tables[self.first + digits]
        codes = self.weights[self.first[:, None] + np.maximum(after, 0)].sum(axis=1)
        codes[(after < 0).any(axis=1)] = -1
        if self.end is not None:
            codes[:, self.end] = -1
        return after, codes

    def ends(self, digits: Ints) -> Bools:
        """bool[N], whether a design may end."""
        good = self.final[self.first + digits].all(axis=1)
        for group in self.groups:
            seen = digits[:, group] > 0
            good &= seen.all(axis=1) | ~seen.any(axis=1)
        return np.asarray(good)

    def states(self, prefix: Prefix) -> tuple[Ints, Ints]:
        """See `LookAhead._states`."""
        last = np.append(self.first[1:], len(self.tables))
        parts = [self.tables[a:b] for a, b in zip(self.first, last, strict=True)]
        digits = np.stack([_walk(prefix, part) for part in parts], axis=1)
        good: Bools = np.asarray((digits >= 0).all(axis=1))
        digits[~good] = 0
        own, after = self.weights[self.first + digits].sum(axis=1), self.step(digits)[1]
        number = np.vectorize(lambda code: self.numbers.get(code, -1), otypes=[np.int64])
        return np.where(good, number(own), -1), np.where(good[:, None], number(after), -1)


def _walk(prefix: Prefix, following: Ints) -> Ints:
    """int[B], the state of an automaton after each prefix; -1 where a token has broken it."""
    states = np.zeros(len(prefix), np.int64)
    _kernels.run_automaton(prefix.traversals.tokens, prefix.rows, prefix.position, following, states)
    return states


def _added(one: tuple[float, ...], other: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def _merged(boxes: Iterable[_Box], gaps: tuple[float, ...]) -> list[_Box]:
    """The same numbers in fewer boxes: those that meet in one sum and are alike in all others are joined, and
    those that lie within others go; integers meet across a gap of 1. Where there are still too many, neighbours
    that lie near each other are joined, with what lies between them."""
    found = sorted(set(boxes))
    for at, gap in enumerate(gaps):
        found.sort(key=lambda box: (_but(box.low, at), _but(box.high, at), box.low[at]))
        joined = found[:1]
        for box in found[1:]:
            last = joined[-1]
            alike = _but(last.low, at) == _but(box.low, at) and _but(last.high, at) == _but(box.high, at)
            if alike and box.low[at] <= last.high[at] + gap * (1 + 1e-9):
                joined[-1] = last.hull(box)
            else:
                joined.append(box)
        found = joined
    if len(gaps) > 1:
        low, high = (np.array([box[side] for box in found]).reshape(-1, len(gaps)) for side in (0, 1))
        within = ((low[:, None] >= low) & (high[:, None] <= high)).all(axis=-1)
        found = [box for box, own in zip(found, within.sum(axis=1).tolist(), strict=True) if own == 1]
    found.sort()
    if (many := len(found) - _MOST_INTERVALS) > 0:
        order = sorted(range(1, len(found)), key=lambda at: found[at - 1].distance(found[at]))
        near, joined = set(order[:many]), list[_Box]()
        for at, box in enumerate(found):
            if at in near:
                joined[-1] = joined[-1].hull(box)
            else:
                joined.append(box)
        found = joined
    return found


def _but(ends: tuple[float, ...], at: int) -> tuple[float, ...]:
    """All but one."""
    return ends[:at] + ends[at + 1 :]
