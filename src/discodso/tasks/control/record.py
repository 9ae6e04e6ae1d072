"""The folder of a policy search: the policy, its picture, the figures and the history."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from discodso.errors import DeclarationError
from discodso.files import write_atomically
from discodso.tasks.control.episodes import node_shares
from discodso.tasks.control.picture import draw
from discodso.tasks.control.search import PolicySearch

_PICTURE_EPISODES = range(100)


def check_free(folder: Path) -> None:
    """Refuse a folder that has something in it already, before a long search begins."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DeclarationError(f"{folder} exists and is not empty; name another folder or remove it")


def write(found: PolicySearch, folder: Path, command: str = "") -> None:
    """policy.json, tree.svg, tree.png, summary.json and history.jsonl."""
    check_free(folder)
    found.policy.save(folder / "policy.json")
    summary = {**found.summary(), "command": command}
    write_atomically(folder / "summary.json", json.dumps(summary, indent=1, allow_nan=False) + "\n")
    rows = [json.dumps(asdict(row), allow_nan=False) for row in found.search.history]
    write_atomically(folder / "history.jsonl", "\n".join(rows) + "\n")
    shares = node_shares(found.policy, found.interface.environment, _PICTURE_EPISODES)
    title = (
        f"{found.interface.environment}: {found.test_mean:.2f} ± {found.test_error:.2f} "
        f"over {len(found.test_seeds)} seeds, {len(found.policy)} nodes"
    )
    for name in ("tree.svg", "tree.png"):
        draw(found.policy, folder / name, shares=shares, title=title)
