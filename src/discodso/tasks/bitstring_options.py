"""Options of the paper's bitstring, declared once for Python, settings files and the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from discodso.base.options import check_options, option

BUDGET = 50_000


@dataclass(frozen=True)
class BitstringOptions:
    """[task] of the paper's bitstring."""

    kind: ClassVar[str] = "bitstring"
    length: int = option(10, "Number of hidden bits, T.", least=1)
    alpha: float = option(0.9, "Weight of the bits against the numbers, 0 to 1.", least=0, most=1)
    objective: str = option("f1", "f1 has many local maxima, f2 jumps.", choices=("f1", "f2"))
    solution: int | None = option(None, "Seed of the hidden solution; that of the run by default.")

    def __post_init__(self) -> None:
        check_options(self)
