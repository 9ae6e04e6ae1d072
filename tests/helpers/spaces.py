"""Spaces that several tests use."""

from __future__ import annotations

import math

from discodso import (
    DecisionTreeBounds,
    DifferentLeaves,
    FixedSequence,
    ForbiddenChild,
    NoNesting,
    OpenSequence,
    Repeat,
    Required,
    SoftLength,
    Space,
    Token,
    Tree,
    UniformArity,
)


def symbolic(min_length: int = 4, max_length: int = 32) -> Space:
    """Twelve tokens, one of them parametrised without bounds."""
    tokens = [
        *(Token(name, 2) for name in ("add", "sub", "mul", "div")),
        *(Token(name, 1) for name in ("sin", "cos", "exp", "log")),
        *(Token(name) for name in ("x1", "x2", "one")),
        Token("const", range=(-math.inf, math.inf)),
    ]
    return Space(tokens, Tree(min_length, max_length), [NoNesting(("sin", "cos"))])


def decision_tree(max_length: int = 15, resolution: float = 0.05) -> Space:
    tokens = [
        Token("x1<", 2, range=(0, 5)),
        Token("x2<", 2, range=(1, 8)),
        Token("a1"),
        Token("a2"),
        Token("a3"),
    ]
    bounds = DecisionTreeBounds(resolution)
    return Space(tokens, Tree(1, max_length), [DifferentLeaves()], bounds=bounds)


def small_tree() -> Space:
    tokens = [Token("add", 2), Token("sin", 1), Token("cos", 1), Token("x"), Token("y")]
    rules = [NoNesting(("sin", "cos")), Required("x"), ForbiddenChild("add", "add"), DifferentLeaves()]
    return Space(tokens, Tree(2, 5), rules)


def small_tree_with_priors() -> Space:
    tokens = [Token("f", 3), Token("add", 2), Token("neg", 1), Token("x"), Token("y")]
    return Space(tokens, Tree(1, 6), [Repeat("neg", at_most=1)], [SoftLength(3, 1.5), UniformArity()])


def small_fixed() -> Space:
    return Space([Token("a"), Token("b"), Token("c")], FixedSequence(4), [Repeat("a", 1, 2)])


def roomy_fixed() -> Space:
    """Like `small_fixed`, with so many designs that none is met twice by chance."""
    return Space([Token("a"), Token("b"), Token("c")], FixedSequence(24), [Repeat("a", 1, 2)])


def small_open() -> Space:
    rules = [ForbiddenChild("a", "a"), Repeat(("b", "c"), at_least=2)]
    return Space([Token("a"), Token("b"), Token("c")], OpenSequence(0, 4), rules)


SMALL = {
    "tree": small_tree,
    "tree with priors": small_tree_with_priors,
    "fixed sequence": small_fixed,
    "open sequence": small_open,
}


def mixed_sequence(low: float = 0.0, high: float = 1.0) -> Space:
    """One parametrised and one discrete token."""
    return Space([Token("v", range=(low, high)), Token("d")], FixedSequence(2))


def valued_sequence(low: float = 0.0, high: float = 1.0) -> Space:
    """Like `mixed_sequence`, where every design has a value, so that none is met twice by chance."""
    return Space([Token("v", range=(low, high)), Token("d")], FixedSequence(2), [Repeat("d", at_most=1)])
