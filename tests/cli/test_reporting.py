"""The commands report and compare, as docs/reports.md has them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from command import invoked

from discodso import TreePolicy, search_policy

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


def test_policies_are_compared_by_their_returns_in_the_same_episodes(tmp_path):
    """Folders and files together; runs of one method get their means beside it, and --at goes by rewards."""
    runs = []
    for seed in (0, 1):
        for nodes in (3, 15):
            runs.append(tmp_path / f"{nodes}-{seed}")
            own = {"budget": 60, "episodes": 4, "max_nodes": nodes, "seed": seed, "test_seeds": range(3)}
            search_policy("CartPole-v1", **own, out=runs[-1])
    file = shutil.copy(runs[0] / "policy.json", tmp_path / "copy.json")
    asked = ("--seeds", "7-26,100", "--json")
    two = json.loads(invoked("compare", runs[1], file, *asked).stdout)
    policies = [TreePolicy.load(path) for path in (runs[1] / "policy.json", file)]
    returns = [policy.evaluate(seeds=[*range(7, 27), 100]) for policy in policies]
    assert [own["mean"] for own in two["policies"]] == [own.mean() for own in returns]
    assert two["differences"][0]["difference"] == (returns[0] - returns[1]).mean()
    assert "methods" not in two
    four = json.loads(invoked("compare", *runs, *asked).stdout)
    means = {own["label"]: own["mean"] for own in four["policies"]}
    assert len(four["differences"]) == 6
    scores = {own["label"]: own["scores"] for own in four["methods"]}
    assert sorted(map(sorted, scores.values())) == sorted(
        sorted(means[str(tmp_path / f"{nodes}-{seed}")] for seed in (0, 1)) for nodes in (3, 15)
    )
    said = invoked("compare", *runs, "--seeds", "7-26", "--csv", tmp_path / "table.csv").stdout
    assert "20 fresh episodes, the same for all" in said
    assert (tmp_path / "table.csv").read_text().count("\n") == 5
    assert "best rewards after 60 objective calls" in invoked("compare", *runs, "--at", "60").stdout
