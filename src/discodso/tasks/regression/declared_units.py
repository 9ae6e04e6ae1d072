"""Units that a user has declared for the columns of a table, and which formulas agree with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.checks import did_you_mean
from discodso.base.errors import DeclarationError
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.unit_check import check
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

    def arrays(self) -> tuple[Floats, Floats]:
        """Exponents of the base units that occur, of the inputs [d, m] and of the target [m]."""
        found = np.array([[float(e) for e in own.exponents] for own in (*self.columns, self.target)])
        occurs = found.any(axis=0)
        found = np.ascontiguousarray(found[:, occurs] if occurs.any() else found[:, :1])
        return found[:-1].copy(), found[-1].copy()

    def agrees(self, expression: Expression) -> bool:
        """Whether constants with units, as few as may be, make a formula consistent."""
        found = check(expression, self.columns, self.target)
        units = [[float(e) for e in own.exponents] for own in found.constants if own]
        return found.consistent and (not units or int(np.linalg.matrix_rank(units)) <= self.most)


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
        raise DeclarationError(
            f'units: {", ".join(missing)} {"has" if len(missing) == 1 else "have"} none; give "1" for plain numbers'
        )
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
    columns, wanted = units.arrays()
    reached = np.linalg.matrix_rank(np.vstack((columns, wanted))) == np.linalg.matrix_rank(columns)
    if units.most == 0 and not reached:
        raise DeclarationError(
            f"units: no product of powers of the inputs has the unit of {target}, {units.target}, and constants "
            "have none; let one have a unit (unit_constants=1), or add the column that is missing"
        )
