"""Equations as a kind of task: from a table to the search, and from what it has kept to a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from discodso.base.arrays import Bools
from discodso.base.errors import DeclarationError, DiscodsoError
from discodso.disco.presets import preset
from discodso.report import figures
from discodso.run.clock import Clock
from discodso.run.kinds import Kind, Outcome, Prepared, Shown
from discodso.run.plan import Plan
from discodso.run.result import Result
from discodso.run.task import Task
from discodso.space.design import Design
from discodso.tasks.regression import export
from discodso.tasks.regression.data import GivenData, Rows, gathered, read_table
from discodso.tasks.regression.declared_units import DeclaredUnits, declared
from discodso.tasks.regression.equation_files import EQUATION, read_equation, write_equation
from discodso.tasks.regression.equation_method import (
    EquationMethod,
    EquationSettings,
    is_possible,
    with_needed,
)
from discodso.tasks.regression.evaluator import Program
from discodso.tasks.regression.expression import Expression, input_index
from discodso.tasks.regression.expression_space import Fit, RegressionSpace
from discodso.tasks.regression.front import FrontKeeper, front_columns
from discodso.tasks.regression.losses import mean_loss
from discodso.tasks.regression.models import FoundEquation, calls_for_choice, kept_expressions, make_model
from discodso.tasks.regression.operators import library_and_costs, nesting_rules
from discodso.tasks.regression.options import BUDGET, RegressionOptions, is_squared
from discodso.tasks.regression.prune import fit_constants
from discodso.tasks.regression.standing import standing_rows, standing_table
from discodso.tasks.regression.template import Template
from discodso.tasks.regression.template_method import Parts, TemplateMethod, TemplateSettings
from discodso.tasks.regression.typeset import equation as equation_of
from discodso.tasks.regression.typeset import mathml

_CHOICE_ROWS = 4000  # that a model is chosen by
_CHOICE_SECONDS = 1.5  # that the choice takes, about
_LAST_CALLS = 40
_CALLS_A_SECOND = 30_000  # by which a search with a time limit plans


def _prepare(settings: Any, given: GivenData | None, stack: ExitStack, clock: Clock) -> Prepared:
    options, plan = settings.task, settings.plan
    data = read_table(options.table, options.target, tuple(options.ignore)) if given is None else given
    if given is None and len(data.y) < 2:
        raise DeclarationError(
            f"{options.table} has a single row; an equation needs at least two to be judged by"
        )
    units = declared(
        options.units or {}, options.units_in_names, options.unit_constants, data.columns, data.target
    )
    X, y, weights = gathered(data)
    rng = np.random.RandomState(plan.seed)
    seen = np.ones(len(y), dtype=np.bool_)
    if options.selection == "validation" and len(y) >= 4:
        seen[rng.permutation(len(y))[: len(y) // 4]] = False
    # Of the space, what is an option; for the rest the paper's rules.
    shared = {own.name for own in fields(RegressionSpace)} & {own.name for own in fields(options)}
    library, costs = library_and_costs(options.operators)
    description = RegressionSpace(
        library,
        min_length=1,
        costs=costs,
        **{name: getattr(options, name) for name in shared - {"operators", "nesting"}},
        nesting=nesting_rules(options.nesting, library),
    )
    squared = is_squared(options.loss)
    default = settings.preset == "default" and settings.method is None and not settings.changes
    if options.template is not None:
        compiled = default and is_possible(description, squared and options.polish and options.scaled)
        if units is not None:
            raise DeclarationError("a template is searched for without units; leave one of them out")
        if not compiled or settings.initial_designs:
            raise DeclarationError(
                "template needs the default method: a squared loss, built-in operators, polish, scaled, and no "
                "guesses"
            )
        return _templated(settings, data, description, (X, y, weights), seen, rng)
    if default and is_possible(description, squared and options.polish and options.scaled):
        return _compiled(settings, data, description, (X, y, weights), seen, rng, units)
    if units is not None:
        raise DeclarationError(
            "units need the default search: leave out operators, metrics and methods of your own, and the presets"
        )
    space = description.build(X.shape[1])
    program = Program.of(space.library, description.operators)
    how = {"loss": options.loss, "threads": options.jobs, "scaled": bool(options.scaled and squared)}
    keeper = FrontKeeper(space, Fit.of(program, X[seen], y[seen], weights[seen], **how))
    refine = keeper.refine if options.refines else None
    task = Task(space, batch_objective=keeper, name="regression", refine=refine)

    def kept(room: int) -> tuple[list[Expression], int]:
        return kept_expressions(keeper, data.columns, _rows((X, y, weights), seen), room)

    finish = _finisher(settings, data, (X, y, weights), seen, kept, lambda: tuple(keeper.designs))
    method = preset(settings.preset, refines=options.refines, budget=plan.budget)

    def standing(width: int) -> Sequence[Any]:
        own = tuple(program.own.values())
        lines = "a + b f" if keeper.fit.scaled else "f"
        best = [(Expression(design, data.columns, own), loss) for design, loss in keeper.standing]
        rows = standing_rows(best, description.costs)
        return [standing_table(rows, f"{data.target} = {lines}, f", width)]

    return Prepared(task, _searching(plan, rng), method, finish, standing=standing)


def _searching(plan: Plan, rng: np.random.RandomState) -> Plan:
    """The plan of the search: calls and time are left for the choice of a model."""
    left = plan.budget - calls_for_choice(plan.budget)
    limit = plan.time_limit
    seconds = None if limit is None else max(limit - _CHOICE_SECONDS, 0.8 * limit)
    return replace(plan, budget=left, seed=int(rng.randint(2**31 - 1)), time_limit=seconds)


def _planned(plan: Plan) -> int:
    """Calls by which a compiled search plans."""
    return (
        plan.budget if plan.time_limit is None else min(plan.budget, int(_CALLS_A_SECOND * plan.time_limit))
    )


def _some(rows: Rows) -> Rows:
    """The first rows, which are as good as any, as far as a choice needs them."""
    X, y, weights = (array[:_CHOICE_ROWS] for array in rows)
    return X, y, weights / weights.sum()


def _rows(rows: Rows, chosen: Bools) -> Rows:
    X, y, weights = rows
    share = (weights / weights.sum())[chosen]
    return X[chosen], y[chosen], share / share.sum()


def _finisher(
    settings: Any,
    data: GivenData,
    rows: Rows,
    seen: Bools,
    kept: Callable[[int], tuple[list[Expression], int]],
    designs: Callable[[], tuple[Design, ...]],
    units: DeclaredUnits | None = None,
    laws: Mapping[Expression, Parts] | None = None,
    complete: Callable[[], int] = lambda: 0,
) -> Callable[[Result, Path | None], FoundEquation]:
    """From the end of a search to a model; `kept` gives expressions for a number of calls, and those it took.

    Of a template there are `laws` with their parts, which the choice must leave as they are.
    """
    options, plan = settings.task, settings.plan

    def finish(result: Result, folder: Path | None) -> FoundEquation:
        room = plan.budget - result.calls
        expressions, used = kept(room)
        looked, unseen = _some(_rows(rows, seen)), None if seen.all() else _some(_rows(rows, ~seen))
        model = make_model(
            expressions,
            looked,
            unseen,
            room=room - used,
            selection="complexity"
            if options.selection == "auto" and not is_squared(options.loss)
            else options.selection,
            loss=partial(mean_loss, options.loss),
            refines=options.refines,
            widen=options.must_extrapolate,
            const_range=options.const_range,
            agrees=lambda expression: units is None or units.agrees(expression),
            costs=library_and_costs(options.operators)[1],
            rewrites=laws is None,
        )
        calls = result.calls + used + model.calls
        expression, front = model.expression, model.front
        if laws is None and options.refines and len(looked[1]) < seen.sum():  # the last fit is to all rows
            most = max(min(plan.budget - calls, _LAST_CALLS), 0)
            expression, more = fit_constants(expression, _rows(rows, seen), options.const_range, most)
            front = [
                replace(p, expression=expression) if p.expression == model.expression else p for p in front
            ]
            calls += more
        parts = {} if laws is None else laws.get(expression, {})
        found = FoundEquation(expression, front, calls, data, designs(), parts, complete())
        if folder is not None:
            write_equation(folder, found, result.calls)
        return found

    return finish


def _compiled(
    settings: Any,
    data: GivenData,
    description: RegressionSpace,
    rows: Rows,
    seen: Bools,
    rng: np.random.RandomState,
    units: DeclaredUnits | None,
) -> Prepared:
    """The default: the compiled search, which rates expressions itself."""
    options, plan = settings.task, settings.plan
    X, y, weights = _rows(rows, seen)
    wide = with_needed(description, settings.initial_designs)
    space = wide.build(X.shape[1])
    fit = Fit.of(
        Program.of(space.library, wide.operators),
        X,
        y,
        weights,
        loss=options.loss,
        threads=options.jobs,
    )
    started: list[EquationMethod] = []
    method = EquationSettings(
        description, fit, _planned(plan), units, settings.initial_designs, started.append, options.jobs
    )

    def kept(room: int) -> tuple[list[Expression], int]:
        found, used = started[0].expressions(data.columns, _some((X, y, weights)), room // 2)
        # A constant is always a model, so that there is one even if nothing else was finite.
        return [*found, Expression.parse(repr(float(weights @ y)), data.columns)], used

    finish = _finisher(
        settings,
        data,
        rows,
        seen,
        kept,
        lambda: started[0].designs(),
        units,
        complete=lambda: started[0].engine.complete,
    )
    task = Task(space, batch_objective=fit, name="regression")

    return Prepared(
        task, _searching(plan, rng), method, finish, standing=_standing(data, description, started)
    )


def _standing(
    data: GivenData, description: RegressionSpace, started: Sequence[EquationMethod | TemplateMethod]
) -> Callable[[int], Sequence[Any]]:
    """What shows the best equations by complexity while the search runs, for a width of the terminal."""

    def shown(width: int) -> Sequence[Any]:
        best = [(Expression(design, data.columns), error) for design, error in started[0].standing()]
        return [standing_table(standing_rows(best, description.costs), data.target, width)]

    return shown


def _templated(
    settings: Any,
    data: GivenData,
    description: RegressionSpace,
    rows: Rows,
    seen: Bools,
    rng: np.random.RandomState,
) -> Prepared:
    """The compiled search for the unknown parts of a template."""
    options, plan = settings.task, settings.plan
    X, y, weights = _rows(rows, seen)
    template = Template.parse(options.template, data.columns)
    wide = with_needed(description)
    wide = replace(wide, library=tuple(dict.fromkeys((*wide.library, "inv", *template.operators))))
    space = wide.build(X.shape[1])
    fit = Fit.of(Program.of(space.library, wide.operators), X, y, weights, loss=options.loss)
    started: list[TemplateMethod] = []
    laws: dict[Expression, Parts] = {}
    method = TemplateSettings(template, description, fit, _planned(plan), started.append)

    def kept(room: int) -> tuple[list[Expression], int]:
        found, used = started[0].laws(_some((X, y, weights)), room * 3 // 4)
        laws.update(found)
        return list(found), used

    found = _finisher(settings, data, rows, seen, kept, lambda: (), laws=laws)
    task = Task(space, batch_objective=fit, name="regression")

    return Prepared(
        task, _searching(plan, rng), method, found, standing=_standing(data, description, started)
    )


# ------------------------------------------------------------------------------------------ to look at


_ERRORS = {"validation_loss": "held-out loss", "leave_one_out_error": "leave-one-out error"}


def _lines(outcome: Outcome, width: int) -> list[Any]:
    from rich.table import Table

    found: FoundEquation = outcome.found
    rows = found.rows
    held_out = any(row["validation_loss"] is not None for row in rows)
    key = "validation_loss" if held_out else "leave_one_out_error"
    front = Table("complexity", "loss", _ERRORS[key], "", "expression", title="front", title_justify="left")
    room = max(20, width - 55)  # the other columns must not be squeezed
    for row in rows:
        unseen = "-" if row[key] is None else f"{row[key]:.4g}"
        mark = "chosen" if row["chosen"] else ("" if row["finite"] else "not finite")
        text = row["expression"] if len(row["expression"]) <= room else row["expression"][: room - 1] + "…"
        front.add_row(f"{row['complexity']:g}", f"{row['loss']:.4g}", unseen, mark, text)
    return [
        front,
        f"{found.data.target} = {export.text(found.expression)}",
        f"simplified: {_simplified(found.expression)}",
        *(f"{name} = {part_text(part)}" for name, part in found.parts.items()),
        *([f"all expressions that cost up to {found.complete} were tried"] if found.complete else []),
        f"R2 {found.r2:.6f} on all rows, {found.calls} objective calls",
    ]


def _simplified(expression: Expression) -> str:
    """What SymPy makes of it, with names as they stand in text."""
    names = tuple(export.quoted(name, expression.operators) for name in expression.columns)
    return str(export.simplified(replace(expression, columns=names)))


def part_text(part: Expression | float) -> str:
    """An unknown function, or a constant, of a template."""
    return export.text(part) if isinstance(part, Expression) else f"{part:.6g}"


def _draw(found: FoundEquation, path: Path) -> None:
    """Draw predicted against true values, and the front; the ending of the path says the format."""
    data, equation = found.data, export.text(found.expression, digits=4)
    figures.fit_and_front(
        data.y,
        found.expression(data.X),
        data.target,
        *front_columns(found.rows),
        title=f"{data.target} = {equation if len(equation) < 90 else equation[:87] + '...'}",
    ).save(path)


def _data(outcome: Outcome) -> dict[str, Any]:
    found: FoundEquation = outcome.found
    return {
        "target": found.data.target,
        "expression": export.text(found.expression),
        "latex": export.latex(found.expression),
        "parts": {
            name: part_text(part) if isinstance(part, Expression) else part
            for name, part in found.parts.items()
        },
        "design": found.expression.design.to_dict(),
        "r2": found.r2,
        "calls": found.calls,
        "complete": found.complete,
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
    # While a run goes on its columns are not written down.
    highest = max((input_index(name) or 0 for name in design.tokens), default=0)
    try:
        expression = Expression(design, columns or tuple(f"x{i + 1}" for i in range(highest + 1)))
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
        **{key: ending.get(key) for key in ("rows", "r2", "rmse", "complexity")},
    }
    key = next(
        (key for key in _ERRORS if any(_is_number(row.get(key)) for row in ending.get("front", []))), ""
    )
    points = [
        {
            "x": row["complexity"],
            "y": max(row["loss"], 1e-30),
            "text": str(row["expression"]),
            "math": row.get("math"),
            "chosen": bool(row.get("chosen")),
            "note": _front_note(row),
            "error": row[key] if _is_number(row.get(key)) else None,
            "finite": bool(row.get("finite", True)),
        }
        for row in ending.get("front", [])
        if _is_number(row.get("loss"))
    ]
    r2 = ending.get("r2")
    score = f"R² {r2:.6f} on all {ending.get('rows', '')} rows" if _is_number(r2) else None
    return {
        "best": best,
        "front": {"x": "complexity", "y": "loss", "log": True, "points": points, "error": _ERRORS.get(key)},
        "score": score,
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _front_note(row: Mapping[str, Any]) -> str:
    known = [key for key in _ERRORS if _is_number(row.get(key))]
    parts = [f"{_ERRORS[key]} {row[key]:.4g}" for key in known]
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
# operators = ["add", "sub", "mul", "div", "sin", "cos", "exp", "log", "sqrt", "n2", "const"]
#                          # or with costs, {add = 1, mul = 1, sin = 4, const = 1}
# nesting = {sin = ["sin", "cos"], exp = ["exp"]}   # what must not stand inside
# max_length = 32
# const_range = [-inf, inf]
# loss = "nmse"            # nmse, nrmse, mae, r2
# selection = "auto"       # auto, accuracy, validation, complexity
# units = {y = "m", time = "s"}   # of all columns; then only equations that agree are tried
# polish = true            # fit constants by least squares
# n_jobs = 1               # searches side by side; -1 for one on each core
""",
    budget=BUDGET,
    executors="it evaluates here; see task.n_jobs",
    lines=_lines,
    data=_data,
    draw=_draw,
    read=read_equation,
    last=EQUATION,
    shown=_shown,
    page=_page,
)
