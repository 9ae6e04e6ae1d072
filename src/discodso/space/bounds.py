"""Which interval a prefix allows the value of each parametrised token.

A bound of one's own is one small class with one vectorised method from a prefix to low[B, K], high[B, K] in the
units of the values. Begin with `prefix.library.low` and `prefix.library.high`, the declared ranges. A token
whose interval is narrower than `min_width` is forbidden.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.checks import require, require_number
from discodso.base.errors import DeclarationError
from discodso.space import _kernels
from discodso.space.constraints import Rule
from discodso.space.prefix import Prefix
from discodso.space.tokens import Grammar, Library


class Bounds(Rule):
    """Intervals for values; the declared range of a token is the widest it may give."""

    @abstractmethod
    def interval(self, prefix: Prefix) -> tuple[Floats, Floats]:
        """low[B, K] and high[B, K], NaN for discrete tokens. The prefix must not be changed."""

    def min_width(self, library: Library) -> Floats:
        """float[K], intervals narrower than this forbid their token; NaN or 0 for no such limit."""
        return np.zeros(len(library))


@dataclass(frozen=True)
class FixedRanges(Bounds):
    """Every value may lie anywhere in the declared range of its token."""

    sees_values = False

    def interval(self, prefix: Prefix) -> tuple[Floats, Floats]:
        """See `Bounds.interval`."""
        shape = (len(prefix), len(prefix.library))
        return np.broadcast_to(prefix.library.low, shape), np.broadcast_to(prefix.library.high, shape)


@dataclass(frozen=True)
class DecisionTreeBounds(Bounds):
    """Bounds on thresholds that the decisions above leave open (appendix, "Finding bounds for parameters in
    decision trees").

    A parametrised token of arity 2 is a decision "x < beta": below its left child x stays under beta, below its
    right child above it. Values keep a distance h from those of the ancestors, and a feature whose interval
    has become narrower than h is not split again.

    Args:
        resolution: h, as a share of the declared range if `relative`, else in the units of the value.
        relative: see there.
        resolutions: h for single tokens, by name; overrides `resolution`, same units.
    """

    resolution: float = 0.01
    relative: bool = True
    resolutions: Mapping[str, float] | tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        given = self.resolutions
        if not isinstance(given, tuple):
            require(
                "resolutions", given, isinstance(given, Mapping), "a dictionary from token names to numbers"
            )
            object.__setattr__(self, "resolutions", tuple(sorted(given.items())))
        for name, value in (("resolution", self.resolution), *dict(self.resolutions).items()):
            require_number(f"DecisionTreeBounds: {name}", value, least=0)

    def check(self, library: Library, grammar: Grammar) -> None:
        """See `Rule.check`."""
        library.ids(dict(self.resolutions))
        if grammar.chain:
            raise DeclarationError("DecisionTreeBounds needs a space of shape Tree")
        for token in library.tokens:
            if token.parametrised and token.arity != 2:
                raise DeclarationError(
                    f"DecisionTreeBounds takes parametrised tokens for decisions of arity 2, "
                    f"but {token.name!r} has arity {token.arity}"
                )
            if self.relative and token.range is not None and not np.all(np.isfinite(token.range)):
                raise DeclarationError(
                    f"DecisionTreeBounds: the range of {token.name!r} is infinite; give it finite ends, "
                    "or set relative=False and a resolution in its units"
                )

    def min_width(self, library: Library) -> Floats:
        """float[K], the resolution h of each token."""
        h = np.full(len(library), float(self.resolution))
        for name, value in dict(self.resolutions).items():
            h[library.id(name)] = value
        return (
            h * (library.high - library.low) if self.relative else np.where(library.parametrised, h, np.nan)
        )

    def interval(self, prefix: Prefix) -> tuple[Floats, Floats]:
        """See `Bounds.interval`."""
        library, t = prefix.library, prefix.traversals
        low, high = np.tile(library.low, (len(prefix), 1)), np.tile(library.high, (len(prefix), 1))
        _kernels.decision_tree_bounds(
            t.tokens,
            t.values,
            prefix.rows,
            prefix.path,
            prefix.child_index,
            library.parametrised,
            self.min_width(library),
            low,
            high,
        )
        return low, high
