"""DisCo on the paper's regression problems: settings of a run, its score on the evaluation set, and the table."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from discodso.base.text_tables import markdown
from discodso.disco.disco import DisCoSettings
from discodso.disco.presets import Preset
from discodso.disco.presets import preset as named_preset
from discodso.reproduce.jobs import Job, scored, scores_of
from discodso.run.executors.dispatch import Executor
from discodso.run.kinds import Outcome
from discodso.run.plan import Plan
from discodso.run.settings import RunSettings
from discodso.tasks.regression.data import GivenData
from discodso.tasks.regression.evaluator import evaluate
from discodso.tasks.regression.export import text
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.expression_space import RegressionSpace
from discodso.tasks.regression.losses import prediction_reward
from discodso.tasks.regression.options import RegressionOptions
from discodso.tasks.regression.problems import FUNCTION_SETS, ProblemOptions, problems

Variant = Literal["A", "B"]
_PAPER = replace(named_preset("paper"), batch_size=1000)
_SCALE_TOKENS = 4  # of a + b f beside those of f


def problem_settings(
    name: str,
    seed: int,
    budget: int,
    variant: Variant = "A",
    preset: Preset = "paper",
    method: DisCoSettings | None = None,
    **options: Any,
) -> RunSettings:
    """A run on a problem.

    Args:
        preset: "paper" searches for the best design, "default" also chooses a model, as `fit` does. Both have the
            same operators and the same longest expression.
        method: in place of that of the preset.
        options: of `ModelOptions`, for "default".
    """
    (problem,) = problems(name)
    plan = Plan(budget, seed, confirm_calls=0)
    if preset == "paper":
        return RunSettings(ProblemOptions(problem=name, variant=variant), plan, method or _PAPER, preset)
    X, y = problem.training_set(variant)
    task = RegressionOptions(
        table="",
        target="y",
        operators=FUNCTION_SETS[problem.function_set],
        max_length=RegressionSpace().max_length - (_SCALE_TOKENS if options.get("scaled", True) else 0),
        no_constant_subtrees=False,
        no_inverses=False,
        **options,
    )
    given = GivenData(X, y, np.ones(len(y)), problem.truth.columns)
    return RunSettings(task, plan, method, given=given)


@lru_cache(maxsize=10_000)  # several tables need the same ones
def evaluation_reward(name: str, expression: Expression, variant: Variant = "A") -> float:
    """The reward of an expression on the evaluation set of a problem."""
    (problem,) = problems(name)
    X, y = problem.evaluation_set(variant)
    return prediction_reward(evaluate(expression, X), y)


def score(name: str, variant: Variant, outcome: Outcome) -> dict[str, Any]:
    """Figures of what was found: the model that was chosen, else the best design."""
    (problem,) = problems(name)
    best, found = outcome.result.best, outcome.found
    design = None if best is None else Expression(best.design, problem.truth.columns)
    expression = design if found is None else found.expression
    figures: dict[str, Any] = {"train": 0.0, "evaluation": 0.0, "length": 0}
    if expression is not None:
        X, y = problem.training_set(variant)
        figures = {
            "train": prediction_reward(evaluate(expression, X), y),
            "evaluation": evaluation_reward(name, expression, variant),
            "length": len(expression),
            "expression": text(expression),
            "design": expression.design.to_dict(),
        }
    return {
        "problem": name,
        "inputs": problem.inputs,
        "variant": variant,
        "calls": outcome.result.calls if found is None else found.calls,
        **figures,
        "stop": outcome.result.stop.name.lower(),
        "seconds": round(outcome.result.seconds, 2),
    }


def run_problem(name: str, seed: int, budget: int, variant: Variant = "A", **options: Any) -> dict[str, Any]:
    """The score of a run that is kept nowhere, with its CPU seconds; `options` as for `problem_settings`."""
    return scored(problem_settings(name, seed, budget, variant, **options), partial(score, name, variant))


def bench(
    names: Sequence[str],
    seeds: int,
    budget: int,
    variant: Variant,
    preset: Preset,
    out: Path,
    executor: Executor,
    report: Callable[[str], None],
) -> str:
    """Do what is missing of these runs, and write their scores as lines of JSON; gives the table."""
    jobs = []
    for seed, name in product(range(seeds), names):
        settings = problem_settings(name, seed, budget, variant, preset)
        jobs.append(Job("regression", f"{name}, {variant}", preset, settings, partial(score, name, variant)))
    about = [{"preset": preset}] * len(jobs)
    return table(scores_of(jobs, about, out, f"{preset}-{variant}-{budget}", executor, report), budget)


def table(scores: Sequence[dict[str, Any]], calls: int) -> str:
    """Means over seeds for each problem, and over problems, in Markdown."""
    keys = ("inputs", "train", "evaluation", "length", "seconds")
    rows: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(own["problem"] for own in scores):
        rows[name] = _means([own for own in scores if own["problem"] == name], keys)
    lines = [_line(name, f"{row['inputs']:g}", row, calls) for name, row in rows.items()]
    for label, most in (("dim <= 3", 3), ("all", 10**9)):
        chosen = [row for row in rows.values() if row["inputs"] <= most]
        if chosen:
            means = _means(chosen, keys)
            lines.append(_line(f"**mean, {label}**", f"{len(chosen)} problems", means, calls))
    head = ("problem", "inputs", "train", "evaluation", "length", "calls", "seconds")
    return "\n".join(markdown(head, lines)) + "\n"


def _means(rows: Sequence[dict[str, Any]], keys: Sequence[str]) -> dict[str, float]:
    return {key: statistics.fmean(row[key] for row in rows) for key in keys}


def _line(name: str, inputs: str, row: dict[str, float], calls: int) -> list[str]:
    rewards = (f"{row[key]:.4f}" for key in ("train", "evaluation"))
    return [name, inputs, *rewards, f"{row['length']:.1f}", f"{calls}", f"{row['seconds']:.0f}"]
