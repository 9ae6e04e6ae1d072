"""The commands report and compare, as docs/reports.md has them."""

from __future__ import annotations

import shutil
from pathlib import Path

from command import invoked

ROOT = Path(__file__).parents[2]


def test_the_page_on_reports_is_true(tmp_path, monkeypatch):
    """Its Python blocks run, and its commands do what it says."""
    import re
    import shlex

    from report_runs import bitstrings

    text = (ROOT / "docs/reports.md").read_text()
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "reports.md", "exec"), {"__name__": "reports"})  # our own text
    made = bitstrings(Path("runs"))
    shutil.copytree(made[0], "runs/first")
    for folder in made[:2]:
        shutil.copytree(folder, f"runs/seed-{folder.name}")
    commands = re.findall(r"^\$ (discodso [^#\n]*)", text, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        words = [
            name
            for word in shlex.split(command)[1:]
            for name in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
        ]
        done = invoked(*words)
        if "--live" in words:
            assert "no run is going on" in str(done.exception)
        else:
            assert done.exit_code == 0, done.output
    assert Path("runs/first/report.html").exists()
    assert Path("table.csv").exists()
    assert Path("curves.pdf").exists()
