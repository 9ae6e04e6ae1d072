"""Printing results, and the exit codes that go with them."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from discodso.run.result import Result
    from discodso.space.space import Space
    from discodso.tasks.policies.policy_choice import PolicySearch
    from discodso.tasks.regression.estimator import DisCoRegressor
    from discodso.tasks.runs import Outcome

EXIT_ERROR, EXIT_INTERRUPTED = 1, 130


def json_text(data: Any) -> str:
    """For programs; what JSON has no number for (an infinite loss, an open range) is null."""
    return json.dumps(_finite(data), allow_nan=False)


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def callbacks_for(as_json: bool, events: Path | None, tensorboard: Path | None) -> list[Any]:
    """What watches a run of the command line."""
    from discodso.run.callbacks import JsonLines, RichProgress, TensorBoard

    chosen: list[Any] = [] if as_json else [RichProgress()]
    if events is not None:
        chosen.append(JsonLines(events))
    if tensorboard is not None:
        chosen.append(TensorBoard(tensorboard))
    return chosen


def show_outcome(outcome: Outcome, as_json: bool, plot: Path | None = None) -> None:
    """Print what came of a run, and leave with an exit code that tells a program about it."""
    if outcome.note:
        print(f"discodso: {outcome.note}; the checkpoint before it was used", file=sys.stderr)
    if outcome.policy is not None:
        show_policy(outcome.policy, as_json)
        return
    if outcome.model is not None and outcome.data is not None:
        _show_fit(outcome, as_json)
        if plot is not None:  # last, so that a picture that cannot be written costs nothing
            from discodso.tasks.regression.fit_picture import draw

            draw(outcome.model, outcome.data, plot)
    else:
        _show_result(outcome.result, outcome.space, as_json)
    leave(outcome.result, found=outcome.model is not None)


def leave(result: Result, found: bool = False) -> None:
    """Exit codes: 130 after Ctrl-C, 1 for a run that broke down or found nothing."""
    from discodso.run.result import StopReason

    if result.stop is StopReason.INTERRUPTED:
        raise typer.Exit(EXIT_INTERRUPTED)
    broken = (StopReason.TRAINING, StopReason.DEAD_END, StopReason.EXECUTOR)
    if result.stop in broken or (result.best is None and not found):
        raise typer.Exit(EXIT_ERROR)


def _show_result(result: Result, space: Space, as_json: bool) -> None:
    if as_json:
        print(json_text(result.to_dict()))
        return
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if result.best is None:
        console.print("No evaluation succeeded.")
    else:
        table = Table("reward", "call", "design", title="best designs", title_justify="left")
        for scored in result.top[:5]:
            table.add_row(scored.reward_text(".6f"), str(scored.call), space.render(scored.design))
        console.print(table)
        best = result.best.reward_text(".6f")
        console.print(f"best reward {best} at call {result.best.call}", highlight=False)
    console.print(
        f"{result.calls} objective calls, {result.failure_count} failed, {result.seconds:.1f} s: "
        f"{result.sentence}",
        highlight=False,
        soft_wrap=True,
        markup=False,
    )


def _show_fit(outcome: Outcome, as_json: bool) -> None:
    model, data = outcome.model, outcome.data
    assert model is not None
    assert data is not None
    score = float(model.score(data.X, data.y))
    if not as_json:
        _show_model(model, data.target, score)
        return
    found = {
        "target": data.target,
        "expression": str(model),
        "latex": model.latex(),
        "design": model.expression_.design.to_dict(),
        "r2": score,
        "calls": model.calls_,
        "stop": outcome.result.stop.name.lower(),
        "front": model.front_rows_,
    }
    print(json_text(found))


def _show_model(model: DisCoRegressor, target: str, score: float) -> None:
    from rich.console import Console
    from rich.table import Table

    from discodso.tasks.regression import expression_export as export

    out = Console()
    shown = Table(
        "complexity", "loss", "held-out loss", "", "expression", title="front", title_justify="left"
    )
    width = max(20, out.width - 55)  # the other columns must not be squeezed
    for row in model.front_rows_:
        held_out = "-" if row["validation_loss"] is None else f"{row['validation_loss']:.4g}"
        mark = "chosen" if row["chosen"] else ("" if row["finite"] else "not finite")
        shown.add_row(
            f"{row['complexity']:g}",
            f"{row['loss']:.4g}",
            held_out,
            mark,
            shortened(row["expression"], width),
        )
    out.print(shown)
    out.print(f"{target} = {model}", highlight=False, soft_wrap=True, markup=False)
    simple = export.simplified(model.expression_)
    out.print(f"simplified: {simple}", highlight=False, soft_wrap=True, markup=False)
    out.print(
        f"R2 {score:.6f} on all rows, {model.calls_} objective calls",
        highlight=False,
    )


def show_policy(found: PolicySearch, as_json: bool) -> None:
    """Print what came of a policy search, and leave with an exit code that tells a program about it."""
    if as_json:
        print(json_text({**found.summary(), "tree": found.policy.to_dict()}))
    else:
        _show_tree(found)
    leave(found.search)


def _show_tree(found: PolicySearch) -> None:
    from rich.console import Console

    from discodso.tasks.policies.tree_export import to_text

    out = Console()
    out.print(to_text(found.policy), highlight=False, markup=False, soft_wrap=True)
    best = found.candidates[0]
    cut = len(best.policy) - len(found.policy)
    trimmed = f"; {cut} of its {len(best.policy)} nodes earned nothing and were cut out" if cut else ""
    out.print(
        f"test mean {found.test_mean:.2f}, standard error {found.test_error:.2f}, over {len(found.test_seeds)} "
        f"seeds that the search never saw; {len(found.policy)} nodes",
        highlight=False,
        soft_wrap=True,
    )
    out.print(
        f"chosen from {len(found.candidates)} finalists by {best.mean:.2f} on {best.episodes} fresh episodes each "
        f"(in the search it had {best.search_reward:.2f}){trimmed}",
        highlight=False,
        soft_wrap=True,
    )
    failed = f", {found.search.failure_count} failed" if found.search.failure_count else ""
    out.print(
        f"{found.calls} objective calls{failed}, {found.episodes} episodes and {found.validation_episodes} "
        f"for the choice, {found.search.seconds:.1f} s: {found.search.sentence}",
        highlight=False,
        soft_wrap=True,
    )


def shortened(text: str, width: int) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= width else text[: width - 1] + "…"
