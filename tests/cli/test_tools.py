"""The commands check and doctor."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

from command import invoked

ROOT = Path(__file__).parents[2]


def test_a_task_that_is_not_sound_is_told(tmp_path, monkeypatch):
    (tmp_path / "unsound_task.py").write_text(
        "import random\n"
        "from discodso import FixedSequence, Space, Task, Token\n"
        "space = Space([Token('a'), Token('b')], FixedSequence(3))\n"
        "task = Task(space, lambda design: random.random())\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    done = invoked("check", "unsound_task:task")
    assert done.exit_code == 1
    assert "the objective gave" in done.stderr


with (ROOT / "pyproject.toml").open("rb") as project:
    EXTRAS = set(tomllib.load(project)["project"]["optional-dependencies"]) - {"dev", "browser"}  # for users


def test_the_doctor_tells_what_there_is():
    found = json.loads(invoked("doctor", "--json").stdout)
    assert found["missing"] == []
    assert found["needed"]["torch"]
    assert set(found["extras"]) == EXTRAS
    assert "Slurm" in invoked("doctor").output
