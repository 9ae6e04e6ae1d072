"""Units that a user has declared for the columns of a table, and which formulas agree with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.base.checks import did_you_mean
from discodso.base.errors import DeclarationError
from discodso.tasks.regression.engine import _trees as trees
from discodso.tasks.regression.engine import _units
from discodso.tasks.regression.expression import CONST, Expression, input_index, literal_value
from discodso.tasks.regression.operators import OPERATORS
from discodso.tasks.regression.units import Dimension, parse_unit, unit_in_name


@dataclass(frozen=True)
class DeclaredUnits:
    """What is known of the units of a table.

    Attributes:
        columns: of each input.
        target: of the target.
        most: how many independent units the constants of a formula may have.
    """

    columns: tuple[Dimension, ...]
    target: Dimension
    most: int

    @cached_property
    def arrays(self) -> tuple[Floats, Floats]:
        """Exponents of the base units that occur, of the inputs [d, m] and of the target [m]."""
        found = np.array([[float(e) for e in own.exponents] for own in (*self.columns, self.target)])
        occurs = found.any(axis=0)
        found = np.ascontiguousarray(found[:, occurs] if occurs.any() else found[:, :1])
        return found[:-1].copy(), found[-1].copy()

    def agrees(self, expression: Expression) -> bool:
        """Whether constants with units, no more than may be, make a formula consistent."""
        columns, target = self.arrays
        codes, literals = _codes(expression)
        return 0 <= int(_units.rank_of(codes, literals, columns, target)) <= self.most


def _codes(expression: Expression) -> tuple[Ints, Floats]:
    """An expression for compiled code, and the numbers in it that are no constants, such as exponents."""
    literals: list[float] = []
    codes = np.zeros(len(expression), np.int64)
    items = list(expression.design)
    for place, (name, _) in enumerate(items):
        index = input_index(name)
        if index is not None:
            codes[place] = trees.COLUMN + index
        elif name in OPERATORS:
            codes[place] = OPERATORS[name].code
        elif name == CONST:
            codes[place] = trees.CONSTANT
        else:
            codes[place] = trees.LITERAL + len(literals)
            literals.append(literal_value(name) or 0.0)
    for place in np.flatnonzero(codes == trees.POW).tolist():
        exponent = int(trees.end_of(codes, place + 1))
        if codes[exponent] == trees.CONSTANT:
            codes[exponent] = trees.LITERAL + len(literals)
            literals.append(float(items[exponent][1] or 0.0))
    return codes, np.array([*literals, 0.0])


def declared(
    units: Mapping[str, str], in_names: bool, most: int, columns: Sequence[str], target: str
) -> DeclaredUnits | None:
    """The units of a table, None if none are declared.

    Args:
        units: texts such as "m/s" by name, of inputs and target.
        in_names: whether names such as "speed [m/s]" declare units, too.
        most: how many independent units the constants of a formula may have.
        columns: names of the inputs.
        target: name of the target.
    """
    if not units and not in_names:
        return None
    names = (*columns, target)
    if target in columns:
        raise DeclarationError(f"units: input and target are both called {target!r}; rename one of them")
    for name in units:
        if name not in names:
            hint = did_you_mean(name, names)
            raise DeclarationError(f"units: there is no column {name!r}{hint}; there are {', '.join(names)}")
    found = {name: _read(name, unit) for name, unit in units.items()}
    for name in names:
        own = unit_in_name(name)[1] if in_names and name not in found else None
        if own is not None:
            found[name] = own.dimension
    if missing := [name for name in dict.fromkeys(names) if name not in found]:
        have = "has" if len(missing) == 1 else "have"
        raise DeclarationError(f'units: {", ".join(missing)} {have} none; give "1" for plain numbers')
    own_units = DeclaredUnits(tuple(found[name] for name in columns), found[target], most)
    _require_possible(own_units, target)
    return own_units


def _read(name: str, unit: str) -> Dimension:
    try:
        return parse_unit(unit).dimension
    except DeclarationError as error:
        raise DeclarationError(f"units: {name}: {error}") from None


def _require_possible(units: DeclaredUnits, target: str) -> None:
    """Refuse units that admit no law."""
    columns, wanted = units.arrays
    reached = np.linalg.matrix_rank(np.vstack((columns, wanted))) == np.linalg.matrix_rank(columns)
    if units.most == 0 and not reached:
        raise DeclarationError(
            f"units: no product of powers of the inputs has the unit of {target}, {units.target}, and constants "
            "have none; let one have a unit (unit_constants=1), or add the column that is missing"
        )
