"""Equations as a kind of task: from a table to the search, and from what it has kept to a model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from discodso.base.arrays import Bools, Floats
from discodso.base.checks import require
from discodso.base.errors import DeclarationError, DiscodsoError
from discodso.disco.presets import preset
from discodso.run.kinds import Kind, Outcome, Prepared, Shown
from discodso.run.result import Result
from discodso.run.task import Task
from discodso.space.design import Design
from discodso.tasks.regression import export
from discodso.tasks.regression.data import read_table
from discodso.tasks.regression.equation_files import EQUATION, read_equation, write_equation
from discodso.tasks.regression.evaluator import Program
from discodso.tasks.regression.expression import Expression, input_index
from discodso.tasks.regression.expression_space import Fit, RegressionSpace
from discodso.tasks.regression.front import FrontKeeper, FrontPoint, as_rows
from discodso.tasks.regression.losses import squared_loss
from discodso.tasks.regression.models import Data, calls_for_choice, gathered, kept_expressions, make_model
from discodso.tasks.regression.options import ModelOptions, RegressionOptions
from discodso.tasks.regression.typeset import equation as equation_of
from discodso.tasks.regression.typeset import mathml


@dataclass(frozen=True)
class GivenData:
    """Data that were handed over in Python: X[n, d], y[n], weights[n], names of the inputs and of the target."""

    X: Floats
    y: Floats
    weights: Floats
    columns: tuple[str, ...]
    target: str = "y"

    def __post_init__(self) -> None:
        with np.errstate(over="ignore"):
            finite = bool(np.isfinite(self.y @ self.y))
        require("y", f"up to {np.abs(self.y).max():.3g}", finite, "numbers whose squares are finite")


@dataclass(frozen=True)
class FoundEquation:
    """A model that was found.

    Attributes:
        expression: the chosen one.
        candidates: the front, by rising complexity.
        calls: objective calls of the search and of the choice.
        data: that it was found on.
        kept: the best designs of every complexity that the search had kept.
    """

    expression: Expression
    candidates: list[FrontPoint]
    calls: int
    data: GivenData
    kept: tuple[Design, ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The front as plain data."""
        return as_rows(self.candidates, self.expression)

    @property
    def r2(self) -> float:
        """The share of the variance that it explains, on all rows."""
        residual = float(np.square(self.expression(self.data.X) - self.data.y).sum())
        spread = float(np.square(self.data.y - self.data.y.mean()).sum())
        return 1 - residual / spread if spread > 0 else float(residual == 0)


def space_of(options: ModelOptions) -> RegressionSpace:
    """What expressions may look like."""
    return RegressionSpace(
        library=tuple(options.library),
        min_length=1,
        max_length=options.max_length,
        const_range=options.const_range,
        need_input=options.need_input,
        no_constant_subtrees=options.no_constant_subtrees,
        no_inverses=options.no_inverses,
        max_constants=options.max_constants,
    )


def _loss(options: ModelOptions, expression: Expression, X: Floats, y: Floats, weights: Floats) -> float:
    """Mean error as the metric has it; infinite where a prediction is not finite."""
    if options.squared:
        return squared_loss(expression, X, y, weights)
    predicted = expression(X)
    if not np.isfinite(predicted).all():
        return math.inf
    if callable(options.metric):
        return 1.0 - float(options.metric(y, predicted, weights))
    return float(np.abs(predicted - y) @ weights)


def _prepare(settings: Any, given: GivenData | None, stack: ExitStack) -> Prepared:
    options, plan = settings.task, settings.plan
    data = _read(options) if given is None else given
    X, y, weights = gathered(data.X, data.y, data.weights)
    rng = np.random.RandomState(plan.seed)
    seen = _training_rows(options, len(y), rng)
    share = weights[seen] if weights[seen].sum() > 0 else np.ones(int(seen.sum()))
    description = space_of(options)
    space = description.build(X.shape[1])
    own = tuple(operator for operator in description.operators if operator.code < 0)
    fit = Fit.of(
        Program.of(space.library, own),
        X[seen],
        y[seen],
        share,
        options.metric,
        options.threads,
        bool(options.scaled and options.squared),
    )
    keeper = FrontKeeper(space, fit)
    task = Task(
        space,
        batch_objective=keeper,
        name="regression",
        refine=keeper.refine if options.refines else None,
    )

    def finish(result: Result, folder: Path | None) -> FoundEquation:
        total = weights / weights.sum()
        training: Data = X[seen], y[seen], _normalised(total, seen)
        unseen = None if seen.all() else (X[~seen], y[~seen], _normalised(total, ~seen))
        room = plan.budget - result.calls
        found, scaling = kept_expressions(keeper, data.columns, own, training, room)
        auto = "complexity" if options.selection == "auto" and not options.squared else options.selection
        model = make_model(
            found,
            training,
            unseen,
            room=room - scaling,
            selection=auto,
            loss=partial(_loss, options),
            polished=options.refines,
            widen=options.must_extrapolate,
            const_range=options.const_range,
        )
        calls = result.calls + scaling + model.calls
        if folder is not None:
            write_equation(folder, model.expression, model.front, data.target, data.X, data.y, result.calls)
        return FoundEquation(model.expression, model.front, calls, data, tuple(keeper.designs))

    searching = replace(
        plan, budget=plan.budget - calls_for_choice(plan.budget), seed=int(rng.randint(2**31 - 1))
    )
    method = preset(settings.preset, refines=options.refines, budget=plan.budget)
    return Prepared(task, searching, method, finish)


def _read(options: RegressionOptions) -> GivenData:
    table = read_table(options.table, options.target, tuple(options.ignore))
    if len(table.y) < 2:
        raise DeclarationError(
            f"{options.table} has a single row; an equation needs at least two to be judged by"
        )
    return GivenData(table.X, table.y, np.ones(len(table.y)), table.columns, table.target)


def _training_rows(options: ModelOptions, count: int, rng: np.random.RandomState) -> Bools:
    chosen = np.ones(count, dtype=np.bool_)
    if options.selection == "validation" and count >= 4:
        chosen[rng.permutation(count)[: count // 4]] = False
    return chosen


def _normalised(weights: Floats, rows: Bools) -> Floats:
    share = weights[rows]
    return share / share.sum() if share.sum() > 0 else np.full(len(share), 1 / max(len(share), 1))


# ------------------------------------------------------------------------------------------ to look at


def _lines(outcome: Outcome, width: int) -> list[Any]:
    from rich.table import Table

    found: FoundEquation = outcome.found
    held_out = any(row["validation_loss"] is not None for row in found.rows)
    other = "held-out loss" if held_out else "leave-one-out error"
    front = Table("complexity", "loss", other, "", "expression", title="front", title_justify="left")
    room = max(20, width - 55)  # the other columns must not be squeezed
    for row in found.rows:
        error = row["validation_loss" if held_out else "leave_one_out_error"]
        left_out = "-" if error is None else f"{error:.4g}"
        mark = "chosen" if row["chosen"] else ("" if row["finite"] else "not finite")
        text = row["expression"]
        text = text if len(text) <= room else text[: room - 1] + "…"
        front.add_row(f"{row['complexity']:g}", f"{row['loss']:.4g}", left_out, mark, text)
    return [
        front,
        f"{found.data.target} = {export.text(found.expression)}",
        f"simplified: {export.simplified(found.expression)}",
        f"R2 {found.r2:.6f} on all rows, {found.calls} objective calls",
    ]


def _data(outcome: Outcome) -> dict[str, Any]:
    found: FoundEquation = outcome.found
    return {
        "target": found.data.target,
        "expression": export.text(found.expression),
        "latex": export.latex(found.expression),
        "design": found.expression.design.to_dict(),
        "r2": found.r2,
        "calls": found.calls,
        "stop": outcome.result.stop.name.lower(),
        "front": found.rows,
    }


def _title(task: Mapping[str, Any], ending: Any) -> str:
    target = task.get("target") or (ending or {}).get("target", "y")
    table = Path(str(task["table"])).name if "table" in task else "given data"
    return f"An equation for {target} ({table})"


def _shown(ending: Any, designs: Sequence[Design], history: Sequence[Any]) -> list[Shown]:
    columns = tuple(map(str, (ending or {}).get("columns", ())))
    return [_expression(design, columns) for design in designs]


def _expression(design: Design, columns: tuple[str, ...]) -> Shown:
    try:
        if not columns:  # while a run goes on its columns are not written down
            highest = max((input_index(name) or 0 for name in design.tokens), default=0)
            columns = tuple(f"x{i + 1}" for i in range(highest + 1))
        expression = Expression(design, columns)
        return Shown(export.text(expression), mathml(expression))
    except DiscodsoError:  # an operator of one's own, which only its program knows
        return Shown(str(design))


def _page(ending: Any) -> Mapping[str, Any]:
    if ending is None:
        return {}
    target = str(ending.get("target", "y"))
    best = {
        "kind": "equation",
        "text": f"{target} = {ending.get('expression', '')}",
        "math": equation_of(target, ending["math"]),
        "latex": str(ending.get("latex", "")),
        "target": target,
        "columns": ending.get("columns", []),
        "plot": ending.get("plot"),
    }
    rows = [row for row in ending.get("front", []) if isinstance(row.get("loss"), (int, float))]
    points = [
        {
            "x": row["complexity"],
            "y": max(row["loss"], 1e-30),
            "text": str(row["expression"]),
            "math": row.get("math"),
            "chosen": bool(row.get("chosen")),
            "note": _front_note(row),
        }
        for row in rows
    ]
    r2 = ending.get("r2")
    score = f"R² {r2:.6f} on all {ending.get('rows', '')} rows" if isinstance(r2, (int, float)) else None
    front = {"x": "complexity", "y": "loss", "log": True, "points": points}
    return {"best": best, "front": front, "score": score}


def _front_note(row: Mapping[str, Any]) -> str:
    names = (("validation_loss", "held-out loss"), ("leave_one_out_error", "leave-one-out error"))
    parts = [f"{words} {row[key]:.4g}" for key, words in names if isinstance(row.get(key), (int, float))]
    return ", ".join(parts if row.get("finite", True) else [*parts, "not finite beyond the data"])


KIND = Kind(
    options=RegressionOptions,
    prepare=_prepare,
    whole=lambda options: replace(options, table=str(Path(options.table).resolve())),
    title=_title,
    template="""# An equation for a column of a table.

[task]
kind = "regression"
table = "data.csv"         # with a header line
target = "y"               # the column to explain
# ignore = ["id"]
# library = ["add", "sub", "mul", "div", "sin", "cos", "exp", "log", "sqrt", "n2", "const"]
# max_length = 32
# const_range = [-inf, inf]
# metric = "nmse"          # nmse, nrmse, mae, r2
# selection = "auto"       # auto, accuracy, validation, complexity
# polish = true            # fit constants by least squares
# threads = 1
""",
    executors="it evaluates here; see task.threads",
    lines=_lines,
    data=_data,
    read=read_equation,
    last=EQUATION,
    shown=_shown,
    page=_page,
)
