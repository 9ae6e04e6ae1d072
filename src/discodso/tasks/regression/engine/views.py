"""Views of the target: as it is, or through the inverse of a function, each with an archive of its own."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discodso.base.arrays import Floats
from discodso.space.state import State
from discodso.tasks.regression.engine import _trees as trees
from discodso.tasks.regression.engine._trees import EXP, INV, LOG, SQRT
from discodso.tasks.regression.engine.products import Part

MOST_PRICE = 48
SLOTS = 12
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
        places = MOST_PRICE * SLOTS
        self.archive = (
            np.zeros((places, longest), np.int64),
            np.zeros((places, longest)),
            np.zeros(places, np.int64),
            np.full(places, np.inf),
            np.zeros(places, np.uint64),
            np.zeros((places, trees.MOST_TERMS + 1)),
            np.zeros(MOST_PRICE, np.int64),
        )
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
        codes, values, lengths, errors, marks, coefficients, counts = self.archive
        other.archive = (
            codes.copy(),
            values.copy(),
            lengths.copy(),
            errors.copy(),
            marks.copy(),
            coefficients.copy(),
            counts.copy(),
        )
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
