"""The commands for tree policies: `policy` searches one, `play` shows it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from discodso.base.errors import DeclarationError
from discodso.cli.output import callbacks_for, json_text, show_policy
from discodso.cli.running import CheckpointSeconds, Events, Json, Out, TensorBoardFolder

if TYPE_CHECKING:
    from discodso.tasks.policies.environments import Interface


def policy(
    environment: Annotated[str, typer.Argument(help="Id of a Gymnasium environment, such as CartPole-v1.")],
    calls: Annotated[int, typer.Option(help="Objective calls to spend.")] = 10_000,
    episodes: Annotated[int, typer.Option(help="Episodes for one call.")] = 100,
    seed: Annotated[int, typer.Option(help="The same seed gives the same policy.")] = 0,
    max_nodes: Annotated[int, typer.Option(help="Decisions and leaves of the largest tree.")] = 31,
    typical_nodes: Annotated[
        int | None,
        typer.Option(help="Begin with trees of about this size, 0 for any. By default as the preset has it."),
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes, or threads for compiled environments.")] = 1,
    out: Out = None,
    preset: Annotated[str, typer.Option(help="tuned, or paper for the paper's settings.")] = "tuned",
    racing: Annotated[
        bool | None, typer.Option(help="Cut poor trees after few episodes. By default as the preset has it.")
    ] = None,
    common_episodes: Annotated[
        bool, typer.Option(help="Let all trees meet the same episodes, instead of fresh ones.")
    ] = False,
    restart_after: Annotated[
        int | None, typer.Option(help="Begin anew after so many calls without a better tree.")
    ] = None,
    start_from: Annotated[
        list[Path],
        typer.Option(help="Folder of an earlier run, whose best trees come first; may be given again."),
    ] = [],  # noqa: B006
    trim: Annotated[
        bool | None,
        typer.Option(
            help="Cut out decisions that earn nothing, at the end. By default as the preset has it."
        ),
    ] = None,
    target: Annotated[float | None, typer.Option(help="Stop at this mean return.")] = None,
    max_time: Annotated[float | None, typer.Option(help="Seconds to search at most.")] = None,
    argument: Annotated[
        list[str], typer.Option(help="NAME=VALUE for the environment; may be given again.")
    ] = [],  # noqa: B006
    range_: Annotated[
        list[str], typer.Option("--range", help="FEATURE=LOW,HIGH for thresholds; may be given again.")
    ] = [],  # noqa: B006
    probe_ranges: Annotated[
        bool, typer.Option(help="Thresholds where features lie in random episodes, not in declared bounds.")
    ] = False,
    checkpoint_seconds: CheckpointSeconds = 60.0,
    as_json: Json = False,
    events: Events = None,
    tensorboard: TensorBoardFolder = None,
) -> None:
    """Find a decision tree that acts well in a Gymnasium environment, and score it on 1000 fresh seeds."""
    from discodso.run.callbacks import Callback, RunInfo
    from discodso.tasks.policies.environments import as_environment, describe
    from discodso.tasks.policies.policy_search import search_policy

    given = as_environment(environment, dict(_argument(text) for text in argument))
    ranges = dict(_range(text) for text in range_)
    console = Console(stderr=True, quiet=as_json)

    class Introduction(Callback):
        """Shows what the tree can look at, once all settings have turned out well."""

        def start(self, info: RunInfo) -> None:
            _show_interface(describe(given, ranges, seed, probe_ranges), console)

    found = search_policy(
        given,
        calls=calls,
        episodes=episodes,
        seed=seed,
        max_nodes=max_nodes,
        typical_nodes=typical_nodes,
        workers=workers,
        preset=preset,
        racing=racing,
        common_episodes=common_episodes,
        restart_after=restart_after,
        start_from=start_from,
        trim=trim,
        ranges=ranges,
        probe_ranges=probe_ranges,
        target=target,
        time_limit=max_time,
        callback=[Introduction(), *callbacks_for(as_json, events, tensorboard)],
        out=out,
        checkpoint_seconds=checkpoint_seconds,
    )
    if out is not None:
        console.print(f"policy, picture and history: {out}", highlight=False, soft_wrap=True)
    show_policy(found, as_json)


def play(
    policy: Annotated[
        Path, typer.Argument(help="JSON file of a policy, such as the policy.json of a search.")
    ],
    environment: Annotated[
        str | None, typer.Option("--env", help="Id of the environment; the policy's own by default.")
    ] = None,
    seed: Annotated[int, typer.Option(help="For reset.")] = 0,
    episodes: Annotated[int, typer.Option(help="Episodes to play, from this seed on.")] = 1,
    render: Annotated[bool, typer.Option("--render", help="Record the first episode as a film.")] = False,
    out: Annotated[Path | None, typer.Option(help="The film, .gif or .mp4; FILE.gif by default.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON only.")] = False,
) -> None:
    """Play episodes with a policy, and record one."""
    from discodso.base.checks import require_integer
    from discodso.tasks.policies.play import play as play_episode
    from discodso.tasks.policies.play import require_format, save_film
    from discodso.tasks.policies.tree_policy import TreePolicy

    require_integer("seed", seed, 0)
    require_integer("episodes", episodes, 1)
    film = policy.with_suffix(".gif") if out is None else out
    require_format(film)
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # frames need no screen, and SDL complains without one
    tree = TreePolicy.load(policy)
    shown = []
    for number in range(seed, seed + episodes):
        filming = (render or out is not None) and number == seed
        episode = play_episode(tree, environment, number, film=filming)
        shown.append({"seed": number, "return": episode.total, "steps": episode.steps})
        if not as_json:
            print(f"seed {number}: return {episode.total:g} after {episode.steps} steps")
        if filming:
            save_film(episode, film)
            if not as_json:
                print(f"film: {film}")
    if as_json:
        print(json_text(shown))


def _argument(text: str) -> tuple[str, Any]:
    """NAME=VALUE; the value is JSON where it can be read as such, else a string."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise DeclarationError(f"--argument must be NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, {"True": True, "False": False, "None": None}.get(value, value)


def _range(text: str) -> tuple[str, tuple[float, float]]:
    name, equals, ends = text.rpartition("=")
    parts = ends.split(",")
    try:
        low, high = (float(part) for part in parts)
    except ValueError:
        raise DeclarationError(f"--range must be FEATURE=LOW,HIGH, got {text!r}") from None
    if not equals:
        raise DeclarationError(f"--range must be FEATURE=LOW,HIGH, got {text!r}")
    return name, (low, high)


def _show_interface(interface: Interface, console: Console) -> None:
    table = Table("feature", "thresholds from", "to", "because", title=str(interface.environment))
    for name, limits, source in zip(
        interface.feature_names, interface.ranges, interface.sources, strict=True
    ):
        low, high = ("-", "-") if limits is None else (f"{limits[0]:g}", f"{limits[1]:g}")
        table.add_row(name, low, high, source if limits is not None else "never changes, left out")
    console.print(table)
    console.print("actions: " + ", ".join(word for _, word in interface.action_names), highlight=False)
