"""What is passed between a stepper, which says how likely tokens and values are, and sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from discodso.base.arrays import Floats, Ints, Singles


@dataclass(frozen=True)
class Emission:
    """What the network says about the next slot of B prefixes.

    Attributes:
        psi: float32[B, K], logits of the tokens.
        phi: float32[B, ...], raw outputs for the values; `Stepper.draw` reads them.
        memory: of the network; its rows follow those of the prefix.
    """

    psi: Singles
    phi: Singles
    memory: Any


class Places(NamedTuple):
    """Values of tokens[N]: of each the one in the same slot, or in that of slot[N]."""

    tokens: Ints
    slot: Any


class Asked(NamedTuple):
    """N numbers to draw.

    Attributes:
        rows: int[N], of the prefixes.
        at: places of the numbers.
        before: float[N, V], coordinates of the values before them.
        low, high: float[N], ends of their intervals, in coordinates.
        uniform: float[N], from 0 to 1, what they are drawn by.
    """

    rows: Ints
    at: Places
    before: Floats
    low: Floats
    high: Floats
    uniform: Floats
