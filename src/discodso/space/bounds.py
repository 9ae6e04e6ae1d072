"""Which interval a prefix allows the value of each parametrised token.

A bound of one's own is one small class with one vectorised method from a prefix to low[B, K], high[B, K] in the
units of the values; [B, K, V] where some token carries more than one value (`library.place` finds the place of a
value). Begin with `prefix.library.low` and `prefix.library.high`, the declared ranges. A token whose interval is
narrower than `min_width`, or holds no integer where it needs one, is forbidden.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from discodso.base.arrays import Bools, Floats
from discodso.base.checks import require, require_number
from discodso.base.errors import DeclarationError
from discodso.space import _kernels
from discodso.space.constraints import Rule
from discodso.space.prefix import Prefix
from discodso.space.tokens import Grammar, Library
from discodso.space.values import Choice, Real


class Bounds(Rule):
    """Intervals for values; the declared range of a token is the widest it may give."""

    @abstractmethod
    def interval(self, prefix: Prefix) -> tuple[Floats, Floats]:
        """low[B, K] and high[B, K], NaN for discrete tokens; [B, K, V] where some token carries more than one
        value. The prefix must not be changed."""

    def min_width(self, library: Library) -> Floats:
        """float[K], or float[K, V]: intervals narrower than this forbid their token; NaN or 0 for no limit."""
        return np.zeros(library.low.shape)


@dataclass(frozen=True)
class FixedRanges(Bounds):
    """Every value may lie anywhere in the declared range of its token."""

    sees_values = False

    def interval(self, prefix: Prefix) -> tuple[Floats, Floats]:
        """See `Bounds.interval`."""
        low, high = prefix.library.ranges
        return low[: len(prefix)], high[: len(prefix)]


@dataclass(frozen=True)
class DecisionTreeBounds(Bounds):
    """Bounds on thresholds that the decisions above leave open (appendix, "Finding bounds for parameters in
    decision trees").

    A token of arity 2 with one number is a decision "x < beta": below its left child x stays under beta, below
    its right child above it. Thresholds keep a distance h from those of the ancestors, and a feature whose
    interval has become narrower than h is not split again; integers stand for "x < beta + 1/2" and keep a distance
    of 1. Leaves may carry any values, and so may tokens of arity 2 with several values: these are other decisions,
    which neither are bounded nor bound.

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
            expected = "a dictionary from token names to numbers"
            require("resolutions", given, isinstance(given, Mapping), expected)
            object.__setattr__(self, "resolutions", tuple(sorted(given.items())))
        for name, value in (("resolution", self.resolution), *dict(self.resolutions).items()):
            require_number(f"DecisionTreeBounds: {name}", value, least=0)

    def check(self, library: Library, grammar: Grammar) -> None:
        """See `Rule.check`."""
        library.ids(dict(self.resolutions))
        if grammar.chain:
            raise DeclarationError("DecisionTreeBounds needs a space of shape Tree")
        for token in library.tokens:
            values = [value for _, value in token.values]
            decision = token.arity == 2 and len(values) == 1 and not isinstance(values[0], Choice)
            if values and token.arity and not decision and not (token.arity == 2 and len(values) > 1):
                raise DeclarationError(
                    f"DecisionTreeBounds takes tokens of arity 2 with one number or several values for "
                    f"decisions, but {token.name!r} has arity {token.arity} and {len(values)} values"
                )
            real = decision and isinstance(values[0], Real)
            if self.relative and real and not math.isfinite(values[0].high - values[0].low):
                raise DeclarationError(
                    f"DecisionTreeBounds: the range of {token.name!r} is infinite; give it finite ends, "
                    "or set relative=False and a resolution in its units"
                )

    def min_width(self, library: Library) -> Floats:
        """The resolution h of each decision, 0 for leaves."""
        widths = np.zeros((len(library), library.slots))
        real = _decisions(library) & (library.wide(library.half)[:, 0] == 0)
        widths[:, 0] = np.where(real, self._resolution(library), np.where(_decisions(library), 0.0, np.nan))
        return library.narrow(np.where(library.numeric | (library.slots == 1), widths, 0.0))

    def _resolution(self, library: Library) -> Floats:
        """float[K]."""
        h = np.full(len(library), float(self.resolution))
        for name, value in dict(self.resolutions).items():
            h[library.id(name)] = value
        h = h * library.wide(library.high - library.low)[:, 0] if self.relative else h
        return np.where(library.wide(library.half)[:, 0] > 0, 1.0, h)

    def interval(self, prefix: Prefix) -> tuple[Floats, Floats]:
        """See `Bounds.interval`."""
        library = prefix.library
        declared = library.wide(library.low), library.wide(library.high)
        low, high = (np.repeat(ends[None], len(prefix), axis=0) for ends in declared)
        rules = _decisions(library), library.wide(library.half)[:, 0] > 0, self._resolution(library)
        path = prefix.rows, prefix.path, prefix.child_index
        _kernels.decision_tree_bounds(prefix.traversals, *path, *rules, low, high)
        return library.narrow(low), library.narrow(high)


def _decisions(library: Library) -> Bools:
    """bool[K], tokens that are decisions "x < beta"."""
    single = np.array([len(token.values) == 1 for token in library.tokens])
    return np.asarray(single & (library.arity == 2))


class _Watched:
    """A prefix that knows whether more of it was read than its library and how many rows it has."""

    def __init__(self, prefix: Prefix) -> None:
        self.prefix, self.read = prefix, False

    def __getattr__(self, name: str) -> Any:
        self.read |= name not in ("library", "grammar")
        return getattr(self.prefix, name)

    def __len__(self) -> int:
        return len(self.prefix)


def static_interval(bounds: Bounds, start: Prefix) -> tuple[Floats, Floats] | None:
    """The interval that bounds give to every prefix, if they look at none; else None."""
    watched: Any = _Watched(start)
    try:
        found = bounds.interval(watched)
    except Exception:  # whoever asks with a true prefix will see it
        return None
    return None if watched.read else found
