"""What the folder of a policy search has at the end: the policy, its picture and the figures."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from discodso.base.files import read_object, write_atomically
from discodso.run.folder import ENVIRONMENT
from discodso.tasks.policies.episodes import node_shares
from discodso.tasks.policies.policy_choice import PolicySearch

POLICY, SUMMARY, PICTURE = "policy.json", "summary.json", "tree.svg"
_PICTURE_EPISODES = range(100)


def read_policy(folder: Path) -> dict[str, Any] | None:
    """What `write` has written: the tree, the figures and the picture, each None if it is not there."""
    try:
        picture = (folder / PICTURE).read_text(encoding="utf-8")
    except (OSError, ValueError):
        picture = None
    policy, summary = read_object(folder / POLICY), read_object(folder / SUMMARY)
    return None if policy is summary is None else {"policy": policy, "summary": summary, "picture": picture}


def write(found: PolicySearch, folder: Path) -> None:
    """policy.json, tree.svg, tree.png, and at last summary.json: where it is, all the others are."""
    from discodso.tasks.policies.tree_picture import draw  # here, because pictures need Matplotlib

    found.policy.save(folder / POLICY)
    shares = node_shares(found.policy, found.interface.environment, _PICTURE_EPISODES)
    title = (
        f"{found.interface.environment}: {found.test_mean:.2f} ± {found.test_error:.2f} "
        f"over {len(found.test_seeds)} seeds, {len(found.policy)} nodes"
    )
    for name in (PICTURE, "tree.png"):
        draw(found.policy, folder / name, shares=shares, title=title)
    summary = {**found.summary(), "command": _command(folder)}
    write_atomically(folder / SUMMARY, json.dumps(summary, indent=1, allow_nan=False) + "\n")


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
