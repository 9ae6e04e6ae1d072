"""The command play: episodes of a policy, and a film of one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from discodso.base.terminal import visible
from discodso.cli.command_options import AsJson
from discodso.cli.output import json_text


def play(
    policy: Annotated[Path, Argument(help="Folder of a search, or a JSON file such as its policy.json.")],
    environment: Annotated[
        str | None, Option("--env", help="Id of the environment; the policy's own by default.")
    ] = None,
    seed: Annotated[int, Option(help="For reset.")] = 0,
    episodes: Annotated[int, Option(help="Episodes to play, from this seed on.")] = 1,
    render: Annotated[bool, Option("--render", help="Record the first episode as a film.")] = False,
    out: Annotated[Path | None, Option(help="The film, .gif or .mp4; FILE.gif by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Play episodes with a policy, and record one."""
    from discodso.base.checks import require_integer
    from discodso.tasks.policies.films import play as play_episode
    from discodso.tasks.policies.films import require_format, save_film
    from discodso.tasks.policies.tree_policy import TreePolicy, policy_file

    require_integer("seed", seed, 0)
    require_integer("episodes", episodes, 1)
    policy = policy_file(policy)
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
                print(visible(f"film: {film}"))
    if as_json:
        print(json_text(shown))
