"""What baselines share: packages that are extras, and designs as tokens and units, options among these."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.base.errors import DiscodsoError
from discodso.space.design import DesignBatch
from discodso.space.skeletons import fill, keeps_rules, units_of, without_numbers
from discodso.space.space import Space


def extra(need: str, *modules: str) -> list[Any]:
    """Modules of a package that comes with the extra "baselines"; `need` begins the error if it is missing."""
    try:
        return [import_module(name) for name in modules]
    except ImportError:
        raise DiscodsoError(f"{need}; install it by `pip install discodso[baselines]`") from None


def all_units(space: Space, designs: DesignBatch) -> Floats:
    """units[B, T, V] of numbers, and the numbers of options."""
    options = designs.option_numbers()
    return np.where(options >= 0, options, units_of(space, designs))


def with_options(space: Space, tokens: Ints, lengths: Ints, units: Floats) -> DesignBatch:
    """Skeletons from tokens[B, T] and from the options in units[B, T, V]."""
    library = space.library
    options = np.where((library.options > 0)[tokens], units, np.nan)
    return DesignBatch(library, tokens, library.narrow(options), lengths)


def sound_designs(
    space: Space, skeletons: Space, tokens: Ints, lengths: Ints, units: Floats
) -> tuple[Ints, DesignBatch, int]:
    """Those rows whose designs keep all rules of a space, these designs, and how many were refused for their
    values, or by a condition; `skeletons` is the space of its skeletons."""
    grammar, width = space.grammar, space.grammar.max_positions
    rows = np.flatnonzero((lengths >= grammar.min_positions) & (lengths <= width))
    tokens, units = tokens[:, :width], units[:, :width]
    made = with_options(space, tokens[rows], lengths[rows], units[rows])
    fine = keeps_rules(skeletons, without_numbers(skeletons, made))
    rows = rows[fine]
    designs, feasible = fill(space, made.select(fine), units[rows])
    return rows[feasible], designs.select(feasible), int((~feasible).sum())
