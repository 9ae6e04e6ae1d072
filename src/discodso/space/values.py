"""What a token may carry: real numbers, integers, and options.

    Token("svc", C=Real(1e-3, 1e3, log=True), gamma=Real(1e-5, 10, log=True))
    Token("kbest", k=Integer(1, 20))
    Token("rx", qubit=Choice(0, 1, 2), angle=Real(-math.pi, math.pi))

In arrays a real number and an integer stand as they are, an option as its number among the options.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discodso.base.checks import is_integer, is_number
from discodso.base.errors import DeclarationError, InvalidDesignError

_LARGEST_INTEGER = 2**53  # beyond it floats skip integers
Option = str | int | float | bool | None


def checked_range(of: str, low: Any, high: Any, log: bool) -> tuple[float, float]:
    """The ends of a range of real numbers; DeclarationError, which begins with `of`, if they cannot be one."""
    try:
        low, high = float(low), float(high)
    except (TypeError, ValueError, OverflowError):
        raise DeclarationError(
            f"{of} must be a pair (low, high) of numbers, got {(low, high)!r:.80}"
        ) from None
    if math.isnan(low) or math.isnan(high):
        raise DeclarationError(f"{of} must be a pair (low, high) of numbers, got {(low, high)!r:.80}")
    if not low < high or low == math.inf or high == -math.inf:
        raise DeclarationError(f"{of} ({low:g}, {high:g}) is empty, low must be below high")
    if log:
        if low < 0 or (low == 0 and math.isfinite(high)):
            raise DeclarationError(
                f"{of} ({low:g}, {high:g}) needs a positive lower end for a logarithmic scale"
            )
        low = max(low, sys.float_info.min)  # the logarithm of 0 is no coordinate
        if not math.log(low) < math.log(min(high, sys.float_info.max)):
            raise DeclarationError(f"{of} ({low!r}, {high!r}) is too narrow")
    elif math.isinf(high - low) and math.isfinite(low) and math.isfinite(high):
        raise DeclarationError(
            f"{of} ({low:g}, {high:g}) is too wide for float64; use infinite ends, or a logarithmic scale"
        )
    return low, high


def _require_flag(kind: str, log: Any) -> None:
    if not isinstance(log, (bool, np.bool_)):
        raise DeclarationError(f"{kind}: log must be True or False, got {log!r:.80}")


def _is_option(value: Any) -> bool:
    return value is None or isinstance(value, (str, bool)) or is_number(value)


@dataclass(frozen=True, slots=True)
class Real:
    """A real number.

    Args:
        low, high: its range; ends may be infinite.
        log: spread the attention evenly over orders of magnitude.
    """

    low: float
    high: float
    log: bool = False
    expected: ClassVar[str] = "a finite number"

    def __post_init__(self) -> None:
        _require_flag("Real", self.log)
        low, high = checked_range("Real: the range", self.low, self.high, self.log)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def encode(self, value: Any) -> float | None:
        """The number that stands for a value in arrays; None if it is no such value."""
        return float(value) if is_number(value) else None

    def decode(self, number: float) -> float:
        """Inverse of `encode`."""
        return number


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer from `low` to `high`, both included.

    Args:
        low, high: its range.
        log: spread the attention evenly over orders of magnitude; needs low >= 1.
    """

    low: int
    high: int
    log: bool = False
    expected: ClassVar[str] = "an integer"

    def __post_init__(self) -> None:
        _require_flag("Integer", self.log)
        for end in (self.low, self.high):
            if not is_integer(end) or abs(end) > _LARGEST_INTEGER:
                raise DeclarationError(f"Integer: low and high must be integers up to 2^53, got {end!r:.80}")
        if self.low > self.high:
            raise DeclarationError(
                f"Integer: the range ({self.low}, {self.high}) is empty, low is above high"
            )
        if self.log and self.low < 1:
            raise DeclarationError(f"Integer: log needs a positive lower end, got {self.low}")
        object.__setattr__(self, "low", int(self.low))
        object.__setattr__(self, "high", int(self.high))

    def encode(self, value: Any) -> float | None:
        """The number that stands for a value in arrays; None if it is no such value."""
        return float(value) if is_number(value) and value == round(value) else None

    def decode(self, number: float) -> int:
        """Inverse of `encode`."""
        return int(number)


@dataclass(frozen=True, slots=True, init=False)
class Choice:
    """One of some options: strings, numbers, booleans or None.

    Args:
        options: at least one, all different. 1 and True are equal in Python, so only one of them can be there.
    """

    options: tuple[Option, ...]
    low: ClassVar[int] = 0  # number of the first option
    log: ClassVar[bool] = False  # options have no scale

    def __init__(self, *options: Option) -> None:
        if len(options) == 1 and isinstance(options[0], Iterable) and not isinstance(options[0], str):
            raise DeclarationError(
                "Choice takes its options one by one: Choice('a', 'b'), or Choice(*options)"
            )
        options = tuple(o.item() if isinstance(o, np.generic) else o for o in options)
        if not options:
            raise DeclarationError("Choice needs at least one option")
        for option in options:
            if not _is_option(option):
                raise DeclarationError(
                    f"options of a Choice are strings, finite numbers, booleans or None, got {option!r:.80}"
                )
        if twice := [option for at, option in enumerate(options) if option in options[:at]]:
            raise DeclarationError(f"options of a Choice must be different, but {twice[0]!r} is there twice")
        object.__setattr__(self, "options", options)

    def __repr__(self) -> str:
        return f"Choice({', '.join(map(repr, self.options))})"

    @property
    def high(self) -> int:
        """Number of the last option."""
        return len(self.options) - 1

    def encode(self, value: Any) -> float | None:
        """The number of an option; None if there is no such option."""
        return float(self.options.index(value)) if value in self.options else None

    def decode(self, number: float) -> Option:
        """Inverse of `encode`."""
        return self.options[int(number)]

    @property
    def expected(self) -> str:
        """For errors."""
        shown = ", ".join(map(repr, self.options[:8])) + (", ..." if len(self.options) > 8 else "")
        return f"one of {shown}"


Value = Real | Integer | Choice


class Values(Mapping[str, Any]):
    """The values of one part of a design by name, in order; equal to a dictionary with the same entries.

    `named` is the dictionary itself, which must not be changed.
    """

    __slots__ = ("named",)

    def __init__(self, items: Mapping[str, Any]) -> None:
        for name, value in items.items():
            if not isinstance(name, str):
                raise InvalidDesignError(f"names of values are strings, got {name!r:.80}")
            if not _is_option(value):
                raise InvalidDesignError(
                    f"the value {name} must be a finite number, a string, a boolean or None, got {value!r:.80}"
                )
        self.named = {n: v.item() if isinstance(v, np.generic) else v for n, v in items.items()}

    @classmethod
    def trusted(cls, items: dict[str, Any]) -> Values:
        """Values that are known to be right, without checks."""
        made = object.__new__(cls)
        made.named = items
        return made

    def __getitem__(self, name: str) -> Any:
        return self.named[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.named)

    def __len__(self) -> int:
        return len(self.named)

    def __hash__(self) -> int:
        return hash(frozenset(self.named.items()))

    def __repr__(self) -> str:
        return f"Values({', '.join(f'{name}={value!r}' for name, value in self.named.items())})"

    def __reduce__(self) -> tuple[type[Values], tuple[dict[str, Any]]]:
        return Values, (dict(self.named),)
