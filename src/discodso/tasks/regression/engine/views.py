"""Views of the target: as it is, or through the inverse of a function, each with an archive of its own."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product as product_of
from typing import Any

import numpy as np

from discodso.base.arrays import Floats
from discodso.space.state import State
from discodso.tasks.regression.engine import _trees as trees
from discodso.tasks.regression.engine._evolution import Archive
from discodso.tasks.regression.engine._trees import COLUMN, EXP, INV, LOG, MUL, SQRT
from discodso.tasks.regression.engine.products import Part, product, rounded
from discodso.tasks.regression.engine.setting import Setting, Units

MOST_PRICE = 48
SLOTS = 12
LARGEST_POWER = 8
_SURE, _ROWS_FOR_POWERS = 0.15, 50  # standard error of a power that stands out, and the fewest rows for it
_TAILS, _NEAR = (
    3.0,
    0.4,
)  # times the middle half of the rows; share of the rows that are nearer to it than to 0


@dataclass(frozen=True)
class Link:
    """A function through which a target is looked at.

    Attributes:
        code: of the operators that lead back to y, the outermost first.
        there: from y to what is fitted.
        slope: |dy / dv| at y, by which errors are weighed.
        possible: whether y[n] can be looked at in this way.
        power: of the unit of y; 0 where y, or v, must be a pure number.
    """

    name: str
    code: tuple[int, ...]
    there: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]
    possible: Callable[[Floats], bool]
    power: float = 0.0


LINKS = (
    Link("root", (SQRT,), np.square, lambda y: 0.5 / np.abs(y), lambda y: bool((y > 0).all()), 2.0),
    Link("inverse", (INV,), np.reciprocal, np.square, lambda y: bool((y != 0).all()), -1.0),
    Link("exponential", (EXP,), np.log, np.abs, lambda y: bool((y > 0).all())),
    Link("logarithm", (LOG,), np.exp, lambda y: np.exp(-y), lambda y: bool((np.abs(y) < 50).all())),
    Link(
        "inverse root",
        (INV, SQRT),
        lambda y: y**-2.0,
        lambda y: 0.5 * np.abs(y) ** 3,
        lambda y: bool((y > 0).all()),
        -2.0,
    ),
)


class View:
    """One way to look at the target, with an archive of its own.

    Args:
        name: of the view.
        code: operators that lead back to y, the outermost first.
        target, weights: float[n], what is fitted, and how rows count.
        columns: float[k, n] that take part in every fit, beside the offset.
        inputs: for views of products, the inputs whose logarithms these are.
        unit: of the target, where there are units; None for a logarithm.
        factor: a product of powers of inputs that y was divided by first.
        base: for views of products, what was taken off y first.
    """

    def __init__(
        self,
        name: str,
        code: tuple[int, ...],
        target: Floats,
        weights: Floats,
        longest: int,
        columns: Sequence[Floats] = (),
        inputs: Sequence[int] = (),
        unit: Floats | None = None,
        factor: Part | None = None,
        base: float = 0.0,
    ) -> None:
        self.name, self.code, self.products = name, code, name == "product"
        self.roots = np.sqrt(weights / weights.sum())
        self.scale = float(np.sqrt(weights @ np.square(target - weights @ target) / weights.sum())) or 1.0
        self.fixed, kept = _orthonormal([self.roots, *(column * self.roots for column in columns)])
        self.inputs = [inputs[place - 1] for place in kept if place > 0]
        whole = target / self.scale * self.roots
        self.mean = float(self.fixed[0] @ whole)  # coefficient of the offset, without terms
        self.unit, self.factor, self.whole, self.base = unit, factor, whole, base
        self.rest = whole
        for _ in range(2):
            for q in self.fixed:
                self.rest = self.rest - (q @ self.rest) * q
        self.archive = empty_archive(longest, trees.MOST_TERMS + 1)
        self.seen = np.zeros(1 << 14, np.uint64)
        self.calls = 0
        self.told: dict[int, float] = {}  # error of the best of each price when it was last rewritten for y
        self.written: dict[int, float] = {}  # error for y of what was rewritten, by the price it had here
        self.next_item = 0  # of the pool, to be rated
        self.next_late = 0  # the same for those that need a constant with a unit

    @property
    def best(self) -> float:
        """The smallest error."""
        return float(self.archive[3].min())

    def copy(self) -> View:
        """Another that goes its own way from here."""
        other = copy.copy(self)
        other.archive = copy.deepcopy(self.archive)
        other.seen, other.told, other.written = self.seen.copy(), dict(self.told), dict(self.written)
        return other

    def state(self) -> State:
        """All that later steps depend on."""
        arrays: dict[str, Any] = {f"archive{place}": array.copy() for place, array in enumerate(self.archive)}
        arrays["seen"] = self.seen[self.seen != 0]
        told = {str(price): error for price, error in self.told.items()}
        return State(
            arrays,
            {
                "calls": self.calls,
                "told": told,
                "written": {str(price): error for price, error in self.written.items()},
                "next": self.next_item,
                "late": self.next_late,
                "size": len(self.seen),
            },
        )

    def restore(self, state: State) -> None:
        """Go back to a state."""
        for place, array in enumerate(self.archive):
            array[...] = state.arrays[f"archive{place}"]
        self.seen = np.zeros(int(state.data["size"]), np.uint64)
        trees.add_all(self.seen, state.arrays["seen"])
        self.calls, self.next_item = int(state.data["calls"]), int(state.data["next"])
        self.next_late = int(state.data["late"])
        self.told = {int(price): float(error) for price, error in state.data["told"].items()}
        self.written = {int(price): float(error) for price, error in state.data["written"].items()}


def empty_archive(longest: int, numbers: int) -> Archive:
    """Codes, values, lengths, errors, marks and so many numbers for each slot; how many of a price are filled."""
    places = MOST_PRICE * SLOTS
    return (
        np.zeros((places, longest), np.int64),
        np.zeros((places, longest)),
        np.zeros(places, np.int64),
        np.full(places, np.inf),
        np.zeros(places, np.uint64),
        np.zeros((places, numbers)),
        np.zeros(MOST_PRICE, np.int64),
    )


def views_of(setting: Setting) -> list[View]:
    """Those that a target allows: as it is, beside a factor, through functions, as a product."""
    y, w, longest, units = setting.target, setting.weights, setting.longest, setting.units
    unit = None if units is None else units.target
    found = [View("plain", (), y, w, longest, unit=unit)]
    size = np.abs(y)
    low, middle, high = np.quantile(size, [0.1, 0.5, 0.9])
    if high > 30 * max(low, 1e-300) and middle > 0:
        relative = w / (np.square(size / middle) + 0.03**2)
        found.append(View("relative", (), y, relative / relative.sum(), longest, unit=unit))
    base = centre(y) if units is None else 0.0
    size = np.abs(y - base)
    middle = float(np.median(size))
    if middle > 0 and (size > 0).mean() > 0.9 and MUL in setting.operators:
        weights = np.where(size > 0, w * np.square(size / (size + 0.1 * middle)), 0.0)
        inputs = [i for i in range(len(setting.columns)) if (setting.columns[i] != 0).all()]
        target = np.log(np.where(size > 0, size, 1.0))
        logs = [np.log(np.abs(setting.columns[i])) for i in inputs]
        product = [View("product", (), target, weights, longest, logs, inputs, base=base)]
    else:
        product = []
    looked_at: list[tuple[str, Part | None, Floats, Floats]] = [("", None, y, w)]
    factor = _outstanding(setting) if units is None else _factor(setting, units)
    if factor is not None:
        part, values, unit = factor
        reduced, weights = y / values, w * np.square(values)
        found.append(View("reduced", (), reduced, weights, longest, unit=unit, factor=part))
        if units is not None:
            looked_at = []
        looked_at.append((" reduced", part, reduced, weights / weights.sum()))
    for (name, written, y, w), link in product_of(looked_at, LINKS):
        if not (all(code in setting.operators for code in link.code) and link.possible(y)):
            continue
        if not link.power and unit is not None and unit.any():
            continue  # a logarithm of what is no pure number
        with np.errstate(all="ignore"):
            target, slope = link.there(y), link.slope(y)
            weights = w * np.square(slope)
        if np.isfinite(target).all() and np.isfinite(weights).all() and weights.sum() > 0:
            own = None if unit is None else link.power * unit
            whole = weights / weights.sum()
            named = link.name + (name if units is None else "")
            found.append(View(named, link.code, target, whole, longest, unit=own, factor=written))
    return found + product


def _factor(setting: Setting, units: Units) -> tuple[Part, Floats, Floats] | None:
    """The product of powers that units alone give to every law without constants that have units.

    It is of those inputs that are the only ones with some base unit, such as the only mass. Returns how it is
    written, its values[n], and the unit of what is left; None if there is none.
    """
    columns = setting.columns
    if units.least:
        return None
    alone = [i for i in range(len(columns)) if units.is_alone(i) and (columns[i] != 0).all()]
    powers = [(i, rounded(p)) for i, p in enumerate(units.powers()) if i in alone and abs(p) > 1e-6]
    if not powers or any(abs(p) > LARGEST_POWER for _, p in powers):
        return None
    written = product([([COLUMN + i], [math.nan], p) for i, p in powers], setting.operators)
    if not written or not written[0] or (columns[[i for i, p in powers if p % 1]] < 0).any():
        return None
    values = np.prod([columns[i] ** p for i, p in powers], axis=0)
    left = units.target - sum(p * units.columns[i] for i, p in powers)
    if not (np.isfinite(values).all() and np.isfinite(setting.target / values).all()):
        return None
    return written, values, np.where(np.abs(left) < 1e-9, 0.0, left)


def _outstanding(setting: Setting) -> tuple[Part, Floats, None] | None:
    """A product of whole powers of inputs that y is surely made of, beside what is no such product.

    Powers are those of least squares of logarithms, where they lie near whole numbers and cannot be others.
    """
    y, columns = setting.target, setting.columns
    inputs = [i for i in range(len(columns)) if (columns[i] != 0).all()]
    used = y != 0
    if not used.mean() > 0.9 or len(y) < _ROWS_FOR_POWERS or not inputs:
        return None
    table = np.column_stack([np.ones(used.sum()), *(np.log(np.abs(columns[i][used])) for i in inputs)])
    log_size = np.log(np.abs(y[used]))
    solved, _, rank, _ = np.linalg.lstsq(table, log_size, rcond=1e-10)
    rest = log_size - table @ solved
    if rank < table.shape[1] or not rest @ rest > 1e-16 * (log_size @ log_size):
        return None
    variance = float(rest @ rest) / len(rest)
    errors = np.sqrt(variance * np.diag(np.linalg.inv(table.T @ table)))
    powers = [
        (i, float(round(p)))
        for i, p, error in zip(inputs, solved[1:].tolist(), errors[1:].tolist(), strict=True)
        if round(p) and abs(p) < 4.5 and error < _SURE and abs(p - round(p)) < 3 * error
    ]
    written = product([([COLUMN + i], [math.nan], p) for i, p in powers], setting.operators)
    if not written or not written[0] or len(powers) == len(columns):
        return None
    values = np.prod([columns[i] ** p for i, p in powers], axis=0)
    return (written, values, None) if np.isfinite(y / values).all() else None


def centre(y: Floats) -> float:
    """Where y[n] is densest if it has long tails on both sides, as a product beside an offset has; else 0.

    Half of the rows that lie closest are taken, and half of those, until few are left.
    """
    ordered = np.sort(y)
    low, first, third, high = np.quantile(ordered, [0.02, 0.25, 0.75, 0.98])
    if not min(first - low, high - third) > _TAILS * (third - first):
        return 0.0
    while len(ordered) > 3:
        half = (len(ordered) + 1) // 2
        start = int((ordered[half - 1 :] - ordered[: len(ordered) - half + 1]).argmin())
        ordered = ordered[start : start + half]
    found = float(np.median(ordered))
    return found if np.mean(np.abs(y - found) < 0.5 * abs(found)) > _NEAR else 0.0


def _orthonormal(rows: Sequence[Floats]) -> tuple[Floats, list[int]]:
    """Rows[k, n] made orthonormal, and the places of those that add something to the ones before."""
    basis: list[Floats] = []
    kept: list[int] = []
    for place, row in enumerate(rows):
        rest = row.copy()
        for _ in range(2):
            for q in basis:
                rest -= (q @ rest) * q
        size = float(np.sqrt(rest @ rest))
        if size > 1e-9 * float(np.sqrt(row @ row)):
            basis.append(rest / size)
            kept.append(place)
    return np.array(basis), kept
