"""Checks of settings and arguments: a bad one names its key, what was expected, and what was given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import numpy as np

from discodso.base.errors import DeclarationError


def is_integer(value: Any) -> bool:
    """Whether a value is a whole number by type; True and 3.0 are not."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether a value is a finite real number by type; True and "1" are not."""
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the range of floats
        return False


def require(key: str, value: Any, condition: bool, expected: str) -> None:
    """Raise DeclarationError naming the key unless the condition holds."""
    if not condition:
        raise DeclarationError(f"{key} must be {expected}, got {value!r}")


def require_integer(key: str, value: Any, least: int) -> None:
    """Require an integer of at least `least`."""
    require(key, value, is_integer(value) and value >= least, f"an integer >= {least}")


def settle_integers(settings: Any, least: dict[str, int]) -> None:
    """Require integers of a frozen dataclass, and make them plain ints (torch refuses NumPy's)."""
    for key, lowest in least.items():
        value = getattr(settings, key)
        require_integer(key, value, lowest)
        object.__setattr__(settings, key, int(value))


def seed_sequence(seed: Any) -> np.random.SeedSequence:
    """A seed as NumPy's SeedSequence; accepts one, or an integer >= 0."""
    if isinstance(seed, np.random.SeedSequence):  # a copy, because spawning changes it
        return np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key)
    require_integer("seed", seed, 0)
    return np.random.SeedSequence(int(seed))


def require_number(
    key: str, value: Any, *, least: float = -math.inf, most: float = math.inf, above: float = -math.inf
) -> None:
    """Require a finite number within limits."""
    limits = {f">= {least:g}": least, f"above {above:g}": above, f"<= {most:g}": most}
    given = " and ".join(text for text, limit in limits.items() if math.isfinite(limit))
    good = is_number(value) and least <= value <= most and value > above
    require(key, value, good, f"a finite number {given}".strip())


def module_of_extra(module: str, product: str) -> Any:
    """A module that an extra installs, which is named like the product, in small letters."""
    try:
        return import_module(module)
    except ImportError:
        how = f'pip install "discodso[{product.lower()}]"'
        raise DeclarationError(f"{product} is not installed; install it with {how}") from None


def did_you_mean(name: Any, known: Sequence[str]) -> str:
    """The end of a message about an unknown name: which was meant, if one is close to it."""
    close = get_close_matches(name, known, 1) if isinstance(name, str) else []
    return f"; did you mean {close[0]!r}?" if close else ""


def require_one_of(key: str, value: Any, choices: tuple[str, ...]) -> None:
    """Require one of some names."""
    require(key, value, value in choices, "one of " + ", ".join(repr(choice) for choice in choices))
