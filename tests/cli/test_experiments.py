"""The commands reproduce and bench."""

from __future__ import annotations

import pytest
from command import run
from tiny_scale import TINY, ignore

from discodso.base.errors import DeclarationError
from discodso.reproduce.artefacts import ARTEFACTS, reproduce
from discodso.run.executors.registry import Threads


def test_the_command_lists_names_and_refuses_others(tmp_path):
    listed = run("reproduce")
    assert listed.returncode == 0
    assert all(name in listed.stdout for name in ARTEFACTS)
    wrong = run("reproduce", "figure-7", "--out", str(tmp_path))
    assert wrong.returncode == 1
    assert "NAME must be one of" in wrong.stderr
    made = run("reproduce", "landscapes", "--out", str(tmp_path / "out"), "--workers", "1")
    assert made.returncode == 0
    assert (tmp_path / "out" / "landscapes.png").exists()
    with Threads(1) as executor, pytest.raises(DeclarationError):
        reproduce("nothing", TINY, tmp_path, executor, ignore)
