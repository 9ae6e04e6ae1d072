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
from discodso.space.constraints import AboutTokens, Apart, Constraint, Names, apart_pairs, apart_states
from discodso.space.prefix import Prefix
from discodso.space.tokens import Grammar, Library

_MOST_CONTEXTS = 5_000
NONE = -1  # no sibling
Context = tuple[Hashable, ...]  # a state of each rule


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
    match rule:
        case ChildTypes():
            parents, good = library.members(rule.parents).tolist(), library.members(rule.allowed).tolist()
            return TreeRule(
                False,
                lambda s, parent, child: parents[parent] and rule.child in (None, child),
                lambda s, left, k: good[k] or not s,
            )
        case Apart():
            rows, first, after = apart_states(rule, library)
            if apart_pairs(rule, library).relation == "sibling":
                return TreeRule(None, lambda s, parent, child: None, lambda s, left, k: not rows[left][k])
            return TreeRule(first, lambda s, parent, _: after(s, parent), lambda s, left, k: not rows[s][k])
    return None


class TreeLookAhead:
    """Which tokens leave a tree that can still be completed, under the rules on contexts and the limits on length.

    A set of sizes is an integer whose bit n says that n tokens are possible.
    """

    def __init__(self, library: Library, grammar: Grammar, rules: Sequence[TreeRule]) -> None:
        self._library, self._grammar, self._rules = library, grammar, tuple(rules)
        self._all = (1 << (grammar.max_positions + 1)) - 1
        self._arity: list[int] = library.arity.tolist()
        self._start = tuple(rule.start for rule in rules)
        self._child, self._may = cache(self._below), cache(self._allowed)
        contexts: set[Context] = set()
        waiting = [self._start]
        while waiting and len(contexts) <= _MOST_CONTEXTS:
            context = waiting.pop()
            if context not in contexts:
                contexts.add(context)
                for token, arity in enumerate(self._arity):
                    waiting += [self._child(context, token, child) for child in range(arity)]
        self.complete = len(contexts) <= _MOST_CONTEXTS
        # Sizes of subtrees by context and token, and of the children from one on, from small ones up.
        self._sizes: dict[tuple[Context, int], int] = {}
        changed = self.complete
        while changed:
            changed, self._rests = False, dict[Any, int]()
            for context in contexts:
                for token in range(len(self._arity)):
                    found = (self._rest(context, token, 0, NONE) << 1) & self._all
                    if found != self._sizes.get((context, token), 0):
                        self._sizes[context, token] = found
                        changed = True

    def _below(self, context: Context, token: int, child: int) -> Context:
        pairs = zip(self._rules, context, strict=True)
        return tuple(rule.below(own, token, child) for rule, own in pairs)

    def _allowed(self, context: Context, sibling: int, token: int) -> bool:
        return all(rule.allowed(own, sibling, token) for rule, own in zip(self._rules, context, strict=True))

    def _rest(self, context: Context, token: int, child: int, sibling: int) -> int:
        """Sizes of all children of a token in a context, from one on, given the one before it."""
        if child == self._arity[token]:
            return 1
        key = context, token, child, sibling
        if key not in self._rests:
            below, found = self._child(context, token, child), 0
            for k in range(len(self._arity)):
                sizes = self._sizes.get((below, k), 0)
                if sizes and self._may(below, sibling, k):
                    found |= self._sum(sizes, self._rest(context, token, child + 1, k))
            self._rests[key] = found & self._all
        return self._rests[key]

    def _sum(self, first: int, second: int) -> int:
        """All sums of a number of each set."""
        found = 0
        if first.bit_count() > second.bit_count():
            first, second = second, first
        while first:
            lowest = first & -first
            found |= second << (lowest.bit_length() - 1)
            first ^= lowest
        return found & self._all

    def forbidden(self, prefix: Prefix) -> Bools:
        """bool[B, K], tokens after which no tree within the limits keeps the rules."""
        grammar, t, rows = self._grammar, prefix.traversals, prefix.rows[:, None]
        least, most = grammar.min_positions - prefix.position, grammar.max_positions - prefix.position
        wanted = ((1 << (most + 1)) - 1) & ~((1 << max(least, 0)) - 1) if most >= 0 else 0
        above = t.tokens[rows, prefix.path]
        # Which child of each token of the path comes next on it: all but the last have begun it.
        begun = np.arange(prefix.path.shape[1]) < prefix.depth[:, None] - 1
        numbers = self._library.arity[above] - t.missing[rows, prefix.path] - begun
        allowed = prefix.forbid_nothing()
        known: dict[Any, list[bool]] = {}
        for row, (depth, sibling) in enumerate(zip(prefix.depth, prefix.sibling.tolist(), strict=True)):
            path = tuple(zip(above[row, :depth].tolist(), numbers[row, :depth].tolist(), strict=True))
            if (path, sibling) not in known:
                known[path, sibling] = self._options(path, sibling, wanted)
            allowed[row] = known[path, sibling]
        return ~allowed

    def _options(self, path: tuple[tuple[int, int], ...], sibling: int, wanted: int) -> list[bool]:
        """bool[K] for a slot below a path of tokens and which of their children comes next."""
        context, contexts = self._start, list[Context]()
        for token, child in path:
            contexts.append(context)
            context = self._child(context, token, child)
        rest = 1
        for depth, (token, child) in enumerate(path[:-1]):
            rest = self._sum(rest, self._rest(contexts[depth], token, child + 1, path[depth + 1][0]))
        found = []
        for k in range(len(self._arity)):
            sizes = self._sizes.get((context, k), 0) if self._may(context, sibling, k) else 0
            if sizes and path:
                sizes = self._sum(sizes, self._rest(contexts[-1], path[-1][0], path[-1][1] + 1, k))
            found.append(bool(sizes and self._sum(sizes, rest) & wanted))
        return found
