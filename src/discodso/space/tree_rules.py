"""Rules on trees that say what may stand where: typed children, and a look ahead for all such rules together.

With `ChildTypes` a grammar can be written: which tokens each child of a token may be. What may stand in a slot is
decided by what stands above it, its context, and beside it; the sizes that a subtree can have in each context, and
how often it can have tokens that are counted, are found once. A prefix can be completed if some sum of these over
its open slots fits the limits.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from discodso.base.arrays import Bools
from discodso.base.checks import require_integer
from discodso.base.errors import DeclarationError
from discodso.space.constraints import (
    AboutTokens,
    Apart,
    Constraint,
    Names,
    Repeat,
    apart_pairs,
    apart_states,
    completion_table,
)
from discodso.space.prefix import Prefix
from discodso.space.tokens import Grammar, Library

_MOST_CONTEXTS = 5_000
_MOST_BITS = 100_000  # of a set
_MOST_WORK = 1_000_000  # steps to find all sets, about a second
_MOST_KNOWN = 100_000
# Of a slot: its context, those of its siblings to the right, and the number of the set of what else is to come.
_Place = tuple[int, tuple[int, ...], int]


@dataclass(frozen=True)
class ChildTypes(AboutTokens, sees_values=False):
    """A child of a token is one of `allowed`: `ChildTypes("momentum", 0, ("threshold",))`.

    Args:
        parents: one token or several.
        child: which child, counted from 0; None for all.
        allowed: tokens that it may be.
    """

    parents: Names
    child: int | None
    allowed: Names

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.child is not None:
            require_integer("ChildTypes: child", self.child, 0)

    def check(self, library: Library, grammar: Grammar) -> None:
        """See `Rule.check`."""
        super().check(library, grammar)
        if grammar.chain:
            raise DeclarationError("ChildTypes needs a space of shape Tree; in a sequence use LeadsTo")
        for name in self.parents:
            arity = int(library.arity[library.id(name)])
            if not arity or (self.child is not None and self.child >= arity):
                has = f"{arity or 'no'} child{'ren' * (arity != 1)}"
                number = "" if self.child is None else f"; they are counted from 0, got {self.child}"
                raise DeclarationError(f"{name!r} has {has}{number}")

    def forbidden(self, prefix: Prefix) -> Bools:
        """See `Constraint.forbidden`."""
        library = prefix.library
        parents, others = library.members(self.parents), ~library.members(self.allowed)
        mine = (prefix.parent >= 0) & parents[prefix.parent]
        if self.child is not None:
            mine &= prefix.child_index == self.child
        return mine[:, None] & others


@dataclass(frozen=True)
class TreeRule:
    """A rule on what stands above a slot.

    Attributes:
        start: the state of the root.
        below: the state of a child, from that of its parent's slot, the parent and the number of the child.
        forbids: bool for each token, from the state of a slot.
    """

    start: Hashable
    below: Callable[[Any, int, int], Hashable]
    forbids: Callable[[Any], Sequence[bool]]


def tree_rule_of(rule: Constraint, library: Library) -> TreeRule | None:
    """A rule on what stands above a slot; None if it is no such rule."""
    match rule:
        case ChildTypes():
            parents, others = library.members(rule.parents), (~library.members(rule.allowed)).tolist()
            return TreeRule(
                False,
                lambda s, parent, child: bool(parents[parent]) and rule.child in (None, child),
                lambda s: others if s else [False] * len(library),
            )
        case Apart() if apart_pairs(rule, library).relation != "sibling":
            rows, first, after = apart_states(rule, library)
            return TreeRule(first, lambda s, parent, child: after(s, parent), lambda s: rows[s])
    return None


class TooLargeError(Exception):
    """There are more contexts, or larger tables, than are worth it."""


class TreeLookAhead:
    """Which tokens leave a tree that can still be completed, under all rules and the limits on the length.

    What a subtree may be is a set of vectors: its size, and how often it has the tokens of each family that some
    `Repeat` counts. A set is an integer with a bit for each vector; the digits of a bit's number are the vector,
    and have room for the sum of two. Tokens that all rules treat alike are one kind, and so are siblings.

    Attributes:
        covers: the rules that it looks at.
        states: steps that it took to find them.
    """

    def __init__(self, library: Library, grammar: Grammar, rules: Sequence[Constraint]) -> None:
        self._library, self._grammar, self.covers = library, grammar, tuple(rules)
        self._contexts()
        families: dict[tuple[bool, ...], tuple[int, int]] = {}
        longest = grammar.max_positions
        for rule in rules:
            if isinstance(rule, Repeat):
                family = self._members(rule)
                least, most = families.get(family, (0, longest))
                most = most if rule.at_most is None else min(most, rule.at_most)
                families[family] = max(least, min(rule.at_least, longest + 1)), most
        # No tree has more than the longest: such a count is limited from below only, and need not go beyond that.
        self._families = [
            (family, least, most, most if most < longest else least)
            for family, (least, most) in families.items()
            if least or most < longest
        ]
        signs: dict[Any, int] = {}
        self._kind: list[int] = []  # of each token: the first that is treated as it is
        for k, arity in enumerate(library.arity.tolist()):
            member = tuple(family[k] for family, *_ in self._families)
            places = tuple((may[k], below[k]) for may, below in zip(self._may, self._below, strict=True))
            sign = arity, member, places, self._beside[:, k].tobytes(), self._beside[k].tobytes()
            self._kind.append(signs.setdefault(sign, k))
        self._kinds = sorted(signs.values())

    def _members(self, rule: Repeat) -> tuple[bool, ...]:
        return tuple(self._library.members(rule.tokens).tolist())

    def _contexts(self) -> None:
        """What may stand in each context, and the contexts of its children; the first is that of the root."""
        library = self._library
        rules = [found for rule in self.covers if (found := tree_rule_of(rule, library)) is not None]
        siblings = [apart_pairs(rule, library) for rule in self.covers if isinstance(rule, Apart)]
        nothing: Bools = np.zeros((len(library) + 1, len(library)), np.bool_)
        self._beside: Bools = sum((own.table for own in siblings if own.relation == "sibling"), nothing)
        rows = [row.tobytes() for row in self._beside]
        # Of a sibling to the left; the last entry is for none.
        self._group = [rows.index(row) for row in rows]
        waiting = [tuple(rule.start for rule in rules)]
        numbers = {waiting[0]: 0}
        self._may: list[list[bool]] = []
        self._below: list[list[tuple[int, ...]]] = []
        for context in waiting:
            states = list(zip(rules, context, strict=True))
            bans = [rule.forbids(own) for rule, own in states]
            self._may.append([not any(ban[k] for ban in bans) for k in range(len(library))])
            self._below.append([])
            for k, arity in enumerate(library.arity.tolist()):
                children: list[int] = []
                for child in range(arity if self._may[-1][k] else 0):
                    below = tuple(rule.below(own, k, child) for rule, own in states)
                    if below not in numbers:
                        numbers[below] = len(waiting)
                        waiting.append(below)
                    children.append(numbers[below])
                self._below[-1].append(tuple(children))
            if len(waiting) > _MOST_CONTEXTS:
                raise TooLargeError

    @classmethod
    def of(cls, library: Library, grammar: Grammar, rules: Sequence[Constraint]) -> TreeLookAhead | None:
        """The look ahead of those rules that it can look at; None if none of them ever leads into a dead end.
        Counts that make the tables too large are left out; TooLargeError if there are too many contexts."""
        known = list(filter(is_known, rules))
        counts = sorted((rule for rule in known if isinstance(rule, Repeat)), key=_highest)
        while not (found := cls(library, grammar, known))._harmless():
            try:
                found._solve()
                return found
            except TooLargeError:
                if not counts:
                    raise
                known.remove(counts.pop())
        return None

    def _harmless(self) -> bool:
        """Whether rules that are asked one by one never meet a dead end: with those kinds of token that may stand
        everywhere, and that no upper limit counts, all can be completed that the limits on the length, and one
        lower limit, let through."""
        low = [own for own in self._families if own[1]]
        same = [r for r in self.covers if low and isinstance(r, Repeat) and low[0][0] == self._members(r)]
        if len(low) > 1 or len(same) > 1:
            return False
        family, least, most, _ = low[0] if low else ((False,) * len(self._library), 0, 0, 0)
        free = [k for k in self._kinds if not any(f[k] for f, *_ in self._families if f is not family)]
        opens = self._grammar.opens_of
        always = {(opens[k], family[k]) for k in free}
        for may, group in product(self._may, set(self._group)):
            always &= {(opens[k], family[k]) for k in free if may[k] and not self._beside[group, k]}
        if not always:
            return False
        own, members = zip(*always, strict=True)
        limit = None if most == self._grammar.max_positions else most
        full, _ = completion_table(self._grammar, family, least, limit)
        some, _ = completion_table(replace(self._grammar, opens_of=own), members, least, limit)
        slots = self._grammar.max_positions + 1  # more cannot be filled
        lost = np.any(full[:, :slots], axis=-1) & ~np.any(some[:, :slots], axis=-1)
        return not lost.any()

    # ------------------------------------------------------------------ sets of vectors

    def _solve(self) -> None:
        """The sets of all kinds of token in all contexts, from small trees up."""
        self._strides, self._size, shortest = list[int](), 1, self._grammar.min_positions
        for *_, top in self._families:
            self._strides.append(self._size)
            self._size *= max(2 * top + 1, 2)
        longest = self._grammar.max_positions
        self._bits = (longest + 1) * self._size
        if self._bits > _MOST_BITS:
            raise TooLargeError
        tops = [top for *_, top in self._families]
        self._valid = self._block([range(top + 1) for top in tops], range(longest + 1))
        # With a lower limit only, what is above the highest count of a family counts as that, and more are better;
        # with an upper limit only, fewer are.
        self._folds, self._prunes = list[tuple[int, int]](), list[tuple[int, bool, int]]()
        lows = list[range]()
        for at, (_, least, most, top) in enumerate(self._families):
            lows.append(range(least, 2 * top + 1 if most == longest else top + 1))
            if most == longest:
                for more in range(1, top + 1):
                    digits = [range(max(2 * own + 1, 2)) for own in tops]
                    digits[at] = range(top + more, top + more + 1)
                    mask = self._block(digits, range(longest + 1))
                    self._folds.append((more * self._strides[at], mask))
            if most == longest or not least:
                self._prunes.append((self._strides[at], most < longest, top))
        self._final = self._block(lows, range(shortest, longest + 1))
        self._adds = {
            k: self._size + sum(s for s, own in zip(self._strides, self._families, strict=True) if own[0][k])
            for k in self._kinds
        }
        self._work: float = 0
        self._sets: list[dict[int, int]] = [{} for _ in self._may]
        changed = True
        while changed:
            changed, self._rests = False, dict[Any, int]()
            for context in reversed(range(len(self._sets))):
                for k in self._kinds:
                    if self._may[context][k]:
                        found = self._tidy(self._rest(self._below[context][k], -1) << self._adds[k])
                        if found != self._sets[context].get(k, 0):
                            self._sets[context][k], changed = found, True
        self.states, self._work = int(self._work) + 1, -math.inf
        self._forget()

    def _forget(self) -> None:
        """Begin anew with what is remembered of prefixes."""
        self._known: dict[Any, Any] = {}
        self._vectors, self._number_of = [1], {1: 0}  # sets of what is still to come, and where each stands
        self._places: dict[Any, _Place | None] = {(): (0, (), 0)}

    def _block(self, digits: Sequence[range], sizes: range) -> int:
        """The set of all vectors with such counts and sizes."""
        found = 1
        for stride, own in zip((*self._strides, self._size), (*digits, sizes), strict=True):
            part, found = found, 0
            for digit in own:
                found |= part << (digit * stride)
        return found

    def _tidy(self, found: int) -> int:
        """Sums as a set: without vectors beyond the limits, and without those that others make needless."""
        for shift, mask in self._folds:
            found |= (found & mask) >> shift
        found &= self._valid
        if self._prunes:
            worse = found
            for stride, up, top in self._prunes:
                for _ in range(top):
                    worse |= (worse << stride if up else worse >> stride) & self._valid
            for stride, up, _ in self._prunes:
                found &= ~((worse << stride if up else worse >> stride) & self._valid)
        return found

    def _sum(self, first: int, second: int) -> int:
        """All sums of a vector of each set."""
        found = 0
        if first.bit_count() > second.bit_count():
            first, second = second, first
        self._work += first.bit_count() * (1 + self._bits // 1000)
        if self._work > _MOST_WORK:
            raise TooLargeError
        for at in _places(first):
            found |= second << at
        return self._tidy(found)

    def _rest(self, contexts: tuple[int, ...], sibling: int) -> int:
        """Vectors of all trees in neighbouring slots together, given the token to their left."""
        if not contexts:
            return 1
        key = contexts, (group := self._group[sibling])
        if key not in self._rests:
            found, beside = 0, dict[int, int]()
            for k, own in self._sets[contexts[0]].items():
                if not self._beside[group, k]:
                    beside[self._group[k]] = beside.get(self._group[k], 0) | own
            for left, own in beside.items():
                found |= self._sum(own, self._rest(contexts[1:], left))
            self._rests[key] = self._tidy(found)
        return self._rests[key]

    # ------------------------------------------------------------------ prefixes

    def forbidden(self, prefix: Prefix) -> Bools:
        """bool[B, K], tokens after which no tree within the limits keeps the rules."""
        t, rows = prefix.traversals, prefix.rows[:, None]
        above = t.tokens[rows, prefix.path]
        # Which child of each token of the path comes next on it: all but the last have begun it.
        begun = np.arange(prefix.path.shape[1]) < prefix.depth[:, None] - 1
        numbers = self._library.arity[above] - t.missing[rows, prefix.path] - begun
        used, broken = np.full(len(prefix), prefix.position * self._size), np.zeros(len(prefix), np.bool_)
        for (family, _, most, top), stride in zip(self._families, self._strides, strict=True):
            count = prefix.counts[:, np.array(family)].sum(axis=1)
            used, broken = used + np.minimum(count, top) * stride, broken | (count > most)
        allowed = np.ones((len(prefix), len(self._library)), np.bool_)
        if len(self._known) > _MOST_KNOWN or len(self._places) > _MOST_KNOWN:
            self._forget()
        for row in np.flatnonzero(~broken).tolist():
            depth, sibling = int(prefix.depth[row]), self._group[prefix.sibling[row]]
            path = tuple(zip(above[row, :depth].tolist(), numbers[row, :depth].tolist(), strict=True))
            # Where the path breaks a rule all is allowed: that rule is named by itself.
            if (place := self._place(path)) is not None:
                key = place, sibling, int(used[row])
                if key not in self._known:
                    self._known[key] = self._options(*key)
                allowed[row] = self._known[key]
        return ~allowed

    def _place(self, path: tuple[tuple[int, int], ...]) -> _Place | None:
        """For a slot below a path of tokens and which of their children comes next; None if the path breaks a
        rule. Many paths lead to one place."""
        if path not in self._places:
            token, child = path[-1]
            parent, found = self._place(path[:-1]), None
            if parent is not None and self._may[parent[0]][token]:
                contexts = self._below[parent[0]][token]
                found = contexts[child], contexts[child + 1 :], self._joined(parent[2], parent[1], token)
            self._places[path] = found
        return self._places[path]

    def _joined(self, rest: int, contexts: tuple[int, ...], sibling: int) -> int:
        """The number of a set together with neighbouring slots, given the token to their left."""
        key = rest, contexts, self._group[sibling]
        if key not in self._known:
            found = self._sum(self._vectors[rest], self._rest(contexts, sibling))
            if found not in self._number_of:
                self._number_of[found] = len(self._vectors)
                self._vectors.append(found)
            self._known[key] = self._number_of[found]
        number: int = self._known[key]
        return number

    def _options(self, place: _Place, sibling: int, used: int) -> list[bool]:
        """bool[K], what may stand in a slot."""
        context, siblings, rest = place
        wanted = 0  # what the slot and its siblings may be together
        for at in _places(self._tidy(self._vectors[rest] << used)):
            wanted |= self._final >> at  # where a digit would fall below 0 it borrows, and is too high then
        wanted &= self._valid
        good = {
            k: not self._beside[sibling, k] and self._with(context, k, siblings) & wanted for k in self._kinds
        }
        return [bool(good[kind]) for kind in self._kind]

    def _with(self, context: int, k: int, siblings: tuple[int, ...]) -> int:
        """Vectors of a kind of token in a context and its siblings to the right together."""
        key = context, k, siblings
        if key not in self._known:
            own = self._sets[context].get(k, 0)
            self._known[key] = self._sum(own, self._rest(siblings, k)) if own else 0
        found: int = self._known[key]
        return found

    # ------------------------------------------------------------------ how many

    def count(self, longest: int) -> int | None:
        """How many trees of up to so many tokens keep the rules; None if that takes too long to say."""

        def added(first: tuple[int, ...], second: Iterable[int]) -> tuple[int, ...] | None:
            sums = [min(a + b, limit) for a, b, limit in zip(first, second, limits, strict=True)]
            good = all(own <= most for own, (_, _, most, _) in zip(sums, self._families, strict=True))
            return tuple(sums) if good else None

        @cache
        def trees(context: int, k: int, size: int) -> Counter[tuple[int, ...]]:
            found: Counter[tuple[int, ...]] = Counter()
            for counts, ways in forests(self._below[context][k], self._group[-1], size - 1).items():
                if (own := added(counts, [family[k] for family, *_ in self._families])) is not None:
                    found[own] += ways
            return found

        @cache
        def forests(contexts: tuple[int, ...], sibling: int, size: int) -> Counter[tuple[int, ...]]:
            found: Counter[tuple[int, ...]] = Counter()
            if not contexts:
                return Counter({(0,) * len(limits): 1}) if not size else found
            good = [k for k in self._kinds if self._may[contexts[0]][k] and not self._beside[sibling, k]]
            for k, first in product(good, range(1, size - len(contexts) + 2)):
                if not (own := trees(contexts[0], k, first)):
                    continue
                others = forests(contexts[1:], self._group[k], size - first)
                for (a, ways), (b, more) in product(own.items(), others.items()):
                    if (both := added(a, b)) is not None:
                        found[both] += ways * more * alike[k]
            return found

        grammar, alike, total = self._grammar, Counter(self._kind), 0
        limits = [top + (most < grammar.max_positions) for *_, most, top in self._families]
        for size in range(grammar.min_positions, min(longest, grammar.max_positions) + 1):
            for counts, ways in forests((0,), self._group[-1], size).items():
                if all(own >= least for own, (_, least, *_) in zip(counts, self._families, strict=True)):
                    total += ways
            if forests.cache_info().currsize > _MOST_KNOWN:
                return None
        return total


def is_known(rule: Constraint) -> bool:
    """Whether a rule can look ahead together with others in a tree."""
    return isinstance(rule, (ChildTypes, Apart, Repeat))


def tree_tables(library: Library, grammar: Grammar, rules: Sequence[Constraint]) -> TreeLookAhead | None:
    """What may stand where under all rules, to count trees; None if there are others, or too many contexts."""
    try:
        return TreeLookAhead(library, grammar, rules) if all(map(is_known, rules)) else None
    except TooLargeError:
        return None


def _places(vectors: int) -> Iterator[int]:
    """The bits of a set; a search in its digits is far quicker than shifting a long integer."""
    digits = bin(vectors)[:1:-1]
    at = digits.find("1")
    while at >= 0:
        yield at
        at = digits.find("1", at + 1)


def _highest(rule: Repeat) -> int:
    return rule.at_least if rule.at_most is None else rule.at_most
