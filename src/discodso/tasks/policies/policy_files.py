"""What the folder of a policy search has at the end: the policy, its picture and the figures."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from discodso.base.files import write_atomically
from discodso.run.folder import ENVIRONMENT
from discodso.tasks.policies.episodes import node_shares
from discodso.tasks.policies.policy_choice import PolicySearch
from discodso.tasks.policies.tree_picture import draw

_PICTURE_EPISODES = range(100)


def write(found: PolicySearch, folder: Path) -> None:
    """policy.json, tree.svg, tree.png, and at last summary.json: where it is, all the others are."""
    found.policy.save(folder / "policy.json")
    shares = node_shares(found.policy, found.interface.environment, _PICTURE_EPISODES)
    title = (
        f"{found.interface.environment}: {found.test_mean:.2f} ± {found.test_error:.2f} "
        f"over {len(found.test_seeds)} seeds, {len(found.policy)} nodes"
    )
    for name in ("tree.svg", "tree.png"):
        draw(found.policy, folder / name, shares=shares, title=title)
    summary = {**found.summary(), "command": _command(folder)}
    write_atomically(folder / "summary.json", json.dumps(summary, indent=1, allow_nan=False) + "\n")


def _command(folder: Path) -> str:
    """What the run was started by."""
    try:
        return shlex.join(json.loads((folder / ENVIRONMENT).read_bytes())["command"])
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
    ):  # the kill came before it was written, or someone edited it
        return ""
