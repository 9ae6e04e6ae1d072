"""What is searched: data, operators and their prices, rules, units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.tasks.regression.engine import _fitting as fitting
from discodso.tasks.regression.engine import _units
from discodso.tasks.regression.engine._trees import (
    ADD,
    COLUMN,
    CONSTANT,
    DIV,
    INV,
    LITERAL,
    LOG_SIZE,
    NEG,
    PROBES,
    SUB,
    is_binary,
)
from discodso.tasks.regression.operators import OPERATORS

PRICES = {"sin": 3, "cos": 3, "tan": 4, "tanh": 4, "exp": 2, "log": 2, "pow": 2, "abs": 2}
PRICES |= {"asin": 4, "acos": 4, "atan": 4}
LARGEST = 96  # tokens of what is rated
WRITTEN = 4 * LARGEST  # of what is written down: coefficients, and a scale before every input


@dataclass(frozen=True)
class Units:
    """Exponents of the base units that occur.

    Attributes:
        columns: float[d, m].
        target: float[m].
        most: how many independent units constants may have.
    """

    columns: Floats
    target: Floats
    most: int

    @property
    def least(self) -> int:
        """How many constants must have: 0 if products of powers of the inputs have the unit of the target."""
        rank, both = _units.ranks_of(self.columns, self.target)
        return int(both - rank)

    def is_alone(self, place: int) -> bool:
        """Whether an input has a base unit, or a product of them, that no others have."""
        rest = np.delete(self.columns, place, axis=0)
        return bool(np.linalg.matrix_rank(rest) < np.linalg.matrix_rank(self.columns))

    def powers(self) -> list[float]:
        """Of a product of powers of inputs that has the unit of the target."""
        found: list[float] = np.linalg.lstsq(self.columns.T, self.target, rcond=1e-9)[0].tolist()
        return found


@dataclass(frozen=True)
class Setting:
    """What is searched, as arrays.

    Attributes:
        columns: float[d, n], inputs.
        target, weights: float[n]; weights sum to 1.
        operators: codes of the operators that may be used.
        literals: fixed numbers.
        prices: by code.
        nesting: bool[CONSTANT, CONSTANT], which operator must not stand inside which.
        most_constants: within terms.
        limits: of constants.
        longest: tokens.
        budget: calls of the whole run, by which shares are planned.
        units: of inputs and target; None if they do not matter.
    """

    columns: Floats
    target: Floats
    weights: Floats
    operators: tuple[int, ...]
    literals: Floats
    prices: Floats
    nesting: Bools
    most_constants: int
    limits: tuple[float, float]
    longest: int
    budget: int
    units: Units | None = None

    @property
    def binary(self) -> Ints:
        """Codes of the operators of two operands."""
        return np.array([code for code in self.operators if is_binary(code)], np.int64)

    @property
    def unary(self) -> Ints:
        """Codes of the others."""
        return np.array([code for code in self.operators if not is_binary(code)], np.int64)

    def probes(self, rng: np.random.Generator) -> Floats:
        """Rows of the inputs by which functions are told apart, float[d, PROBES]."""
        n = self.columns.shape[1]
        rows = rng.choice(n, PROBES, replace=n < PROBES)
        found = np.ascontiguousarray(self.columns[:, rows])
        if n < PROBES:  # few rows: rows in between tell as well
            found = found * np.exp(0.1 * rng.standard_normal(found.shape))
        return found


def make_setting(
    columns: Floats,
    target: Floats,
    weights: Floats,
    names: Sequence[str],
    literals: Sequence[float],
    settings: Any,
    units: Units | None = None,
) -> Setting:
    """The setting for columns[d, n] and target[n], given the settings of the method."""
    description = settings.description
    codes = [OPERATORS[name].code for name in names]
    if DIV in codes and INV not in codes:
        codes.append(INV)
    codes = [code for code in codes if code != NEG]  # coefficients have signs
    prices = np.ones(COLUMN + len(columns))
    if description.costs is None:
        for name, price in PRICES.items():
            prices[OPERATORS[name].code] = price
    else:
        for name, operator in OPERATORS.items():
            prices[operator.code] = description.costs[name]
        prices[CONSTANT] = description.costs["const"]
        places = [name for name in description.numbers if name != "const"]
        for place, name in enumerate(places):
            prices[LITERAL + place] = description.costs[name]
    nesting = np.zeros((CONSTANT, CONSTANT), np.bool_)
    trigonometric = ("sin", "cos", "tan")
    rules = description.nesting
    if rules is None:
        rules = {**dict.fromkeys(trigonometric, trigonometric), "exp": ("exp",), "log": ("log",)}
    for outer, inner in rules.items():
        nesting[OPERATORS[outer].code, [OPERATORS[name].code for name in inner]] = True
    nesting[:, LOG_SIZE] = True
    nesting[[ADD, SUB], LOG_SIZE] = False
    most = fitting.MOST_CONSTANTS if description.max_constants is None else description.max_constants
    constant = "const" in description.library
    low, high = description.const_range
    return Setting(
        columns,
        target,
        weights / weights.sum(),
        tuple(codes),
        np.array([*literals, 0.0] if units is None else [*literals, 0.0, 1.0]),
        prices,
        nesting,
        min(most, 6) if constant else 0,
        (max(low, -1e60), min(high, 1e60)),
        min(2 * description.max_length, LARGEST),
        settings.budget,
        units,
    )
