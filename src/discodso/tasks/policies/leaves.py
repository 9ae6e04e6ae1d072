"""What a leaf of a tree is, in the one module that knows: a choice, or numbers, to which features may add.

A leaf of an environment with choices (Discrete) is the number of one. Where an action is several numbers (Box,
MultiDiscrete, MultiBinary), a leaf has all of them; in a linear leaf each is a sum of weighted features, held
within its bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discodso.base.checks import is_integer, is_number
from discodso.base.errors import InvalidDesignError
from discodso.tasks.policies import terms as sums
from discodso.tasks.policies.terms import LARGEST_INDEX, Terms, shown


class Leaf(NamedTuple):
    """The number of a choice; or, with `action` 0, numbers and what features add to each of them.

    `weights` is empty for numbers that are the same for every observation.
    """

    action: int = 0
    numbers: tuple[float, ...] = ()
    weights: tuple[Terms, ...] = ()

    @property
    def width(self) -> int:
        """How many numbers an observation must have."""
        return max(map(sums.width, self.weights), default=0)

    @property
    def sums(self) -> tuple[tuple[float, Terms], ...]:
        """Each number with what features add to it."""
        return tuple(zip(self.numbers, self.weights or ((),) * len(self.numbers), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        if not self.numbers:
            return {"action": self.action}
        weights = {"weights": list(map(sums.to_dict, self.weights))} if self.weights else {}
        return {"action": list(self.numbers), **weights}

    @classmethod
    def from_dict(cls, data: dict[str, Any], place: str) -> Leaf:
        """Inverse of `to_dict`; anything else is refused."""
        given, weights = data["action"], data.get("weights", [])
        if not isinstance(given, list):
            return cls(checked_index("action", given, place))
        if not given or not all(map(is_number, given)):
            raise InvalidDesignError(
                f"action of {place} must be a list of finite numbers, got {shown(given)}"
            )
        if not isinstance(weights, list) or len(weights) not in (0, len(given)):
            raise InvalidDesignError(
                f"weights of {place} must be a list as long as action, got {shown(weights)}"
            )
        return cls(
            0,
            tuple(map(float, given)),
            tuple(sums.from_dict(own, f"an action in {place}") for own in weights),
        )


@dataclass(frozen=True)
class ActionNumbers:
    """Actions that are several numbers.

    Attributes:
        names: of the numbers, for people.
        low, high: their bounds.
        shape, dtype: of the array that `step` takes; numbers are whole if the type is.
    """

    names: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    shape: tuple[int, ...]
    dtype: str

    def __len__(self) -> int:
        return len(self.names)

    @property
    def whole(self) -> bool:
        """Whether the numbers are integers."""
        return np.dtype(self.dtype).kind != "f"

    def array(self, numbers: Any) -> NDArray[Any]:
        """What `step` takes."""
        return np.array(numbers, np.float64).astype(self.dtype).reshape(self.shape)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        listed = {key: list(getattr(self, key)) for key in ("names", "low", "high", "shape")}
        return {**listed, "dtype": self.dtype}

    @classmethod
    def from_dict(cls, data: Any) -> ActionNumbers:
        """Inverse of `to_dict`; anything else is refused."""
        keys = ("names", "low", "high", "shape")
        if not isinstance(data, dict) or set(data) != {*keys, "dtype"}:
            raise InvalidDesignError(f"numbers must be an object with {', '.join(keys)} and dtype")
        names, low, high, shape = (data[key] if isinstance(data[key], list) else [] for key in keys)
        good = len(names) == len(low) == len(high) > 0 and all(isinstance(name, str) for name in names)
        if (
            not good
            or not all(map(is_number, low + high))
            or not all(a <= b for a, b in zip(low, high, strict=True))
        ):
            raise InvalidDesignError(
                "numbers need names, and as many low and high that are finite and in order"
            )
        if not all(map(is_integer, shape)) or math.prod(shape) != len(names):
            raise InvalidDesignError(f"shape of numbers does not fit, got {shown(data['shape'])}")
        if data["dtype"] not in _TYPES:
            raise InvalidDesignError(f"dtype of numbers must be one of {', '.join(_TYPES)}")
        floats = tuple(map(float, low)), tuple(map(float, high))
        return cls(tuple(names), *floats, tuple(map(int, shape)), data["dtype"])


_TYPES = (
    "float32",
    "float64",
    "float16",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "bool",
)


def words(leaf: Leaf, numbers: ActionNumbers | None, name: Callable[[int], str], digits: int) -> list[str]:
    """The numbers of a leaf for people, such as "steer = 0.2" and "gas = 0.5 + 2 * speed"."""
    names = numbers.names if numbers else tuple(f"action {place}" for place in range(len(leaf.numbers)))
    parts = []
    for own, (number, terms) in zip(names, leaf.sums, strict=True):
        first = "" if number == 0 and terms else f"{number:.{digits}g}"
        parts.append(f"{own} = {sums.text(terms, name, digits, first)}")
    return parts


def checked_index(key: str, value: Any, place: str) -> int:
    """The number of a feature or an action, refused if it can be none."""
    if not is_integer(value) or not 0 <= value <= LARGEST_INDEX:
        raise InvalidDesignError(f"{key} of {place} must be an integer >= 0, got {shown(value)}")
    return int(value)
