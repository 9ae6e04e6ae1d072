"""Brute force for small spaces, written without the code under test: all traversals, and what makes one valid."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from discodso import (
    DifferentLeaves,
    FixedSequence,
    ForbiddenChild,
    ForbiddenDescendant,
    ForbiddenSiblings,
    InversePairs,
    NoNesting,
    Repeat,
    Space,
    Tree,
)
from discodso.disco.network import Policy


@dataclass(eq=False)
class Node:
    name: str
    parent: Node | None
    children: list[Node]

    def ancestors(self) -> Iterator[Node]:
        node = self.parent
        while node is not None:
            yield node
            node = node.parent


def all_skeletons(space: Space) -> Iterator[tuple[str, ...]]:
    """Every complete traversal within the length limits, valid or not, end tokens left out."""
    names = [t.name for k, t in enumerate(space.library.tokens) if k != space.library.end]
    arity = {t.name: t.arity for t in space.library.tokens}
    match space.shape:
        case Tree(min_length=least, max_length=most):
            for length in range(least, most + 1):
                for skeleton in itertools.product(names, repeat=length):
                    open_slots = 1
                    for i, name in enumerate(skeleton):
                        open_slots += arity[name] - 1
                        if open_slots == 0:
                            if i == length - 1:
                                yield skeleton
                            break
        case FixedSequence(length=length):
            yield from itertools.product(names, repeat=length)
        case _:
            for length in range(space.shape.min_length, space.shape.max_length + 1):
                yield from itertools.product(names, repeat=length)


def as_nodes(space: Space, skeleton: tuple[str, ...]) -> list[Node]:
    """Nodes of a traversal in pre-order; a sequence is a chain."""
    arity = {t.name: t.arity for t in space.library.tokens}
    nodes: list[Node] = []
    open_parents: list[tuple[Node, int]] = []
    for name in skeleton:
        parent = None
        if not isinstance(space.shape, Tree):
            parent = nodes[-1] if nodes else None
        elif open_parents:
            parent, left = open_parents.pop()
            if left > 1:
                open_parents.append((parent, left - 1))
        node = Node(name, parent, [])
        if parent is not None:
            parent.children.append(node)
        nodes.append(node)
        if isinstance(space.shape, Tree) and arity[name]:
            open_parents.append((node, arity[name]))
    return nodes


def obeys(rule, space: Space, skeleton: tuple[str, ...]) -> bool:
    """Whether a complete traversal obeys a rule, by the rule's definition."""
    nodes = as_nodes(space, skeleton)
    tree = isinstance(space.shape, Tree)
    match rule:
        case NoNesting(tokens=family):
            return not any(n.name in family and any(a.name in family for a in n.ancestors()) for n in nodes)
        case ForbiddenChild(parents=parents, children=children):
            return not any(n.parent and n.parent.name in parents and n.name in children for n in nodes)
        case ForbiddenDescendant(ancestors=above, descendants=below):
            return not any(n.name in below and any(a.name in above for a in n.ancestors()) for n in nodes)
        case InversePairs(pairs=pairs):
            both = {frozenset(pair) for pair in pairs}
            return not any(n.parent and frozenset((n.parent.name, n.name)) in both for n in nodes)
        case ForbiddenSiblings(pairs=pairs):
            both = {frozenset(pair) for pair in pairs}
            neighbours = [pair for n in nodes if tree for pair in itertools.pairwise(n.children)]
            return not any(frozenset((a.name, b.name)) in both for a, b in neighbours)
        case DifferentLeaves():
            plain = {t.name for t in space.library.tokens if t.arity == 0 and not t.parametrised}
            neighbours = [pair for n in nodes for pair in itertools.pairwise(n.children)]
            return not any(a.name == b.name and a.name in plain for a, b in neighbours)
        case Repeat(tokens=family, at_least=least, at_most=most):
            count = sum(name in family for name in skeleton)
            return count >= least and (most is None or count <= most)
    raise AssertionError(f"no definition for {rule!r}")


def valid_skeletons(space: Space) -> set[tuple[str, ...]]:
    return {s for s in all_skeletons(space) if all(obeys(rule, space, s) for rule in space.constraints)}


def reachable_skeletons(space: Space) -> tuple[set[tuple[str, ...]], int]:
    """Complete traversals that sampling can produce, walking every allowed token; and the dead ends met."""
    found, dead_ends = set(), 0
    stack = [[]]
    while stack:
        ids = stack.pop()
        prefix = space.start(1)
        for token in ids:
            low = space.library.low[token]
            prefix = prefix.advance(np.array([token]), np.array([np.nan if np.isnan(low) else 0.5]))
        if not len(prefix):
            names = [space.library.names[k] for k in ids if k != space.library.end]
            found.add(tuple(names))
            continue
        allowed = np.flatnonzero(~space.options(prefix).forbidden[0])
        dead_ends += len(allowed) == 0
        stack += [[*ids, int(token)] for token in allowed]
    return found, dead_ends


def probability_by_hand(space: Space, policy: Policy, skeleton: tuple[str, ...]) -> float:
    """Probability of a discrete design, valid or not: the masked softmax at every position, multiplied up."""
    ids = [space.library.id(name) for name in skeleton]
    if space.library.end is not None:
        ids.append(space.library.end)
    stepper = policy.stepper()
    prefix, memory, total = space.start(1), stepper.initial_memory(1), 1.0
    for token in ids:
        if not len(prefix):
            return 0.0
        options = space.options(prefix)
        emission = stepper.step(prefix, memory)
        memory = emission.memory
        logits = emission.psi[0].astype(np.float64)
        if options.prior is not None:
            logits = logits + options.prior[0]
        weights = np.where(options.forbidden[0], 0.0, np.exp(logits))
        total *= weights[token] / weights.sum()
        if total == 0.0:
            return 0.0
        prefix = prefix.advance(np.array([token]), np.array([np.nan]))
    return total if not len(prefix) else 0.0
