"""Options of equations, declared once for Python, settings files and the command line."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from discodso.base.checks import require
from discodso.base.errors import DeclarationError
from discodso.base.options import check_options, option
from discodso.tasks.regression.operators import (
    library_and_costs,
    nesting_in_words,
    nesting_rules,
    operators_in_words,
)

BUDGET = 100_000
Range = tuple[float, float]
REALS: Range = (-math.inf, math.inf)
LossName = Literal["nmse", "nrmse", "mae", "r2"]
LOSSES: tuple[str, ...] = get_args(LossName)
LIBRARY = ("add", "sub", "mul", "div", "sin", "cos", "exp", "log", "sqrt", "n2", "const")


def is_squared(loss: Any) -> bool:
    """Whether a loss is one of the squared error, which least squares serves."""
    return not callable(loss) and loss != "mae"


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

    operators: Any = option(
        LIBRARY,
        'Operators (names or `Operator` objects of one\'s own), numbers, and "const"; or each with its cost, an '
        "integer, as sin=4.",
        read=operators_in_words,
    )
    nesting: Any = option(
        None,
        "Operators that must not stand inside others, as sin:sin,cos, in place of the rules that are there else: "
        "no trigonometric function in another, no exp in exp, no log in log; none for no rules.",
        read=nesting_in_words,
    )
    template: str | None = option(
        None,
        "A known outer form with unknown parts, as f(t) * exp(-k*t): a letter with inputs in parentheses is an "
        "unknown function of these, a name that is no input is a constant.",
    )
    max_length: int = option(32, "Longest expression, in tokens.", least=1)
    const_range: Range = option(REALS, "Where constants may lie.", command="")
    need_input: bool = option(False, "Every expression has an input.", command="")
    no_constant_subtrees: bool = option(True, "No operator has numbers only for operands.", command="")
    no_inverses: bool = option(True, "No operator directly inside its inverse.", command="")
    max_constants: int | None = option(None, "Limit on the number of constants.", command="")
    loss: Any = option(
        "nmse",
        'What is minimised: "nmse", "nrmse", "mae", "r2", or a function of (y, prediction, weights) to a number; '
        "the weights sum to 1.",
        choices=LOSSES,
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
        'How to choose a model: "auto" by what describes the data best, or from the front by "accuracy", '
        '"validation" (a held-out quarter of the rows) or "complexity".',
        choices=("auto", "accuracy", "validation", "complexity"),
    )
    must_extrapolate: bool = option(
        True, "The model must also be good, and finite, on data twice as wide as those given.", command=""
    )
    units: dict[str, str] | None = option(
        None,
        'Units of all inputs and of the target by name, such as "m/s^2", or "1" for a plain number; only '
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
    n_jobs: int | None = option(
        None,
        "How many searches work side by side, in threads, on one budget; -1 for one on each core.",
        least=-1,
    )

    IN_FILES: ClassVar[Mapping[str, Any]] = {
        "operators": tuple[str, ...] | dict[str, int],
        "nesting": dict[str, tuple[str, ...]] | None,
        "loss": LossName,
    }

    def __post_init__(self) -> None:
        check_options(self)
        tokens, _ = library_and_costs(self.operators)
        nesting_rules(self.nesting, tokens)
        require("n_jobs", self.n_jobs, self.n_jobs != 0, "a number from 1 on, or -1 for all cores")

    @property
    def jobs(self) -> int:
        """How many searches work side by side."""
        return (os.cpu_count() or 1) if self.n_jobs == -1 else self.n_jobs or 1

    @property
    def refines(self) -> bool:
        """Whether the task fits constants by least squares."""
        return bool(self.polish and is_squared(self.loss))


@dataclass(frozen=True, kw_only=True)
class RegressionOptions(ModelOptions):
    """[task] of an equation for a column of a table."""

    kind: ClassVar[str] = "regression"
    table: str = option(
        help="CSV with any separator, .tsv, .parquet, .xlsx or .jsonl, perhaps .gz; with names."
    )
    target: str = option(help="Column to explain.")
    ignore: tuple[str, ...] = option((), "Column to leave out; may be given again.")
