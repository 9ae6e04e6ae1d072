"""Laws to find again: formulas of text books and small classical sets, with the published ranges of their inputs.

`laws.csv` has one row for each law. Sets are

    feynman          100 equations of the Feynman lectures and 20 more, as chosen for AI Feynman, with ranges
                     over decades and constants of nature in SI units as published for SRSD
    nguyen           1 to 12, ranges and rows of DSR
    keijzer          1 to 15 but 6, a sum without a closed form; ranges and rows of this set and
    korns            1 to 15, all with five inputs, and
    vladislavleva    1 to 8 as McDermott et al. list them (2012)

A law's number is odd if settings may be tuned on it; the others only show. Numbers such as 1 / (4 pi epsilon)
are one constant. Notes say where the published ranges hide a part of a law, or its code differs from its text.

    law, = laws("feynman", names="I.12.2")
    X, y = law.data(noise=0.01, seed=0)           to learn from
    X, y = law.fresh(seed=0)                      other rows, without noise
    X, y = law.fresh(seed=0, stretched=True)      and with wider ranges

`law_judge.recovered` says whether an expression is the law.
"""

from __future__ import annotations

import csv
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Literal, Protocol, TypeVar

import numpy as np

from discodso.base.arrays import Bools, Floats
from discodso.base.checks import require_one_of
from discodso.base.errors import DeclarationError
from discodso.tasks.regression.expression import Expression

SETS = ("feynman", "nguyen", "keijzer", "korns", "vladislavleva")
HALVES = ("all", "tuned", "shown")
Half = Literal["all", "tuned", "shown"]
MOST_ROWS, FRESH_ROWS = 1000, 1000
_LARGEST_TARGET = 1e100  # squares of what is larger cannot be added up
_VARIABLE = re.compile(r"(\w+) (\w+)\(([^)]*)\)")
_KINDS = ("uniform", "log", "signed_log", "negative_log", "integer", "signed_integer", "grid")


@dataclass(frozen=True)
class Variable:
    """An input of a law.

    Attributes:
        name: column name.
        kind: "uniform"; "log" for a uniform logarithm, "signed_log" with either sign, "negative_log" for negative
            numbers of that size; "integer", both ends included, "signed_integer" with either sign; "grid" for
            equal steps.
        low, high: ends of the range, or of that of the size.
        step: of a grid.
        unit: in kg, m, s, A and K, such as "kg*m/s^2"; "1" for a plain number, "" if unknown.
    """

    name: str
    kind: str
    low: float
    high: float
    step: float = 0.0
    unit: str = ""

    @property
    def grid(self) -> Floats:
        """Points of a grid."""
        count = int((self.high - self.low) / self.step + 1e-9) + 1
        points: Floats = self.low + self.step * np.arange(count, dtype=np.float64)
        return points

    def draw(self, rng: np.random.Generator, count: int, stretched: bool = False) -> Floats:
        """So many values; a grid is drawn from evenly. Stretched ranges never reach below 0 if they did not."""
        low, high = self.stretched_range() if stretched else (self.low, self.high)
        signs = np.where(rng.random(count) < 0.5, -1.0, 1.0) if self.kind.startswith("signed") else 1.0
        if self.kind in ("uniform", "grid"):
            return rng.uniform(low, high, count)
        if self.kind.endswith("integer"):
            whole: Floats = signs * rng.integers(round(low), round(high) + 1, count).astype(np.float64)
            return whole
        sizes: Floats = signs * np.exp(rng.uniform(np.log(low), np.log(high), count))
        return -sizes if self.kind == "negative_log" else sizes

    def stretched_range(self) -> tuple[float, float]:
        """A range of twice the width; of a logarithm, by a factor of 2 at both ends."""
        if self.kind.endswith("log"):
            return self.low / 2, 2 * self.high
        if self.kind.endswith("integer"):
            return self.low, self.low + 2 * (self.high - self.low)
        more = (self.high - self.low) / 2
        low = self.low - more
        return (max(low, self.low / 2) if self.low >= 0 else low), self.high + more


@dataclass(frozen=True)
class Law:
    """A formula, how its inputs are drawn, and how many rows there are.

    Attributes:
        set, number, name: where it is from.
        formula: as `Expression.parse` reads it.
        tokens: of the formula as it is usually written.
        rows: of the published training table.
        target_unit: unit of the formula, "" if unknown.
        source: of the ranges.
        note: what is special about it.
    """

    set: str
    number: int
    name: str
    formula: str
    tokens: int
    rows: int
    variables: tuple[Variable, ...]
    target_unit: str = ""
    source: str = ""
    note: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(variable.name for variable in self.variables)

    @property
    def tuned(self) -> bool:
        """Whether settings may be chosen by it."""
        return self.number % 2 == 1

    @cached_property
    def truth(self) -> Expression:
        """The formula as an expression."""
        return Expression.parse(self.formula, self.columns)

    def data(self, noise: float = 0.0, seed: int = 0, most: int = MOST_ROWS) -> tuple[Floats, Floats]:
        """X[n, d] and y[n] to learn from, at most so many rows.

        Noise is normal, as a share of the standard deviation of the targets. Rows whose target is not finite are
        drawn again; a grid leaves them out.
        """
        rng = self._rng("training", seed)
        if all(variable.kind == "grid" for variable in self.variables):
            axes = np.meshgrid(*(variable.grid for variable in self.variables), indexing="ij")
            X = np.stack([axis.ravel() for axis in axes], axis=1)
            y = self.truth(X)
            X, y = X[_usable(y)][:most], y[_usable(y)][:most]
        else:
            X, y = self._draw(rng, min(self.rows, most), False)
        return X, y + noise * np.std(y) * rng.standard_normal(len(y)) if noise else y

    def fresh(self, seed: int = 0, rows: int = FRESH_ROWS, stretched: bool = False) -> tuple[Floats, Floats]:
        """X[n, d] and y[n] without noise, other rows than those of `data`, perhaps over wider ranges."""
        return self._draw(self._rng("wide" if stretched else "fresh", seed), rows, stretched)

    def _rng(self, purpose: str, seed: int) -> np.random.Generator:
        stream = zlib.crc32(f"{self.set}/{self.name}/{purpose}".encode())  # the same on every machine
        return np.random.default_rng(np.random.SeedSequence((seed, stream)))

    def _draw(self, rng: np.random.Generator, count: int, stretched: bool) -> tuple[Floats, Floats]:
        kept_x, kept_y = np.empty((0, len(self.variables))), np.empty(0)
        for _ in range(1000):
            X = np.stack([variable.draw(rng, count, stretched) for variable in self.variables], axis=1)
            y = self.truth(X)
            good = _usable(y)
            kept_x, kept_y = np.concatenate((kept_x, X[good])), np.concatenate((kept_y, y[good]))
            if len(kept_y) >= count:
                return kept_x[:count], kept_y[:count]
        raise DeclarationError(f"{self.name} has too few finite points")


def _usable(y: Floats) -> Bools:
    with np.errstate(invalid="ignore"):
        usable: Bools = np.abs(y) <= _LARGEST_TARGET  # False for NaN
    return usable


def _variables(text: str, units: str) -> tuple[Variable, ...]:
    found = []
    parts = text.split("; ")
    for part, unit in zip(parts, units.split() or [""] * len(parts), strict=True):
        match = _VARIABLE.fullmatch(part)
        if match is None or match[2] not in _KINDS:
            raise DeclarationError(f"not a variable of a law: {part!r}")
        low, high, step = [*map(float, match[3].split()), 0.0][:3]
        found.append(Variable(match[1], match[2], low, high, step, unit))
    return tuple(found)


@cache
def _known() -> tuple[Law, ...]:
    text = resources.files("discodso.tasks.regression").joinpath("laws.csv").read_text(encoding="utf-8")
    return tuple(
        Law(
            row["set"],
            int(row["number"]),
            row["name"],
            row["formula"],
            int(row["tokens"]),
            int(row["rows"]),
            _variables(row["variables"], row["units"]),
            row["target_unit"],
            row["source"],
            row["note"],
        )
        for row in csv.DictReader(text.splitlines())
    )


def laws(
    sets: str | Iterable[str] = "all", names: str | Iterable[str] = "all", half: Half = "all"
) -> tuple[Law, ...]:
    """The laws of these sets, of these names, and of one half of each set; "all" for no choice."""
    wanted = SETS if sets == "all" else (sets,) if isinstance(sets, str) else tuple(sets)
    for own in wanted:
        require_one_of("set", own, SETS)
    return selected([law for law in _known() if law.set in wanted], names, half)


class _Named(Protocol):
    """A law, or a table of NIST."""

    @property
    def name(self) -> str: ...

    @property
    def tuned(self) -> bool: ...


_One = TypeVar("_One", bound=_Named)


def selected(found: Iterable[_One], names: str | Iterable[str], half: Half) -> tuple[_One, ...]:
    """Those of these names and of one half; "all" for no choice."""
    require_one_of("half", half, HALVES)
    left = [law for law in found if half == "all" or law.tuned == (half == "tuned")]
    if names == "all":
        return tuple(left)
    asked = {names} if isinstance(names, str) else set(names)
    if missing := sorted(asked - {law.name for law in left}):
        where = "these sets" if half == "all" else f"half {half!r} of these sets"
        raise DeclarationError(f"no law {', '.join(missing)} in {where}")
    return tuple(law for law in left if law.name in asked)
