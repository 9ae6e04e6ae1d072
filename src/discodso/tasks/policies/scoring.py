"""What an episode is worth where that is not the sum of its rewards: discounts, and a function of one's own."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.errors import DeclarationError

Score = Callable[[Floats, Sequence[Mapping[str, Any]]], float]


@dataclass(frozen=True)
class Scoring:
    """The worth of an episode.

    Attributes:
        discount: of rewards, for each step.
        score: of all rewards, float[T], and what `step` told with each, T dictionaries; in place of their sum.
    """

    discount: float = 1.0
    score: Score | None = None

    def of(self, rewards: Sequence[float], infos: Sequence[Mapping[str, Any]]) -> float:
        """The worth; ValueError if it is no finite number."""
        given = np.array(rewards, np.float64)
        if self.score is not None:
            worth = float(self.score(given, infos))
        else:
            worth = float(given @ self.discount ** np.arange(len(given)))
        if not math.isfinite(worth):
            raise ValueError(f"the score of an episode is {worth}")
        return worth


def scoring_of(discount: float, score: str | None) -> Scoring | None:
    """From the options of a task; None for the sum of rewards."""
    if score is None:
        return None if discount == 1.0 else Scoring(discount)
    if discount != 1.0:
        raise DeclarationError("give score or discount, not both: a score may discount by itself")
    return Scoring(1.0, _loaded(score))


def name_of(score: Any) -> str:
    """A function as settings have it: "module:function"."""
    if isinstance(score, str):
        return score
    name = f"{getattr(score, '__module__', None)}:{getattr(score, '__qualname__', None)}"
    try:
        same = callable(score) and _loaded(name) is score
    except DeclarationError:
        same = False
    if not same:
        raise DeclarationError(
            f"score must be a function at the top of a module, so that settings can name it, got {score!r:.80}"
        )
    return name


def _loaded(name: str) -> Score:
    module, colon, attribute = name.partition(":")
    try:
        if not colon:
            raise ValueError("a score is named as module:function")
        found: Any = sys.modules[module] if module in sys.modules else import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:  # a module of the user's runs here
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        raise DeclarationError(f"the score {name} cannot be loaded: {what}") from None
    if not callable(found):
        raise DeclarationError(f"the score {name} must be a function of rewards and infos")
    score: Score = found
    return score
