"""The 45 regression problems of the paper's table of benchmarks, and their training and evaluation sets.

Formulas and function sets are those of the paper and of the public DSO code; `problems.csv` notes where the two
differ. Points are uniform draws; those whose target is not finite are drawn again until n remain. Variant B also
drops targets of 100 and more in absolute value, as the public code does. The evaluation set has both ends of the
interval doubled, and twice the points.
"""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, ClassVar, Literal

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.checks import require_one_of
from discodso.base.errors import DeclarationError
from discodso.base.options import check_options, option
from discodso.run.clock import Clock
from discodso.run.kinds import Kind, Prepared
from discodso.run.python_tasks import prepared
from discodso.run.task import Task
from discodso.tasks.regression.evaluator import evaluate
from discodso.tasks.regression.expression import CONST, Expression
from discodso.tasks.regression.expression_space import RegressionSpace, regression_task

# Function sets of the public DSO code; the paper's constants demand const in all of them.
FUNCTION_SETS: Mapping[str, tuple[str, ...]] = {
    "Base": ("add", "sub", "mul", "div", "sqrt", "n2", "log", "exp", "sin", "cos", "1", CONST),
    "Jin": ("add", "sub", "mul", "div", "sin", "cos", "exp", "n2", "n3", CONST),
    "Korns": (*"add sub mul div sin cos exp log n2 n3 sqrt tan tanh".split(), CONST),
    "CKoza": ("add", "sub", "mul", "div", "sin", "cos", "exp", "log", CONST),
}
_LARGEST_TARGET = 100.0
Variant = Literal["A", "B"]


@dataclass(frozen=True)
class Problem:
    """One benchmark: a formula, the interval of its inputs, and how many points there are."""

    name: str
    inputs: int
    formula: str
    low: float
    high: float
    points: int
    function_set: str

    @property
    def truth(self) -> Expression:
        """The formula as an expression."""
        return Expression.parse(self.formula, [f"x{i + 1}" for i in range(self.inputs)])

    def training_set(self, variant: Variant = "A") -> tuple[Floats, Floats]:
        """X[n, d] and y[n]."""
        return self._draw(1, variant, "training")

    def evaluation_set(self, variant: Variant = "A") -> tuple[Floats, Floats]:
        """X[2n, d] and y[2n] on the doubled interval."""
        return self._draw(2, variant, "evaluation")

    def _draw(self, times: int, variant: str, purpose: str) -> tuple[Floats, Floats]:
        require_one_of("variant", variant, ("A", "B"))
        low, high, count = times * self.low, times * self.high, times * self.points
        stream = zlib.crc32(f"{self.name}/{purpose}".encode())  # the same on every machine
        rng = np.random.default_rng(np.random.SeedSequence((0, stream)))
        truth = self.truth
        kept_x, kept_y = np.empty((0, self.inputs)), np.empty(0)
        for _ in range(1000):
            X = rng.uniform(low, high, (4 * count, self.inputs))
            y = evaluate(truth, X)
            good = np.isfinite(y)
            if variant == "B":
                good &= np.abs(y, where=good, out=np.full(len(y), np.inf)) < _LARGEST_TARGET
            kept_x, kept_y = np.concatenate((kept_x, X[good])), np.concatenate((kept_y, y[good]))
            if len(kept_y) >= count:
                return kept_x[:count], kept_y[:count]
        raise DeclarationError(f"{self.name} has too few finite points in ({low:g}, {high:g})")


@cache
def _known() -> dict[str, Problem]:
    text = resources.files("discodso.tasks.regression").joinpath("problems.csv").read_text()
    found = {}
    for row in csv.DictReader(text.splitlines()):
        interval = float(row["low"]), float(row["high"])
        formula = int(row["n_vars"]), row["expression"]
        found[row["name"]] = Problem(
            row["name"], *formula, *interval, int(row["n_points"]), row["function_set"]
        )
    return found


def problems(names: str | Iterable[str] = "all") -> tuple[Problem, ...]:
    """The problems of these names; "all" for all 45."""
    known = _known()
    wanted = list(known) if names == "all" else [names] if isinstance(names, str) else list(names)
    for name in wanted:
        if name not in known:
            raise DeclarationError(f"no problem {name!r}; there are {', '.join(known)}")
    return tuple(known[name] for name in wanted)


def problem_task(problem: Problem, variant: Variant = "A", threads: int = 1) -> Task:
    """The paper's task for a problem: its training set, function set, constraints and reward."""
    space = RegressionSpace(library=FUNCTION_SETS[problem.function_set])
    return regression_task(*problem.training_set(variant), space, threads=threads, name=problem.name)


@dataclass(frozen=True)
class ProblemOptions:
    """[task] of one of the paper's regression problems, with the paper's space and reward."""

    kind: ClassVar[str] = "problem"
    problem: str = option(help="Its name, such as Jin-1.")
    variant: Variant = option("A", "B drops targets of 100 and more.", choices=("A", "B"))
    threads: int = option(1, "Of the evaluator.", least=1)

    def __post_init__(self) -> None:
        check_options(self)


def _prepare(settings: Any, given: Any, stack: ExitStack, clock: Clock) -> Prepared:
    own: ProblemOptions = settings.task
    (problem,) = problems(own.problem)
    return prepared(settings, problem_task(problem, own.variant, own.threads))


KIND = Kind(
    options=ProblemOptions,
    prepare=_prepare,
    title=lambda task, ending: f"The regression problem {task.get('problem')}",
)
