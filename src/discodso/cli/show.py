"""The command show: what a run has found and how it stands, also while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from discodso.base.files import read_object
from discodso.cli.output import json_text


def standing(folder: Path) -> dict[str, Any]:
    """How the run in a folder stands, for JSON."""
    from discodso.run.folder import (
        HISTORY,
        best_designs,
        first_failures,
        is_running,
        read_history,
        read_settings,
        read_top,
        require_run_folder,
    )
    from discodso.run.kinds import kind_named, kind_names

    require_run_folder(folder)
    settings = read_settings(folder / "settings.toml")
    history = read_history(folder / HISTORY)
    top = read_top(folder) or {}
    running = is_running(folder)
    ended = None if running else top.get("stop")
    policy = read_summary(folder)
    run = settings.get("run")
    task = settings.get("task")
    name = task.get("kind") if isinstance(task, dict) else None
    last = kind_named(name).last if name in kind_names() else ""
    if last and (read_object(folder / last) or {}).get("calls") != top.get("calls"):
        ended = None  # the search may have, but what comes after it is missing, or that of a shorter run
    return {
        "folder": str(folder),
        "task": settings.get("task"),
        "budget": run.get("budget") if isinstance(run, dict) else None,
        "state": "running" if running else ("ended" if ended else "stopped"),
        "stop": ended,
        "stop_sentence": top.get("stop_sentence") if ended else None,
        "batches": len(history),
        "last": history[-1].to_dict() if history else None,
        "top": [scored.to_dict() for scored in best_designs(top)],
        "policy": policy,
        "failures": first_failures(top),
    }


def read_summary(folder: Path) -> dict[str, Any] | None:
    """The figures of the policy that was chosen, None if there is none."""
    try:
        found = read_object(folder / "summary.json") or {}
        keys = ("test_mean", "test_error", "nodes", "calls", "episodes", "validation_episodes")
        return {key: found[key] + 0 for key in keys}
    except (KeyError, TypeError):
        return None


def show(
    folder: Annotated[Path, typer.Argument(help="Folder of a run.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Print what a run has found and how it stands, also while it runs."""
    found = standing(folder)
    if as_json:
        print(json_text(found))
        return
    from rich.console import Console
    from rich.table import Table

    from discodso.run.result import Scored

    console = Console()

    def say(line: str) -> None:
        console.print(line, highlight=False, soft_wrap=True, markup=False)

    task = found["task"] if isinstance(found["task"], dict) else {}
    name = next((task[key] for key in ("name", "task", "environment") if task.get(key)), "")
    say(f"{folder}: {task.get('kind', 'unknown')} task {name}".rstrip())
    last = found["last"]
    if last is None:
        say("no batch has been evaluated yet")
    else:
        best = "none" if last["best"] is None else f"{last['best']:.6g}"
        say(
            f"{last['calls']} of {found['budget']} objective calls in {last['seconds']:.1f} s, "
            f"{last['failures']} failed, best reward {best}"
        )
    if found["top"]:
        table = Table("reward", "call", "design", title="best designs", title_justify="left")
        for scored in found["top"][:5]:
            table.add_row(
                Scored.from_dict(scored).reward_text(), str(scored["call"]), _design(scored["design"])
            )
        console.print(table)
    policy = found["policy"]
    if policy is not None:
        say(
            f"policy.json after {policy['calls']} calls: {policy['nodes']} nodes, test mean "
            f"{policy['test_mean']:.2f}, standard error {policy['test_error']:.2f}"
        )
    if found["failures"]:
        say(f"the first failure: the objective {found['failures'][0]['reason']}")
    if found["state"] == "running":
        say("it is running")
    elif found["state"] == "ended":
        say(f"it has ended: {found['stop_sentence']}")
    else:
        say(f"it is not running and has not ended; go on with it by `discodso resume {folder}`")


def _design(data: Any) -> str:
    from rich.markup import escape

    from discodso.cli.output import shortened
    from discodso.space.design import Design

    return escape(shortened(str(Design.from_dict(data)), 200))
