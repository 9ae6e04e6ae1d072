"""Rules on trees that say what may stand where: typed children, and a look ahead for all such rules together.

With `ChildTypes` a grammar can be written: which tokens each child of a token may be. What may stand in a slot is
decided by what stands above it and beside it, its context; the sizes that a subtree can have in each context are
found once, as sets of numbers. A prefix can be completed if some sum of sizes over its open slots fits the limits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from discodso.base.arrays import Bools
from discodso.base.checks import require_integer
from discodso.base.errors import DeclarationError
from discodso.space.constraints import (
    Constraint,
    DifferentLeaves,
    ForbiddenChild,
    ForbiddenDescendant,
    ForbiddenSiblings,
    InversePairs,
    Names,
    NoNesting,
    names_of,
)
from discodso.space.prefix import Prefix
from discodso.space.tokens import Grammar, Library

_MOST_CONTEXTS = 5_000
NONE = -1  # no parent, no sibling


@dataclass(frozen=True)
class ChildTypes(Constraint):
    """A child of a token is one of `allowed`: `ChildTypes("momentum", 0, ("threshold",))`.

    Args:
        parents: one token or several.
        child: which child, counted from 0; None for all.
        allowed: tokens that it may be.
    """

    sees_values = False

    parents: Names
    child: int | None
    allowed: Names

    def __post_init__(self) -> None:
        object.__setattr__(self, "parents", names_of(self.parents))
        object.__setattr__(self, "allowed", names_of(self.allowed))
        if self.child is not None:
            require_integer("ChildTypes: child", self.child, 0)

    def check(self, library: Library, grammar: Grammar) -> None:
        """See `Rule.check`."""
        library.ids(self.allowed)
        if grammar.chain:
            raise DeclarationError("ChildTypes needs a space of shape Tree; in a sequence use LeadsTo")
        for name in self.parents:
            arity = int(library.arity[library.id(name)])
            if not arity or (self.child is not None and self.child >= arity):
                raise DeclarationError(f"{name!r} has {arity} children, so none is number {self.child or 0}")

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
    """A rule on what stands above and beside a slot.

    Attributes:
        start: the state of the root.
        below: the state of a child, from that of its parent's slot, the parent and the number of the child.
        allowed: whether a token may fill a slot, from its state and the sibling to its left, NONE for none.
    """

    start: Hashable
    below: Callable[[Any, int, int], Hashable]
    allowed: Callable[[Any, int, int], bool]


def tree_rule_of(rule: Constraint, library: Library) -> TreeRule | None:
    """A rule on tokens in a tree; None if it is no such rule."""

    def members(names: Any) -> list[bool]:
        found: list[bool] = library.members(names).tolist()
        return found

    match rule:
        case ChildTypes():
            parents, good = members(rule.parents), members(rule.allowed)

            def typed(state: bool, parent: int, child: int) -> bool:
                return parents[parent] and rule.child in (None, child)

            return TreeRule(False, typed, lambda s, left, k: good[k] or not s)
        case ForbiddenChild():
            parents, bad = members(rule.parents), members(rule.children)
            return TreeRule(
                False, lambda s, parent, child: parents[parent], lambda s, left, k: not (s and bad[k])
            )
        case ForbiddenDescendant() | NoNesting():
            above = rule.ancestors if isinstance(rule, ForbiddenDescendant) else rule.tokens
            below = rule.descendants if isinstance(rule, ForbiddenDescendant) else rule.tokens
            parents, bad = members(above), members(below)
            return TreeRule(
                False, lambda s, parent, child: s or parents[parent], lambda s, left, k: not (s and bad[k])
            )
        case InversePairs():
            pairs = _both_ways(library, rule.pairs)
            return TreeRule(NONE, lambda s, parent, child: parent, lambda s, left, k: (s, k) not in pairs)
        case ForbiddenSiblings() | DifferentLeaves():
            leaves = [
                k for k, token in enumerate(library.tokens) if not token.arity and not token.parametrised
            ]
            alike = {(k, k) for k in leaves}
            pairs = _both_ways(library, rule.pairs) if isinstance(rule, ForbiddenSiblings) else alike
            return TreeRule(None, lambda s, parent, child: None, lambda s, left, k: (left, k) not in pairs)
    return None


def _both_ways(library: Library, given: Any) -> set[tuple[int, int]]:
    pairs = {(library.id(a), library.id(b)) for a, b in given}
    return pairs | {(b, a) for a, b in pairs}


class TreeLookAhead:
    """Which tokens leave a tree that can still be completed, under the rules on contexts and the limits on length.

    A set of sizes is an integer whose bit n says that n tokens are possible.
    """

    def __init__(self, library: Library, grammar: Grammar, rules: Sequence[TreeRule]) -> None:
        self._library, self._grammar, self._rules = library, grammar, tuple(rules)
        self._all = (1 << (grammar.max_positions + 1)) - 1
        self._states: dict[Any, int] = {}
        self._contexts: list[Any] = []
        self._arity = [int(arity) for arity in library.arity]
        self._start = self._state(tuple(rule.start for rule in rules))
        self._below: dict[tuple[int, int, int], int] = {}
        self._solve()

    def _state(self, context: Any) -> int:
        if context not in self._states:
            self._states[context] = len(self._contexts)
            self._contexts.append(context)
        return self._states[context]

    def _child(self, state: int, token: int, child: int) -> int:
        key = state, token, child
        if key not in self._below:
            context = self._contexts[state]
            pairs = zip(self._rules, context, strict=True)
            self._below[key] = self._state(tuple(rule.below(own, token, child) for rule, own in pairs))
        return self._below[key]

    @cache  # noqa: B019 - it lives as long as its space
    def _may(self, state: int, sibling: int, token: int) -> bool:
        pairs = zip(self._rules, self._contexts[state], strict=True)
        return all(rule.allowed(own, sibling, token) for rule, own in pairs)

    def _solve(self) -> None:
        """Sizes of subtrees by state and token, and of the children from one on, from small ones up."""
        reached = 0
        while reached < len(self._contexts) <= _MOST_CONTEXTS:
            state = reached
            for token, arity in enumerate(self._arity):
                for child in range(arity):
                    self._child(state, token, child)
            reached += 1
        self.complete = len(self._contexts) <= _MOST_CONTEXTS
        self._sizes: dict[tuple[int, int], int] = {}
        self._rest: dict[tuple[int, int, int, int], int] = {}
        changed = self.complete
        while changed:
            changed = False
            self._rest = {}
            for state in range(len(self._contexts)):
                for token in range(len(self._arity)):
                    found = (self.rest(state, token, 0, NONE) << 1) & self._all
                    if found != self._sizes.get((state, token), 0):
                        self._sizes[state, token] = found
                        changed = True

    def rest(self, state: int, token: int, child: int, sibling: int) -> int:
        """Sizes of all children of a token in a context, from one on, given the one before it."""
        if child == self._arity[token]:
            return 1
        key = state, token, child, sibling
        if key not in self._rest:
            below, found = self._child(state, token, child), 0
            for k in range(len(self._arity)):
                sizes = self._sizes.get((below, k), 0)
                if sizes and self._may(below, sibling, k):
                    found |= self._sum(sizes, self.rest(state, token, child + 1, k))
            self._rest[key] = found & self._all
        return self._rest[key]

    def _sum(self, first: int, second: int) -> int:
        """All sums of a number of each set."""
        found, at = 0, 0
        if first.bit_count() > second.bit_count():
            first, second = second, first
        while first:
            step = (first & -first).bit_length() - 1
            at += step
            found |= second << at
            first >>= step + 1
            at += 1
        return found & self._all

    def forbidden(self, prefix: Prefix) -> Bools:
        """bool[B, K], tokens after which no tree within the limits keeps the rules."""
        allowed = np.zeros((len(prefix), len(self._library)), np.bool_)
        least, most = (
            self._grammar.min_positions - prefix.position,
            self._grammar.max_positions - prefix.position,
        )
        wanted = ((1 << (most + 1)) - 1) & ~((1 << max(least, 0)) - 1) if most >= 0 else 0
        known: dict[Any, list[bool]] = {}
        tokens, path = prefix.traversals.tokens, prefix.path
        children = prefix.child_index.tolist()
        siblings = prefix.sibling.tolist()
        for row in range(len(prefix)):
            places = path[row][path[row] >= 0].tolist()
            at = int(prefix.rows[row])
            above = tokens[at, places].tolist()
            numbers = self._numbers(prefix, at, places, children[row])
            key = (*above, *numbers, siblings[row])
            if key not in known:
                known[key] = self._options(above, numbers, siblings[row], wanted)
            allowed[row] = known[key]
        return ~allowed

    def _numbers(self, prefix: Prefix, at: int, places: list[int], last: int) -> tuple[int, ...]:
        """For each token of a path which of its children comes next on it."""
        missing = prefix.traversals.missing[at]
        arity = [self._arity[int(prefix.traversals.tokens[at, place])] for place in places]
        # A node that has begun a child lacks the later ones; the last one has not begun the next.
        begun = [
            arity_ - int(missing[place]) - 1 for arity_, place in zip(arity[:-1], places[:-1], strict=True)
        ]
        return (*begun, last) if places else ()

    def _options(self, above: list[int], numbers: tuple[int, ...], sibling: int, wanted: int) -> list[bool]:
        state, states = self._start, []
        for token, child in zip(above, numbers, strict=True):
            states.append(state)
            state = self._child(state, token, child)
        rest = 1
        for depth in range(len(above) - 1):
            parent, child = above[depth], numbers[depth]
            rest = self._sum(rest, self.rest(states[depth], parent, child + 1, above[depth + 1]))
        found = []
        for k in range(len(self._arity)):
            sizes = self._sizes.get((state, k), 0) if self._may(state, sibling, k) else 0
            if sizes and above:
                sizes = self._sum(sizes, self.rest(states[-1], above[-1], numbers[-1] + 1, k))
            found.append(bool(sizes and self._sum(sizes, rest) & wanted))
        return found
