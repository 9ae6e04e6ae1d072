"""Sums of weighted features, which oblique splits and linear leaves are made of: as text, code and intervals.

A sum is added up from the left, in float64, everywhere: so all forms of a tree act alike to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from discodso.base.checks import is_number
from discodso.base.errors import InvalidDesignError

LARGEST_INDEX = 2**31 - 1
Terms = tuple[tuple[int, float], ...]  # pairs of a feature and its weight, features in order
Limits = tuple[float, float]
# What is known of a feature x: low <= x < high; NaN counts as beyond any low.
Known = Mapping[int, Limits]
NOTHING: Limits = (-math.inf, math.inf)


def shown(value: Any) -> str:
    """The beginning of a value, for a message; some values cannot be written: too many digits, too deep."""
    try:
        return f"{value!r:.60}"
    except (ValueError, RecursionError):
        return f"a {type(value).__name__}"


def width(terms: Terms) -> int:
    """How many numbers an observation must have."""
    return max((feature + 1 for feature, _ in terms), default=0)


def least(terms: Terms, known: Known) -> float:
    """A lower bound of the sum as it is computed: rounding keeps the order, so the sum of least terms is least."""
    return _end(terms, known, 0)


def most(terms: Terms, known: Known) -> float:
    """An upper bound likewise."""
    return _end(terms, known, 1)


def _end(terms: Terms, known: Known, end: int) -> float:
    total = 0.0
    for feature, weight in terms:
        total += weight * known.get(feature, NOTHING)[end if weight > 0 else 1 - end]
    return total


def text(terms: Terms, name: Callable[[int], str], digits: int, first: str = "") -> str:
    """The sum for people, such as "angle + 0.4 * velocity", after what stands first."""
    for feature, weight in terms:
        size = f"{abs(weight):.{digits}g}"
        part = name(feature) if size == "1" else f"{size} * {name(feature)}"
        sign = "-" if weight < 0 else "+"
        first = f"{first} {sign} {part}" if first else f"-{part}" if weight < 0 else part
    return first


def code(terms: Terms, number: Callable[[float], str], feature: Callable[[int], str], first: str = "") -> str:
    """The sum as source code, after what stands first."""
    parts = [first] if first else []
    return " + ".join(parts + [f"{number(weight)} * {feature(place)}" for place, weight in terms])


def to_dict(terms: Terms) -> dict[str, float]:
    """For JSON: from features to weights."""
    return {str(feature): weight for feature, weight in terms}


def from_dict(data: Any, place: str) -> Terms:
    """Inverse of `to_dict`; anything else is refused."""
    if not isinstance(data, dict):
        raise InvalidDesignError(
            f"weights of {place} must be an object from features to numbers, got {shown(data)}"
        )
    found = []
    for key, weight in data.items():
        number = isinstance(key, str) and key.isascii() and key.isdigit() and len(key) <= 10
        if not number or int(key) > LARGEST_INDEX:
            raise InvalidDesignError(f"weights of {place}: {shown(key)} is no number of a feature")
        if not is_number(weight) or weight == 0:
            raise InvalidDesignError(
                f"weights of {place}: {key} must have a finite number but 0, got {shown(weight)}"
            )
        found.append((int(key), float(weight)))
    if len({feature for feature, _ in found}) < len(found):
        raise InvalidDesignError(f"weights of {place} have a feature twice")
    return tuple(sorted(found))
