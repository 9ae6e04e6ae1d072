"""What a split is, in the one module that knows: "x_n < t" or "w . x < t" goes left, all else (NaN too) right.

Trees, pictures and exports ask here: how a split decides, what it leaves open below it, its JSON, its words and
its source code. A tree is kept in pre-order, as the paper's traversal. Observations are promoted to float64 before
they are compared, everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from discodso.base.checks import is_number
from discodso.base.errors import InvalidDesignError
from discodso.tasks.policies import terms as sums
from discodso.tasks.policies.leaves import Leaf, checked_index
from discodso.tasks.policies.terms import NOTHING, Known, Terms, shown

Sides = tuple[Known | None, Known | None]


class Split(NamedTuple):
    """Goes left where x_feature < threshold."""

    feature: int
    threshold: float

    @property
    def width(self) -> int:
        """How many numbers an observation must have."""
        return self.feature + 1

    def sides(self, known: Known) -> Sides:
        """What is known where the split goes left and where it goes right; None where it never does."""
        low, high = known.get(self.feature, NOTHING)
        # Without a decision above, x may be -inf, which is below every threshold, and NaN or inf, which are not.
        left = {**known, self.feature: (low, min(high, self.threshold))} if low < self.threshold else None
        # Beyond the last threshold there is always something, NaN at least; below it only if there is room.
        right = {**known, self.feature: (max(low, self.threshold), high)} if self.threshold < high else None
        return left, right

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return self._asdict()

    def subject(self, name: Callable[[int], str], digits: int = 6) -> str:
        """What is compared, for people, given what a feature is called."""
        return name(self.feature)

    def python(self) -> str:
        """The condition in Python; float() because NumPy would round t to the float32 of the observation."""
        return f"float(x[{self.feature}]) < {self.threshold!r}"

    def c(self) -> str:
        """The condition in C."""
        return f"x[{self.feature}] < {self.threshold.hex()}"

    def onnx(self) -> tuple[str, int, float]:
        """Mode, column and value of a branch of ONNX that decides alike on every float32.

        x < t holds for a float32 x exactly if x is below the smallest float32 that is not below t; that is inf
        beyond the largest.
        """
        exact = np.float64(self.threshold)
        with np.errstate(all="ignore"):
            near = exact.astype(np.float32)
            value = np.nextafter(near, np.float32(np.inf)) if near < exact else near
        return "BRANCH_LT", self.feature, float(value)


class Oblique(NamedTuple):
    """Goes left where the sum of weighted features, added up in this order, is below the threshold."""

    terms: Terms
    threshold: float

    @property
    def width(self) -> int:
        """How many numbers an observation must have."""
        return sums.width(self.terms)

    def sides(self, known: Known) -> Sides:
        """What is known where the split goes left and where it goes right; None where it never does."""
        # Only what is known to lie below something is known to be no NaN, which goes right.
        numbers = all(known.get(feature, NOTHING)[1] < math.inf for feature, _ in self.terms)
        never_right = numbers and sums.most(self.terms, known) < self.threshold
        never_left = sums.least(self.terms, known) >= self.threshold
        return None if never_left else known, None if never_right else known

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"weights": sums.to_dict(self.terms), "threshold": self.threshold}

    def subject(self, name: Callable[[int], str], digits: int = 6) -> str:
        """What is compared, for people, given what a feature is called."""
        return sums.text(self.terms, name, digits)

    def python(self) -> str:
        """The condition in Python."""
        return f"{sums.code(self.terms, repr, 'float(x[{}])'.format)} < {self.threshold!r}"

    def c(self) -> str:
        """The condition in C."""
        return f"{sums.code(self.terms, float.hex, 'x[{}]'.format)} < {self.threshold.hex()}"


# In pre-order what a node is, and how far ahead its right child is (the left one comes next), 0 for a leaf.
Node = Split | Oblique | Leaf
Nodes = tuple[tuple[Node, int], ...]


def split_from(data: dict[str, Any], place: str) -> Split | Oblique:
    """Inverse of `to_dict`, for a decision with its sides "left" and "right"; anything else is refused."""
    keys = set(data) - {"left", "right"}
    kind = Oblique if "weights" in keys else Split
    subject = "weights" if kind is Oblique else "feature"
    if keys != {subject, "threshold"} or not {"left", "right"} <= set(data):
        raise InvalidDesignError(
            f"{place} must have the keys {subject}, threshold, left and right, or action alone; "
            f"it has {', '.join(map(shown, data))[:80] or 'none'}"
        )
    if not is_number(data["threshold"]):
        got = shown(data["threshold"])
        raise InvalidDesignError(f"threshold of {place} must be a finite number, got {got}")
    threshold = float(data["threshold"])
    if kind is Split:
        return Split(checked_index("feature", data["feature"], place), threshold)
    terms = sums.from_dict(data["weights"], place)
    if not terms:
        raise InvalidDesignError(f"weights of {place} must name a feature")
    return Oblique(terms, threshold)


def comparisons(nodes: Nodes, digits: int) -> list[str]:
    """Of each node what its subject is compared with, rounded, such as "< 0.25"; "" for a leaf.

    Two that differ for one subject are never shown as equal.
    """
    found: dict[int, str] = {}
    splits = {place: node for place, (node, _) in enumerate(nodes) if not isinstance(node, Leaf)}
    for subject in {split[0] for split in splits.values()}:
        values = {
            place: split.threshold + 0.0  # which makes -0.0 a plain 0
            for place, split in splits.items()
            if split[0] == subject
        }
        for enough in range(digits, 18):
            texts = {place: f"< {value:.{enough}g}" for place, value in values.items()}
            if len(set(texts.values())) == len(set(values.values())):
                break
        found |= texts
    return [found.get(place, "") for place in range(len(nodes))]
