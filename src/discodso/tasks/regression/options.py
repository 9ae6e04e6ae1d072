"""Options of equations, declared once for Python, settings files and the command line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from discodso.base.errors import DeclarationError
from discodso.base.options import check_options, option

BUDGET = 100_000
Range = tuple[float, float]
REALS: Range = (-math.inf, math.inf)
MetricName = Literal["nmse", "nrmse", "mae", "r2"]
METRICS: tuple[str, ...] = get_args(MetricName)
LIBRARY = ("add", "sub", "mul", "div", "sin", "cos", "exp", "log", "sqrt", "n2", "const")


def is_squared(metric: Any) -> bool:
    """Whether a metric is one of the squared error, which least squares serves."""
    return not callable(metric) and metric != "mae"


def _units(words: list[str]) -> dict[str, str]:
    """COLUMN=UNIT on the command line."""
    found = {}
    for text in words:
        name, equals, unit = text.rpartition("=")
        if not name or not equals:
            raise DeclarationError(f"--unit must be COLUMN=UNIT, such as speed=m/s, got {text!r}")
        found[name] = unit
    return found


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """What equations may look like, and how one is chosen."""

    library: tuple[Any, ...] = option(
        LIBRARY, 'Operators (names or `Operator` objects of one\'s own), numbers, and "const".', command=""
    )
    max_length: int = option(32, "Longest expression, in tokens.", least=1)
    const_range: Range = option(REALS, "Where constants may lie.", command="")
    need_input: bool = option(False, "Every expression has an input.", command="")
    no_constant_subtrees: bool = option(True, "No operator has numbers only for operands.", command="")
    no_inverses: bool = option(True, "No operator directly inside its inverse.", command="")
    max_constants: int | None = option(None, "Limit on the number of constants.", command="")
    metric: Any = option(
        "nmse",
        '"nmse", "nrmse", "mae", "r2", or a function of (y, prediction, weights) to a reward.',
        choices=METRICS,
        command="",
    )
    polish: bool = option(
        True,
        "Fit constants by least squares, of the best designs of every batch, and try after the search what can be "
        "cut out of the best expression.",
        command="",
    )
    scaled: bool = option(
        True, "Search for the f whose best a + b f(x) fits; a and b become constants of it.", command=""
    )
    selection: str = option(
        "auto",
        'How to choose a model: "auto" by what is to be expected of it, or from the front by "accuracy", '
        '"validation" (a held-out quarter of the rows) or "complexity".',
        choices=("auto", "accuracy", "validation", "complexity"),
    )
    must_extrapolate: bool = option(
        True, "The model must also be good, and finite, on data twice as wide as those given.", command=""
    )
    threads: int = option(1, "Of the evaluator.", least=1, command="")
    units: dict[str, str] = option(
        factory=dict,
        help='Units of all inputs and of the target by name, such as "m/s^2", or "1" for a plain number; only '
        "equations that agree with them are tried. On the command line COLUMN=UNIT, may be given again.",
        command="unit",
        read=_units,
    )
    units_in_names: bool = option(False, 'Take units from names such as "speed [m/s]".')
    unit_constants: int = option(
        2,
        "Independent units that constants of an equation may have, at most, so far as its inputs do not give the "
        "unit of the target; 0 for pure numbers only.",
        least=0,
    )

    IN_FILES: ClassVar[Mapping[str, Any]] = {"library": tuple[str, ...], "metric": MetricName}

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def refines(self) -> bool:
        """Whether the task fits constants by least squares."""
        return bool(self.polish and is_squared(self.metric))


@dataclass(frozen=True, kw_only=True)
class RegressionOptions(ModelOptions):
    """[task] of an equation for a column of a table."""

    kind: ClassVar[str] = "regression"
    table: str = option(
        help="CSV with any separator, .tsv, .parquet, .xlsx or .jsonl, perhaps .gz; with names."
    )
    target: str = option(help="Column to explain.")
    ignore: tuple[str, ...] = option((), "Column to leave out; may be given again.")
